package run

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/feed/feedtest"
	"github.com/prelift/prelift/trainer/internal/model"
)

func subgraphs(hops, batchSize int) format.BatchParams {
	return format.BatchParams{Mode: "khop", Fanout: []int{}, BatchSize: batchSize, Variants: 2, Transpose: "all", KHop: &format.KHopParams{Hops: hops}}
}

// TestSubgraphIsFull: one batch of all that can be reached from the training nodes teaches what the whole graph does, whatever the number of layers, since the loss
// is the seeds' and no other node adds to a gradient. Sums run in another order, so the last bits differ.
func TestSubgraphIsFull(t *testing.T) {
	g := feedtest.Random(2, 80, 3, 6)
	bits := feedtest.Random(3, 60, 4, 5)
	bits.ToBits()
	for _, c := range []struct {
		graph  *feedtest.Graph
		kind   model.Kind
		layers int
	}{{g, model.GCN, 1}, {g, model.GCN, 2}, {g, model.SAGE, 3}, {g, model.MLP, 2}, {bits, model.SAGE, 2}} {
		var losses [2]float64
		for i, p := range []format.BatchParams{full, subgraphs(1000, 1000)} {
			cfg := config(t, c.graph, p)
			cfg.Model, cfg.Layers, cfg.Dropout, cfg.InputDropout, cfg.Epochs = c.kind, c.layers, 0, 0, 8
			losses[i] = *train(t, cfg).TrainLoss
		}
		if d := math.Abs(losses[0] - losses[1]); !(d < 1e-4) {
			t.Errorf("%s of %d layers, %s: loss %g on the whole graph, %g on a subgraph of it", c.kind, c.layers, c.graph.Task, losses[0], losses[1])
		}
	}
}

// TestSubgraphs: small subgraphs train, with 2 layers where nothing is said, to the same bits again.
func TestSubgraphs(t *testing.T) {
	g := feedtest.Random(2, 80, 3, 6)
	c := config(t, g, subgraphs(2, 8))
	c.Epochs = 20
	r := train(t, c)
	if records := history(t, c.Out); *r.TrainLoss >= *records[0].TrainLoss || r.ValMetric == nil || r.Steps != int64(20*6) {
		t.Errorf("loss from %v to %v in %d steps, metric %v", *records[0].TrainLoss, *r.TrainLoss, r.Steps, r.ValMetric)
	}
	again := c
	again.Out, again.Threads = c.Out+"2", 4
	train(t, again)
	sameRun(t, "subgraphs", c.Out, again.Out)

	bare := subgraphs(2, 8)
	bare.Transpose = "none"
	c = config(t, g, bare)
	c.Layers = 2
	if _, err := Train(context.Background(), c); !errors.Is(err, format.ErrMismatch) || !strings.Contains(err.Error(), "--transpose all") {
		t.Errorf("without transposes: %v", err)
	}
}
