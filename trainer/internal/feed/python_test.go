package feed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/python/pythontest"
	"github.com/prelift/prelift/trainer/internal/feed/feedtest"
)

// pythonBatch is a line of `python -m prelift SET --epoch`: SHA-256 of arrays, "" for absent ones.
type pythonBatch struct {
	Number, Seeds, Nodes int
	Features, Labels     string
	Blocks               []pythonBlock
}

type pythonBlock struct {
	Indptr, Indices, Src, Dst, Self, Edge, Importance string
}

// TestPython wants the same batches in the same order, with the same features, targets, blocks and
// coefficients, from this loader and from the Python reader.
func TestPython(t *testing.T) {
	g := feedtest.Random(4, 70, 3, 5)
	bits := feedtest.Random(5, 50, 4, 3)
	bits.ToBits()
	packed, inner := fanout(2, 3), fanout(3, 2)
	packed.Store, inner.Transpose = "packed", "inner"
	packedKHop := khop(2)
	packedKHop.Store = "packed"
	coded := fanout(2, 3)
	coded.IndexCodec = "bits"
	with := func(dtype, store string, hotRows float64, group int) format.BatchParams {
		p := fanout(2, 3)
		p.DType, p.Store, p.HotRows, p.Group, p.BatchesPerFile = dtype, store, hotRows, group, 4
		return p
	}
	both := LoaderOptions{Coef: format.CoefGCN, Layers: 2}
	for _, c := range []struct {
		name    string
		graph   *feedtest.Graph
		params  format.BatchParams
		options LoaderOptions
	}{
		{"ids", g, fanout(2, 3), LoaderOptions{Coef: format.CoefGCN, Layers: 2}},
		{"one layer of two", g, fanout(2, 3), LoaderOptions{Coef: format.CoefMean, Layers: 1}},
		{"coded", g, coded, LoaderOptions{Coef: format.CoefGCN, Layers: 2}},
		{"packed", g, packed, LoaderOptions{Coef: format.CoefMean, Layers: 2}},
		{"packed, no layers", g, packed, LoaderOptions{Coef: format.CoefGCN, Layers: 0}},
		{"bits", bits, inner, LoaderOptions{Coef: format.CoefGCN, Layers: 2}},
		{"subgraphs", g, khop(2), LoaderOptions{Coef: format.CoefMean, Layers: 3}},
		{"packed subgraphs", bits, packedKHop, LoaderOptions{Coef: format.CoefGCN, Layers: 1}},
		{"subgraphs, no layers", g, khop(1), LoaderOptions{Coef: format.CoefGCN, Layers: 0}},
		{"full", g, format.BatchParams{Mode: "full"}, LoaderOptions{Coef: format.CoefGCN, Layers: 3}},
		{"full, int8", g, format.BatchParams{Mode: "full", DType: "int8"}, both},
		{"ids, int8", g, with("int8", "ids", 0, 0), both},
		{"packed, bf16", g, with("bf16", "packed", 0, 0), both},
		{"groups, f16", g, with("f16", "packed", 0, 3), both},
		{"groups and hot, int8, one layer", g, with("int8", "packed", 0.1, 2), LoaderOptions{Coef: format.CoefGCN, Layers: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := write(t, c.graph, c.params)
			c.options.Seed, c.options.Features = 1<<63+7, true
			l, err := open(t, dir, Options{}).NewLoader(c.options)
			if err != nil {
				t.Fatal(err)
			}
			epochs := 3
			if c.params.DType != "" { // the order of batches is that of the others
				epochs = 1
			}
			for epoch := range epochs {
				var want []pythonBatch
				collect(t, l, epoch, func(b *Batch) { want = append(want, hashes(b)) })
				var got []pythonBatch
				for _, line := range pythontest.Lines(t, dir, "--epoch", strconv.Itoa(epoch), "--seed", strconv.FormatUint(c.options.Seed, 10),
					"--coef", c.options.Coef.String(), "--layers", strconv.Itoa(c.options.Layers)) {
					var b pythonBatch
					if err := json.Unmarshal([]byte(line), &b); err != nil {
						t.Fatal(err)
					}
					got = append(got, b)
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("epoch %d:\nPython has %+v\nGo has     %+v", epoch, got, want)
				}
			}
		})
	}
}

func hashes(b *Batch) pythonBatch {
	p := pythonBatch{Number: b.Number, Seeds: b.NumSeeds, Nodes: b.NumNodes, Features: hash(b.Features), Labels: hash(b.Targets.Class), Blocks: []pythonBlock{}}
	if b.Targets.Class == nil {
		p.Labels = hash(b.Targets.Bits)
	}
	for i, blk := range b.Blocks {
		c, n := b.Coefs[i], blk.NumDst
		p.Blocks = append(p.Blocks, pythonBlock{hash(blk.Indptr), hash(blk.Indices), hash(first(c.Src, blk.NumSrc)), hash(first(c.Dst, n)),
			hash(first(c.Self, n)), hash(c.Edge), hash(first(c.Importance, n))})
	}
	return p
}

func first(list []float32, n int) []float32 {
	if list == nil {
		return nil
	}
	return list[:n]
}

// hash is the SHA-256 of a list's elements, "" for nil.
func hash[T any](list []T) string {
	if list == nil {
		return ""
	}
	h := sha256.New()
	if err := binary.Write(h, binary.LittleEndian, list); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
