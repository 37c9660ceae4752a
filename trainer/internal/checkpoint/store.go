package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prelift/prelift/trainer/internal/durable"
)

// What can be wrong with a checkpoint.
var (
	ErrNone     = errors.New("no checkpoint")                                      // nothing was saved there
	ErrCorrupt  = errors.New("checkpoint is damaged")                              // cut, changed or not ours
	ErrMismatch = errors.New("checkpoint doesn't belong to this model or version") // whole, but another's
)

// stateFormat is the version of state.json.
const stateFormat = 1

// maxStateBytes bounds what is read of a state file.
const maxStateBytes = 16 << 20

// State is all of a run beside its tensors. 64-bit integers are decimal strings in JSON.
// Dropout, batch order and initial weights are pure functions of Seed, Step and Epoch, so they
// are the whole random state.
type State struct {
	Format     int      `json:"format"`
	Step       int64    `json:"step,string"` // optimiser steps made
	Epoch      int      `json:"epoch"`       // epochs finished
	Seed       uint64   `json:"seed,string"`
	KernelSet  string   `json:"kernel_set"`
	Metric     string   `json:"metric"`
	BestEpoch  int      `json:"best_epoch"`  // counted from 1; 0 before the first
	BestMetric *float64 `json:"best_metric"` // null where there is no validation
	// Parents names the artefacts that the run trained on: snapshot_id, batch_set_id.
	Parents map[string]string `json:"parents"`
	// Run is the run's own JSON: model, optimiser, early stopping.
	Run json.RawMessage `json:"run,omitempty"`
	// File is the safetensors file; Save sets it.
	File FileStamp `json:"file"`
	// Check is the SHA-256 of this object's compact JSON with an empty Check; Save sets it.
	Check string `json:"check"`
}

// FileStamp names a file and what it must be.
type FileStamp struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"size_bytes,string"`
	SHA256    string `json:"sha256"`
}

// sum returns what Check must be.
func (s State) sum() (string, error) {
	s.Check = ""
	data, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("checkpoint: state: %w", err)
	}
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:]), nil
}

// The files of a Store beside the tensors.
const (
	latestName   = "state.json"
	previousName = "previous.json"
)

// Store keeps the checkpoints of one run in a directory: the latest and the one before it.
//
//	state.json      the latest State; names epoch-EEEEEE-HHHHHHHH.safetensors (H: of its SHA-256)
//	previous.json   the State before it
//
// Every file is written beside, synced and renamed, tensors before the state that names
// them, and removed only when no state names it any more. So after a kill at any moment the
// latest complete checkpoint loads. One process at a time may save.
type Store struct {
	Dir string

	// step is called before each action of a save, in tests: an error stops the save there,
	// as a kill would.
	step func(what string) error
}

// Save makes a checkpoint the latest; the one that was becomes the previous. It fills in
// Format, File and Check of st. metadata goes into the tensor file for other programs.
func (s *Store) Save(st *State, tensors []Tensor, metadata map[string]string) error {
	if err := s.writeTensors(st, tensors, metadata); err != nil {
		return err
	}
	// A damaged latest must not push out a whole previous, nor one become its own previous
	// (the same epoch saved again after damage): then one more damaged file would end both.
	// Sizes are enough here; Load checks the digests.
	if old, err := s.readState(latestName); err == nil && s.hasFile(old.File) && old.File != st.File {
		if err := s.writeState(previousName, old); err != nil {
			return err
		}
	}
	if err := s.writeState(latestName, st); err != nil {
		return err
	}
	return s.prune()
}

// Exists reports whether a checkpoint was ever completed here, whole or not by now.
func (s *Store) Exists() bool {
	for _, name := range []string{latestName, previousName} {
		if _, err := os.Lstat(filepath.Join(s.Dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Unfinished reports whether the directory holds nothing but what a first Save that was
// killed leaves.
func (s *Store) Unfinished() bool {
	entries, err := os.ReadDir(s.Dir)
	return err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return e.IsDir() || !durable.IsTemporary(e.Name()) && !isTensorName(e.Name())
	})
}

// Loaded is a checkpoint read back.
type Loaded struct {
	State   *State
	Tensors *File
	Path    string // of the tensors
	// Warning is not empty where the latest was damaged and this is the one before it: a
	// sentence for the user.
	Warning string
}

// Load reads the latest checkpoint, or the previous one where the latest is damaged.
// Errors: ErrNone where the directory has none, ErrCorrupt where none is whole, ErrMismatch
// for one of another version.
func (s *Store) Load() (*Loaded, error) {
	st, f, err := s.load(latestName)
	if err == nil {
		return &Loaded{State: st, Tensors: f, Path: filepath.Join(s.Dir, st.File.Name)}, nil
	}
	st, f, err2 := s.load(previousName)
	switch {
	case err2 == nil && errors.Is(err, ErrNone): // killed between two renames, or removed by hand
		return &Loaded{
			State: st, Tensors: f, Path: filepath.Join(s.Dir, st.File.Name),
			Warning: fmt.Sprintf("%s is missing: going on from the previous checkpoint, epoch %d", filepath.Join(s.Dir, latestName), st.Epoch),
		}, nil
	case err2 == nil && errors.Is(err, ErrCorrupt):
		return &Loaded{
			State: st, Tensors: f, Path: filepath.Join(s.Dir, st.File.Name),
			Warning: fmt.Sprintf("%v: going on from the previous checkpoint, epoch %d", err, st.Epoch),
		}, nil
	case errors.Is(err, ErrNone) && !errors.Is(err2, ErrNone):
		return nil, err2
	}
	return nil, err
}

// load reads a state and its tensors and checks both whole.
func (s *Store) load(name string) (*State, *File, error) {
	st, err := s.readState(name)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(s.Dir, st.File.Name)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("%w: %s is missing, expected %d bytes", ErrCorrupt, path, st.File.SizeBytes)
	case err != nil:
		return nil, nil, err
	case int64(len(data)) != st.File.SizeBytes:
		return nil, nil, fmt.Errorf("%w: %s has %d bytes, expected %d", ErrCorrupt, path, len(data), st.File.SizeBytes)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != st.File.SHA256 {
		return nil, nil, fmt.Errorf("%w: %s has sha256 %x, expected %s (%d bytes, as expected)", ErrCorrupt, path, sum, st.File.SHA256, len(data))
	}
	f, err := Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return st, f, nil
}

// hasFile reports whether a stamped file is there in its size.
func (s *Store) hasFile(f FileStamp) bool {
	info, err := os.Stat(filepath.Join(s.Dir, f.Name))
	return err == nil && info.Size() == f.SizeBytes
}

func (s *Store) readState(name string) (*State, error) {
	path := filepath.Join(s.Dir, name)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNone, s.Dir)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxStateBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// Written with indentation and a line end, so a cut one shows.
	bad := func(why string) error {
		return fmt.Errorf("%w: %s has %d bytes, expected a whole state (%s)", ErrCorrupt, path, len(data), why)
	}
	if len(data) > maxStateBytes {
		return nil, bad(fmt.Sprintf("at most %d bytes", maxStateBytes))
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, bad(err.Error())
	}
	if version.Format != stateFormat {
		return nil, fmt.Errorf("%w: %s has format %d, this program reads %d", ErrMismatch, path, version.Format, stateFormat)
	}
	st := &State{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(st); err != nil {
		return nil, bad(err.Error())
	}
	sum, err := st.sum()
	if err != nil {
		return nil, bad(err.Error())
	}
	encoded, err := st.encode()
	if err != nil || sum != st.Check || !bytes.Equal(encoded, data) {
		return nil, bad("its check doesn't fit")
	}
	if !isTensorName(st.File.Name) {
		return nil, bad(fmt.Sprintf("it names the file %q", st.File.Name))
	}
	return st, nil
}

// encode returns the bytes of a state file.
func (s *State) encode() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("checkpoint: state: %w", err)
	}
	return append(data, '\n'), nil
}

// Tensor files are named epoch-EEEEEE-HHHHHHHH.safetensors.
const (
	tensorPrefix = "epoch-"
	tensorSuffix = ".safetensors"
)

// isTensorName reports whether a name is of the form that writeTensors gives: no path, no
// file of anybody else.
func isTensorName(name string) bool {
	return strings.HasPrefix(name, tensorPrefix) && strings.HasSuffix(name, tensorSuffix) && !strings.ContainsAny(name, `/\`)
}

func (s *Store) at(what string) error {
	if s.step != nil {
		return s.step(what)
	}
	return nil
}

// writeTensors writes the tensor file and stamps it into st.
func (s *Store) writeTensors(st *State, tensors []Tensor, metadata map[string]string) error {
	if err := os.MkdirAll(s.Dir, 0o777); err != nil {
		return err
	}
	h := sha256.New()
	counted := &counter{}
	var name string
	err := s.publish("tensors", func(w io.Writer) error {
		return Write(io.MultiWriter(w, h, counted), tensors, metadata)
	}, func() string {
		name = fmt.Sprintf("%s%06d-%s%s", tensorPrefix, st.Epoch, hex.EncodeToString(h.Sum(nil)[:4]), tensorSuffix)
		return name
	})
	if err != nil {
		return err
	}
	st.Format = stateFormat
	st.File = FileStamp{Name: name, SizeBytes: counted.n, SHA256: hex.EncodeToString(h.Sum(nil))}
	st.Check, err = st.sum()
	return err
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

func (s *Store) writeState(name string, st *State) error {
	data, err := st.encode()
	if err != nil {
		return err
	}
	return s.publish(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}, func() string { return name })
}

// publish writes what becomes the file name, which is asked for once all is written. base
// names the temporary.
func (s *Store) publish(base string, write func(io.Writer) error, name func() string) (err error) {
	if err := s.at("create " + base); err != nil {
		return err
	}
	f, err := durable.Create(s.Dir, base)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && s.step == nil {
			f.Discard()
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := s.at("sync " + base); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := s.at("rename " + base); err != nil {
		return err
	}
	return f.Publish(name())
}

// prune removes tensor files that no state names, and what a killed save left behind.
// Where a state can't be read nothing is removed.
func (s *Store) prune() error {
	if err := s.at("prune"); err != nil {
		return err
	}
	named := map[string]bool{}
	for _, name := range []string{latestName, previousName} {
		st, err := s.readState(name)
		switch {
		case err == nil:
			named[st.File.Name] = true
		case !errors.Is(err, ErrNone):
			return nil
		}
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if durable.IsTemporary(name) || isTensorName(name) && !named[name] {
			if err := os.Remove(filepath.Join(s.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
