package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/ingest"
	"github.com/prelift/prelift/snapshot"
	"github.com/prelift/prelift/snapshot/graph"
	"github.com/spf13/cobra"
)

// snapshotFlags are the flags of `precompute snapshot`.
type snapshotFlags struct {
	in          ingest.Options
	nodes       []string
	task        string
	direction   string
	relations   string
	triples     string
	tripleLists bool // triples is in use
	hops        string
	params      snapshot.Params // hop thresholds and what to compute beside
	out         string
	threads     int
	holdout     holdoutFlags
	update      updateFlags
	keyFile     string // of --anonymize-key-file
	mem         string
	memBytes    int64
}

func snapshotCommand(env *command.Env) *cobra.Command {
	f := &snapshotFlags{}
	c := &cobra.Command{
		Use:   "snapshot --edges F... --out DIR",
		Short: "Build a hashed snapshot from raw files",
		Args:  command.NoArgs,
		Example: `  precompute snapshot --edges edges.csv --out snap
  precompute snapshot --edges edges.csv --nodes nodes.csv --features x.npy --splits split.csv --out snap
  precompute snapshot --base snap --add-edges today.csv --remove-edges gone.csv --out snap-2`,
		RunE: func(c *cobra.Command, _ []string) error { return runSnapshot(c, env, f) },
	}
	fl := c.Flags()
	command.PathsVar(fl, &f.in.Edges, "edges", "edge `files` (CSV, TSV, SNAP text, Matrix Market, GraphML, Parquet, Arrow, Neo4j CSV; text also .gz, .zst), read as one input; - is standard input, for which the snapshot is built every time")
	fl.StringVar(&f.in.Dataset, "dataset", "", "a whole data set in place of the tables: a `path` to Planetoid ind.*, OGB, LINQS, MUSAE, geom-gcn, .npz or OpenKE files (those as --triples)")
	command.PathsVar(fl, &f.nodes, "nodes", "node `tables`: id column, and label, split and feature columns if any")
	fl.StringVar(&f.in.Features, "features", "", "features: .npy, .npz, dense CSV, or sparse CSV node,feature[,value]")
	fl.StringVar(&f.in.Labels, "labels", "", "labels: CSV node,label")
	fl.StringVar(&f.in.Splits, "splits", "", "splits: CSV node,split..., or lists train=F,valid=F,test=F")
	fl.StringVar(&f.out, "out", "", "snapshot `directory` to make")
	fl.StringVar(&f.direction, "direction", string(snapshot.Undirected), "undirected: each pair both ways; directed: src -> dst")
	fl.StringVar(&f.task, "task", string(ingest.TaskAuto), "auto, multiclass, multilabel, binary or regression")
	fl.StringVar(&f.in.FeatureNorm, "feature-norm", ingest.NormNone, "none, row (each row sums to 1) or standard (each column mean 0, deviation 1)")
	fl.StringVar(&f.in.MissingFeatures, "missing-features", ingest.MissingError, "nodes without a feature row: error or zero")
	fl.StringVar(&f.in.Format, "format", ingest.FormatAuto, "format of the edge files: auto, csv, tsv, snap, mtx, graphml, parquet, arrow, triples or openke")
	fl.StringVar(&f.in.Delimiter, "delimiter", "", "field delimiter of csv files, one character (default comma)")
	fl.StringVar(&f.in.Header, "header", ingest.HeaderAuto, "whether edge files have a header line: auto, yes or no")
	fl.StringVar(&f.in.TableHeader, "table-header", ingest.HeaderAuto, "whether the other tables have a header line: auto, yes or no")
	fl.StringVar(&f.in.SrcCol, "src-col", "", "edge source column, by name or number from 1")
	fl.StringVar(&f.in.DstCol, "dst-col", "", "edge target column")
	fl.StringVar(&f.in.WeightCol, "weight-col", "", "edge weight column; none switches weights off (default: a column named weight)")
	fl.StringVar(&f.in.RelCol, "rel-col", "", "edge column with the relation (default: what the format says, as :TYPE of Neo4j's)")
	fl.StringVar(&f.triples, "triples", "", "a knowledge graph: a file of head, relation, tail (any text dialect, or OpenKE's train2id.txt; --src-col, --rel-col and --dst-col choose columns), or `train=F,valid=F,test=F`; directed unless --direction says else")
	fl.StringVar(&f.relations, "relations", relationsKeep, "keep relations apart, or merge: edges of all relations between two nodes are one")
	fl.StringVar(&f.in.TypeCol, "type-col", "", "column of --nodes with the node type (default: what the format says, as :LABEL of Neo4j's)")
	fl.StringVar(&f.in.IDCol, "id-col", "", "id column of --nodes and of the tables that have it")
	fl.StringVar(&f.in.LabelCol, "label-col", "", "label column or columns")
	fl.StringVar(&f.in.FeatureCols, "feature-cols", "", "feature columns, by names or numbers, or a prefix and * (default: all, of --nodes f0, f1, ...)")
	fl.StringVar(&f.in.IDType, "id-type", ingest.IDAuto, "auto, string (ids are text) or integer (refuse what is no integer)")
	fl.StringVar(&f.in.FeatureMember, "feature-member", "", "array of a .npz features file (default x)")
	fl.IntVar(&f.in.NumFeatures, "num-features", 0, "columns of a sparse features table (default: the largest named + 1)")
	fl.Int64Var(&f.in.MaxFeatureBytes, "max-feature-bytes", ingest.DefaultMaxFeatureBytes, "refuse a feature matrix larger than this")
	fl.BoolVar(&f.in.AllowSplitOverlap, "allow-split-overlap", false, "warn of a node in two parts of a split instead of refusing")
	fl.StringVar(&f.hops, "hops", hopsAuto, "index of neighbours: 1 one hop, 2 and lists of nodes two hops away, 0 none, auto 2 up to a million nodes, else 1")
	fl.IntVar(&f.params.CompactBelow, "compact-below", hopDefaults.CompactBelow, "nodes of fewer neighbours have compact rows in the index, 1 to 255")
	fl.IntVar(&f.params.HubFrom, "hub-from", hopDefaults.HubFrom, "nodes of so many neighbours are hubs, with a directory in the index")
	fl.IntVar(&f.params.ExpandLimit, "expand-limit", hopDefaults.ExpandLimit, "hop 2 goes through at most so many of a node's neighbours, drawn by hash")
	fl.IntVar(&f.params.Hop2Cap, "hop2-cap", hopDefaults.Hop2Cap, "most nodes two hops away to list a node; lowered where hop 2 would be over 5 times hop 1")
	fl.StringSliceVar(&f.params.With, "with", nil, "compute also: pagerank (and sampling weights), order (a locality order by communities, which batches then uses)")
	f.holdout.add(fl, &f.in)
	fl.StringVar(&f.keyFile, "anonymize-key-file", "", "replace the ids by codes, HMAC-SHA-256 under the key in this `file`; no id of the input is in any output then")
	fl.BoolVar(&f.params.Updatable, "updatable", true, "remember which lines made which edge, which an update of the snapshot needs (not with held-out pairs)")
	f.update.register(c)
	threadsFlag(c, &f.threads)
	fl.StringVar(&f.mem, "mem", memAuto, "memory to use about, as 4G or 512MiB; edges that don't fit are sorted on disk (auto: three quarters of what is available)")
	fl.StringVar(&f.in.TmpDir, "tmp", "", "`directory` for what doesn't fit into memory (default the system's)")
	return c
}

// The choices of --relations.
const (
	relationsKeep  = "keep"
	relationsMerge = "merge"
)

// hopsAuto is the default of --hops.
const hopsAuto = "auto"

// hopDefaults are those of the index's thresholds.
var hopDefaults, _ = graph.HopOptions{}.Settle()

// snapshotResult is what --json prints.
type snapshotResult struct {
	Kind       string        `json:"kind"`
	ID         format.Digest `json:"id"`
	Out        string        `json:"out"`
	UpToDate   bool          `json:"up_to_date"`
	Seconds    float64       `json:"seconds"`
	NumNodes   int64         `json:"num_nodes"`
	NumEdges   int64         `json:"num_edges"`
	Components int64         `json:"num_components"`
	Hops       int           `json:"hops"`
	NumValid   int64         `json:"num_heldout_valid"`
	NumTest    int64         `json:"num_heldout_test"`
	// Heldout is as inspect has it, null without held-out pairs.
	Heldout  *snapshot.HeldoutDescription `json:"heldout"`
	Warnings []string                     `json:"warnings"`
	Stages   []command.Stage              `json:"stages"`
	Beside   []command.BesideStage        `json:"beside"` // what went on beside them
}

func runSnapshot(c *cobra.Command, env *command.Env, f *snapshotFlags) error {
	start := time.Now()
	if err := f.readKey(env); err != nil {
		return err
	}
	if err := f.takeBase(c); err != nil {
		return err
	}
	if err := f.useTriples(c); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	if err := f.checkUnused(c); err != nil {
		return err
	}
	result := snapshotResult{Kind: snapshot.Kind, Out: f.out, Warnings: []string{}}
	key, err := f.key()
	if err != nil {
		return err
	}
	inputs := f.inputs()
	if err := statInputs(inputs); err != nil {
		return command.BadInput(err)
	}
	var id format.Digest
	fresh := false
	if !f.fromStdin() { // whose content nobody knows yet
		if id, fresh, err = format.UpToDate(c.Context(), f.out, snapshot.Kind, key, inputs); err != nil {
			return err
		}
	}
	if fresh {
		_, m, err := snapshot.ReadManifest(f.out)
		if err != nil {
			return err
		}
		result.UpToDate = true
		return f.print(env, &result, id, m, start)
	}
	id, m, warnings, err := f.build(c, env, key, inputs)
	if err != nil {
		return err
	}
	if f.keyFile != "" && len(warnings) > 0 { // they may name ids
		warnings = []string{fmt.Sprintf("%d warnings on standard error", len(warnings))}
	}
	result.Warnings = append(result.Warnings, warnings...)
	return f.print(env, &result, id, m, start)
}

// build reads the inputs and writes the snapshot. An old one of the same name stays
// until the new one is complete.
func (f *snapshotFlags) build(c *cobra.Command, env *command.Env, key format.Digest, inputs []string) (id format.Digest, m *snapshot.Manifest, warnings []string, err error) {
	job, err := format.Lock(f.out, snapshot.Kind)
	if err != nil {
		return id, nil, nil, err
	}
	defer func() { job.Abort(c.Context().Err() != nil) }() // nothing once it is published
	ctx, cancel := context.WithCancel(c.Context())
	digests := startStamps(ctx, inputs, env.Progress) // beside all that happens before the first file is written
	defer func() { <-digests.done }()
	defer cancel()
	scratch := snapshot.NewScratch(f.memBytes, f.in.TmpDir)
	defer scratch.Close()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(snapshot.GoHeapShare * float64(f.memBytes))))
	f.in.Progress, f.in.ListOptions = env.Progress.Step, scratch.ListOptions
	read := f.readTables
	if f.update.base != "" {
		read = f.readChange
	}
	write, reports, err := read(ctx, env)
	if err != nil {
		return id, nil, nil, err
	}
	for _, report := range reports {
		for _, n := range linesOf(report.Notices, report, func(f *ingest.FileReport) []string { return f.Notices }) {
			env.Note("note", n)
		}
		warnings = append(warnings, linesOf(report.Warnings, report, func(f *ingest.FileReport) []string { return f.Warnings })...)
	}
	for _, w := range warnings {
		env.Note("warning", w)
	}
	job.ResumeLater(func() (format.Digest, error) {
		stamps, err := digests.wait()
		if err == nil {
			err = format.Unchanged(stamps)
		}
		if err != nil {
			return key, command.BadInput(err)
		}
		if !f.fromStdin() {
			job.Remember(key, stamps)
		}
		return jobKey(key, stamps, reports)
	})
	id, m, err = write(ctx, job, snapshot.Options{Threads: f.threads, Scratch: scratch, Progress: env.Progress.Step, Beside: env.Progress.Beside})
	if err == nil {
		f.noteHops(c, env, m)
		noteHoldout(env, m)
	}
	var fault *snapshot.EdgeError
	if errors.As(err, &fault) {
		err = command.BadInput(fmt.Errorf("%s: %w%s", namesText(f.in.Edges), err, f.codesHint()))
	}
	return id, m, warnings, err
}

// jobKey digests all that shapes the snapshot, content included: that of the stamped inputs, and of what came from standard input.
func jobKey(key format.Digest, stamps []format.Stamp, reports []*ingest.Report) (format.Digest, error) {
	for _, report := range reports {
		if report.StdinSHA256 != nil {
			stamps = append(slices.Clip(stamps), format.Stamp{SHA256: format.Digest(report.StdinSHA256)})
		}
	}
	return format.JobKey(key, stamps)
}

// snapshotWriter writes the snapshot of what has been read.
type snapshotWriter func(ctx context.Context, job *format.Job, opt snapshot.Options) (format.Digest, *snapshot.Manifest, error)

// readTables reads the inputs of a full build.
func (f *snapshotFlags) readTables(ctx context.Context, _ *command.Env) (snapshotWriter, []*ingest.Report, error) {
	tables, report, err := ingest.Read(ctx, f.in)
	if err != nil {
		return nil, nil, inputError(err)
	}
	if err := checkTables(tables, report, f.params.MergeRelations); err != nil {
		return nil, nil, err
	}
	f.params.FeatureNorm, f.params.MissingFeatures = f.in.FeatureNorm, f.in.MissingFeatures
	return func(ctx context.Context, job *format.Job, opt snapshot.Options) (format.Digest, *snapshot.Manifest, error) {
		return snapshot.Build(ctx, job, tables, f.params, opt)
	}, []*ingest.Report{report}, nil
}

// stamping digests inputs in the background.
type stamping struct {
	stamps   []format.Stamp
	err      error
	done     chan struct{}
	progress *command.Progress
	awaited  atomic.Bool // and so worth a word
}

func startStamps(ctx context.Context, inputs []string, progress *command.Progress) *stamping {
	s := &stamping{done: make(chan struct{}), progress: progress}
	go func() {
		defer close(s.done)
		start, bytes := time.Now(), int64(0)
		s.stamps, s.err = format.StampInputs(ctx, inputs, func(done, total int64) {
			if s.awaited.Load() {
				progress.Step("digest inputs", done, total)
			}
		})
		for _, stamp := range s.stamps {
			bytes += int64(stamp.SizeBytes)
		}
		progress.Beside("digest inputs", bytes, time.Since(start))
	}()
	return s
}

func (s *stamping) wait() ([]format.Stamp, error) {
	s.progress.Step("digest inputs", 0, 0)
	s.awaited.Store(true)
	<-s.done
	return s.stamps, s.err
}

func (f *snapshotFlags) check() (err error) {
	if len(f.in.Edges) == 0 && f.in.Dataset == "" && f.update.base == "" {
		return command.Usage("--edges (the file or files with the edges), --triples or --dataset is needed")
	}
	if len(f.nodes) == 1 {
		f.in.Nodes = f.nodes[0]
	} else {
		f.in.NodeFiles = f.nodes
	}
	f.in.Directed = snapshot.Direction(f.direction) == snapshot.Directed
	if err := needFlag("out", f.out); err != nil {
		return err
	}
	f.out = filepath.Clean(f.out)
	if d := snapshot.Direction(f.direction); d != snapshot.Undirected && d != snapshot.Directed {
		return command.Usage("--direction is %q, not %s or %s", f.direction, snapshot.Undirected, snapshot.Directed)
	}
	f.params.Direction = snapshot.Direction(f.direction)
	if f.relations != relationsKeep && f.relations != relationsMerge {
		return command.Usage("--relations is %q, not %s or %s", f.relations, relationsKeep, relationsMerge)
	}
	f.params.MergeRelations = f.relations == relationsMerge
	switch f.hops {
	case hopsAuto:
		f.params.Hops = snapshot.HopsAuto
	case "0", "1", "2":
		f.params.Hops = int(f.hops[0] - '0')
	default:
		return command.Usage("--hops is %q, not auto, 0, 1 or 2", f.hops)
	}
	if err := f.checkThresholds(); err != nil {
		return err
	}
	if f.tripleLists {
		// Lists of a knowledge graph are stored; nothing has to leave the edges for them.
	} else if f.params.Holdout, err = f.holdout.params(&f.in); err != nil {
		return err
	}
	if err := checkThreads(&f.threads); err != nil {
		return err
	}
	if f.memBytes, err = memoryOf(f.mem); err != nil {
		return err
	}
	if err := checkTmp(f.in.TmpDir); err != nil {
		return err
	}
	f.in.Task, f.in.Threads = snapshot.Task(f.task), f.threads
	if f.in.Dataset != "" {
		if _, err := ingest.DatasetFiles(f.in.Dataset); err != nil {
			return inputError(err)
		}
	}
	if err := f.in.Check(); err != nil {
		return inputError(err)
	}
	return f.checkStdin()
}

// roleFlag is the flag that names the files of a role.
func roleFlag(role string) string {
	flag, _, _ := strings.Cut(role, " ")
	switch flag {
	case "holdout":
		return "holdout-edges"
	case "remove":
		return "remove-edges"
	}
	return flag
}

// checkUnused refuses flags about tables that aren't given: what they ask for wouldn't happen. A flag that says its default asks for nothing.
func (f *snapshotFlags) checkUnused(c *cobra.Command) error {
	if f.in.Dataset != "" {
		return nil // may have any of them
	}
	nodes := len(f.nodes) > 0 || len(f.in.Edges) > 0 && ingest.MayDeclareNodes(f.in.Format, f.in.Edges)
	given := map[string]bool{"nodes": nodes, "features": f.in.Features != "", "labels": f.in.Labels != "", "splits": f.in.Splits != "", "base": f.update.base != ""}
	for _, use := range []struct {
		flag   string
		tables []string // any of which gives it a meaning
	}{
		{"type-col", []string{"nodes"}},
		{"id-col", []string{"nodes", "features", "labels", "splits"}},
		{"table-header", []string{"nodes", "features", "labels", "splits"}},
		{"label-col", []string{"labels", "nodes"}},
		{"task", []string{"labels", "nodes", "base"}},
		{"feature-cols", []string{"features", "nodes"}},
		{"feature-norm", []string{"features", "nodes", "base"}},
		{"missing-features", []string{"features", "nodes", "base"}},
		{"max-feature-bytes", []string{"features", "nodes"}},
		{"feature-member", []string{"features"}},
		{"num-features", []string{"features"}},
		{"allow-split-overlap", []string{"splits", "nodes"}},
	} {
		flag := c.Flags().Lookup(use.flag)
		if !flag.Changed || flag.Value.String() == flag.DefValue || slices.ContainsFunc(use.tables, func(t string) bool { return given[t] }) {
			continue
		}
		tables := slices.DeleteFunc(use.tables, func(t string) bool { return t == "base" })
		return command.Usage("--%s is about --%s, which isn't given", use.flag, strings.Join(tables, " or --"))
	}
	return nil
}

// checkStdin refuses standard input for anything but edges, and twice.
func (f *snapshotFlags) checkStdin() error {
	roles, paths := f.roles()
	seen := false
	for i, path := range paths {
		switch {
		case path != stdinPath:
		case roles[i] != "edges":
			return command.Usage("--%s from -: only edges can come from standard input (--edges -); a file of the name - is ./-", roleFlag(roles[i]))
		case seen:
			return command.Usage("- is given twice: standard input is read once")
		default:
			seen = true
		}
	}
	return nil
}

// checkThresholds checks what shapes the hop index, and --with, before anything is read.
func (f *snapshotFlags) checkThresholds() error {
	p := &f.params
	switch {
	case p.CompactBelow < 1 || p.CompactBelow > 255:
		return command.Usage("--compact-below %d is not in 1..255", p.CompactBelow)
	case p.HubFrom < p.CompactBelow:
		return command.Usage("--hub-from %d is below --compact-below %d", p.HubFrom, p.CompactBelow)
	case p.ExpandLimit < 1:
		return command.Usage("--expand-limit %d: want 1 or more", p.ExpandLimit)
	case p.Hop2Cap < 1:
		return command.Usage("--hop2-cap %d: want 1 or more", p.Hop2Cap)
	}
	if p.HubFrom > math.MaxInt32 || p.ExpandLimit > math.MaxInt32 || p.Hop2Cap > math.MaxInt32 {
		return command.Usage("--hub-from, --expand-limit and --hop2-cap are at most %d", math.MaxInt32)
	}
	for _, word := range p.With {
		if word != snapshot.WithOrder && word != snapshot.WithPageRank {
			return command.Usage("--with %q: want a list of %s, %s", word, snapshot.WithPageRank, snapshot.WithOrder)
		}
	}
	return nil
}

// noteHops tells of thresholds that had no use and of a cap that was forced.
func (f *snapshotFlags) noteHops(c *cobra.Command, env *command.Env, m *snapshot.Manifest) {
	for i, flag := range []string{"compact-below", "hub-from", "expand-limit", "hop2-cap"} {
		if hops := 1 + i/2; c.Flags().Changed(flag) && m.Params.Hops < hops {
			env.Note("note", fmt.Sprintf("--%s has no meaning with --hops %d", flag, m.Params.Hops))
		}
	}
	if a := m.Hop2; a != nil && a.Forced {
		full := float64(a.NumUncut) / float64(a.Hop1Entries)
		env.Note("note", fmt.Sprintf("hop 2 would have %d entries, %.1f times hop 1; its rows are cut to %d nodes (--hop2-cap %d), %d entries", a.NumUncut, full, a.Cap, m.Params.Hop2Cap, a.NumEntries))
	}
	if r := m.PageRank; r != nil && !r.Converged {
		env.Note("warning", fmt.Sprintf("pagerank has not converged in %d iterations: the last one changed it by %.3g", r.Iterations, r.Delta))
	}
}

// statInputs checks that the inputs are there and are files.
func statInputs(paths []string) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", path, pathless(err))
		case info.IsDir():
			return fmt.Errorf("%s is a directory, not a file", path)
		case info.Mode()&os.ModeNamedPipe != 0:
			return fmt.Errorf("%s is a pipe, not a regular file (edges can be read from one as standard input: --edges - < %s)", path, path)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", path)
		}
	}
	return nil
}

// roles names what each of the inputs is, in the order of inputs.
func (f *snapshotFlags) roles() (roles, paths []string) {
	add := func(role, path string) {
		if path != "" {
			roles, paths = append(roles, role), append(paths, path)
		}
	}
	addEdges := func(role, path string) {
		add(role, path)
		for _, beside := range ingest.FilesBeside(f.in.Format, path) {
			if !slices.Contains(paths, beside) {
				add("names", beside)
			}
		}
	}
	for _, p := range f.in.Edges {
		addEdges("edges", p)
	}
	for _, p := range f.nodes {
		add("nodes", p)
	}
	parts, files, _ := ingest.HoldoutFiles(f.in.HoldoutEdges) // check has seen the error
	for i, path := range files {
		addEdges("holdout "+parts[i], path)
	}
	f.update.updateRoles(add, addEdges)
	add("features", f.in.Features)
	add("labels", f.in.Labels)
	parts, files, _ = ingest.SplitFiles(f.in.Splits) // check has seen the error
	for i, path := range files {
		add("splits "+parts[i], path)
	}
	if f.in.Dataset != "" {
		files, _ := ingest.DatasetFiles(f.in.Dataset) // check has seen the error
		for _, path := range files {
			add("dataset", path)
		}
	}
	return roles, paths
}

// inputs are the files that are read.
func (f *snapshotFlags) inputs() []string {
	_, paths := f.roles()
	return slices.DeleteFunc(paths, func(path string) bool { return path == stdinPath })
}

// stdinPath as an edge file is standard input.
const stdinPath = "-"

func (f *snapshotFlags) fromStdin() bool { return slices.Contains(f.in.Edges, stdinPath) }

// key digests all that shapes the snapshot beside the content of the inputs. Paths are
// not part of it, but the last part of a name is: its ending may choose the format.
func (f *snapshotFlags) key() (format.Digest, error) {
	roles, paths := f.roles()
	return format.DigestOf(map[string]any{
		"kind": snapshot.Kind, "format_version": format.Version,
		"roles": roles, "names": baseNames(paths),
		"task": f.task, "direction": f.direction, "feature_cols": f.in.FeatureCols,
		"feature_norm": f.in.FeatureNorm, "missing_features": f.in.MissingFeatures, "num_features": f.in.NumFeatures, "feature_member": f.in.FeatureMember,
		"format": f.in.Format, "delimiter": f.in.Delimiter, "header": f.in.Header, "table_header": f.in.TableHeader,
		"rel": f.in.RelCol, "relations": f.relations, "triples": f.tripleLists, "type": f.in.TypeCol, "src": f.in.SrcCol, "dst": f.in.DstCol, "weight": f.in.WeightCol, "id": f.in.IDCol, "label": f.in.LabelCol,
		"id_type": f.in.IDType, "allow_split_overlap": f.in.AllowSplitOverlap,
		"hops": f.hops, "compact_below": f.params.CompactBelow, "hub_from": f.params.HubFrom, "expand_limit": f.params.ExpandLimit, "hop2_cap": f.params.Hop2Cap,
		"holdout": f.params.Holdout, "anonymize": f.keyMark(), "updatable": f.params.Updatable, "ignore_missing": f.update.ignoreMissing,
		"with": slices.Compact(slices.Sorted(slices.Values(f.params.With))),
	})
}

func (f *snapshotFlags) print(env *command.Env, r *snapshotResult, id format.Digest, m *snapshot.Manifest, start time.Time) error {
	r.ID, r.NumNodes, r.NumEdges, r.Components = id, int64(m.NumNodes), int64(m.NumEdges), int64(m.Audit.NumComponents)
	if a := m.Heldout; a != nil {
		r.NumValid, r.NumTest = int64(a.NumValid), int64(a.NumTest)
	}
	r.Heldout = m.DescribeHeldout()
	r.Hops, r.Seconds, r.Stages = m.Params.Hops, time.Since(start).Seconds(), env.Progress.Stages()
	r.Beside = env.Progress.BesideStages()
	return env.Result(r, func(w io.Writer) {
		state := "written"
		if r.UpToDate {
			state = "up to date"
		}
		fmt.Fprintf(w, "%s: %s in %.1f s: %d nodes, %d edges, %d components\n%s\n", f.out, state, r.Seconds, m.NumNodes, m.NumEdges, m.Audit.NumComponents, id)
	})
}

// inputError gives faults of input files their exit code.
func inputError(err error) error {
	var fault *ingest.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ingest.ErrOption):
		return command.Usage("%v", err)
	case errors.As(err, &fault):
		return command.BadInput(err)
	}
	return err
}

// checkTables holds what ingest reads against what a snapshot of this version stores.
func checkTables(t *snapshot.Tables, report *ingest.Report, merge bool) error {
	if t.Features != nil && t.Features.NumCols > format.MaxColumns {
		return command.BadInput(fmt.Errorf("%s: %d feature columns, a feature table has at most %d; --feature-cols chooses some", featureFile(report), t.Features.NumCols, format.MaxColumns))
	}
	if n := len(t.RelNames); n > 1 && !merge {
		report.Notices = append(report.Notices, fmt.Sprintf("%d relations: edges of each are kept apart; --relations merge makes one graph of them", n))
	}
	return nil
}

// featureFile names the file that the features came from.
func featureFile(report *ingest.Report) string {
	name := ""
	for _, f := range report.Files {
		if f.Role == "features" || f.Role == "nodes" && name == "" {
			name = f.Name
		}
	}
	return name
}

// linesOf lists what ingest noticed of the input as a whole, then of each file, with the
// file's name before it.
func linesOf(whole []string, report *ingest.Report, of func(f *ingest.FileReport) []string) []string {
	list := append([]string{}, whole...)
	for _, f := range report.Files {
		for _, line := range of(f) {
			list = append(list, f.Name+": "+line)
		}
	}
	return list
}
