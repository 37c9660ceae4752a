package synth

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// chunkRows is about how many rows one chunk of work makes. Output doesn't depend on it.
const chunkRows = 1 << 16

// piece is what one chunk adds to one file.
type piece struct {
	bytes []byte
	rows  int64
}

// inOrder calls produce for the chunks 0..numChunks-1 on the given number of goroutines and
// hands the pieces to consume, one call at a time, in chunk order. The pieces that produce gets
// are its own until consume returns, empty, with capacity from earlier chunks; there are numPieces of
// them. At most 2*threads chunks are held at a time. The first error ends it all; so does ctx.
func inOrder(ctx context.Context, threads, numChunks, numPieces int, produce func(chunk int, out []piece), consume func(out []piece) error) error {
	type job struct {
		chunk int
		out   []piece
		done  chan struct{}
	}
	window := 2 * threads
	jobs := make(chan *job)            // to the producers
	ordered := make(chan *job, window) // to the consumer
	spare := make(chan []piece, window)
	for range window {
		spare <- make([]piece, numPieces)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { // hands out chunks; ends after the last one or with ctx
		defer close(jobs)
		defer close(ordered)
		for chunk := range numChunks {
			var out []piece
			select {
			case out = <-spare:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			j := &job{chunk, out, make(chan struct{})}
			ordered <- j // has room: there are only window spares
			select {
			case jobs <- j:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range threads {
		group.Go(func() error { // ends when jobs is closed
			for j := range jobs {
				for i := range j.out {
					j.out[i] = piece{bytes: j.out[i].bytes[:0]}
				}
				produce(j.chunk, j.out)
				close(j.done)
			}
			return nil
		})
	}
	group.Go(func() error { // ends when ordered is closed, or with ctx
		for j := range ordered {
			select {
			case <-j.done:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if err := consume(j.out); err != nil {
				return err
			}
			spare <- j.out
		}
		return nil
	})
	return group.Wait()
}

// stream writes one or more files from chunks: produce appends to one piece a file. Its
// progress is told as the given step, in rows of totalRows over all files.
func (g *generator) stream(ctx context.Context, step string, totalRows int64, names []string, header string, numChunks int, produce func(chunk int, out []piece)) (err error) {
	files := make([]*file, 0, len(names))
	defer func() {
		if err != nil {
			for _, f := range files {
				f.abandon()
			}
		}
	}()
	for _, name := range names {
		f, err := createFile(g.dir, name)
		if err != nil {
			return err
		}
		files = append(files, f)
		if err := f.write([]byte(header)); err != nil {
			return err
		}
	}
	var done int64
	consume := func(out []piece) error {
		for i, p := range out {
			if err := files[i].write(p.bytes); err != nil {
				return err
			}
			files[i].rows += p.rows
			done += p.rows
		}
		g.progress(step, done, totalRows)
		return nil
	}
	if err := inOrder(ctx, g.opt.Threads, numChunks, len(files), produce, consume); err != nil {
		return err
	}
	for _, f := range files {
		if err := f.finish(); err != nil {
			return err
		}
		g.files = append(g.files, File{Name: f.name, Rows: f.rows, SizeBytes: f.sizeBytes})
	}
	return nil
}

// file is an output file being written.
type file struct {
	name      string
	f         *os.File
	rows      int64
	sizeBytes int64
}

// createFile creates a new file in dir.
func createFile(dir, name string) (*file, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &file{name: name, f: f}, nil
}

func (f *file) write(b []byte) error {
	n, err := f.f.Write(b)
	f.sizeBytes += int64(n)
	return err
}

// finish flushes the file to the disk and closes it.
func (f *file) finish() error {
	if err := f.f.Sync(); err != nil {
		f.f.Close()
		return fmt.Errorf("%s: %w", f.f.Name(), err)
	}
	return f.f.Close()
}

// abandon closes the file after a failure; its directory is removed soon.
func (f *file) abandon() { f.f.Close() }

// numChunksOf returns how many chunks of the given size hold n rows.
func numChunksOf(n, rowsPerChunk int64) int { return int((n + rowsPerChunk - 1) / rowsPerChunk) }

// chunkRange returns the rows [from, to) of one chunk out of n rows.
func chunkRange(chunk int, n, rowsPerChunk int64) (from, to int64) {
	from = int64(chunk) * rowsPerChunk
	return from, min(from+rowsPerChunk, n)
}

// chunksBySize cuts the items whose sizes have the running sums starts into runs of about
// chunkRows each. It returns the first item of each run and, last, the number of items. A run
// has at most chunkRows items and at least one.
func chunksBySize(starts []int64) []int {
	n := len(starts) - 1
	cuts := []int{0}
	first := 0
	for i := range n {
		if starts[i+1]-starts[first] >= chunkRows || i+1-first >= chunkRows {
			first = i + 1
			cuts = append(cuts, first)
		}
	}
	if first != n {
		cuts = append(cuts, n)
	}
	return cuts
}
