package graph

import (
	"math"
	"slices"
	"unsafe"
)

// linePart collects the lines of a run of edges, in the blocks of a store. It belongs to one goroutine.
type linePart struct {
	n       int64 // edges
	code    byteList
	last    byte // codes of the last n%4 edges, which aren't in code yet
	count   byteList
	large   []uint64
	weights byteList
	err     error // of the store; what is added after it is lost
}

// newLinePart returns an empty part. vals says whether the blocks of the store have weights.
func newLinePart(store *blockStore, vals bool) *linePart {
	l := byteList{store: store, vals: vals}
	return &linePart{code: l, count: l, weights: l}
}

// add appends an edge; weights are those of its lines, ascending, nil without weights.
func (p *linePart) add(count lineCount, weights []float32) {
	code := codeOf(count, weights != nil)
	if code == LinesCounted {
		for _, n := range count {
			if n >= math.MaxUint8 {
				p.large = append(p.large, uint64(n))
			}
			p.write(&p.count, []byte{uint8(min(n, math.MaxUint8))})
		}
		p.write(&p.weights, bytesOf(weights))
	}
	p.addCode(code)
}

func (p *linePart) write(l *byteList, b []byte) {
	if p.err == nil {
		p.err = l.write(b)
	}
}

func (p *linePart) addCode(code byte) {
	p.last |= code << (2 * (p.n & 3))
	if p.n++; p.n&3 == 0 {
		p.write(&p.code, []byte{p.last})
		p.last = 0
	}
}

// copyLines appends the next n edges at c, which it passes over.
func (p *linePart) copyLines(c *lineCursor, n int64) {
	from := *c
	c.skip(n)
	p.copyCodes(c.l, from.edge, n)
	p.write(&p.count, c.l.Count[2*from.counted:2*c.counted])
	p.large = append(p.large, c.l.Large[from.large:c.large]...)
	p.write(&p.weights, bytesOf(c.l.Weights[from.weight:c.weight]))
}

// copyCodes appends the codes of n edges of l, from edge from on.
func (p *linePart) copyCodes(l *Lines, from, n int64) {
	end := from + n
	for ; from < end && p.n&3 != 0; from++ {
		p.addCode(l.At(from))
	}
	for shift := 2 * (from & 3); end-from >= 4; {
		var buf [1 << 12]byte
		whole := buf[:min(int64(len(buf)), (end-from)/4)]
		first := from >> 2
		for i := range whole {
			switch {
			case l.Code == nil:
				whole[i] = allCodes[l.All]
			case shift == 0:
				whole[i] = l.Code[first+int64(i)]
			default:
				whole[i] = l.Code[first+int64(i)]>>shift | l.Code[first+int64(i)+1]<<(8-shift)
			}
		}
		p.write(&p.code, whole)
		p.n, from = p.n+4*int64(len(whole)), from+4*int64(len(whole))
	}
	for ; from < end; from++ {
		p.addCode(l.At(from))
	}
}

// joinLines puts the edges of parts one behind the other, in arrays of alloc, and drops the codes if they are all the same. It uses parts up.
func joinLines(parts []*linePart, alloc Alloc) (*Lines, error) {
	l := &Lines{}
	var count, large, weights int64
	for _, p := range parts {
		if p.err != nil {
			return nil, p.err
		}
		l.N += p.n
		count, large, weights = count+p.count.n, large+int64(len(p.large)), weights+p.weights.n
	}
	var err error
	if l.Code, err = sliceOf[byte](alloc, (l.N+3)/4); err != nil {
		return nil, err
	}
	if l.Count, err = sliceOf[uint8](alloc, count); err != nil {
		return nil, err
	}
	if weights > 0 {
		if l.Weights, err = sliceOf[float32](alloc, weights/4); err != nil {
			return nil, err
		}
	}
	l.Large = slices.Grow([]uint64(nil), int(large))
	to := Lines{Code: l.Code[:0]}
	count, weights = 0, 0
	for _, p := range parts {
		err := p.code.each(func(b []byte) { to.appendCodes(b, 4*int64(len(b))) })
		if err == nil {
			to.appendCodes([]byte{p.last}, p.n&3)
			err = p.count.each(func(b []byte) { count += int64(copy(l.Count[count:], b)) })
		}
		if err == nil {
			err = p.weights.each(func(b []byte) { weights += int64(copy(bytesOf(l.Weights)[weights:], b)) })
		}
		if err != nil {
			return nil, err
		}
		l.Large = append(l.Large, p.large...)
		p.large = nil
	}
	l.elide()
	return l, nil
}

// appendCodes appends the codes of n edges, of which codes has zeros behind the last.
func (l *Lines) appendCodes(codes []byte, n int64) {
	shift := 2 * (l.N & 3)
	if l.N += n; shift == 0 {
		l.Code = append(l.Code, codes[:(n+3)/4]...)
		return
	}
	end := int((l.N + 3) / 4)
	for _, b := range codes[:(n+3)/4] {
		l.Code[len(l.Code)-1] |= b << shift
		if len(l.Code) < end {
			l.Code = append(l.Code, b>>(8-shift))
		}
	}
}

// byteList is a list of bytes in the blocks of a store, which may be on the disk.
type byteList struct {
	store *blockStore
	vals  bool // all blocks of the store have weights, which are filled too
	n     int64
	list  blockList
	open  *block   // being filled
	room  [][]byte // of open
}

// write appends b.
func (l *byteList) write(b []byte) error {
	l.n += int64(len(b))
	for len(b) > 0 {
		if len(l.room) == 0 {
			if err := l.next(); err != nil {
				return err
			}
		}
		done := copy(l.room[0], b)
		if b, l.room[0] = b[done:], l.room[0][done:]; len(l.room[0]) == 0 {
			l.room = l.room[1:]
		}
	}
	return nil
}

// next makes room.
func (l *byteList) next() (err error) {
	if l.open != nil {
		if l.open, err = l.store.keep(&l.list, l.open); err != nil {
			return err
		}
	}
	if l.open == nil {
		l.open = l.store.get(l.vals, false)
	}
	l.open.n = blockLen
	l.room = l.open.parts()
	return nil
}

// each calls f with all bytes in order, a part at a time, and gives them up.
func (l *byteList) each(f func(b []byte)) error {
	if l.open == nil {
		return nil
	}
	again, err := l.store.keep(&l.list, l.open)
	if err != nil {
		return err
	}
	l.store.put(again)
	l.open, l.room = nil, nil
	buf := l.store.get(l.vals, false)
	defer l.store.put(buf)
	left := l.n
	for _, b := range l.list.blocks {
		loaded, err := l.store.load(b, buf)
		if err != nil {
			return err
		}
		for _, part := range loaded.parts() {
			part = part[:min(left, int64(len(part)))]
			f(part)
			left -= int64(len(part))
		}
	}
	l.store.releaseAll(&l.list)
	return nil
}

// bytesOf views floats as their bytes.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}
