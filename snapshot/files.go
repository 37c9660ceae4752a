package snapshot

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prelift/prelift/format"
	"golang.org/x/sync/errgroup"
)

// fileWriter writes the files of a snapshot in the background: the records of each as soon as they are known, while others are computed, and
// once the set key in their heads is known too, it seals them. The first error ends all of it.
type fileWriter struct {
	job    *format.Job
	ctx    context.Context // of all who work on the snapshot: over with the first error
	group  *errgroup.Group
	slots  chan struct{} // held by who writes or seals a file
	files  []*pendingFile
	beside func(step string, bytes int64, took time.Duration) // may be nil

	keyed  chan struct{} // closed when setKey is known
	setKey format.Digest
}

// maxInFlight is how many files are written or sealed at a time: one waits for the disk while the other computes its checksums.
const maxInFlight = 2

// pendingFile is a file of a snapshot under way.
type pendingFile struct {
	name    string
	written chan struct{}   // closed when the records are written
	info    format.FileInfo // of a finished file
}

// record is one record to be written.
type record struct {
	header   format.RecordHeader
	sections []format.SectionSpec
}

func newFileWriter(ctx context.Context, job *format.Job) *fileWriter {
	group, ctx := errgroup.WithContext(ctx)
	return &fileWriter{job: job, ctx: ctx, group: group, slots: make(chan struct{}, maxInFlight), keyed: make(chan struct{})}
}

// start begins to write a file, whose sections must not change any more. A file that an interrupted job finished is taken as it is.
func (w *fileWriter) start(name string, kind format.FileKind, records []record) {
	f := &pendingFile{name: name, written: make(chan struct{})}
	w.files = append(w.files, f)
	if info, ok := w.job.Done(name); ok {
		f.info = info
		close(f.written)
		return
	}
	w.group.Go(func() error { return w.write(f, kind, records) })
}

func (w *fileWriter) write(f *pendingFile, kind format.FileKind, records []record) error {
	out, err := w.writeRecords(f, kind, records)
	if err != nil {
		return err
	}
	defer out.Abort() // nothing after Seal
	select {
	case <-w.keyed:
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	if err := w.acquire(); err != nil {
		return err
	}
	defer w.release()
	out.SetKey(w.setKey)
	start := time.Now()
	if f.info, err = out.Seal(); err != nil {
		return err
	}
	w.tell("check and digest files", int64(f.info.SizeBytes), start)
	return w.job.Enter(f.info)
}

// writeRecords writes the records of a file, which remains open.
func (w *fileWriter) writeRecords(f *pendingFile, kind format.FileKind, records []record) (*format.Writer, error) {
	if err := w.acquire(); err != nil {
		return nil, err
	}
	defer w.release()
	start := time.Now()
	out, err := format.Create(w.job.Path(f.name), format.Header{Kind: kind}, len(records))
	if err != nil {
		return nil, err
	}
	for i := range records {
		if err := out.Add(&records[i].header, records[i].sections); err != nil {
			return nil, err
		}
	}
	close(f.written)
	w.tell("write files", out.SizeBytes(), start)
	return out, nil
}

// tell reports what the work since start did.
func (w *fileWriter) tell(step string, bytes int64, start time.Time) {
	if w.beside != nil {
		w.beside(step, bytes, time.Since(start))
	}
}

func (w *fileWriter) acquire() error {
	select {
	case w.slots <- struct{}{}:
		return w.ctx.Err()
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

func (w *fileWriter) release() { <-w.slots }

// seal gives the set key, once: from now on files are finished as soon as they are written.
func (w *fileWriter) seal(setKey format.Digest) {
	w.setKey = setKey
	close(w.keyed)
}

// finish waits for all files, after seal, and returns what the manifest lists, by name.
func (w *fileWriter) finish(progress func(step string, done, total int64)) ([]format.FileInfo, error) {
	for _, f := range w.files {
		progress("write "+f.name, 0, 1)
		select {
		case <-f.written:
		case <-w.ctx.Done():
		}
	}
	progress("sync, check and digest", 0, 0)
	if err := w.group.Wait(); err != nil {
		return nil, err
	}
	var infos []format.FileInfo
	for _, f := range w.files {
		infos = append(infos, f.info)
	}
	slices.SortFunc(infos, func(a, b format.FileInfo) int { return cmp.Compare(a.Name, b.Name) })
	return infos, nil
}

// stop ends all writing because of err, waits until nothing is being written any more, and returns what went wrong first.
func (w *fileWriter) stop(err error) error {
	w.group.Go(func() error { return err })
	return w.group.Wait()
}
