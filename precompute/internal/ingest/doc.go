// Package ingest reads the user's files into snapshot.Tables: edges, node tables, features, labels and splits, from
// text (CSV, TSV, SNAP, triples), .npy and .npz, Matrix Market, GraphML, Parquet, Arrow IPC, Neo4j and Gremlin CSV,
// OpenKE's and LINQS' files, JSON feature maps, and whole data sets (Planetoid, OGB and others). External ids become node numbers by their sorted
// order, so the order of lines and files, and the number of threads, change nothing but the order of Tables.Edges,
// which is that of the lines (for any number of threads).
//
// # Reading text
//
// A file is decompressed when its first bytes say gzip or zstd; a name that ends in .gz or .zst must hold that. A UTF-8
// byte order mark is removed; UTF-16 is refused. Lines end in LF or CR LF, the last one may lack its end; a CR anywhere
// else outside quotes is an error. Line numbers in errors are physical and start at 1. Blank lines are skipped and
// counted. Every row must have as many fields as the first. A row may be 64 MiB long, an id 1 MiB.
//
//   - csv: a delimiter of one byte (comma, or Options.Delimiter). Blanks (space, tab) around a field are removed.
//     Quotes follow RFC 4180: a quoted field may hold delimiters, line ends and doubled quotes and is kept as it is.
//     A quote inside an unquoted field, and text after a closing quote, are errors.
//   - tsv: fields are separated by single tabs; no quoting, no trimming, so `6" guns` is an id.
//   - snap: fields are separated by runs of spaces and tabs; a line whose first byte is # or % is a comment, anywhere.
//
// Format auto goes by name (.csv; .tsv .tab; .txt .edgelist .edges .el .snap .list for snap), then by content: a
// leading # or % is snap, else a tab in the first line tsv, a comma csv, neither snap. Options.Delimiter makes any
// file csv (a tab: tsv) unless its name or Format says tsv or snap.
//
// # Headers and columns
//
// The first row of an edge file is a header if it holds both a src name (src, source, from) and a dst name (dst,
// target, to), in any case, or if a column option is a name. In other tables it is one if any field is a known
// name (id, node, node_id, :ID, label, labels, class, y, target, value, split, feature, f0 f1 ...). Otherwise it
// is data, with a notice if it looks like words. Where that would be a guess (one of the two names only; words in
// row 1 but integers in row 2) reading stops and asks for the header option.
//
// Files that begin like a format that isn't read (archives, ORC, HDF5, GML, GEXF, pickles, web pages ...), and edge files
// with the name of one (.graph, .gml ...) and no Format, are errors: as text some give a small graph of nonsense.
//
// Columns are chosen by name or by number from 1 (a number always means a position). Edge files without a header
// have src and dst first; a weight is read from a column named weight, or from WeightCol. Columns not used are
// named in a notice.
//
// # Ids
//
// Ids are opaque bytes: 007 is not 7. Any byte may be in one, also line ends (quoted) and invalid UTF-8; an empty
// id is an error. If every id is a canonical decimal integer (no plus, no leading zeros, not -0, within 64 bits)
// numbers follow numeric order, else bytewise order. With IDType integer each id must be an integer and two
// spellings of one number are an error; with string the order is always bytewise.
//
// The node set is the rows of Nodes; without it, the rows of a .npy or .npz feature matrix (row i is the id i);
// without either, the union of the ids in edges, held-out pairs, features, labels and splits. An id outside a given node set is an
// error.
//
// With AnonymiseKey every id becomes the first 16 bytes of its HMAC-SHA-256 in hexadecimal, and nodes are numbered by these.
//
// # Changes
//
// ReadChange reads what changes a snapshot: lines to add, rows of new nodes, and edges to remove. Rows of Nodes are then not all the nodes.
//
// # Held-out pairs
//
// HoldoutEdges names a list for valid, one for test, or both: edge files of any format, whose options are those of Edges. Relations and
// weights are read where the edges have them. A self loop, and a pair in both lists, in whatever direction, are errors; a pair that the edges don't have is none.
//
// # Weights
//
// Plain decimal or exponent notation, finite in float32, at least 0 (too small for float32 rounds to 0, and is counted in a notice). Hex,
// underscores, inf, nan and decimal commas are errors.
//
// # Features
//
// The matrix is float32 (what is too small rounds to 0, and is counted in a notice); NaN and infinities are errors. Sources: a .npy or .npz matrix; a text table of an id and
// one column per feature; a sparse text table with the header node,feature[,value] (feature counts from 0, value 1
// if absent, number of features = NumFeatures, or else the largest + 1; a pair given twice is counted if equal, an
// error if not); or the columns f0, f1, ... of Nodes, in the order of their numbers and without a gap. A node with no row is missing: an error, or a row of zeros
// with MissingFeatures zero.
//
// # Labels
//
// One label column gives classes (auto never chooses binary or regression), several columns of 0 and 1 multilabel.
// The label column is LabelCol, or the one named label, labels, class or y, in a label table also target or value,
// else there every column but the id. Empty, NaN (any case) and -1 mean unlabelled; in regression -1 is a value. A
// class that looks like a number must be a canonical integer (1.0 is an error). A multilabel or regression row
// must be given whole or not at all. Two lines for one node must agree.
//
// # Splits
//
// A table of an id and one column per split, with the words train, valid (val, validation), test or nothing; or
// lists of ids, train=F,valid=F,test=F (a part may be absent; in each list the first column counts); or the column
// split of Nodes. A node in two parts of one split is an error; with AllowSplitOverlap a warning, and test wins
// over valid, valid over train. Where there are labels, unlabelled nodes are left out of every part, counted and
// warned about.
//
// # Other formats
//
// The kind of a file is told by its name (.mtx .matrixmarket; .graphml; .parquet .pq; .arrow .arrows .feather .ipc;
// .json; .content .cites; train2id.txt, valid2id.txt and test2id.txt beside entity2id.txt), else by its first bytes
// (Parquet, Arrow, and for edge files Matrix Market and GraphML), else it is text; Options.Format decides for edge
// files. Text, Matrix Market, GraphML and JSON may be compressed, Parquet and Arrow compress inside. Files without lines
// name rows, from 1, in errors. Matrix Market, GraphML and OpenKE files declare their nodes: without Nodes these are the
// node set, in file order, isolated ones too, and an edge to any other node is an error.
//
//   - mtx: square coordinate matrices, general or symmetric (lower triangle only; skew-symmetric without weights). Entry
//     (i, j) is the edge i -> j, the ids are 1 to the number of rows. Values are weights unless WeightCol is none.
//   - graphml: keys with defaults, in any order of nodes and edges; attributes are the columns of the node table and of
//     the edges, by their attr.name. Booleans read as 0 and 1. With Directed, undirected edges come both ways. Nested
//     graphs, hyperedges and second graphs are refused.
//   - parquet, arrow: columns of numbers, booleans, strings and bytes; a list column is one column for each value,
//     name[0], name[1], ..., all rows as wide as the first, and name (or name*) in FeatureCols means all of them. A null
//     id or weight is an error, a null label or split is none, a null feature is an error. Floats are rounded to
//     float32 as features and weights. As ids, relations, types and classes they must be integers below 2^53 (of 32 bits:
//     below 2^24): 1.0 is the id or class 1, NaN a null. A features, labels or splits table without an id column has the rows
//     of the nodes.
//   - property: Neo4j (name:ID(space), :START_ID(space), :END_ID(space), :TYPE, :LABEL, name:type) and Gremlin (~id,
//     ~from, ~to, ~label, name:type) headers, told by their first row; a file with nothing but a header is that of the
//     files behind it that have none. An id of the space S is the id S:id; an id without a space stays as it is, and one
//     that would read like an id with a space is an error. :LABEL (without it the space), or ~label, is the node type,
//     :TYPE, or ~label, the relation. Columns lose their :type.
//   - triples: head, relation, tail by position, or under a header of these names. openke: a count, then head, tail,
//     relation as numbers; the names in entity2id.txt and relation2id.txt are the ids.
//   - json: {"node": [feature, ...], ...} is a sparse feature table.
//
// Relations are also read from any edge file's RelCol, node types from TypeCol of Nodes; all edge files have relations
// or none has. An edge file - is Options.Stdin, kept in a temporary file meanwhile.
//
// Several node tables are read as one with the columns of all; a column that a file lacks is empty there.
// Names match in any case; one that is twice in a file is an error.
//
// # Data sets
//
// Options.Dataset is one path for everything; parts that are given on their own replace its parts.
//
//   - Planetoid: a directory with ind.NAME.*, DIR/ind.NAME, or one of the files. Pickles of protocols 0 to 2 that hold
//     nothing but numbers, strings, lists, dictionaries, numpy arrays and CSR matrices are read, all else is refused.
//     Nodes are 0 to N-1; nodes that test.index leaves out have features 0 and no label; the validation part is the 500
//     nodes behind the training part.
//   - OGB: a directory with raw/edge.csv.gz, num-node-list, node-feat, node-label and split/NAME/.
//   - .npz: edges [E, 2], node_features, node_labels, train_masks, val_masks and test_masks, or train_mask and so on: 0 and 1,
//     [splits, N], [N], or [N, splits] unless there are N splits. All have N nodes. Others are warned about, pickled ones refused.
//   - LINQS: NAME.content and NAME.cites. The citing node, on the right, is the source.
//   - OpenKE: a directory; the edges are the training triples. geom-gcn: out1_graph_edges.txt and
//     out1_node_feature_label.txt. MUSAE: edges.csv, features.json and target.csv.
//
// A table given on its own (Features, Labels, Splits) replaces the columns of Nodes, with a notice.
package ingest
