// Package ingest reads the user's files into snapshot.Tables: text edge lists (CSV, TSV, SNAP), node tables,
// features (.npy, .npz, dense and sparse text), labels and splits. External ids become node numbers by their sorted
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
// without either, the union of the ids in edges, features, labels and splits. An id outside a given node set is an
// error.
//
// # Weights
//
// Plain decimal or exponent notation, finite in float32, at least 0 (too small for float32 rounds to 0). Hex,
// underscores, inf, nan and decimal commas are errors.
//
// # Features
//
// The matrix is float32; NaN and infinities are errors. Sources: a .npy or .npz matrix; a text table of an id and
// one column per feature; a sparse text table with the header node,feature[,value] (feature counts from 0, value 1
// if absent, number of features = NumFeatures, or else the largest + 1; a pair given twice is counted if equal, an
// error if not); or the columns f0, f1, ... of Nodes. A node with no row is missing: an error, or a row of zeros
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
// A table given on its own (Features, Labels, Splits) replaces the columns of Nodes, with a notice.
package ingest
