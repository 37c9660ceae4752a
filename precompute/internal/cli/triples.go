package cli

import (
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/ingest"
	"github.com/prelift/prelift/snapshot"
	"github.com/spf13/cobra"
)

// useTriples makes of --triples what the other flags would say: the training triples are the edges, directed and with their
// relations; those for valid and test are kept as lists, and nothing leaves the graph for them.
func (f *snapshotFlags) useTriples(c *cobra.Command) error {
	if f.triples == "" {
		return nil
	}
	for _, other := range []string{"edges", "dataset", "holdout", "holdout-edges"} {
		if c.Flags().Changed(other) {
			return command.Usage("--triples and --%s both say what the edges are; give one", other)
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
