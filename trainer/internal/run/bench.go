package run

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/feed"
)

// benchLoads is the least number of loads that the percentiles of later uses rest on.
const benchLoads = 2000

// BenchConfig says what to measure.
type BenchConfig struct {
	Batches  string
	Features string
	Layers   int // 0: as many as the batches have
	Threads  int

	Notice   func(string)
	Progress func(step string, done, total int64)
}

// Loads are the measured loads of one kind.
type Loads struct {
	Count    int         `json:"count"`
	LoadMS   Percentiles `json:"load_ms"`   // until ready for compute, gathering apart
	GatherMS Percentiles `json:"gather_ms"` // copying feature rows; 0 for packed rows and full sets
}

// BenchResult is the JSON of `bench --json`.
type BenchResult struct {
	BatchSetID   string  `json:"batch_set_id"`
	NumBatches   int     `json:"num_batches"`
	Bytes        int64   `json:"bytes"`        // of all records
	PageCache    string  `json:"page_cache"`   // what was in memory: every file is read once before
	OpenSeconds  float64 `json:"open_seconds"` // mapping, headers, tables verified
	FirstUse     Loads   `json:"first_use"`    // page faults, CRCs, padding, bounds
	FirstUseGBs  float64 `json:"first_use_gb_per_second"`
	LaterUse     Loads   `json:"later_use"` // head and sections
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
}

// Bench measures the loader alone: each batch once for the first time in the process, and
// again until the percentiles rest on benchLoads loads.
func Bench(ctx context.Context, c BenchConfig) (r *BenchResult, err error) {
	setDefaults(&c.Threads, &c.Notice, &c.Progress)
	if _, err := format.ReadID(c.Batches); err != nil {
		return nil, err // before all of it is read
	}
	c.Progress("read "+c.Batches, 0, 0)
	if err := readFiles(ctx, c.Batches); err != nil {
		return nil, err
	}
	start := time.Now()
	set, err := feed.Open(ctx, c.Batches, feed.Options{Features: c.Features, Threads: c.Threads, Lazy: true, Notice: c.Notice})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(set.Explain(err), set.Close()) }()
	m := set.Manifest
	r = &BenchResult{BatchSetID: set.ID.String(), NumBatches: int(m.NumBatches), PageCache: "warm", OpenSeconds: time.Since(start).Seconds()}
	layers := c.Layers
	if layers == 0 {
		layers = max(m.NumLayers, 1)
	}
	kind := format.CoefNone
	if len(m.Params.Norm) > 0 {
		kind, _ = format.ParseCoef(m.Params.Norm[0])
	}
	column, err := set.SplitColumn(-1)
	if err != nil {
		return nil, err
	}
	loader, err := set.NewLoader(feed.LoaderOptions{Coef: kind, Layers: layers, Column: column, Features: set.HasFeatures() || set.Manifest.Params.Store == feed.StorePacked})
	if err != nil {
		return nil, err
	}
	var first, later, firstGather, laterGather durations
	firstTime, variants := time.Duration(0), m.Params.Variants
	rounds := variants + max(benchLoads/loader.BatchesPerEpoch(), variants)
	stream := loader.Stream(ctx, 0, rounds)
	defer stream.Close()
	for {
		b, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if b.FirstUse {
			r.Bytes += int64(b.RecordBytes())
			firstTime += b.LoadTime
			first.add(b.LoadTime, true)
			firstGather.add(b.GatherTime, true)
		} else if b.Epoch >= variants {
			later.add(b.LoadTime, true)
			laterGather.add(b.GatherTime, true)
		}
		c.Progress("load", int64(b.Epoch*loader.BatchesPerEpoch()+b.Position+1), int64(rounds*loader.BatchesPerEpoch()))
		b.Release()
	}
	r.FirstUse = Loads{first.n, first.percentiles(), firstGather.percentiles()}
	r.LaterUse = Loads{later.n, later.percentiles(), laterGather.percentiles()}
	if firstTime > 0 {
		r.FirstUseGBs = float64(r.Bytes) / firstTime.Seconds() / 1e9
	}
	r.PeakRSSBytes = peakRSS()
	return r, nil
}

// readFiles reads every file of a directory once, so that the page cache has what fits.
func readFiles(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.IsDir() { // not of the set, see format.CheckFiles
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
