package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/ingest"
	"github.com/prelift/prelift/snapshot"
	"github.com/spf13/cobra"
)

// updateFlags are the flags of `precompute snapshot` that make it change a snapshot.
type updateFlags struct {
	base          string
	add, remove   []string
	ignoreMissing bool

	id       format.Digest // of the base
	manifest *snapshot.Manifest
}

func (f *updateFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.base, "base", "", "update this snapshot, a `directory`, in place of reading all edges: with its parameters, and with rows of --nodes for new nodes only")
	command.PathsVar(fl, &f.add, "add-edges", "edge `files` with lines to add to the --base")
	command.PathsVar(fl, &f.remove, "remove-edges", "edge `files` with edges to remove from the --base, each with all its lines; of the relation in --rel-col if they have that column, else of all")
	fl.BoolVar(&f.ignoreMissing, "ignore-missing", false, "pass over edges to remove that the --base hasn't")
}

// notOfUpdates are flags for other inputs than those of an update.
var notOfUpdates = []string{
	"edges", "dataset", "triples", "features", "labels", "splits", "holdout", "holdout-edges", "holdout-seed", "holdout-spare-last", "num-features", "feature-member", "allow-split-overlap",
}

// takeBase makes of --base what the other flags would say: its parameters. It does nothing without.
func (f *snapshotFlags) takeBase(c *cobra.Command) error {
	u := &f.update
	if u.base == "" {
		for _, name := range []string{"add-edges", "remove-edges", "ignore-missing"} {
			if c.Flags().Changed(name) {
				return command.Usage("--%s is for updates: --base names the snapshot to change", name)
			}
		}
		return nil
	}
	for _, name := range notOfUpdates {
		if c.Flags().Changed(name) {
			return command.Usage("--%s doesn't go with --base, which takes --add-edges, --remove-edges and --nodes", name)
		}
	}
	switch {
	case len(u.add)+len(u.remove)+len(f.nodes) == 0:
		return command.Usage("--base alone changes nothing: give --add-edges, --remove-edges or --nodes")
	case slices.Contains(u.remove, stdinPath):
		return command.Usage("--remove-edges -: only --add-edges can be standard input")
	case f.in.IDType != ingest.IDAuto && f.in.IDType != ingest.IDString:
		return command.Usage("--id-type %s doesn't go with --base: give %s, or %s if the base was built with it", f.in.IDType, ingest.IDAuto, ingest.IDString)
	}
	var err error
	if u.id, u.manifest, err = snapshot.ReadManifest(u.base); err != nil {
		return err
	}
	if err := u.manifest.Updatable(); err != nil {
		return command.BadInput(fmt.Errorf("--base %s can't be updated: %w", u.base, err))
	}
	if a, err := os.Stat(u.base); err == nil {
		if b, err := os.Stat(f.out); err == nil && os.SameFile(a, b) {
			return command.Usage("--out is the --base: an update writes a new snapshot beside it")
		}
	}
	if err := f.checkSame(c); err != nil {
		return err
	}
	p := &u.manifest.Params
	f.direction = string(p.Direction)
	f.in.Change, f.in.Edges, f.in.SplitNames = true, u.add, u.manifest.Splits
	f.in.FeatureNorm, f.in.MissingFeatures = p.FeatureNorm, p.MissingFeatures
	if p.FeatureNorm == ingest.NormStandard {
		f.in.FeatureNorm = ingest.NormNone // of a few rows it has no meaning; snapshot.Update refuses new nodes then
	}
	if f.task = string(ingest.TaskAuto); u.manifest.Task != "" {
		f.task = string(u.manifest.Task)
	}
	return nil
}

// checkSame refuses flags that ask for other parameters than the base's.
func (f *snapshotFlags) checkSame(c *cobra.Command) error {
	p := &f.update.manifest.Params
	with := slices.Compact(slices.Sorted(slices.Values(f.params.With)))
	relations := relationsKeep
	if p.MergeRelations {
		relations = relationsMerge
	}
	for _, flag := range []struct {
		name string
		same bool
		base any
	}{
		{"direction", f.direction == string(p.Direction), p.Direction},
		{"relations", f.relations == relations, relations},
		{"feature-norm", f.in.FeatureNorm == p.FeatureNorm, p.FeatureNorm},
		{"missing-features", f.in.MissingFeatures == p.MissingFeatures, p.MissingFeatures},
		{"task", f.task == string(ingest.TaskAuto) || f.task == string(f.update.manifest.Task), f.update.manifest.Task},
		{"hops", f.hops == hopsAuto || f.hops == fmt.Sprint(p.Hops), p.Hops},
		{"compact-below", f.params.CompactBelow == p.CompactBelow, p.CompactBelow},
		{"hub-from", f.params.HubFrom == p.HubFrom, p.HubFrom},
		{"expand-limit", f.params.ExpandLimit == p.ExpandLimit, p.ExpandLimit},
		{"hop2-cap", f.params.Hop2Cap == p.Hop2Cap, p.Hop2Cap},
		{"with", slices.Equal(with, p.With), strings.Join(p.With, ",")},
		{"updatable", f.params.Updatable, true},
	} {
		if c.Flags().Changed(flag.name) && !flag.same {
			return command.Usage("--%s %s isn't what the --base was built with, %v: an update keeps its parameters; leave the flag out, or build in full", flag.name, c.Flags().Lookup(flag.name).Value, flag.base)
		}
	}
	switch {
	case p.Anonymised != nil && f.keyFile == "":
		return command.Usage("the ids of --base are anonymised: give the same --anonymize-key-file")
	case p.Anonymised == nil && f.keyFile != "":
		return command.Usage("--anonymize-key-file: the ids of --base aren't anonymised; build in full")
	case p.Anonymised != nil && *p.Anonymised != f.keyMark():
		return command.Usage("--anonymize-key-file %s: the ids of --base are codes under another key", f.keyFile)
	}
	return nil
}

// readChange reads a change, and returns what writes the snapshot that it leads to.
func (f *snapshotFlags) readChange(ctx context.Context, env *command.Env) (snapshotWriter, []*ingest.Report, error) {
	u := &f.update
	change, reports, err := ingest.ReadChange(ctx, f.in, u.remove)
	if err != nil {
		return nil, reports, inputError(err)
	}
	change.IgnoreMissing = u.ignoreMissing
	return func(ctx context.Context, job *format.Job, opt snapshot.Options) (format.Digest, *snapshot.Manifest, error) {
		env.Progress.Step("open base", 0, 0)
		base, err := snapshot.OpenBase(u.base, opt.Scratch)
		if err != nil {
			return format.Digest{}, nil, err
		}
		defer base.Close()
		if base.ID != u.id {
			return format.Digest{}, nil, fmt.Errorf("--base %s was replaced meanwhile; run again", u.base)
		}
		id, m, report, err := snapshot.Update(ctx, job, base, change, opt)
		if err != nil {
			return id, nil, f.changeError(ctx, err)
		}
		if n := report.NumMissing; n > 0 {
			env.Note("note", fmt.Sprintf("%d of the edges to remove are not in the base, first %s", n, report.FirstMissing))
		}
		if n := report.DroppedSplits; n > 0 {
			env.Note("warning", fmt.Sprintf("%d new nodes have no label: they are left out of splits", n))
		}
		return id, m, nil
	}, reports, nil
}

// changeError gives an error about a change its place in the files, and their exit code.
func (f *snapshotFlags) changeError(ctx context.Context, err error) error {
	var fault *snapshot.ChangeError
	if !errors.As(err, &fault) {
		return err
	}
	at := &ingest.Error{}
	e := *fault
	switch {
	case fault.Dst != "":
		at, e.Src, e.Dst = ingest.PlaceOfEdge(ctx, f.in, f.update.remove, fault.Src, fault.Dst)
	case fault.Src != "":
		at, e.Src = ingest.PlaceOfID(ctx, f.in, fault.Src, fault.Role == snapshot.NewNodes)
	}
	if at.File == "" {
		var files []string
		switch fault.Role {
		case snapshot.AddedEdges:
			files = f.update.add
		case snapshot.RemovedEdges:
			files = f.update.remove
		case snapshot.NewNodes:
			files = f.nodes
		}
		at.File = namesText(files)
	}
	at.Msg = e.Error()
	return command.BadInput(at)
}

// updateRoles adds the inputs of an update to those of any build: the base is its manifest, whose digest is its id.
func (f *updateFlags) updateRoles(add, addEdges func(role, path string)) {
	if f.base == "" {
		return
	}
	add("base", filepath.Join(f.base, format.ManifestName))
	for _, p := range f.remove {
		addEdges("remove", p)
	}
}
