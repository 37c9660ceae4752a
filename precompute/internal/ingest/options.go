package ingest

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/prelift/prelift/snapshot"
	"github.com/prelift/prelift/snapshot/graph"
)

// The formats of edge files, and auto, which tells them by name and content.
const (
	FormatAuto = "auto"
	FormatCSV  = "csv"
	FormatTSV  = "tsv"
	FormatSNAP = "snap"

	FormatMTX     = "mtx"     // Matrix Market
	FormatGraphML = "graphml" // GraphML
	FormatParquet = "parquet" // Parquet
	FormatArrow   = "arrow"   // Arrow IPC, file or stream
	FormatTriples = "triples" // head, relation, tail, in any text dialect
	FormatOpenKE  = "openke"  // a count, then head, tail, relation as numbers
)

// The ways to say whether a file has a header.
const (
	HeaderAuto = "auto"
	HeaderYes  = "yes"
	HeaderNo   = "no"
)

// How ids are understood.
const (
	IDAuto    = "auto"    // opaque bytes, ordered as integers when all are canonical integers
	IDString  = "string"  // opaque bytes, always in bytewise order
	IDInteger = "integer" // every id must be an integer, each number spelled one way
)

// How features are normalised.
const (
	NormNone     = "none"
	NormRow      = "row"                 // each row divided by its sum; rows that sum to 0 stay
	NormStandard = snapshot.NormStandard // each column to mean 0 and standard deviation 1; constant columns become 0
)

// What happens to nodes without a feature row.
const (
	MissingError = "error"
	MissingZero  = snapshot.MissingZero
)

// TaskAuto picks multiclass for one label column and multilabel for several.
const TaskAuto snapshot.Task = "auto"

// WeightNone as WeightCol switches weights off.
const WeightNone = "none"

// DefaultMaxFeatureBytes bounds the dense feature matrix unless Options says otherwise.
const DefaultMaxFeatureBytes = 16 << 30

// Options says what to read and how. The zero value of every field is usable, but Edges or Dataset must name something.
type Options struct {
	Edges    []string // edge files, read as one input
	Nodes    string   // node table, "" = none
	Features string   // feature matrix or table, "" = none
	Labels   string   // label table, "" = none
	Splits   string   // split table, or lists as train=F,valid=F,test=F; "" = none
	// HoldoutEdges are lists of pairs to be held out of the edges, edge files themselves, as valid=F,test=F; "" = none.
	HoldoutEdges string
	HoldoutApart bool // lists of HoldoutEdges are parts of their own, and may share pairs, with each other and with the edges
	// NodeFiles are more node tables, read behind Nodes as one with it.
	NodeFiles []string
	// Dataset is a directory, a file or a prefix of file names that holds edges and whatever tables its layout has;
	// the options above replace its parts. "" = none.
	Dataset string

	// Format of edge files: auto, csv, tsv, snap, mtx, graphml, parquet, arrow, triples, openke; other tables go by
	// name and content.
	Format      string
	Delimiter   string // of csv files, one byte; "" = comma; "\t" or "tab" = tsv
	Header      string // edge files: auto, yes, no
	TableHeader string // nodes, features, labels, splits: auto, yes, no

	SrcCol    string // edge column, name or number from 1; "" = by name, else 1
	DstCol    string // edge column; "" = by name, else 2
	WeightCol string // edge column; "" = the column named weight if there is one; none = unweighted
	RelCol    string // edge column with the relation; "" = none, or what the format says
	TypeCol   string // column of Nodes with the node type; "" = none, or what the format says
	// FeatureCols are the feature columns of Features, or of Nodes without Features: comma-separated names or
	// numbers, or a prefix and *; "" = all but the id in Features, f0, f1, ... in Nodes.
	FeatureCols string
	IDCol       string // id column of Nodes, and of the other tables that have a column of this name
	LabelCol    string // label column or columns (comma-separated) of Labels, or of Nodes without Labels

	IDType        string        // auto, string, integer
	Task          snapshot.Task // auto, multiclass, multilabel, binary, regression
	FeatureMember string        // member of a .npz; "" = x
	NumFeatures   int           // columns of a sparse feature table; 0 = its largest feature + 1
	FeatureNorm   string        // none, row, standard
	// MissingFeatures says what happens to nodes without a feature row: error or zero.
	MissingFeatures   string
	MaxFeatureBytes   int64 // most bytes of the dense float32 matrix; 0 = DefaultMaxFeatureBytes
	AllowSplitOverlap bool  // a node in two parts of one split is a warning
	// AnonymiseKey replaces the ids by codes under this key (codesOf), before anything else is made of them; at least
	// MinAnonymiseKey bytes; nil = the ids stay. Messages name the input's ids; class, split, relation and type names stay.
	AnonymiseKey []byte
	// Change says that the files are to change a snapshot: edges may have ids without a row in Nodes, whose rows are not all the nodes; there
	// may be no edges, no ids and no labels; nodes without features aren't looked for. Nodes has the splits of SplitNames, where given.
	Change     bool
	SplitNames []string
	// Directed says that directions will be kept: undirected edges of GraphML and Matrix Market files come both ways.
	Directed bool
	Stdin    io.Reader // what the edge file - stands for; nil = the process's
	TmpDir   string    // where Stdin is kept while it is read; "" = the system's
	// ListOptions says where edges are kept; nil = in memory.
	ListOptions func(weighted, relational bool) graph.ListOptions

	Threads int // 0 = GOMAXPROCS; changes nothing in the result
	// Progress, if not nil, is called now and then from one goroutine at a time with bytes of input read so far.
	Progress func(phase string, done, total int64)

	noFast    bool  // tests: parse every line on the careful path
	blockSize int   // tests: bytes of text per block; 0 = blockSize
	direct    int64 // tests: integer ids below it are their own numbers; 0 = by the size of the files

	sources  map[string]opener   // tables that are no files of their own, by the path that stands for them
	names    map[string]string   // what messages call files, by path; else the base name
	byRow    map[string]bool     // names of files whose places are rows, not lines
	headers  map[string]string   // property edge file -> the file with its header
	spaces   map[string]bool     // id spaces of the Neo4j files
	wantRows map[string]rowCount // by path, where another file says how many rows there are
}

// Check returns what is wrong with the options themselves, an *Error with ErrOption.
func (o Options) Check() error {
	_, err := o.withDefaults()
	if err == nil {
		_, _, err = SplitFiles(o.Splits)
	}
	if err == nil {
		_, err = parseHoldout(o.HoldoutEdges)
	}
	return err
}

// withDefaults fills in defaults and checks every choice. Its errors are about the options, not about a file.
func (o Options) withDefaults() (Options, error) {
	pick := func(flag string, v *string, choices ...string) error {
		if *v == "" {
			*v = choices[0]
		}
		for _, c := range choices {
			if *v == c {
				return nil
			}
		}
		return &Error{Err: ErrOption, Msg: fmt.Sprintf("%s is %q, not one of %s", flag, *v, strings.Join(choices, ", "))}
	}
	task := string(o.Task)
	for _, err := range []error{
		pick("format", &o.Format, FormatAuto, FormatCSV, FormatTSV, FormatSNAP, FormatMTX, FormatGraphML, FormatParquet,
			FormatArrow, FormatTriples, FormatOpenKE),
		pick("header", &o.Header, HeaderAuto, HeaderYes, HeaderNo),
		pick("table header", &o.TableHeader, HeaderAuto, HeaderYes, HeaderNo),
		pick("id type", &o.IDType, IDAuto, IDString, IDInteger),
		pick("feature norm", &o.FeatureNorm, NormNone, NormRow, NormStandard),
		pick("missing features", &o.MissingFeatures, MissingError, MissingZero),
		pick("task", &task, string(TaskAuto), string(snapshot.TaskMulticlass), string(snapshot.TaskMultilabel),
			string(snapshot.TaskBinary), string(snapshot.TaskRegression)),
	} {
		if err != nil {
			return o, err
		}
	}
	o.Task = snapshot.Task(task)
	switch {
	case strings.EqualFold(o.Delimiter, "tab"), o.Delimiter == `\t`:
		o.Delimiter = "\t"
	case len(o.Delimiter) > 1:
		return o, &Error{Err: ErrOption, Msg: fmt.Sprintf("delimiter %q is longer than one byte", o.Delimiter)}
	case o.Delimiter != "" && strings.ContainsAny(o.Delimiter, "\"\r\n "):
		return o, &Error{Err: ErrOption, Msg: fmt.Sprintf("delimiter %q can't separate fields", o.Delimiter), Hint: "for fields separated by blanks use the snap format"}
	}
	if len(o.Edges) == 0 && o.Dataset == "" && !o.Change {
		return o, &Error{Err: ErrOption, Msg: "no edge file given"}
	}
	if o.AnonymiseKey != nil && len(o.AnonymiseKey) < MinAnonymiseKey {
		return o, &Error{Err: ErrOption, Msg: fmt.Sprintf("the key to anonymise ids has %d bytes, not at least %d", len(o.AnonymiseKey), MinAnonymiseKey)}
	}
	if o.FeatureMember == "" {
		o.FeatureMember = "x"
	}
	if o.MaxFeatureBytes < 0 || o.NumFeatures < 0 {
		return o, &Error{Err: ErrOption, Msg: fmt.Sprintf("max feature bytes %d, number of features %d: neither can be negative", o.MaxFeatureBytes, o.NumFeatures)}
	}
	if o.MaxFeatureBytes == 0 {
		o.MaxFeatureBytes = DefaultMaxFeatureBytes
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.blockSize <= 0 {
		o.blockSize = blockSize
	}
	o.sources, o.byRow = map[string]opener{}, map[string]bool{}
	o.wantRows = map[string]rowCount{}
	o.headers, o.spaces = map[string]string{}, map[string]bool{}
	o.Edges, o.NodeFiles = slices.Clone(o.Edges), slices.Clone(o.NodeFiles)
	o.nameFiles()
	return o, nil
}

// Report says what was read and what was noticed on the way.
type Report struct {
	Files []*FileReport // in the order they were read

	NumNodes      int64
	NumEdgeRows   int64 // rows of the edge files, before duplicates are merged
	NumFeatures   int
	NumClasses    int   // classes, or label columns
	Unlabelled    int64 // nodes without a label, if there are labels
	LabelRepeats  int64 // label lines that repeat an earlier line
	SplitRepeats  int64 // split entries that repeat an earlier entry
	SplitOverlaps int64 // (node, split) pairs in more than one part; only with AllowSplitOverlap
	// SplitUnlabelled counts the (node, split) entries left out because the node has no label.
	SplitUnlabelled int64
	MissingFeatures int64    // nodes without a feature row, filled with zeros
	FeatureRepeats  int64    // sparse feature entries that repeat an earlier entry
	StdinSHA256     []byte   // of all that came from Options.Stdin; nil if no edge file is -
	Notices         []string // about the input as a whole
	Warnings        []string // about the input as a whole
}

// FileReport says what was found in one file.
type FileReport struct {
	Name         string // base name
	Role         string // nodes, edges, holdout, features, labels, splits
	Format       string // csv, tsv, snap, npy, npz, mtx, graphml, parquet, arrow, property, triples, openke, json, linqs or a data set's layout
	Header       bool
	Lines        int64 // physical lines
	Rows         int64 // data rows
	BlankLines   int64 // skipped
	CommentLines int64 // skipped
	Notices      []string
	Warnings     []string
}

func (f *FileReport) noticef(format string, args ...any) {
	f.Notices = append(f.Notices, fmt.Sprintf(format, args...))
}

func (f *FileReport) warnf(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}
