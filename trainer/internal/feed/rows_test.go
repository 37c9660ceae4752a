package feed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/trainer/internal/feed/feedtest"
)

// TestRowTypes brings the rows of every type, from the feature table, from the batches, from hot rows and from groups, and of the
// whole graph: always the numbers that the type brings back.
func TestRowTypes(t *testing.T) {
	g := feedtest.Random(5, 90, 3, 7)
	for _, dtype := range []string{"f32", "f16", "bf16", "int8"} {
		stored := *g
		stored.Features = feedtest.Stored(g, dtype)
		if same := slices.Equal(stored.Features, g.Features); same != (dtype == "f32") {
			t.Fatalf("%s keeps every number: %v", dtype, same)
		}
		for _, c := range []struct {
			name string
			p    format.BatchParams
		}{
			{"ids", format.BatchParams{Store: "ids"}},
			{"packed", format.BatchParams{Store: "packed"}},
			{"hot", format.BatchParams{Store: "packed", HotRows: 0.3}},
			{"all hot", format.BatchParams{Store: "packed", HotRows: 1}},
			{"groups", format.BatchParams{Store: "packed", Group: 3, BatchesPerFile: 4}},
			{"groups and hot", format.BatchParams{Store: "packed", Group: 2, BatchesPerFile: 3, HotRows: 0.2}},
		} {
			t.Run(dtype+"/"+c.name, func(t *testing.T) {
				p := c.p
				p.DType, p.Mode, p.Fanout, p.BatchSize, p.Variants = dtype, "fanout", []int{2, 3}, 8, 2
				for _, lazy := range []bool{false, true} {
					s := open(t, write(t, g, p), Options{Lazy: lazy})
					for _, layers := range []int{0, 1, 2} {
						l, err := s.NewLoader(LoaderOptions{Coef: format.CoefGCN, Layers: layers, Features: true})
						if err != nil {
							t.Fatal(err)
						}
						collect(t, l, 0, func(b *Batch) { checkBatch(t, &stored, b, s.NumFeatures(), layers) })
					}
					all, err := s.DecodedFeatures()
					if err != nil || !slices.Equal(all, stored.Features) {
						t.Errorf("the table is not what was stored (%v)", err)
					}
				}
			})
		}
		t.Run(dtype+"/full", func(t *testing.T) {
			s := open(t, write(t, g, format.BatchParams{Mode: "full", DType: dtype}), Options{})
			l, err := s.NewLoader(LoaderOptions{Coef: format.CoefGCN, Layers: 1, Features: true})
			if err != nil {
				t.Fatal(err)
			}
			collect(t, l, 0, func(b *Batch) {
				if !slices.Equal(b.Features, stored.Features) {
					t.Error("the rows are not what was stored")
				}
			})
		})
	}
}

// TestRowFaults damages what batches share: a set with it is refused, when it is opened or when a batch is loaded, and never computed with.
func TestRowFaults(t *testing.T) {
	g := feedtest.Random(6, 60, 3, 5)
	base := format.BatchParams{Mode: "fanout", Fanout: []int{2, 3}, BatchSize: 8, Variants: 1, Store: "packed", Group: 2, BatchesPerFile: 4, HotRows: 0.2, DType: "int8"}
	load := func(dir string) error {
		s, err := Open(context.Background(), dir, Options{Lazy: true})
		if err != nil {
			return err
		}
		defer s.Close()
		l, err := s.NewLoader(LoaderOptions{Coef: format.CoefGCN, Layers: 2, Features: true})
		if err != nil {
			return err
		}
		stream := l.Stream(context.Background(), 0, 1)
		defer stream.Close()
		for range l.BatchesPerEpoch() {
			b, err := stream.Next()
			if err != nil {
				return err
			}
			b.Release()
		}
		return nil
	}
	remake := func(change func(m *format.BatchSet)) func(dir string) error {
		return func(dir string) error {
			_, m, err := format.ReadBatchSet(dir)
			if err != nil {
				return err
			}
			change(m)
			if m.SetKey, err = m.Key(); err != nil {
				return err
			}
			_, err = format.WriteManifest(dir, m)
			return err
		}
	}
	// exchange puts a file of a set with other parameters in the place of this set's, under this set's key.
	exchange := func(name string, change func(p *format.BatchParams)) func(dir string) error {
		return func(dir string) error {
			other := base
			change(&other)
			from := filepath.Join(write(t, g, other), name)
			f, err := format.Open(from)
			if err != nil {
				return err
			}
			defer f.Close()
			_, m, err := format.ReadBatchSet(dir)
			if err != nil {
				return err
			}
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
			h := f.Header
			h.SetKey = m.SetKey
			w, err := format.Create(filepath.Join(dir, name), h, len(f.Records))
			if err != nil {
				return err
			}
			for i := range f.Records {
				r, err := f.Record(i)
				if err != nil {
					return err
				}
				specs := []format.SectionSpec{}
				for _, s := range r.Sections {
					specs = append(specs, format.SectionSpec{Kind: s.Kind, Layer: s.Layer, Coef: s.Coef, DType: s.DType, Shape: s.Shape, Data: s.Bytes()})
				}
				if err := w.Add(&r.RecordHeader, specs); err != nil {
					return err
				}
			}
			if err := w.Close(); err != nil {
				return err
			}
			for i := range m.Files {
				if m.Files[i], err = format.DigestFile(filepath.Join(dir, m.Files[i].Name)); err != nil {
					return err
				}
			}
			_, err = format.WriteManifest(dir, m)
			return err
		}
	}
	for _, c := range []struct {
		name   string
		damage func(dir string) error
		want   error
		text   string
	}{
		{"nothing", func(string) error { return nil }, nil, ""},
		{"fewer hot rows than batches name", exchange(format.SetHotFile, func(p *format.BatchParams) { p.HotRows = 0.05 }), format.ErrLayout, "table 3 has 3 rows"},
		{"hot rows of another type", exchange(format.SetHotFile, func(p *format.BatchParams) { p.DType = "f16" }), format.ErrLayout, "no i8 rows"},
		{"fewer groups", exchange(format.RowsFile(0), func(p *format.BatchParams) { p.Group, p.BatchesPerFile = 4, 4 }), format.ErrLayout, "records in rows-00000.plf"},
		{"group rows of other nodes", exchange(format.RowsFile(0), func(p *format.BatchParams) { p.Fanout = []int{-1, -1} }), format.ErrLayout, "of table 2, which is node"},
		{"groups of other batches", exchange(format.RowsFile(0), func(p *format.BatchParams) { p.BatchSize = 4; p.HotRows = 0.9 }), format.ErrLayout, "rows"},
		{"a table of another type", exchange(format.SetFeaturesFile, func(p *format.BatchParams) { p.DType = "bf16" }), format.ErrLayout, "no i8 table"},
		{"unknown type", remake(func(m *format.BatchSet) { m.Params.DType = "f8" }), format.ErrMismatch, "it takes f32, f16, bf16 and int8"},
		{"a share over 1", remake(func(m *format.BatchSet) { m.Params.HotRows = 1.5 }), format.ErrLayout, "hot rows 1.5"},
		{"groups with store ids", remake(func(m *format.BatchSet) { m.Params.Store = "ids" }), format.ErrLayout, "store ids"},
		{"groups over a file", remake(func(m *format.BatchSet) { m.Params.Group = 100 }), format.ErrLayout, "groups of 100"},
		{"no hot rows listed", remake(func(m *format.BatchSet) {
			m.Files = slices.DeleteFunc(m.Files, func(f format.FileInfo) bool { return f.Name == format.SetHotFile })
		}), nil, format.SetHotFile},
		{"a flipped bit of a hot row", func(dir string) error {
			path := filepath.Join(dir, format.SetHotFile)
			b, err := os.ReadFile(path)
			if err == nil {
				b[len(b)-1] ^= 1
				err = os.WriteFile(path, b, 0o644)
			}
			return err
		}, format.ErrChecksum, format.SetHotFile},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := write(t, g, base)
			if err := c.damage(dir); err != nil {
				t.Fatal(err)
			}
			err := load(dir)
			if c.text == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}
