package format

import "fmt"

// The constants of SPEC.md. TestSpecTables compares its tables with these.
const (
	Version       = 1
	ByteOrderMark = 0x0A0B0C0D

	HeaderSize       = 128  // file header
	TableEntrySize   = 32   // one entry of the record table
	RecordHeaderSize = 64   // fixed part of a record head
	SectionEntrySize = 96   // one section entry of a record head
	SectionAlign     = 64   // sections start at multiples of this, counted from the record
	RecordAlign      = 4096 // records start at multiples of this, counted from the file

	RecordMark = 0x42464C50 // "PLFB", little-endian
)

// Magic opens every file. The high bit and the line ends show transfers that
// mangle bytes, as in PNG.
var Magic = [8]byte{0x89, 'P', 'L', 'F', '\r', '\n', 0x1A, '\n'}

// Bounds on counts that a reader accepts before it looks at sizes.
const (
	MaxRecords  = 1 << 24
	MaxSections = 1 << 12
	MaxLayers   = 64
	MaxHops     = MaxLayers + 1
	MaxColumns  = 1 << 24 // second and third dimension of a section
)

// FileKind says what a file holds.
type FileKind uint16

// File kinds. Retired numbers stay reserved.
const (
	FileBatches  FileKind = 1  // training batches
	FileEval     FileKind = 2  // layerwise evaluation blocks
	FileFeatures FileKind = 3  // feature or lift table
	FileIDs      FileKind = 4  // external ids and node keys
	FileLabels   FileKind = 5  // labels, masks, names
	FileTopology FileKind = 6  // a snapshot's CSR, components and norm factors
	FileHops     FileKind = 7  // a snapshot's degree-bucketed hop index
	FileRank     FileKind = 8  // a snapshot's PageRank, sampling weights and locality order
	FileKG       FileKind = 9  // knowledge-graph permutation and known triples (reserved)
	FileCoefs    FileKind = 10 // per-node coefficient factors of the whole graph, for evaluation blocks
	FileHeldout  FileKind = 11 // a snapshot's pairs held out for validation and test
	FileLines    FileKind = 12 // which lines of the input a snapshot's edges came of, for updates
	FileRows     FileKind = 13 // feature rows that batches of a set share
)

var fileKindNames = map[FileKind]string{
	FileBatches: "batches", FileEval: "eval", FileFeatures: "features", FileIDs: "ids", FileLabels: "labels",
	FileTopology: "topology", FileHops: "hops", FileRank: "rank", FileKG: "kg", FileCoefs: "coefs",
	FileHeldout: "heldout", FileLines: "lines", FileRows: "rows",
}

// String gives the name SPEC.md uses.
func (k FileKind) String() string { return nameOf(fileKindNames, k) }

// Required feature bits. A reader refuses a file with a bit that it doesn't know.
const (
	RequireEncryption uint64 = 1 << 0 // sections are AES-256-GCM under nonce and tag (reserved; this version refuses it)

	knownRequired uint64 = 0
)

// Optional feature bits. A file with an optional bit that the reader doesn't know
// may hold sections of unknown kinds, which are skipped; without one an unknown
// kind is an error.
const knownOptional uint64 = 0

// Task says what a batch is for.
type Task uint16

// Tasks.
const (
	TaskNone Task = 0 // not a batch: tables, ids, topology
	TaskNode Task = 1
	TaskLink Task = 2
	TaskKGE  Task = 3
)

var taskNames = map[Task]string{TaskNone: "none", TaskNode: "node", TaskLink: "link", TaskKGE: "kge"}

// String gives the name SPEC.md uses.
func (t Task) String() string { return nameOf(taskNames, t) }

// Part is a node's or batch's place in a split.
type Part uint8

// Parts of a split; also the values of seeds.mask.
const (
	PartNone  Part = 0
	PartTrain Part = 1
	PartValid Part = 2
	PartTest  Part = 3
)

var partNames = map[Part]string{PartNone: "none", PartTrain: "train", PartValid: "valid", PartTest: "test"}

// String gives the name SPEC.md uses.
func (p Part) String() string { return nameOf(partNames, p) }

// Unlabelled marks an element of a u8 seeds.label that the source didn't give. In an i32
// one it is -1, in an f32 one the NaN 0x7FC00000.
const Unlabelled = 0xFF

// Tables that nodes.table names: where a node's feature row is (SPEC 5.4).
const (
	FeatureTable uint8 = 0 // the set's feature or lift table
	OwnTable     uint8 = 1 // table.rows of this record
	GroupTable   uint8 = 2 // rows shared by a group of batches
	HotTable     uint8 = 3 // rows of the set's most used nodes
)

// IndexSpace says what the indices of a block count.
type IndexSpace uint8

// Index spaces.
const (
	SpaceLocal  IndexSpace = 0 // positions in the batch's node list; dst are its first nodes
	SpaceGlobal IndexSpace = 1 // node numbers of the snapshot; dst are the rows DstStart..DstEnd-1
)

var spaceNames = map[IndexSpace]string{SpaceLocal: "local", SpaceGlobal: "global"}

// String gives the name SPEC.md uses.
func (s IndexSpace) String() string { return nameOf(spaceNames, s) }

// AnyLayer and AnySplit stand in a layer or split-column field for "every one".
const (
	AnyLayer uint16 = 0xFFFF
	AnySplit uint32 = 0xFFFFFFFF
)

// Coef names a kind of coefficients (SPEC 5.3).
type Coef uint16

// Coefficient kinds. CoefNone in a section entry means "not a coefficient".
const (
	CoefNone    Coef = 0
	CoefGCN     Coef = 1
	CoefMean    Coef = 2
	CoefSum     Coef = 3
	CoefRelMean Coef = 4
)

var coefNames = map[Coef]string{CoefNone: "none", CoefGCN: "gcn", CoefMean: "mean", CoefSum: "sum", CoefRelMean: "relmean"}

// String gives the name that --norm and manifests use.
func (c Coef) String() string { return nameOf(coefNames, c) }

// ParseCoef is the inverse of Coef.String.
func ParseCoef(name string) (Coef, bool) {
	for c, n := range coefNames {
		if n == name {
			return c, true
		}
	}
	return 0, false
}

// DType is the element type of a section.
type DType uint8

// Element types; all little-endian.
const (
	U8   DType = 1
	I8   DType = 2
	I16  DType = 3
	U16  DType = 4
	I32  DType = 5
	U32  DType = 6
	I64  DType = 7
	U64  DType = 8
	F16  DType = 9
	BF16 DType = 10
	F32  DType = 11
	F64  DType = 12
)

var dtypeNames = map[DType]string{U8: "u8", I8: "i8", I16: "i16", U16: "u16", I32: "i32", U32: "u32", I64: "i64", U64: "u64", F16: "f16", BF16: "bf16", F32: "f32", F64: "f64"}

// String gives the name SPEC.md uses.
func (d DType) String() string { return nameOf(dtypeNames, d) }

// SizeBytes returns the size of one element, 0 for an unknown type.
func (d DType) SizeBytes() uint64 {
	switch d {
	case U8, I8:
		return 1
	case I16, U16, F16, BF16:
		return 2
	case I32, U32, F32:
		return 4
	case I64, U64, F64:
		return 8
	}
	return 0
}

// Codec says how a section's bytes are stored (SPEC 10.2).
type Codec uint8

// Codecs.
const (
	CodecRaw  Codec = 0 // the array's bytes
	CodecBits Codec = 1 // blocks of integers, each less the block's smallest and in as many bits as the block needs
)

var codecNames = map[Codec]string{CodecRaw: "raw", CodecBits: "bits"}

// Constants of codec bits.
const (
	BitsBlock    = 128 // numbers of a block
	BitsMaxWidth = 32  // bits of a number
)

// String gives the name SPEC.md uses.
func (c Codec) String() string { return nameOf(codecNames, c) }

// Kind says what a section holds. The high byte is the group.
type Kind uint16

// Section kinds (SPEC 5.1). Retired numbers stay reserved.
const (
	NodesNumber Kind = 0x0101 // i32 [nodes] node numbers, hop-ordered, seeds first
	NodesType   Kind = 0x0102 // i32 [nodes] node types
	NodesRow    Kind = 0x0103 // i32 [nodes] row in the table named by nodes.table
	NodesTable  Kind = 0x0104 // u8  [nodes] which table: 0 the feature table, 1 this batch's rows, 2 group rows, 3 hot rows

	BlockIndptr  Kind = 0x0201 // i64 [dst+1]
	BlockIndices Kind = 0x0202 // i32 [edges]
	BlockRel     Kind = 0x0203 // i32 [edges]
	BlockRelptr  Kind = 0x0204 // i64 [dst*rels+1]
	BlockWeight  Kind = 0x0205 // f32 [edges]
	BlockEdgeID  Kind = 0x0206 // i64 [edges]
	BlockTime    Kind = 0x0207 // i64 [edges]

	CoefSrc        Kind = 0x0301 // f32 [src]
	CoefDst        Kind = 0x0302 // f32 [dst]
	CoefSelf       Kind = 0x0303 // f32 [dst]
	CoefEdge       Kind = 0x0304 // f32 [edges]
	CoefImportance Kind = 0x0305 // f32 [dst]

	TransposeIndptr  Kind = 0x0401 // i64 [src+1]
	TransposeIndices Kind = 0x0402 // i32 [edges] dst of each entry
	TransposeEdge    Kind = 0x0403 // i64 [edges] position of each entry in the block
	TransposeRel     Kind = 0x0404 // i32 [edges] relation of each entry

	SeedsLabel  Kind = 0x0501 // i32 [seeds] class | u8 [seeds,classes] bits | f32 [seeds,targets]
	SeedsMask   Kind = 0x0502 // u8 [seeds,splits] Part
	SeedsWeight Kind = 0x0503 // f32 [seeds]

	PairsSrc    Kind = 0x0601 // i32 [pairs]
	PairsDst    Kind = 0x0602 // i32 [pairs]
	PairsRel    Kind = 0x0603 // i32 [pairs]
	PairsLabel  Kind = 0x0604 // f32 [pairs]
	PairsWeight Kind = 0x0605 // f32 [pairs]

	KGEPositives Kind = 0x0701 // i32 [positives,3] head, rel, tail
	KGEChunkptr  Kind = 0x0702 // i64 [chunks+1]
	KGEKnown     Kind = 0x0703 // i32 [entries]
	KGERange     Kind = 0x0704 // i64 [2]
	KGEGuests    Kind = 0x0705 // i32 [guests]
	KGEDepth     Kind = 0x0706 // i32 [nodes]
	KGEEdges     Kind = 0x0707 // i32 [edges,3] src, rel, dst

	TableRows  Kind = 0x0801 // f32|f16|bf16|i8 [rows,cols]
	TableScale Kind = 0x0802 // f32 [cols]

	GraphComponent     Kind = 0x0901 // i32 [nodes]
	GraphComponentSize Kind = 0x0902 // i64 [components]

	IDsOffsets Kind = 0x0A01 // i64 [nodes+1]
	IDsBytes   Kind = 0x0A02 // u8 [bytes]
	IDsKey     Kind = 0x0A03 // u64 [nodes] first 8 bytes, big-endian, of SHA-256(external id)

	NamesOffsets Kind = 0x0B01 // i64 [names+1]
	NamesBytes   Kind = 0x0B02 // u8 [bytes]

	// The index of neighbours (SPEC 5.5): nodes in groups of 32, large rows, chunks of 128 neighbours.
	Hop1Code       Kind = 0x0C01 // u8 [nodes] neighbours, HopLargeRow for a large row
	Hop1Offset     Kind = 0x0C02 // u16 [nodes]
	Hop1GroupStart Kind = 0x0C03 // i64 [groups+1]
	Hop1GroupLarge Kind = 0x0C04 // i32 [groups+1]
	Hop1Compact    Kind = 0x0C05 // u8 [bytes]
	Hop1LargeChunk Kind = 0x0C06 // i64 [large+1]
	Hop1LargeStart Kind = 0x0C07 // i64 [large]
	Hop1LargeLast  Kind = 0x0C08 // u8 [large]
	Hop1LargeShift Kind = 0x0C09 // u8 [large]
	Hop1ChunkBase  Kind = 0x0C0A // i32 [chunks]
	Hop1ChunkStart Kind = 0x0C0B // u32 [chunks]
	Hop1Large      Kind = 0x0C0C // u8 [bytes]

	Hop2Indptr  Kind = 0x0D01 // i64 [nodes+1]
	Hop2Indices Kind = 0x0D02 // i32 [entries]

	RankPageRank Kind = 0x0E01 // f64 [nodes]
	RankWeight   Kind = 0x0E02 // f32 [nodes] chance of a node within its component
	RankMass     Kind = 0x0E03 // f64 [components] chance of a component
	RankOrder    Kind = 0x0E04 // i32 [nodes] node at each place of the locality order

	LinesCode   Kind = 0x0F01 // u8 [(edges+3)/4] 2 bits an edge
	LinesCount  Kind = 0x0F02 // u8 [counted,2] lines each way of the edges with code 3
	LinesLarge  Kind = 0x0F03 // u64 [large] the counts from LinesLargeCount up
	LinesWeight Kind = 0x0F04 // f32 [lines] weights of the lines of the edges with code 3
	LinesNamed  Kind = 0x0F05 // u8 [(nodes+7)/8] a bit a node
)

// Constants of the hop index.
const (
	HopGroupNodes  = 32   // nodes that share one start
	HopChunk       = 128  // neighbours of a chunk of a large row
	HopLargeRow    = 0xFF // hop1.code of a large row
	HopNoDirectory = 0xFF // hop1.large_shift of a large row without a directory
	HopSlack       = 8    // zero bytes behind the runs, for reads of 64 bits
)

// LinesLargeCount in lines.count stands for the next number of lines.large.
const LinesLargeCount = 0xFF

// kindSpec is what SPEC 5.1 says of a section kind: its name, the element types it
// may have and its rank.
type kindSpec struct {
	name   string
	rank   int
	dtypes []DType
}

var kindSpecs = map[Kind]kindSpec{
	NodesNumber: {"nodes.number", 1, []DType{I32}},
	NodesType:   {"nodes.type", 1, []DType{I32}},
	NodesRow:    {"nodes.row", 1, []DType{I32}},
	NodesTable:  {"nodes.table", 1, []DType{U8}},

	BlockIndptr:  {"block.indptr", 1, []DType{I64}},
	BlockIndices: {"block.indices", 1, []DType{I32}},
	BlockRel:     {"block.rel", 1, []DType{I32}},
	BlockRelptr:  {"block.relptr", 1, []DType{I64}},
	BlockWeight:  {"block.weight", 1, []DType{F32}},
	BlockEdgeID:  {"block.edge_id", 1, []DType{I64}},
	BlockTime:    {"block.time", 1, []DType{I64}},

	CoefSrc:        {"coef.src", 1, []DType{F32}},
	CoefDst:        {"coef.dst", 1, []DType{F32}},
	CoefSelf:       {"coef.self", 1, []DType{F32}},
	CoefEdge:       {"coef.edge", 1, []DType{F32}},
	CoefImportance: {"coef.importance", 1, []DType{F32}},

	TransposeIndptr:  {"transpose.indptr", 1, []DType{I64}},
	TransposeIndices: {"transpose.indices", 1, []DType{I32}},
	TransposeEdge:    {"transpose.edge", 1, []DType{I64}},
	TransposeRel:     {"transpose.rel", 1, []DType{I32}},

	SeedsLabel:  {"seeds.label", -1, []DType{I32, U8, F32}},
	SeedsMask:   {"seeds.mask", 2, []DType{U8}},
	SeedsWeight: {"seeds.weight", 1, []DType{F32}},

	PairsSrc:    {"pairs.src", 1, []DType{I32}},
	PairsDst:    {"pairs.dst", 1, []DType{I32}},
	PairsRel:    {"pairs.rel", 1, []DType{I32}},
	PairsLabel:  {"pairs.label", 1, []DType{F32}},
	PairsWeight: {"pairs.weight", 1, []DType{F32}},

	KGEPositives: {"kge.positives", 2, []DType{I32}},
	KGEChunkptr:  {"kge.chunkptr", 1, []DType{I64}},
	KGEKnown:     {"kge.known", 1, []DType{I32}},
	KGERange:     {"kge.range", 1, []DType{I64}},
	KGEGuests:    {"kge.guests", 1, []DType{I32}},
	KGEDepth:     {"kge.depth", 1, []DType{I32}},
	KGEEdges:     {"kge.edges", 2, []DType{I32}},

	TableRows:  {"table.rows", 2, []DType{F32, F16, BF16, I8}},
	TableScale: {"table.scale", 1, []DType{F32}},

	GraphComponent:     {"graph.component", 1, []DType{I32}},
	GraphComponentSize: {"graph.component_size", 1, []DType{I64}},

	IDsOffsets: {"ids.offsets", 1, []DType{I64}},
	IDsBytes:   {"ids.bytes", 1, []DType{U8}},
	IDsKey:     {"ids.key", 1, []DType{U64}},

	NamesOffsets: {"names.offsets", 1, []DType{I64}},
	NamesBytes:   {"names.bytes", 1, []DType{U8}},

	Hop1Code:       {"hop1.code", 1, []DType{U8}},
	Hop1Offset:     {"hop1.offset", 1, []DType{U16}},
	Hop1GroupStart: {"hop1.group_start", 1, []DType{I64}},
	Hop1GroupLarge: {"hop1.group_large", 1, []DType{I32}},
	Hop1Compact:    {"hop1.compact", 1, []DType{U8}},
	Hop1LargeChunk: {"hop1.large_chunk", 1, []DType{I64}},
	Hop1LargeStart: {"hop1.large_start", 1, []DType{I64}},
	Hop1LargeLast:  {"hop1.large_last", 1, []DType{U8}},
	Hop1LargeShift: {"hop1.large_shift", 1, []DType{U8}},
	Hop1ChunkBase:  {"hop1.chunk_base", 1, []DType{I32}},
	Hop1ChunkStart: {"hop1.chunk_start", 1, []DType{U32}},
	Hop1Large:      {"hop1.large", 1, []DType{U8}},

	Hop2Indptr:  {"hop2.indptr", 1, []DType{I64}},
	Hop2Indices: {"hop2.indices", 1, []DType{I32}},

	RankPageRank: {"rank.pagerank", 1, []DType{F64}},
	RankWeight:   {"rank.weight", 1, []DType{F32}},
	RankMass:     {"rank.mass", 1, []DType{F64}},
	RankOrder:    {"rank.order", 1, []DType{I32}},

	LinesCode:   {"lines.code", 1, []DType{U8}},
	LinesCount:  {"lines.count", 2, []DType{U8}},
	LinesLarge:  {"lines.large", 1, []DType{U64}},
	LinesWeight: {"lines.weight", 1, []DType{F32}},
	LinesNamed:  {"lines.named", 1, []DType{U8}},
}

// String gives the name SPEC.md uses, as "block.indptr".
func (k Kind) String() string {
	if s, ok := kindSpecs[k]; ok {
		return s.name
	}
	return fmt.Sprintf("kind 0x%04x", uint16(k))
}

// isLayered reports whether sections of this kind may belong to one layer: those of
// the groups block, coef and transpose. All others serve the whole record.
func (k Kind) isLayered() bool { return k>>8 >= 2 && k>>8 <= 4 }

// isCoef reports whether sections of this kind carry a coefficient kind.
func (k Kind) isCoef() bool { return k>>8 == 3 && k != CoefImportance }

func nameOf[K ~uint8 | ~uint16](names map[K]string, k K) string {
	if n, ok := names[k]; ok {
		return n
	}
	return fmt.Sprintf("unknown(%d)", uint16(k)) // not %v of k: that would come back here
}
