package format

import "math"

// BlockDims returns the number of dst and src rows of the block of a layer (AnyLayer
// for a block that serves every layer), by the rules of SPEC 4.2.
func (r *Record) BlockDims(layer uint16) (numDst, numSrc uint64) {
	switch {
	case len(r.HopNodes) == 0:
		return 0, 0
	case r.Space == SpaceGlobal:
		return r.DstEnd - r.DstStart, r.HopNodes[0]
	case r.NumLayers == 0:
		return r.HopNodes[0], r.HopNodes[0]
	}
	dstHop := r.NumLayers - 1 - int(layer)
	return r.HopNodes[dstHop], r.HopNodes[dstHop+1]
}

// NumNodes returns the number of nodes of the record's index space.
func (r *Record) NumNodes() uint64 {
	if len(r.HopNodes) == 0 {
		return 0
	}
	return r.HopNodes[len(r.HopNodes)-1]
}

// checkCounts checks the head's counts against each other (SPEC 4.2).
func (r *Record) checkCounts() error {
	prev := uint64(0)
	for h, n := range r.HopNodes {
		if n < prev || n > math.MaxInt32 {
			return faultf(ErrLayout, r.place, "nodes to hop %d are %d after %d", h, n, prev)
		}
		prev = n
	}
	switch {
	case r.Space == SpaceGlobal && (r.NumLayers != 0 || len(r.HopNodes) != 1):
		return faultf(ErrLayout, r.place, "global indices with %d layers and %d hops", r.NumLayers, len(r.HopNodes))
	case r.Space == SpaceGlobal && (r.DstStart > r.DstEnd || r.DstEnd > r.HopNodes[0]):
		return faultf(ErrLayout, r.place, "dst rows %d to %d of %d nodes", r.DstStart, r.DstEnd, r.HopNodes[0])
	case r.Space == SpaceGlobal && r.NumSeeds > r.DstEnd-r.DstStart:
		return faultf(ErrLayout, r.place, "%d seeds in %d dst rows", r.NumSeeds, r.DstEnd-r.DstStart)
	case r.Space == SpaceLocal && (r.DstStart != 0 || r.DstEnd != 0):
		return faultf(ErrLayout, r.place, "local indices with a dst range")
	case r.Space == SpaceLocal && len(r.HopNodes) != r.NumLayers+1:
		return faultf(ErrLayout, r.place, "%d hops for %d layers", len(r.HopNodes), r.NumLayers)
	case r.Space == SpaceLocal && (r.NumSeeds > r.HopNodes[0] || r.NumLayers > 0 && r.NumSeeds != r.HopNodes[0]):
		return faultf(ErrLayout, r.place, "%d seeds, hop 0 has %d nodes", r.NumSeeds, r.HopNodes[0])
	}
	for i := range r.Sections {
		if err := r.checkLayer(i, &r.Sections[i]); err != nil {
			return err
		}
	}
	if r.Space == SpaceLocal && (r.Task == TaskNode || r.Task == TaskLink) && r.Find(NodesNumber, AnyLayer, CoefNone) == nil {
		return faultf(ErrLayout, r.place, "a %s batch without %s", r.Task, NodesNumber)
	}
	return nil
}

// checkLayer checks which layer a section says that it is of (SPEC 5.1). Blocks differ
// in their numbers of rows, so in a record with layers each belongs to one; what is
// stored once per node may serve all of them.
func (r *Record) checkLayer(i int, s *Section) error {
	if s.Codec == CodecBits && (r.Space != SpaceLocal || !mayHaveBits(s.Kind, s.DType)) {
		return faultf(ErrLayout, r.place, "section %d (%s of %s) is of codec %s, which is for integers of nodes, block and transpose in local indices", i, s.Kind, s.DType, s.Codec)
	}
	_, known := kindSpecs[s.Kind]
	switch perLayer := s.Kind>>8 == 2 || s.Kind>>8 == 4 || s.Kind == CoefEdge; {
	case s.Layer != AnyLayer && int(s.Layer) >= r.NumLayers:
		return faultf(ErrLayout, r.place, "section %d (%s) is of layer %d of %d", i, s.Kind, s.Layer, r.NumLayers)
	case known && s.Layer != AnyLayer && !s.Kind.isLayered():
		return faultf(ErrLayout, r.place, "section %d (%s) is of layer %d, want all", i, s.Kind, s.Layer)
	case known && s.Layer == AnyLayer && perLayer && r.NumLayers > 0:
		return faultf(ErrLayout, r.place, "section %d (%s) is of no single layer", i, s.Kind)
	}
	return nil
}

// contents checks what SPEC 9.3 asks of a record's arrays: lengths that follow from the counts, offsets that rise from 0 to
// the end, indices in bounds, flags in range. A section is checked part by part, as its bytes pass (see Record.verify): so
// each is fetched from memory once, and of a file larger than the memory only a part needs to be there.
type contents struct {
	*Record
	countedLines uint64 // in the parts of lines.count and lines.large so far
}

// partCheck checks a part of a section, which begins at byte `at` of it. Parts come in order, of partBytes but for the last;
// an empty section is one empty part. Nothing outside of the part may be read but what hangs on it.
type partCheck func(b []byte, at int) error

// partBytes is what is checked at a time: small enough to be still in the cache when it is read for the second time, a multiple of
// every element's size.
const partBytes = 1 << 20

// isLast reports whether a part ends its section.
func (s *Section) isLast(b []byte, at int) bool { return uint64(at+len(b)) == s.PlainBytes }

// coded checks a section of codec bits: how it is coded, and with check, which may be nil, what it decodes to.
func (r *contents) coded(s *Section, check partCheck) error {
	if s.DType == I32 {
		return checkCoded[int32](r.Record, s, check)
	}
	return checkCoded[int64](r.Record, s, check)
}

func checkCoded[T integer](r *Record, s *Section, check partCheck) error {
	v, err := bitsOf[T](r.place, s)
	if err != nil {
		return err
	}
	if !v.zeroFill() {
		return faultf(ErrLayout, r.place, "the bits behind the last number of %s are not zero", s.name())
	}
	if check == nil {
		return nil
	}
	var buf [64 * BitsBlock]T
	for at := 0; ; {
		part := buf[:min(v.numbers, len(buf))]
		v.take(part)
		b := Bytes(part)
		if err := check(b, at); err != nil || s.isLast(b, at) {
			return err
		}
		at += len(b)
	}
}

// section checks the shape of a section, and returns the check of its parts, nil where there is nothing to check.
func (r *contents) section(s *Section) (partCheck, error) {
	numDst, numSrc := r.sectionDims(s.Layer)
	numEdges := r.lenOf(BlockIndices, s.Layer)
	switch s.Kind {
	case NodesNumber, NodesType, NodesRow:
		return r.wantIndices(s, r.NumNodes(), math.MaxInt32)
	case NodesTable:
		return r.wantBytes(s, r.NumNodes(), 3)

	case BlockIndptr:
		return r.wantOffsets(s, numDst, numEdges)
	case BlockIndices:
		if err := r.wantBeside(s, BlockIndptr); err != nil {
			return nil, err
		}
		return r.wantIndices(s, numEdges, numSrc)
	case BlockRel:
		return r.wantIndices(s, numEdges, math.MaxInt32)
	case BlockRelptr:
		return r.wantOffsets(s, max(s.NumElements(), 1)-1, numEdges)
	case BlockWeight, BlockEdgeID, BlockTime:
		return nil, r.wantLen(s, numEdges)

	case CoefSrc:
		return nil, r.wantLen(s, r.coefRows(s.Layer, numSrc))
	case CoefDst, CoefSelf:
		return nil, r.wantLen(s, r.coefRows(s.Layer, numDst))
	case CoefImportance:
		return nil, r.wantLen(s, numDst)
	case CoefEdge:
		return nil, r.wantLen(s, numEdges)

	case TransposeIndptr:
		if err := r.wantBeside(s, TransposeIndices); err != nil {
			return nil, err
		}
		return r.wantOffsets(s, numSrc, numEdges)
	case TransposeIndices:
		if err := r.wantBeside(s, TransposeIndptr); err != nil {
			return nil, err
		}
		return r.wantIndices(s, numEdges, numDst)
	case TransposeEdge:
		if err := r.wantBeside(s, TransposeIndptr); err != nil {
			return nil, err
		}
		return r.wantPositions(s, numEdges)
	case TransposeRel:
		if err := r.wantBeside(s, TransposeIndptr); err != nil {
			return nil, err
		}
		return r.wantIndices(s, numEdges, math.MaxInt32)

	case SeedsLabel:
		return r.wantLabels(s)
	case SeedsMask:
		if err := r.wantRows(s, r.NumSeeds); err != nil {
			return nil, err
		}
		return r.wantBytes(s, s.NumElements(), uint8(PartTest))
	case SeedsWeight:
		return nil, r.wantLen(s, r.NumSeeds)

	case PairsSrc, PairsDst:
		return r.wantIndices(s, r.lenOf(PairsSrc, s.Layer), r.NumNodes())
	case PairsRel:
		return r.wantIndices(s, r.lenOf(PairsSrc, s.Layer), math.MaxInt32)
	case PairsLabel, PairsWeight:
		return nil, r.wantLen(s, r.lenOf(PairsSrc, s.Layer))
	case KGEPositives, KGEEdges:
		if s.Shape[1] != 3 {
			return nil, faultf(ErrLayout, r.place, "%s has shape %v, want 3 columns", s.Kind, s.Shape)
		}
		return r.wantIndices(s, s.NumElements(), math.MaxInt32)
	case KGEChunkptr:
		return r.wantOffsets(s, max(s.NumElements(), 1)-1, r.lenOf(KGEPositives, s.Layer)/3)
	case KGEKnown, KGEGuests:
		return r.wantIndices(s, s.NumElements(), math.MaxInt32)
	case KGEDepth:
		return r.wantIndices(s, r.NumNodes(), math.MaxInt32)
	case KGERange:
		if err := r.wantLen(s, 2); err != nil {
			return nil, err
		}
		if v := view[int64](s.data); v[0] < 0 || v[0] > v[1] {
			return nil, faultf(ErrLayout, r.place, "%s is %d to %d", s.Kind, v[0], v[1])
		}

	case TableRows:
		if s.DType == I8 && r.Find(TableScale, s.Layer, CoefNone) == nil {
			return nil, faultf(ErrLayout, r.place, "%s of %s without %s", s.Kind, s.DType, TableScale)
		}
		if r.Find(NodesRow, AnyLayer, CoefNone) == nil {
			return nil, r.wantRows(s, r.NumNodes())
		}
	case TableScale:
		columns := s.NumElements()
		if rows := r.Find(TableRows, s.Layer, CoefNone); rows != nil {
			columns = rows.Shape[1]
		}
		return wantPositive[float32](r.Record, s, columns)

	case GraphComponent:
		return r.wantIndices(s, r.NumNodes(), r.lenOf(GraphComponentSize, s.Layer))
	case GraphComponentSize:
		return r.wantSizes(s, r.NumNodes())
	case IDsOffsets:
		return r.wantOffsets(s, r.NumNodes(), r.lenOf(IDsBytes, s.Layer))
	case IDsKey:
		return nil, r.wantLen(s, r.NumNodes())
	case NamesOffsets:
		return r.wantOffsets(s, max(s.NumElements(), 1)-1, r.lenOf(NamesBytes, s.Layer))

	case Hop2Indptr:
		if err := r.wantBeside(s, Hop2Indices); err != nil {
			return nil, err
		}
		return r.wantOffsets(s, r.NumNodes(), r.lenOf(Hop2Indices, s.Layer))
	case Hop2Indices:
		if err := r.wantBeside(s, Hop2Indptr); err != nil {
			return nil, err
		}
		return r.wantIndices(s, s.NumElements(), r.NumNodes())

	case RankPageRank:
		return wantPositive[float64](r.Record, s, r.NumNodes())
	case RankWeight:
		return wantPositive[float32](r.Record, s, r.NumNodes())
	case RankMass:
		return wantPositive[float64](r.Record, s, s.NumElements())
	case RankOrder:
		return r.wantPermutation(s)

	case LinesCount:
		return r.wantLineCounts(s)
	case LinesLarge:
		if err := r.wantBeside(s, LinesCount); err != nil {
			return nil, err
		}
		return r.wantLargeCounts(s), nil
	case LinesWeight:
		return nil, r.wantBeside(s, LinesCount)
	case LinesNamed:
		return nil, r.wantNodeBits(s)
	}
	if s.Kind>>8 == Hop1Code>>8 {
		return r.hop1(s)
	}
	return nil, nil
}

// across checks what hangs on the contents of several sections, after all of them have passed. p may be nil.
func (r *contents) across(p *pass) error {
	for i := range r.Sections {
		s := &r.Sections[i]
		var err error
		switch s.Kind {
		case NodesRow:
			err = r.wantOwnRows(s)
		case BlockRelptr:
			err = r.wantRelptr(s, p)
		case LinesWeight:
			err = r.wantLen(s, r.countedLines)
		default:
			continue
		}
		if err != nil {
			return err
		}
		p.drop()
	}
	return r.checkLayerEdges()
}

// hop1 checks a section of the index of neighbours: what follows from lengths, and that offsets stay inside.
// What the runs hold is checked by who reads them (SPEC 9.4).
func (r *contents) hop1(s *Section) (partCheck, error) {
	for kind := Hop1Code; kind <= Hop1Large; kind++ {
		if err := r.wantBeside(s, kind); err != nil {
			return nil, err
		}
	}
	numGroups := (r.NumNodes() + HopGroupNodes - 1) / HopGroupNodes
	numLarge, numChunks := r.lenOf(Hop1LargeStart, s.Layer), r.lenOf(Hop1ChunkBase, s.Layer)
	runBytes := func(kind Kind) uint64 { return max(r.lenOf(kind, s.Layer), HopSlack) - HopSlack }
	switch s.Kind {
	case Hop1Code, Hop1Offset:
		return nil, r.wantLen(s, r.NumNodes())
	case Hop1GroupStart:
		return r.wantOffsets(s, numGroups, runBytes(Hop1Compact))
	case Hop1GroupLarge:
		return r.wantOffsets(s, numGroups, numLarge)
	case Hop1LargeChunk:
		return r.wantOffsets(s, numLarge, numChunks)
	case Hop1LargeStart:
		return r.wantRising(s, runBytes(Hop1Large)), nil
	case Hop1LargeLast:
		return r.wantBytes(s, numLarge, HopChunk-1)
	case Hop1LargeShift:
		return r.wantShifts(s, numLarge)
	case Hop1ChunkBase:
		return r.wantIndices(s, numChunks, r.NumNodes())
	case Hop1ChunkStart:
		return nil, r.wantLen(s, numChunks)
	case Hop1Compact, Hop1Large:
		if n := len(s.data); n < HopSlack || !allZero(s.data[n-HopSlack:]) {
			return nil, faultf(ErrLayout, r.place, "%s doesn't end with %d zero bytes", s.Kind, HopSlack)
		}
	}
	return nil, nil
}

// sectionDims is BlockDims, and for a section of AnyLayer in a record with layers the
// widest block's (per-node coefficients are stored once for all layers).
func (r *Record) sectionDims(layer uint16) (numDst, numSrc uint64) {
	if layer == AnyLayer && r.Space == SpaceLocal && r.NumLayers > 0 {
		layer = 0
	}
	return r.BlockDims(layer)
}

// coefRows is the length of a per-node coefficient section: rows of its layer's block, of the widest block's for AnyLayer;
// in a global record every node, whatever rows the block has.
func (r *Record) coefRows(layer uint16, blockRows uint64) uint64 {
	if layer == AnyLayer && r.Space == SpaceGlobal {
		return r.NumNodes()
	}
	return blockRows
}

func (r *Record) lenOf(kind Kind, layer uint16) uint64 {
	if s := r.Find(kind, layer, CoefNone); s != nil {
		return s.NumElements()
	}
	return 0
}

// wantBeside checks that a section is not there without another of its layer.
func (r *Record) wantBeside(s *Section, kind Kind) error {
	if r.Find(kind, s.Layer, CoefNone) == nil {
		return faultf(ErrLayout, r.place, "%s without %s", s.name(), kind)
	}
	return nil
}

func (r *Record) wantLen(s *Section, want uint64) error {
	if len(s.Shape) != 1 || s.Shape[0] != want {
		return faultf(ErrLayout, r.place, "%s has shape %v, want %d", s.name(), s.Shape, want)
	}
	return nil
}

func (r *Record) wantRows(s *Section, want uint64) error {
	if s.Shape[0] != want {
		return faultf(ErrLayout, r.place, "%s has %d rows, want %d", s.Kind, s.Shape[0], want)
	}
	return nil
}

// wantOffsets checks an i64 or i32 array of n+1 offsets that rises from 0 to end.
func (r *Record) wantOffsets(s *Section, n, end uint64) (partCheck, error) {
	if err := r.wantLen(s, n+1); err != nil {
		return nil, err
	}
	if s.DType == I32 {
		return offsets[int32](r, s, end)
	}
	return offsets[int64](r, s, end)
}

func offsets[T int32 | int64](r *Record, s *Section, end uint64) (partCheck, error) {
	size, last := int(s.DType.SizeBytes()), T(0)
	return func(b []byte, at int) error {
		v := view[T](b)
		if at == 0 && v[0] != 0 {
			return faultf(ErrLayout, r.place, "%s begins with %d, want 0", s.name(), v[0])
		}
		for i, x := range v {
			if last > x {
				return faultf(ErrLayout, r.place, "%s falls from %d to %d at %d", s.name(), last, x, at/size+i)
			}
			last = x
		}
		if s.isLast(b, at) && uint64(last) != end {
			return faultf(ErrLayout, r.place, "%s ends with %d, want %d", s.name(), last, end)
		}
		return nil
	}, nil
}

// wantRising checks that an i64 array never falls and lies in 0..end.
func (r *Record) wantRising(s *Section, end uint64) partCheck {
	previous := int64(0)
	return func(b []byte, at int) error {
		for i, x := range view[int64](b) {
			if x < previous || uint64(x) > end {
				return faultf(ErrLayout, r.place, "element %d of %s is %d after %d, at most %d", at/8+i, s.name(), x, previous, end)
			}
			previous = x
		}
		return nil
	}
}

// wantShifts checks n shifts of directories, each 0..31 or HopNoDirectory.
func (r *Record) wantShifts(s *Section, n uint64) (partCheck, error) {
	return func(b []byte, at int) error {
		for i, x := range b {
			if x > 31 && x != HopNoDirectory {
				return faultf(ErrLayout, r.place, "element %d of %s is %d, want 0 to 31 or %d", at+i, s.name(), x, HopNoDirectory)
			}
		}
		return nil
	}, r.wantLen(s, n)
}

// wantPositive checks n floats over 0 and below infinity.
func wantPositive[T float32 | float64](r *Record, s *Section, n uint64) (partCheck, error) {
	size := int(s.DType.SizeBytes())
	return func(b []byte, at int) error {
		for i, x := range view[T](b) {
			if !(x > 0) || math.IsInf(float64(x), 0) {
				return faultf(ErrLayout, r.place, "element %d of %s is %v, want a number over 0", at/size+i, s.name(), x)
			}
		}
		return nil
	}, r.wantLen(s, n)
}

// wantPermutation checks an i32 array that lists each node once.
func (r *Record) wantPermutation(s *Section) (partCheck, error) {
	n := r.NumNodes()
	inBounds, err := r.wantIndices(s, n, n)
	if err != nil {
		return nil, err
	}
	seen := make([]uint64, (n+63)/64)
	return func(b []byte, at int) error {
		if err := inBounds(b, at); err != nil {
			return err
		}
		for i, v := range view[uint32](b) {
			if bit := uint64(1) << (v % 64); seen[v/64]&bit != 0 {
				return faultf(ErrLayout, r.place, "element %d of %s is %d, listed before", at/4+i, s.name(), v)
			} else {
				seen[v/64] |= bit
			}
		}
		return nil
	}, nil
}

// wantLineCounts checks that each row of lines.count counts a line, and that lines.large has the counts that are elsewhere.
func (r *contents) wantLineCounts(s *Section) (partCheck, error) {
	if s.Shape[1] != 2 {
		return nil, faultf(ErrLayout, r.place, "%s has shape %v, want 2 columns", s.Kind, s.Shape)
	}
	large := uint64(0)
	return func(b []byte, at int) error {
		lines, elsewhere := uint64(0), uint64(0)
		for i := 0; i+1 < len(b); i += 2 {
			if b[i]|b[i+1] == 0 {
				return faultf(ErrLayout, r.place, "row %d of %s counts no line", (at+i)/2, s.Kind)
			}
			for _, n := range b[i : i+2] {
				if n == LinesLargeCount {
					elsewhere++
				} else {
					lines += uint64(n)
				}
			}
		}
		large, r.countedLines = large+elsewhere, r.countedLines+lines
		if n := r.lenOf(LinesLarge, s.Layer); s.isLast(b, at) && n != large {
			return faultf(ErrLayout, r.place, "%s has %d elements of %d, %s has %d", s.Kind, large, LinesLargeCount, LinesLarge, n)
		}
		return nil
	}, nil
}

// wantLargeCounts checks counts that stand for LinesLargeCount; all counts together must fit in 63 bits.
func (r *contents) wantLargeCounts(s *Section) partCheck {
	left := uint64(math.MaxInt64) - 255*r.lenOf(LinesCount, s.Layer)
	return func(b []byte, at int) error {
		for i, n := range view[uint64](b) {
			if n < LinesLargeCount || n > left {
				return faultf(ErrLayout, r.place, "element %d of %s is %d, want %d or more, and all together below 2^63", at/8+i, s.Kind, n, LinesLargeCount)
			}
			left -= n
			r.countedLines += n
		}
		return nil
	}
}

// wantNodeBits checks an array of a bit a node, filled up with zeros.
func (r *Record) wantNodeBits(s *Section) error {
	n := r.NumNodes()
	if err := r.wantLen(s, (n+7)/8); err != nil {
		return err
	}
	if n%8 != 0 && s.data[n/8]>>(n%8) != 0 {
		return faultf(ErrLayout, r.place, "%s has bits behind that of node %d", s.Kind, n-1)
	}
	return nil
}

// wantIndices checks an i32 array of n elements in 0..limit-1.
func (r *Record) wantIndices(s *Section, n, limit uint64) (partCheck, error) {
	if s.NumElements() != n {
		return nil, faultf(ErrLayout, r.place, "%s has %d elements, want %d", s.name(), s.NumElements(), n)
	}
	// One branch an element: a negative number is a large unsigned one.
	lim := uint32(min(limit, math.MaxInt32+1))
	return func(b []byte, at int) error {
		for i, x := range view[uint32](b) {
			if x >= lim {
				return faultf(ErrLayout, r.place, "element %d of %s is %d, want 0 to %d", at/4+i, s.name(), int32(x), int64(lim)-1)
			}
		}
		return nil
	}, nil
}

// wantPositions checks an i64 array of n elements in 0..n-1.
func (r *Record) wantPositions(s *Section, n uint64) (partCheck, error) {
	return func(b []byte, at int) error {
		for i, x := range view[uint64](b) {
			if x >= n {
				return faultf(ErrLayout, r.place, "element %d of %s is %d of %d", at/8+i, s.name(), int64(x), n)
			}
		}
		return nil
	}, r.wantLen(s, n)
}

func (r *Record) wantBytes(s *Section, n uint64, most uint8) (partCheck, error) {
	if s.NumElements() != n {
		return nil, faultf(ErrLayout, r.place, "%s has %d elements, want %d", s.Kind, s.NumElements(), n)
	}
	return func(b []byte, at int) error {
		for i, x := range b {
			if x > most {
				return faultf(ErrLayout, r.place, "element %d of %s is %d, at most %d", at+i, s.Kind, x, most)
			}
		}
		return nil
	}, nil
}

// wantLabels checks one label a seed: classes from -1, values, or bits of several columns that are 0, 1 or Unlabelled.
func (r *Record) wantLabels(s *Section) (partCheck, error) {
	wantRank := 2
	if s.DType == I32 {
		wantRank = 1
	}
	if len(s.Shape) != wantRank {
		return nil, faultf(ErrLayout, r.place, "%s of %s has shape %v", s.Kind, s.DType, s.Shape)
	}
	if err := r.wantRows(s, r.NumSeeds); err != nil || s.DType == F32 {
		return nil, err
	}
	if s.DType == U8 {
		return func(b []byte, at int) error {
			for i, x := range b {
				if x > 1 && x != Unlabelled {
					return faultf(ErrLayout, r.place, "element %d of %s is %d, want 0, 1 or %d", at+i, s.Kind, x, Unlabelled)
				}
			}
			return nil
		}, nil
	}
	return func(b []byte, at int) error {
		for i, class := range view[int32](b) {
			if class < -1 {
				return faultf(ErrLayout, r.place, "element %d of %s is %d, want -1 or more", at/4+i, s.Kind, class)
			}
		}
		return nil
	}, nil
}

// wantOwnRows checks the elements of nodes.row that nodes.table sends to the record's
// own table.rows. Rows of other tables are bounded by those (CheckNumbers).
func (r *Record) wantOwnRows(s *Section) error {
	rows := uint64(0)
	if own := r.Find(TableRows, AnyLayer, CoefNone); own != nil {
		rows = own.Shape[0]
	}
	tables := r.Uint8s(NodesTable, AnyLayer)
	rowOf, err := numbersOf[int32](r, s)
	if err != nil {
		return err
	}
	for i, table := range tables {
		if row := rowOf.at(uint64(i)); table == OwnTable && uint64(row) >= rows {
			return faultf(ErrLayout, r.place, "element %d of %s is %d, the record has %d rows", i, s.Kind, row, rows)
		}
	}
	return nil
}

// wantRelptr checks that the (dst, relation) runs of a block, whose offsets are good by themselves, begin for each dst where its row does.
func (r *Record) wantRelptr(s *Section, p *pass) error {
	numDst, _ := r.sectionDims(s.Layer)
	n := s.NumElements() - 1
	if numDst == 0 && n == 0 {
		return nil
	}
	rows := r.Find(BlockIndptr, s.Layer, CoefNone)
	if numDst == 0 || n == 0 || n%numDst != 0 || rows == nil {
		return faultf(ErrLayout, r.place, "%s has %d runs for %d dst", s.name(), n, numDst)
	}
	indptr, err := numbersOf[int64](r, rows)
	if err != nil {
		return err
	}
	relptr, err := numbersOf[int64](r, s)
	if err != nil {
		return err
	}
	numRels := n / numDst
	for d := range numDst {
		if got, want := relptr.at(d*numRels), indptr.at(d); got != want {
			return faultf(ErrLayout, r.place, "%s starts dst %d at %d, %s at %d", s.name(), d, got, BlockIndptr, want)
		}
		if d%dropRows == dropRows-1 {
			p.drop()
		}
	}
	return nil
}

// dropRows is how many rows are compared before the pages they are in may leave memory.
const dropRows = 1 << 16

// wantSizes checks an i64 array of positive sizes that add up to total.
func (r *Record) wantSizes(s *Section, total uint64) (partCheck, error) {
	sum := uint64(0)
	return func(b []byte, at int) error {
		for i, n := range view[int64](b) {
			if n < 1 || uint64(n) > total-sum {
				return faultf(ErrLayout, r.place, "element %d of %s is %d, %d of %d nodes are left", at/8+i, s.Kind, n, total-sum, total)
			}
			sum += uint64(n)
		}
		if s.isLast(b, at) && sum != total {
			return faultf(ErrLayout, r.place, "%s adds up to %d of %d nodes", s.Kind, sum, total)
		}
		return nil
	}, nil
}

// checkLayerEdges checks that the edges of each block are counted right by the hop of
// their dst, which is what lets a model of fewer layers use a prefix.
func (r *Record) checkLayerEdges() error {
	numHops := len(r.HopNodes)
	for l := range r.NumLayers {
		s := r.Find(BlockIndptr, uint16(l), CoefNone)
		if s == nil {
			return faultf(ErrLayout, r.place, "layer %d has no %s", l, BlockIndptr)
		}
		indptr, err := numbersOf[int64](r, s)
		if err != nil {
			return err
		}
		start := int64(0)
		for h := range numHops {
			end := start
			if h < r.NumLayers-l {
				end = indptr.at(r.HopNodes[h])
			}
			if got := r.LayerEdges[l*numHops+h]; got != uint64(end-start) {
				return faultf(ErrLayout, r.place, "layer %d counts %d edges to dst of hop %d, block has %d", l, got, h, end-start)
			}
			start = end
		}
	}
	return nil
}

// CheckNumbers reports an element of an i32 section that is not in 0..limit-1, where
// the limit comes from another file (SPEC 9.4): nodes.number and the number of nodes,
// seeds.label and the number of classes (-1 passes: unlabelled). CheckRows is for nodes.row.
func (r *Record) CheckNumbers(kind Kind, limit int) error {
	return Guard(r.place, func() error {
		for i, x := range r.Int32s(kind, AnyLayer) {
			if x >= 0 && int(x) < limit || x == -1 && kind == SeedsLabel {
				continue
			}
			return faultf(ErrLayout, r.place, "element %d of %s is %d, allowed are 0 to %d", i, kind, x, limit-1)
		}
		return nil
	})
}

// CheckRows reports an element of nodes.row that is not below numRows of the table that nodes.table names: by FeatureTable, OwnTable (the
// record's own rows, which Verify bounds already), GroupTable and HotTable (SPEC 9.4).
func (r *Record) CheckRows(numRows [4]int) error {
	return Guard(r.place, func() error {
		tables := r.Uint8s(NodesTable, AnyLayer)
		for i, row := range r.Int32s(NodesRow, AnyLayer) {
			table := FeatureTable
			if tables != nil {
				table = tables[i]
			}
			if table != OwnTable && (row < 0 || int(row) >= numRows[table]) {
				return faultf(ErrLayout, r.place, "element %d of %s is %d, table %d has %d rows", i, NodesRow, row, table, numRows[table])
			}
		}
		return nil
	})
}

// CheckTranspose compares the transpose of a layer's block with the block: row s must
// list the edges that leave src s, in the order they have in the block, each once. It
// is for verifiers: Verify checks bounds, which is all that memory safety needs, and
// this reads indices in random order. It returns nil where there is no transpose.
func (r *Record) CheckTranspose(layer uint16) error {
	return Guard(r.place, func() error {
		indptr, indices := r.Int64s(BlockIndptr, layer), r.Int32s(BlockIndices, layer)
		tIndptr, tIndices, tEdge := r.Int64s(TransposeIndptr, layer), r.Int32s(TransposeIndices, layer), r.Int64s(TransposeEdge, layer)
		if tEdge == nil {
			return nil
		}
		for s := range max(len(tIndptr), 1) - 1 {
			last := int64(-1)
			for t := tIndptr[s]; t < tIndptr[s+1]; t++ {
				e, d := tEdge[t], int64(tIndices[t])
				if int(indices[e]) != s || e < indptr[d] || e >= indptr[d+1] || e <= last {
					return faultf(ErrLayout, r.place, "layer %d: entry %d of the transpose names edge %d, src %d, dst %d, which the block doesn't have there", layer, t, e, s, d)
				}
				last = e
			}
		}
		return nil
	})
}
