package cli

import (
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/ingest"
	"github.com/prelift/prelift/snapshot"
	"github.com/spf13/cobra"
)

// useTriples makes of --triples what the other flags would say: the training triples are the edges, directed and with their
// relations; those for valid and test are kept as lists, and nothing leaves the graph for them. OpenKE's folder is such triples, also as --dataset.
func (f *snapshotFlags) useTriples(c *cobra.Command) error {
	if f.triples == "" && !f.takeOpenKE(c) {
		return nil
	}
	if c.Flags().Changed("triples") {
		for _, other := range []string{"edges", "dataset", "holdout", "holdout-edges"} {
			if c.Flags().Changed(other) {
				return command.Usage("--triples and --%s both say what the edges are; give one", other)
			}
		}
		if spec := ingest.OpenKETriples(f.triples); spec != "" {
			f.triples, f.in.Format = spec, ingest.FormatOpenKE
		}
	}
	train, lists, err := ingest.TripleFiles(f.triples)
	if err != nil {
		return inputError(err)
	}
	f.in.Edges, f.in.HoldoutEdges, f.in.HoldoutApart, f.tripleLists = []string{train}, lists, true, true
	if !c.Flags().Changed("direction") {
		f.direction = string(snapshot.Directed)
	}
	if f.in.Format == ingest.FormatAuto && !ingest.IsOpenKE(train) {
		f.in.Format = ingest.FormatTriples
	}
	return nil
}

// takeOpenKE turns --dataset into --triples where it is OpenKE's folder, and reports whether it did. Where other flags say what the edges are,
// or which pairs to hold out of them, it is the folder's edges that they replace or take from.
func (f *snapshotFlags) takeOpenKE(c *cobra.Command) bool {
	spec := ingest.OpenKETriples(f.in.Dataset)
	if spec == "" || c.Flags().Changed("edges") {
		return false
	}
	if c.Flags().Changed("holdout") || c.Flags().Changed("holdout-edges") {
		if !c.Flags().Changed("direction") {
			f.direction = string(snapshot.Directed)
		}
		return false
	}
	f.in.Dataset, f.triples, f.in.Format = "", spec, ingest.FormatOpenKE
	return true
}
