package run

import (
	"bufio"
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

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/checkpoint"
	"github.com/prelift/prelift/trainer/internal/durable"
)

// Files of a run directory; the package comment says what is in each.
const (
	ParamsFile    = "params.yaml"
	MetricsFile   = "metrics.jsonl"
	BestFile      = "best.safetensors"
	LastFile      = "last.safetensors"
	ResultFile    = "result.json"
	CheckpointDir = "checkpoint"
)

// dir is a run directory that this process has locked.
type dir struct {
	path  string
	lock  *os.File
	store checkpoint.Store
}

// checkDir refuses, before anything is written, a path that can't be a run's: a file, an
// artefact or a place in one, a directory of other things; and for a resume whatever holds
// no checkpoint. A directory is a run's once its first checkpoint is whole; what a start
// that was killed before has left counts as empty.
func checkDir(path string, resume bool) error {
	if path == "" {
		return errors.New("no run directory; give --out")
	}
	if err := outsideArtefacts(path); err != nil {
		return err
	}
	store := checkpoint.Store{Dir: filepath.Join(path, CheckpointDir)}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if resume {
			return noRun(path)
		}
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is a file, a run needs a directory; name another --out", path)
	case store.Exists():
		return nil
	case resume:
		return noRun(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	if len(entries) == 1 && entries[0].Name() == CheckpointDir && store.Unfinished() {
		return nil
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s exists, is not empty and is no run directory; name another --out or remove it", path)
	}
	return nil
}

// outsideArtefacts refuses an output that is an artefact or lies in one, symbolic links
// followed: nothing may be added to what a manifest lists.
func outsideArtefacts(path string) error {
	at, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for dir := at; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			at = real
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for dir := at; ; dir = filepath.Dir(dir) {
		if isArtefact(dir) {
			return fmt.Errorf("%s is or lies in the artefact %s, which must stay as it is; name another --out", path, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// isArtefact reports whether a directory holds both manifest files.
func isArtefact(dir string) bool {
	for _, name := range []string{format.ManifestName, format.ManifestSumName} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// openDir makes and locks a run directory that checkDir has passed; close unlocks it, and
// so does the kernel when the process dies.
func openDir(path string) (*dir, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	lock, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: another process trains in this run directory; wait for it, or name another --out", path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := durable.Clean(path, ParamsFile, BestFile, LastFile, ResultFile); err != nil {
		lock.Close()
		return nil, err
	}
	return &dir{path: path, lock: lock, store: checkpoint.Store{Dir: filepath.Join(path, CheckpointDir)}}, nil
}

func (d *dir) close() error { return d.lock.Close() }

func (d *dir) file(name string) string { return filepath.Join(d.path, name) }

// load returns the run's latest checkpoint; nil where the directory holds no run.
func (d *dir) load() (*checkpoint.Loaded, error) {
	loaded, err := d.store.Load()
	if errors.Is(err, checkpoint.ErrNone) {
		return nil, nil
	}
	return loaded, classify(err)
}

// write replaces a file of the run.
func (d *dir) write(name string, b []byte) error {
	return durable.WriteFile(d.file(name), func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// writeTensors replaces a tensor file of the run and returns its SHA-256 in hex.
func (d *dir) writeTensors(name string, tensors []checkpoint.Tensor, metadata map[string]string) (string, error) {
	h := sha256.New()
	err := durable.WriteFile(d.file(name), func(w io.Writer) error {
		return checkpoint.Write(io.MultiWriter(w, h), tensors, metadata)
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func (d *dir) writeJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return d.write(name, append(b, '\n'))
}

// paramsOf is params.yaml: the flags that would make the run again, and its parents.
// As --config it gives a new run the same settings.
type paramsOf struct {
	Model        string  `yaml:"model"`
	Hidden       int     `yaml:"hidden"`
	Layers       int     `yaml:"layers"`
	Epochs       int     `yaml:"epochs"`
	LR           float64 `yaml:"lr"`
	WeightDecay  float64 `yaml:"weight-decay"`
	DecayLayers  string  `yaml:"weight-decay-layers"`
	Dropout      float64 `yaml:"dropout"`
	InputDropout float64 `yaml:"input-dropout"`
	Optimizer    string  `yaml:"optimizer"`
	Metric       string  `yaml:"metric"`
	Patience     int     `yaml:"patience"`
	EvalEvery    int     `yaml:"eval-every"`
	Split        int     `yaml:"split"`
	Seed         uint64  `yaml:"seed"`
	Parents      struct {
		SnapshotID string `yaml:"snapshot_id"`
		BatchSetID string `yaml:"batch_set_id"`
	} `yaml:"parents"`
}

// writeParams writes params.yaml unless it says the same already.
func (d *dir) writeParams(s settings, epochs int) error {
	p := paramsOf{
		Model: string(s.Model.Kind), Hidden: s.Model.Hidden, Layers: s.Model.Layers, Epochs: epochs,
		LR: s.Optimizer.LR, WeightDecay: s.Optimizer.WeightDecay, DecayLayers: string(s.Optimizer.Decay), Optimizer: string(s.Optimizer.Kind),
		Dropout: s.Model.Dropout, InputDropout: s.Model.InputDropout, Metric: string(s.Metric), Patience: s.Patience, EvalEvery: s.EvalEvery,
		Split: s.Split, Seed: s.Model.Seed,
	}
	p.Parents.SnapshotID, p.Parents.BatchSetID = s.SnapshotID, s.BatchSetID
	b, err := yaml.Marshal(&p)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(d.file(ParamsFile)); err == nil && bytes.Equal(old, b) {
		return nil
	}
	return d.write(ParamsFile, b)
}

// EpochRecord is one line of metrics.jsonl.
type EpochRecord struct {
	Epoch     int      `json:"epoch"` // from 1
	Steps     int64    `json:"steps"` // optimiser steps since the start
	TrainLoss *float64 `json:"train_loss"`
	ValMetric *float64 `json:"val_metric"` // null where the epoch wasn't evaluated
	Seconds   float64  `json:"seconds"`    // of training, without evaluation
}

// metricsLog appends to metrics.jsonl.
type metricsLog struct {
	f    *os.File
	last EpochRecord // the last line kept at opening; zero where there was none
}

// openMetrics opens metrics.jsonl and drops the lines after an epoch, and a torn one.
func (d *dir) openMetrics(epoch int) (*metricsLog, error) {
	f, err := os.OpenFile(d.file(MetricsFile), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	keep, last := int64(0), EpochRecord{}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		var r EpochRecord
		if err != nil || json.Unmarshal(line, &r) != nil || r.Epoch > epoch {
			break
		}
		keep, last = keep+int64(len(line)), r
	}
	err = f.Truncate(keep)
	if err == nil {
		_, err = f.Seek(keep, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &metricsLog{f, last}, nil
}

func (l *metricsLog) add(r EpochRecord) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = l.f.Write(append(b, '\n'))
	return err
}

func (l *metricsLog) sync() error  { return l.f.Sync() }
func (l *metricsLog) close() error { return l.f.Close() }

// readResult returns result.json of a finished run; nil where there is none.
func (d *dir) readResult() (*Result, error) {
	b, err := os.ReadFile(d.file(ResultFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, nil // damaged: made again
	}
	return r, nil
}

// removeResults removes what only a finished run has, before it goes on.
func (d *dir) removeResults() error {
	for _, name := range []string{ResultFile, BestFile, LastFile} {
		if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// noRun is the error of a run directory without a checkpoint.
func noRun(path string) error {
	return classError{fmt.Errorf("no checkpoint in %s", path), format.ErrMissing}
}
