package datasets

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format/command"
)

// site is a server on the loopback interface that serves files by path.
type site struct {
	*httptest.Server
	files    map[string][]byte
	requests []string // path, and the range if one was asked
	before   func(w http.ResponseWriter, r *http.Request) (done bool)
}

func newSite(t *testing.T, files map[string]string) *site {
	t.Helper()
	s := &site{files: map[string][]byte{}}
	for name, text := range files {
		s.files["/"+name] = []byte(text)
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests = append(s.requests, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
		if s.before != nil && s.before(w, r) {
			return
		}
		content, ok := s.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", serveTime, bytes.NewReader(content))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// set is a data set of this site: files by name, with their digests pinned or not.
func (s *site) set(pin bool, names ...string) *Set {
	set := &Set{Name: "set", Read: datasetFlags}
	for _, name := range names {
		f := File{URL: s.URL + "/" + name, Name: name, MaxBytes: mib}
		if pin {
			f.SHA256, f.Known, f.SizeBytes = digestOf(s.files["/"+name]), Measured, int64(len(s.files["/"+name]))
		}
		set.Files = append(set.Files, f)
	}
	return set
}

func (s *site) fetch(set *Set, dir string) (*Result, error) {
	s.requests = nil
	return Fetch(context.Background(), set, dir, Options{Client: s.Client()})
}

func digestOf(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// wantFile compares a file under dir with text.
func wantFile(t *testing.T, dir, name, text string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "set", name))
	if err != nil || string(got) != text {
		t.Errorf("%s: %q, %v; want %q", name, got, err, text)
	}
}

// wantFault is for an error of one line with every part, that leaves no folder of the set.
func wantFault(t *testing.T, dir string, err error, code int, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", parts)
	}
	for _, part := range append(parts, "") {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	if got := command.Code(err); got != code {
		t.Errorf("exit code %d, want %d: %v", got, code, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "set")); err == nil {
		t.Error("the folder is there")
	}
}

func TestGood(t *testing.T) {
	for _, pin := range []bool{true, false} {
		s, dir := newSite(t, map[string]string{"a.txt": "alpha\n", "b.txt": "beta\n"}), filepath.Join(t.TempDir(), "deep", "er")
		r, err := s.fetch(s.set(pin, "a.txt", "b.txt"), dir)
		if err != nil || r.UpToDate || r.Dir != filepath.Join(dir, "set") {
			t.Fatal(r, err)
		}
		wantFile(t, dir, "a.txt", "alpha\n")
		wantFile(t, dir, "b.txt", "beta\n")
		if want := map[bool]string{true: checkedPinned, false: checkedFirstUse}[pin]; r.Files[1].Checked != want || r.Files[1].SHA256 != digestOf([]byte("beta\n")) {
			t.Errorf("%+v", r.Files[1])
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 2 {
			t.Errorf("left in the directory: %v", entries)
		}
		// A second run needs no server.
		s.Close()
		if r, err := s.fetch(s.set(pin, "a.txt", "b.txt"), dir); err != nil || !r.UpToDate || len(s.requests) > 0 {
			t.Errorf("again: %v, %v", r, err)
		}
		// What was changed since is noticed.
		if err := os.WriteFile(filepath.Join(dir, "set", "a.txt"), []byte("alphA\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := s.fetch(s.set(pin, "a.txt"), dir); err == nil || !strings.Contains(err.Error(), "a.txt isn't what was downloaded") {
			t.Errorf("damaged: %v", err)
		}
	}
}

func TestFaultsOfFiles(t *testing.T) {
	big := strings.Repeat("x", 3000)
	for _, c := range []struct {
		name   string
		change func(s *site, f *File)
		code   int
		parts  []string
	}{
		{"wrong digest", func(s *site, f *File) { f.SHA256 = digestOf(nil) }, command.ExitInput, []string{"a.txt has SHA-256 " + digestOf([]byte(big)), "pinned (measured) is " + digestOf(nil), "nothing was kept"}},
		{"wrong size", func(s *site, f *File) { f.SizeBytes = 2999 }, command.ExitInput, []string{"offers 3000 bytes, expected 2999"}},
		{"over the limit", func(s *site, f *File) { f.SHA256, f.SizeBytes, f.MaxBytes = "", 0, 2000 }, command.ExitInput, []string{"offers 3000 bytes, expected at most 2000"}},
		{"over the limit, size untold", func(s *site, f *File) {
			f.SHA256, f.SizeBytes, f.MaxBytes = "", 0, 2000
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				w.(http.Flusher).Flush() // chunked
				fmt.Fprint(w, big)
				return true
			}
		}, command.ExitInput, []string{"has more than 2000 bytes"}},
		{"wrong number of lines", func(s *site, f *File) { f.SHA256, f.Lines = "", 7 }, command.ExitInput, []string{"a.txt has 1 lines, not the 7"}},
		{"truncated", func(s *site, f *File) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Length", "3000")
				fmt.Fprint(w, big[:1000])
				return true
			}
		}, command.ExitFailed, []string{"/a.txt ended after 1000 bytes", "run the same command again"}},
		{"not there", func(s *site, f *File) { delete(s.files, "/a.txt") }, command.ExitFailed, []string{"/a.txt: the server answers 404 Not Found"}},
		{"http", func(s *site, f *File) { f.URL = strings.Replace(f.URL, "https:", "http:", 1) }, command.ExitFailed, []string{"isn't an https address"}},
		{"redirect to http", func(s *site, f *File) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, strings.Replace(s.URL, "https:", "http:", 1)+"/b", http.StatusFound)
				return true
			}
		}, command.ExitFailed, []string{"is redirected to http://", "isn't https"}},
		{"redirect for ever", func(s *site, f *File) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, s.URL+"/a.txt", http.StatusFound)
				return true
			}
		}, command.ExitFailed, []string{"more than 5 times"}},
		{"a part without being asked", func(s *site, f *File) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				w.WriteHeader(http.StatusPartialContent)
				return true
			}
		}, command.ExitFailed, []string{"the server answers 206"}},
		{"no network", func(s *site, f *File) { s.Close() }, command.ExitFailed, []string{"no network, or 127.0.0.1 can't be reached", "connection refused"}},
		{"no name", func(s *site, f *File) { f.URL = "https://nowhere.invalid/a.txt" }, command.ExitFailed, []string{"no network, or nowhere.invalid can't be reached: its name isn't found"}},
		{"other certificate", func(s *site, f *File) {
			s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs = nil
		}, command.ExitFailed, []string{"certificate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, dir := newSite(t, map[string]string{"a.txt": big}), t.TempDir()
			set := s.set(true, "a.txt")
			c.change(s, &set.Files[0])
			_, err := s.fetch(set, dir)
			wantFault(t, dir, err, c.code, c.parts...)
			if entries, _ := os.ReadDir(dir); c.name != "truncated" && len(entries) > 0 {
				t.Errorf("left in the directory: %v", entries)
			}
		})
	}
}

// A download that was cut goes on where it stopped, if the digest of the whole is known.
func TestResume(t *testing.T) {
	text := strings.Repeat("0123456789", 500)
	for _, c := range []struct {
		name     string
		pin      bool
		kept     string // of the part on disk
		noRange  bool
		requests []string
	}{
		{"pinned", true, text[:1234], false, []string{"/a.txt bytes=1234-", "/b.txt"}},
		{"a server without ranges", true, text[:1234], true, []string{"/a.txt bytes=1234-", "/b.txt"}},
		{"all of it", true, text, false, []string{"/b.txt"}},
		{"more than all", true, text + "x", false, []string{"/a.txt bytes=5001-", "/a.txt", "/b.txt"}},
		{"first use", false, text[:1234], false, []string{"/a.txt", "/b.txt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, dir := newSite(t, map[string]string{"a.txt": text, "b.txt": "b"}), t.TempDir()
			if c.noRange {
				s.before = func(_ http.ResponseWriter, r *http.Request) bool { r.Header.Del("Range"); return false }
			}
			set := s.set(c.pin, "a.txt", "b.txt")
			partial := filepath.Join(dir, "set.partial")
			if err := os.MkdirAll(partial, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(partial, hashName(set.Files[0].URL)+".part"), []byte(c.kept), 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := s.fetch(set, dir); err != nil {
				t.Fatal(err)
			}
			wantFile(t, dir, "a.txt", text)
			if !slices.Equal(s.requests, c.requests) {
				t.Errorf("requests %q, want %q", s.requests, c.requests)
			}
		})
	}
	// A part of something else doesn't pass, and is gone.
	s, dir := newSite(t, map[string]string{"a.txt": text}), t.TempDir()
	set := s.set(true, "a.txt")
	part := filepath.Join(dir, "set.partial", hashName(set.Files[0].URL)+".part")
	if err := os.MkdirAll(filepath.Dir(part), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(part, []byte(strings.ToUpper("abc")), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := s.fetch(set, dir)
	wantFault(t, dir, err, command.ExitInput, "has SHA-256")
	if _, err := s.fetch(set, dir); err != nil {
		t.Error(err)
	}
}

// Finished files of a cut job aren't downloaded again.
func TestResumeBetweenFiles(t *testing.T) {
	for _, pin := range []bool{true, false} {
		s, dir := newSite(t, map[string]string{"a.txt": "a", "b.txt": "b"}), t.TempDir()
		set := s.set(pin, "a.txt", "b.txt")
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/b.txt" {
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return true
			}
			return false
		}
		_, err := s.fetch(set, dir)
		wantFault(t, dir, err, command.ExitFailed, "503")
		s.before = nil
		if _, err := s.fetch(set, dir); err != nil || !slices.Equal(s.requests, []string{"/b.txt"}) {
			t.Errorf("requests %q, %v", s.requests, err)
		}
		wantFile(t, dir, "a.txt", "a")
		wantFile(t, dir, "b.txt", "b")
	}
}

func TestFirstUse(t *testing.T) {
	s, dir := newSite(t, map[string]string{"a.txt": "first"}), t.TempDir()
	set := s.set(false, "a.txt")
	if _, err := s.fetch(set, dir); err != nil {
		t.Fatal(err)
	}
	// The folder is lost, the record stays: the same file is accepted, another isn't.
	if err := os.RemoveAll(filepath.Join(dir, "set")); err != nil {
		t.Fatal(err)
	}
	s.files["/a.txt"] = []byte("other")
	_, err := s.fetch(set, dir)
	wantFault(t, dir, err, command.ExitInput, "recorded at its first use is "+digestOf([]byte("first")), "remove the lock file")
	s.files["/a.txt"] = []byte("first")
	if _, err := s.fetch(set, dir); err != nil {
		t.Fatal(err)
	}
	// A digest that is pinned later must be the one that was trusted.
	set.Files[0].SHA256, set.Files[0].Known = digestOf([]byte("other")), Published
	if _, err := s.fetch(set, dir); err == nil || !strings.Contains(err.Error(), "pinned (published) is") {
		t.Errorf("got %v", err)
	}
}

func TestForeignFiles(t *testing.T) {
	s, dir := newSite(t, map[string]string{"a.txt": "a"}), t.TempDir()
	own := filepath.Join(dir, "set", "mine.txt")
	if err := os.Mkdir(filepath.Dir(own), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.fetch(s.set(true, "a.txt"), dir); err == nil || !strings.Contains(err.Error(), "set is there, but no ") || len(s.requests) > 0 {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{`{"name": 1}`, `{"files": [{"path": "../x"}]}`, `{"paths": []}`, ``} {
		if err := os.WriteFile(filepath.Join(dir, "set.lock.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := s.fetch(s.set(true, "a.txt"), dir); command.Code(err) != command.ExitInput || !strings.Contains(err.Error(), "set.lock.json") {
			t.Errorf("lock %s: %v", text, err)
		}
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
}

func TestTwoAtOnce(t *testing.T) {
	s, dir := newSite(t, map[string]string{"a.txt": "a"}), t.TempDir()
	set := s.set(true, "a.txt")
	var second error
	s.before = func(http.ResponseWriter, *http.Request) bool {
		_, second = Fetch(context.Background(), set, dir, Options{Client: s.Client()})
		return false
	}
	if _, err := s.fetch(set, dir); err != nil {
		t.Error(err)
	}
	if second == nil || !strings.Contains(second.Error(), "another download of set is at work") {
		t.Errorf("second: %v", second)
	}
}

func TestInterrupt(t *testing.T) {
	s, dir := newSite(t, map[string]string{"a.txt": strings.Repeat("a", 1<<20)}), t.TempDir()
	set := s.set(true, "a.txt")
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan struct{})
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", fmt.Sprint(1<<20))
		w.Write(bytes.Repeat([]byte("a"), 1<<19))
		w.(http.Flusher).Flush()
		close(started)
		<-r.Context().Done()
		return true
	}
	go func() { <-started; cancel() }()
	if _, err := Fetch(ctx, set, dir, Options{Client: s.Client()}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.before = nil
	if _, err := s.fetch(set, dir); err != nil {
		t.Error(err)
	}
	wantFile(t, dir, "a.txt", strings.Repeat("a", 1<<20))
}

// member is one entry of an archive.
type member struct {
	name, text string
	link       string // of a symbolic link
}

func makeZip(t *testing.T, members ...member) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		if h.SetMode(0o644); m.link != "" {
			h.SetMode(0o644 | os.ModeSymlink)
			m.text = m.link
		}
		f, err := w.CreateHeader(h)
		if err == nil && !strings.HasSuffix(m.name, "/") {
			_, err = f.Write([]byte(m.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func makeTar(t *testing.T, members ...member) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.text)), Typeflag: tar.TypeReg}
		if m.link != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, m.link, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestUnpack(t *testing.T) {
	for _, format := range []string{"zip", "tar.gz"} {
		pack := map[string]func(*testing.T, ...member) string{"zip": makeZip, "tar.gz": makeTar}[format]
		good := []member{{name: "top/raw/e.csv", text: "1,2\n"}, {name: "top/README", text: "hello"}, {name: "top/raw/deep/f.csv", text: "3\n"}, {name: "one.txt", text: "x"}}
		for _, c := range []struct {
			name    string
			archive string
			fault   string
		}{
			{"good", pack(t, good...), ""},
			{"out by ..", pack(t, append(good, member{name: "../evil", text: "x"})...), `holds "../evil", a path outside the archive`},
			{"out by .. inside", pack(t, append(good, member{name: "top/raw/../../../evil", text: "x"})...), "a path outside the archive"},
			{"absolute", pack(t, append(good, member{name: "/etc/evil", text: "x"})...), "a path outside the archive"},
			{"backslashes", pack(t, append(good, member{name: `top\raw\evil`, text: "x"})...), "a path outside the archive"},
			{"link", pack(t, append(good, member{name: "top/raw/l", link: "/etc/passwd"})...), `holds "top/raw/l", a link or device`},
			{"twice", pack(t, append(good, member{name: "top/raw/./e.csv", text: "x"})...), "twice"},
			{"missing", pack(t, good[:3]...), "holds no one.txt"},
			{"missing folder", pack(t, good[3]), "holds no top/raw/"},
			{"bomb", pack(t, append(good, member{name: "top/raw/z", text: strings.Repeat("0", 2<<20)})...), "unpacks to more than 1048576 bytes"},
			{"cut", pack(t, good...)[:100], format},
			{"text", "no archive", "is no readable"},
			{"empty", "", "is no readable"},
		} {
			t.Run(format+"/"+c.name, func(t *testing.T) {
				s, root := newSite(t, map[string]string{"a": c.archive}), t.TempDir()
				dir := filepath.Join(root, "in")
				set := s.set(false, "a")
				set.Files[0].Unpack = &Unpack{Format: format, MaxBytes: mib, Places: map[string]string{"top/raw/": "raw/", "one.txt": "first.txt"}}
				_, err := s.fetch(set, dir)
				if c.fault != "" {
					fault := c.fault
					if c.name == "cut" {
						fault = "a: "
					}
					wantFault(t, dir, err, command.ExitInput, fault)
				} else if err != nil {
					t.Fatal(err)
				} else {
					wantFile(t, dir, "raw/e.csv", "1,2\n")
					wantFile(t, dir, "raw/deep/f.csv", "3\n")
					wantFile(t, dir, "first.txt", "x")
					if entries, _ := os.ReadDir(filepath.Join(dir, "set")); len(entries) != 2 {
						t.Errorf("unpacked %v", entries)
					}
				}
				filepath.WalkDir(root, func(path string, _ os.DirEntry, _ error) error {
					if strings.Contains(path, "evil") {
						t.Errorf("%s was written", path)
					}
					return nil
				})
			})
		}
	}
}

func TestTooManyMembers(t *testing.T) {
	var members []member
	for i := range maxMembers + 1 {
		members = append(members, member{name: fmt.Sprint(i)})
	}
	path := filepath.Join(t.TempDir(), "a.zip")
	if err := os.WriteFile(path, []byte(makeZip(t, members...)), 0o666); err != nil {
		t.Fatal(err)
	}
	err := unpack(t.Context(), path, &Unpack{Format: "zip", MaxBytes: mib}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "more than 10000 members") {
		t.Errorf("got %v", err)
	}
}

func TestCommandLine(t *testing.T) {
	runIt := func(client *http.Client, args ...string) (code int, out, errs string) {
		var o, e bytes.Buffer
		code = run(args, strings.NewReader(""), &o, &e, client)
		return code, o.String(), e.String()
	}
	code, out, _ := runIt(nil, "list")
	if code != command.ExitDone {
		t.Errorf("list: exit %d", code)
	}
	for _, s := range Sets() {
		if !strings.Contains(out, "\n"+s.Name+" ") {
			t.Errorf("list lacks %s", s.Name)
		}
	}
	if code, out, _ = runIt(nil, "list", "--json"); code != command.ExitDone || !json.Valid([]byte(out)) {
		t.Errorf("list --json: exit %d, %s", code, out)
	}
	for _, args := range [][]string{{}, {"nope"}, {"cora", "a", "b"}, {"ogbn-mag"}, {"list", "x"}, {"--nope"}} {
		if code, out, errs := runIt(nil, args...); code != command.ExitUsage || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: exit %d, %q, %q", args, code, out, errs)
		}
	}
	s := newSite(t, nil)
	s.Close()
	dir := t.TempDir()
	code, out, errs := runIt(s.Client(), "cora", dir)
	if code != command.ExitFailed || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "no network") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}
