package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/trainer/internal/backend"
	"github.com/prelift/prelift/trainer/internal/backend/cpu"
	"github.com/prelift/prelift/trainer/internal/durable"
)

// file builds a safetensors file by hand: what Parse must judge.
func file(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

const one = `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`

// TestFormat pins the bytes.
func TestFormat(t *testing.T) {
	var got bytes.Buffer
	err := Write(&got, []Tensor{
		Float32s("b", []int{1, 2}, []float32{1, -2}),
		Float32s("a", []int{}, []float32{0.5}),
	}, map[string]string{"z": "1 < 2", "k": `"`})
	if err != nil {
		t.Fatal(err)
	}
	header := `{"__metadata__":{"k":"\"","z":"1 < 2"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[4,12]}}`
	for len(header)%8 != 0 {
		header += " "
	}
	want := file(header, 0, 0, 0, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0)
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got  %q\nwant %q", got.Bytes(), want)
	}
	f, err := Parse(want)
	if err != nil {
		t.Fatal(err)
	}
	if f.Metadata["k"] != `"` || len(f.Tensors) != 2 || f.Tensor("nothing") != nil {
		t.Errorf("parsed %+v", f)
	}
	if v, err := f.Tensor("b").Float32s(); err != nil || !slices.Equal(v, []float32{1, -2}) {
		t.Errorf("b = %v, %v", v, err)
	}
}

func TestWriteErrors(t *testing.T) {
	good := Float32s("a", []int{1}, []float32{1})
	for name, tensors := range map[string][]Tensor{
		"repeated name": {good, good},
		"wrong size":    {Float32s("a", []int{2}, []float32{1})},
		"unknown dtype": {{Name: "a", DType: "F31", Shape: []int{1}, Data: make([]byte, 4)}},
		"reserved name": {Float32s("__metadata__", []int{1}, []float32{1})},
		"negative":      {{Name: "a", DType: F32, Shape: []int{-1}}},
		"overflow":      {{Name: "a", DType: F32, Shape: []int{math.MaxInt, math.MaxInt}}},
		"not UTF-8":     {Float32s("\xff", []int{1}, []float32{1})},
	} {
		if Write(&bytes.Buffer{}, tensors, nil) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	many := strings.Repeat("1,", maxRank) + "1"
	for _, c := range []struct {
		name string
		data []byte
		want string // part of the message
	}{
		{"empty", nil, "0 bytes"},
		{"one byte", []byte{1}, "1 bytes"},
		{"only a length", make([]byte, 8), "begin with {"},
		{"huge header", append(binary.LittleEndian.AppendUint64(nil, math.MaxUint64), '{'), "at most"},
		{"header past the end", append(binary.LittleEndian.AppendUint64(nil, 100), '{'), "header of 100 bytes in a file of 9"},
		{"not JSON", file(`{nothing}`), "invalid character"},
		{"cut JSON", file(`{"a":`), "ends early"},
		{"an array", file(`[]`), "begin with {"},
		{"blank first", file(` {}`), "begin with {"},
		{"two objects", file(`{}{}`), "left over"},
		{"not UTF-8", file("{\"\xff\":{}}"), "UTF-8"},
		{"repeated name", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 1, 2), "twice"},
		{"repeated key", file(`{"a":{"dtype":"U8","dtype":"U8","data_offsets":[0,1]}}`, 1), "twice"},
		{"unknown key", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}`, 1), "unknown"},
		{"missing shape", file(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1), "needed"},
		{"unknown dtype", file(`{"a":{"dtype":"U9","shape":[1],"data_offsets":[0,1]}}`, 1), `"U9"`},
		{"one offset", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}`, 1), "two numbers"},
		{"three offsets", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}}`, 1), "more than 2"},
		{"fraction", file(`{"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}}`, 1), "not a count"},
		{"negative", file(`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}`, 1), "not a count"},
		{"exponent", file(`{"a":{"dtype":"U8","shape":[1e0],"data_offsets":[0,1]}}`, 1), "not a count"},
		{"overflow", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`), "overflows"},
		{"rank", file(`{"a":{"dtype":"U8","shape":[`+many+`],"data_offsets":[0,1]}}`, 1), "more than"},
		{"gap", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 1, 2), "tile"},
		{"overlap", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 1, 2, 3), "tile"},
		{"size", file(`{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}}`, 1, 2), "needs 3"},
		{"backward", file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,-1]}}`, 1), "not a count"},
		{"data cut", file(one, 1), "ends at byte 2 of 1"},
		{"data left over", file(one, 1, 2, 3), "end at byte 2 of 3"},
		{"metadata of numbers", file(`{"__metadata__":{"a":1}}`), "want a string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Parse(c.data)
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("got %+v, %v, want an error with %q", f, err, c.want)
			}
		})
	}
	for _, good := range [][]byte{file(one, 1, 2), file(one+"   ", 1, 2), file(`{}`), file(`{"a":{"shape":[0],"dtype":"F32","data_offsets":[0,0]}}`)} {
		if _, err := Parse(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// FuzzParse: no panic; what is accepted holds together and survives Write and Parse.
func FuzzParse(f *testing.F) {
	f.Add(file(one, 1, 2))
	f.Add(file(`{"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}}`, 1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error %v is no known sentinel", err)
			}
			return
		}
		var again bytes.Buffer
		if err := Write(&again, parsed.Tensors, parsed.Metadata); err != nil {
			t.Fatal(err)
		}
		second, err := Parse(again.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range parsed.Tensors {
			b := second.Tensor(a.Name)
			if b == nil || b.DType != a.DType || !slices.Equal(a.Shape, b.Shape) || !bytes.Equal(a.Data, b.Data) {
				t.Fatalf("%q changed: %+v, %+v", a.Name, a, b)
			}
		}
	})
}

// TestPython reads a file of ours with the safetensors package, and ours reads its own.
func TestPython(t *testing.T) {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import numpy, safetensors").Run(); err != nil {
		t.Skipf("%s has no numpy and safetensors (set PYTHON): %v", python, err)
	}
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	var b bytes.Buffer
	if err := Write(&b, []Tensor{
		Float32s("layers.0.weight", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6}), Float32s("layers.0.bias", []int{3}, []float32{-1, 0, 1}),
		Float32s("empty", []int{0, 4}, nil),
	}, map[string]string{"format": "pt"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ours, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-c", `
import sys, numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
t = load_file(sys.argv[1])
assert sorted(t) == ["empty", "layers.0.bias", "layers.0.weight"], t
assert (t["layers.0.weight"] == np.array([[1, 2, 3], [4, 5, 6]], np.float32)).all()
assert t["layers.0.bias"].tolist() == [-1, 0, 1] and t["empty"].shape == (0, 4)
assert safe_open(sys.argv[1], "np").metadata() == {"format": "pt"}
save_file({"w": np.arange(6, dtype=np.float32).reshape(3, 2), "n": np.array([7], np.int64)}, sys.argv[2], {"who": "python"})
`, ours, theirs).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Tensor("w").Float32s()
	if err != nil || !slices.Equal(w, []float32{0, 1, 2, 3, 4, 5}) || f.Metadata["who"] != "python" || f.Tensor("n").DType != I64 {
		t.Errorf("read %+v, %v", f, err)
	}
}

// save makes the checkpoint of an epoch, with tensors that depend on it.
func save(t *testing.T, s *Store, epoch int) error {
	t.Helper()
	best := 0.25 * float64(epoch)
	return s.Save(&State{
		Epoch: epoch, Step: int64(3 * epoch), Seed: math.MaxUint64, KernelSet: "go", Metric: "accuracy",
		BestEpoch: epoch, BestMetric: &best,
		Parents: map[string]string{"snapshot_id": "sha256:aa", "batch_set_id": "sha256:bb"},
		Run:     json.RawMessage(`{"patience": 3, "note": "<&>"}`),
	}, []Tensor{Float32s("w", []int{64}, slices.Repeat([]float32{float32(epoch)}, 64))}, nil)
}

func mustLoad(t *testing.T, s *Store, epoch int) *Loaded {
	t.Helper()
	l, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.Tensors.Tensor("w").Float32s()
	if err != nil || l.State.Epoch != epoch || w[63] != float32(epoch) || l.State.Step != int64(3*epoch) || l.State.Seed != math.MaxUint64 {
		t.Fatalf("loaded epoch %d, tensor of epoch %v, want %d", l.State.Epoch, w[63], epoch)
	}
	return l
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), "-")
		if stem := strings.TrimSuffix(e.Name(), tensorSuffix); stem != e.Name() {
			name = stem[:strings.LastIndex(stem, "-")]
		}
		list = append(list, name)
	}
	return list
}

func TestStore(t *testing.T) {
	s := &Store{Dir: filepath.Join(t.TempDir(), "checkpoints")}
	if _, err := s.Load(); !errors.Is(err, ErrNone) || err.Error() != "no checkpoint in "+s.Dir {
		t.Errorf("before the first: %v", err)
	}
	for epoch := 1; epoch <= 4; epoch++ {
		if err := save(t, s, epoch); err != nil {
			t.Fatal(err)
		}
		if l := mustLoad(t, s, epoch); l.Warning != "" {
			t.Errorf("warning %q", l.Warning)
		}
	}
	want := []string{"epoch-000003", "epoch-000004", "previous.json", "state.json"}
	if got := names(t, s.Dir); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}

	// The same content gives the same bytes, wherever and however often it is saved.
	other := &Store{Dir: t.TempDir()}
	for _, epoch := range []int{3, 4, 4} {
		if err := save(t, other, epoch); err != nil {
			t.Fatal(err)
		}
	}
	a, b := hash(t, s.Dir, latestName), hash(t, other.Dir, latestName)
	if a != b {
		t.Error("state.json differs between two runs")
	}
	mustLoad(t, other, 4)
}

func hash(t *testing.T, dir, name string) [32]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}

// TestTorn cuts the tensors and the state to 0, 1, half and size-1 bytes: the error names
// file and sizes; with a previous checkpoint, that one is loaded and said so.
func TestTorn(t *testing.T) {
	for _, which := range []string{"tensors", "state"} {
		for _, cut := range []string{"0", "1", "half", "size-1", "flipped", "removed"} {
			for _, hasPrevious := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/previous=%v", which, cut, hasPrevious), func(t *testing.T) {
					s := &Store{Dir: t.TempDir()}
					if hasPrevious {
						if err := save(t, s, 1); err != nil {
							t.Fatal(err)
						}
					}
					if err := save(t, s, 2); err != nil {
						t.Fatal(err)
					}
					path := filepath.Join(s.Dir, latestName)
					if which == "tensors" {
						path = mustLoad(t, s, 2).Path
					}
					data, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					size := len(data)
					sizes := map[string]int{"0": 0, "1": 1, "half": size / 2, "size-1": size - 1, "flipped": size}
					if cut == "flipped" {
						data[size/2] ^= 1
					}
					if cut == "removed" {
						err = os.Remove(path)
					} else {
						err = os.WriteFile(path, data[:sizes[cut]], 0o666)
					}
					if err != nil {
						t.Fatal(err)
					}
					if hasPrevious {
						l := mustLoad(t, s, 1)
						if !strings.Contains(l.Warning, path) || !strings.Contains(l.Warning, "previous checkpoint, epoch 1") {
							t.Errorf("warning %q", l.Warning)
						}
						// The next save keeps the whole previous one.
						if err := save(t, s, 2); err != nil {
							t.Fatal(err)
						}
						mustLoad(t, s, 2)
						if st, err := s.readState(previousName); err != nil || st.Epoch != 1 && st.Epoch != 2 {
							t.Errorf("previous: %+v, %v", st, err)
						}
						return
					}
					_, err = s.Load()
					if which == "state" && cut == "removed" {
						if !errors.Is(err, ErrNone) {
							t.Errorf("got %v, want ErrNone", err)
						}
						return
					}
					if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "expected") {
						t.Fatalf("got %v", err)
					}
					if cut != "removed" && !strings.Contains(err.Error(), fmt.Sprintf("%d bytes", sizes[cut])) {
						t.Errorf("%v: the size found, %d, is missing", err, sizes[cut])
					}
					if which == "tensors" && !strings.Contains(err.Error(), fmt.Sprint(size)) {
						t.Errorf("%v: the size expected, %d, is missing", err, size)
					}
				})
			}
		}
	}
}

// TestSaveAgain: the same epoch saved again, as after a resume that had nothing to do, must
// not become its own previous one: damage to that one file would end both.
func TestSaveAgain(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	for _, epoch := range []int{1, 2, 2, 2} {
		if err := save(t, s, epoch); err != nil {
			t.Fatal(err)
		}
	}
	if want, got := []string{"epoch-000001", "epoch-000002", "previous.json", "state.json"}, names(t, s.Dir); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	if st, err := s.readState(previousName); err != nil || st.Epoch != 1 {
		t.Errorf("previous: %+v, %v, want epoch 1", st, err)
	}
	if err := os.Truncate(mustLoad(t, s, 2).Path, 10); err != nil {
		t.Fatal(err)
	}
	if l := mustLoad(t, s, 1); l.Warning == "" {
		t.Error("no warning")
	}
	// Saved again after damage, the whole previous one still stays.
	if err := save(t, s, 2); err != nil {
		t.Fatal(err)
	}
	if st, err := s.readState(previousName); err != nil || st.Epoch != 1 {
		t.Errorf("previous after damage: %+v, %v, want epoch 1", st, err)
	}
	// A first save alone has no previous one to become.
	only := &Store{Dir: t.TempDir()}
	for range 2 {
		if err := save(t, only, 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := only.readState(previousName); !errors.Is(err, ErrNone) {
		t.Errorf("previous of one epoch: %v, want none", err)
	}
}

// TestKilled stops a save before each of its actions, as a kill would: the old or the
// new checkpoint loads, and the next save leaves the usual files.
func TestKilled(t *testing.T) {
	stop := errors.New("killed")
	for at := 0; ; at++ {
		s := &Store{Dir: t.TempDir()}
		for epoch := 1; epoch <= 2; epoch++ {
			if err := save(t, s, epoch); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		s.step = func(string) error {
			if n++; n > at {
				return stop
			}
			return nil
		}
		err := save(t, s, 3)
		s.step = nil
		if err == nil {
			if at < 9 {
				t.Errorf("a save has only %d actions", at)
			}
			return
		}
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		l, err := s.Load()
		if err != nil || l.Warning != "" || l.State.Epoch < 2 {
			t.Fatalf("killed at action %d: %+v, %v", at, l, err)
		}
		mustLoad(t, s, l.State.Epoch)
		if err := save(t, s, 3); err != nil {
			t.Fatal(err)
		}
		mustLoad(t, s, 3)
		got := names(t, s.Dir)
		if slices.ContainsFunc(got, durable.IsTemporary) || len(got) > 4 {
			t.Errorf("killed at action %d, then saved: files %v", at, got)
		}
	}
}

func TestStateRefuses(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	if err := save(t, s, 1); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Dir, latestName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, old, new string
		want           error
	}{
		{"another version", `"format": 1`, `"format": 2`, ErrMismatch},
		{"a changed value", `"epoch": 1`, `"epoch": 2`, ErrCorrupt},
		{"an unknown key", `"epoch": 1`, `"epoch": 1, "x": 2`, ErrCorrupt},
		{"a path that escapes", `"name": "`, `"name": "../`, ErrCorrupt},
	} {
		if !bytes.Contains(data, []byte(c.old)) {
			t.Fatalf("%q isn't in %s", c.old, data)
		}
		if err := os.WriteFile(path, bytes.Replace(data, []byte(c.old), []byte(c.new), 1), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	// A state whose check fits but that names another file.
	st := &State{Format: stateFormat, File: FileStamp{Name: "../epoch-1.safetensors"}}
	st.Check, _ = st.sum()
	encoded, _ := st.encode()
	if err := os.WriteFile(path, encoded, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "names the file") {
		t.Errorf("got %v", err)
	}
}

func TestMatrices(t *testing.T) {
	b := cpu.New(cpu.Options{Threads: 1})
	defer b.Close()
	m := b.Alloc(2, 3)
	bias := b.Alloc(1, 3)
	named := []backend.Named{{Name: "w", Shape: []int{2, 3}, Value: m}, {Name: "b", Shape: []int{3}, Value: bias}}
	f := &File{Tensors: []Tensor{Float32s("b", []int{3}, []float32{7, 8, 9}), Float32s("w", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6})}}
	if err := f.Upload(b, named); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 6)
	if err := b.Download(got, m); err != nil || !slices.Equal(got, []float32{1, 2, 3, 4, 5, 6}) {
		t.Errorf("got %v, %v", got, err)
	}
	b.Zero(m)
	for _, bad := range [][]backend.Named{
		{named[0], {Name: "c", Shape: []int{3}, Value: bias}},
		{named[0], {Name: "b", Shape: []int{1, 3}, Value: bias}},
	} {
		if err := f.Upload(b, bad); !errors.Is(err, ErrMismatch) {
			t.Errorf("got %v, want ErrMismatch", err)
		}
	}
	if err := b.Download(got, m); err != nil || got[0] != 0 {
		t.Error("a failed Upload changed a matrix")
	}
}

func BenchmarkSave(b *testing.B) {
	s := &Store{Dir: b.TempDir()}
	tensors := []Tensor{Float32s("w", []int{3 * 23000}, make([]float32, 3*23000))} // Cora's GCN with moments
	for epoch := 0; b.Loop(); epoch++ {
		if err := s.Save(&State{Epoch: epoch}, tensors, nil); err != nil {
			b.Fatal(err)
		}
	}
}
