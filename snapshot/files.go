package snapshot

import (
	"cmp"
	"context"
	"slices"

	"github.com/prelift/prelift/format"
	"golang.org/x/sync/errgroup"
)

// pendingFile is a file of a snapshot under way: its records are written in the background as soon as they are known, while
// the next ones are computed; finish does the rest, once the set key in its head is known.
type pendingFile struct {
	name   string
	writer *format.Writer  // nil where an interrupted job finished the file
	info   format.FileInfo // of a finished file
	err    error
	done   chan struct{} // closed when the records are written
}

// record is one record to be written.
type record struct {
	header   format.RecordHeader
	sections []format.SectionSpec
}

// start begins to write a file of one record, whose sections must not change any more.
func (b *builder) start(name string, kind format.FileKind, h format.RecordHeader, sections []format.SectionSpec) {
	b.startRecords(name, kind, []record{{h, sections}})
}

func (b *builder) startRecords(name string, kind format.FileKind, records []record) {
	f := &pendingFile{name: name, done: make(chan struct{})}
	b.files = append(b.files, f)
	if info, ok := b.job.Done(name); ok {
		f.info = info
		close(f.done)
		return
	}
	go func() {
		defer close(f.done)
		if f.writer, f.err = format.Create(b.job.Path(name), format.Header{Kind: kind}, len(records)); f.err != nil {
			return
		}
		for i := range records {
			if f.err = f.writer.Add(&records[i].header, records[i].sections); f.err != nil {
				return
			}
		}
	}()
}

// finish waits for all files, gives them their set key, and returns what the manifest lists, by name: each file is synced, then
// verified as it is on the disk and digested.
func (b *builder) finish(ctx context.Context, setKey format.Digest) ([]format.FileInfo, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2) // each works on two cores already
	for _, f := range b.files {
		b.progress("write "+f.name, 0, 1)
		<-f.done
		if f.err != nil {
			return nil, f.err
		}
		if f.writer == nil {
			continue
		}
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			f.writer.SetKey(setKey)
			if f.info, err = f.writer.Seal(); err != nil {
				return err
			}
			return b.job.Enter(f.info)
		})
	}
	b.progress("sync, check and digest", 0, 0)
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var infos []format.FileInfo
	for _, f := range b.files {
		infos = append(infos, f.info)
	}
	slices.SortFunc(infos, func(a, b format.FileInfo) int { return cmp.Compare(a.Name, b.Name) })
	return infos, nil
}

// stop waits until nothing is being written any more, and drops what isn't finished.
func (b *builder) stop() {
	for _, f := range b.files {
		<-f.done
		if f.writer != nil {
			f.writer.Abort() // nothing after Seal
		}
	}
}
