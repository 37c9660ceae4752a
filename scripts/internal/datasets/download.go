package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Times after which a server counts as gone.
const (
	answerWithin = 60 * time.Second
	silentFor    = 60 * time.Second
	maxRedirects = 5
)

// newClient returns a client that speaks https only.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = answerWithin
	t.DisableCompression = true // the bytes as they lie there
	return &http.Client{Transport: t}
}

// httpsOnly returns a copy of c that follows few redirects, and none away from https.
func httpsOnly(c *http.Client) *http.Client {
	copied := *c
	copied.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if req.URL.Scheme != "https" {
			return fmt.Errorf("is redirected to %s, which isn't https", req.URL.Redacted())
		}
		if len(via) > maxRedirects {
			return fmt.Errorf("is redirected more than %d times", maxRedirects)
		}
		return nil
	}
	return &copied
}

// fetchFile downloads f to path by way of path.part and returns its size and digest. want is the digest that it must
// have, "" where none is known; a part of an earlier try is gone on with only where one is. What fails the check is removed.
func (d *downloader) fetchFile(ctx context.Context, f *File, path, want string) (size int64, digest string, err error) {
	part := path + ".part"
	if want == "" {
		os.Remove(part)
	}
	if err := d.get(ctx, f, part); err != nil {
		return 0, "", err
	}
	if size, digest, err = digestFile(part); err != nil {
		return 0, "", err
	}
	if f.SizeBytes > 0 && size != f.SizeBytes {
		err = fmt.Errorf("%s has %d bytes, not %d", f.Name, size, f.SizeBytes)
	} else if want != "" && digest != want {
		err = digestError(f, digest, want)
	} else if f.Lines > 0 {
		var n int64
		if n, err = countLines(part); err == nil && n != f.Lines {
			err = fmt.Errorf("%s has %d lines, not the %d that the data set is known to have", f.Name, n, f.Lines)
		}
	}
	if err != nil {
		os.Remove(part)
		return 0, "", badData(fmt.Errorf("%w; nothing was kept", err))
	}
	return size, digest, os.Rename(part, path)
}

func digestError(f *File, got, want string) error {
	if f.SHA256 == want {
		return fmt.Errorf("%s has SHA-256 %s, pinned (%s) is %s: the file at %s was changed or damaged on its way", f.Name, got, f.Known, want, f.URL)
	}
	return fmt.Errorf("%s has SHA-256 %s, recorded at its first use is %s: the file at %s was changed or damaged on its way; if the change is meant, remove the lock file", f.Name, got, want, f.URL)
}

func countLines(path string) (n int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf, last := make([]byte, 1<<20), byte('\n')
	for {
		k, err := f.Read(buf)
		for _, b := range buf[:k] {
			if b == '\n' {
				n++
			}
			last = b
		}
		if errors.Is(err, io.EOF) {
			if last != '\n' {
				n++ // a last line without an end
			}
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// get downloads to part, or goes on with what is there.
func (d *downloader) get(ctx context.Context, f *File, part string) error {
	if u, err := url.Parse(f.URL); err != nil || u.Scheme != "https" {
		return fmt.Errorf("%s isn't an https address", f.URL)
	}
	out, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer out.Close()
	have, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if f.SizeBytes > 0 && have == f.SizeBytes {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "prelift-datasets")
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	res, err := d.client.Do(req)
	if err != nil {
		return networkError(f, err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusPartialContent && have > 0 && strings.HasPrefix(res.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
	case res.StatusCode == http.StatusOK: // of the whole, whatever was asked
		if err := out.Truncate(0); err != nil {
			return err
		}
		if have, err = out.Seek(0, io.SeekStart); err != nil {
			return err
		}
	case have > 0 && (res.StatusCode == http.StatusPartialContent || res.StatusCode == http.StatusRequestedRangeNotSatisfiable):
		if err := out.Truncate(0); err != nil {
			return err
		}
		return d.get(ctx, f, part) // from the start, without a range
	default:
		return fmt.Errorf("%s: the server answers %s", f.URL, res.Status)
	}
	limit := f.SizeBytes
	if limit == 0 {
		limit = f.MaxBytes
	}
	if res.ContentLength >= 0 && have+res.ContentLength > limit || f.SizeBytes > 0 && res.ContentLength >= 0 && have+res.ContentLength != limit {
		return badData(fmt.Errorf("%s: the server offers %d bytes, expected %s", f.URL, have+res.ContentLength, sizeText(f)))
	}
	watch := &watchedBody{r: res.Body, timer: time.AfterFunc(silentFor, func() { cancel(errSilent) }), report: func(n int64) {
		d.report("download "+f.Name, have+n, max(f.SizeBytes, have+max(res.ContentLength, 0)))
	}}
	n, err := io.Copy(out, io.LimitReader(watch, limit-have+1))
	watch.timer.Stop()
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errSilent) {
		err = cause
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil && watch.failed:
		return fmt.Errorf("%s ended after %d bytes: %s; run the same command again", f.URL, have+n, shortCause(err))
	case err != nil:
		return err // of the disk
	case have+n > limit:
		os.Remove(part)
		return badData(fmt.Errorf("%s has more than %d bytes", f.URL, limit))
	}
	return out.Close()
}

var errSilent = fmt.Errorf("nothing came for %s", silentFor)

// watchedBody reports what it reads and remembers whether a failure was its own.
type watchedBody struct {
	r      io.Reader
	timer  *time.Timer
	report func(n int64)
	n      int64
	failed bool
}

func (w *watchedBody) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	w.timer.Reset(silentFor)
	w.n += int64(n)
	w.report(w.n)
	w.failed = err != nil && !errors.Is(err, io.EOF)
	return n, err
}

func sizeText(f *File) string {
	if f.SizeBytes > 0 {
		return fmt.Sprint(f.SizeBytes)
	}
	return fmt.Sprintf("at most %d", f.MaxBytes)
}

// networkError says in one line that a server can't be reached, or why it can't be used.
func networkError(f *File, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	cause := shortCause(err)
	if strings.HasPrefix(cause, "is redirected") {
		return fmt.Errorf("%s %s", f.URL, cause)
	}
	u, _ := url.Parse(f.URL) // get has parsed it
	return fmt.Errorf("no network, or %s can't be reached: %s; data sets are downloaded, so try again where there is a network", u.Hostname(), cause)
}

// shortCause is the innermost error that still says what happened.
func shortCause(err error) string {
	var ofURL *url.Error
	if errors.As(err, &ofURL) {
		if ofURL.Timeout() {
			return "no answer in time"
		}
		err = ofURL.Err
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "its name isn't found (" + dns.Err + ")"
	}
	return err.Error()
}

// hashName is a name for a download in the working folder: addresses may hold anything.
func hashName(url string) string {
	h := sha256.Sum256([]byte(url))
	return hex.EncodeToString(h[:8])
}
