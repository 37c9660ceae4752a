package sample

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/prelift/prelift/snapshot/graph"
)

// hubFactor: a node with more than this many times the fanout of neighbours is a hub,
// whose draws a Memo keeps. At 2 the kept draws of one hop need at most about two bytes for each entry
// of the in-rows, twice or three times that where places and importances are kept too, and a draw that isn't kept looks at 2 candidates for each one taken.
const hubFactor = 2

// Memo keeps the draws of hubs, so that each is made once per variant and hop, however
// many batches reach the hub. Without it a skewed graph spends nearly all its time there: on an R-MAT
// graph of 1 M nodes and 10 M edges most sampled nodes are hubs. It changes no result. Samplers
// that share one may run at the same time.
type Memo struct {
	in  *graph.CSR
	opt Options

	copyKeys sync.Once
	keys     []uint64 // a copy of the graph's, in huge pages

	mu       sync.Mutex
	hubs     []*hubSet // by hop, from 0 for hop 1; nil where nothing is kept
	variants map[int]*variantDraws
	spare    []*variantDraws
}

// hubSet numbers the hubs of a hop, and says what is kept of each.
type hubSet struct {
	width    int      // most neighbours taken that are kept
	entries  bool     // places in the row are kept
	weighted bool     // importances are kept
	isHub    []uint64 // bitmap over nodes
	before   []int32  // hubs before each word of isHub
	numNodes int
}

// variantDraws holds the draws of one variant by hop.
type variantDraws struct {
	hops  []hopDraws
	users int // samplers at work on the variant; guarded by Memo.mu
}

// hopDraws has a slot for each hub.
type hopDraws struct {
	hubs  *hubSet
	state []atomic.Uint32 // slotEmpty, slotClaimed or slotReady
	slots []int32
}

const (
	slotEmpty   = 0
	slotClaimed = 1 // a sampler is writing it; others draw for themselves meanwhile
	slotReady   = 2
)

// NewMemo makes an empty Memo for samplers over these rows with these options.
func NewMemo(in *graph.CSR, opt Options) *Memo {
	m := &Memo{in: in, opt: opt, hubs: make([]*hubSet, len(opt.Fanout)), variants: map[int]*variantDraws{}}
	for hop := 1; hop < len(opt.Fanout); hop++ { // hop 1 draws for seeds, each once a variant
		if k := opt.FanoutOf(hop + 1); k > 0 {
			hubs := newHubSet(in, hubFactor*int64(k))
			hubs.width, hubs.entries, hubs.weighted = k, opt.KeepEntries, opt.Method == Weighted
			if opt.Method == Labor {
				hubs.width += 4*int(math.Sqrt(float64(k))) + 4 // one hub in some ten thousand takes more, and is drawn each time
			}
			m.hubs[hop] = hubs
		}
	}
	return m
}

// newHubSet numbers the nodes of more entries than from.
func newHubSet(in *graph.CSR, from int64) *hubSet {
	numWords := (in.NumNodes() + 63) / 64
	h := &hubSet{isHub: make([]uint64, numWords), before: make([]int32, numWords)}
	for w := range numWords {
		h.before[w] = int32(h.numNodes)
		for v := w * 64; v < min(w*64+64, in.NumNodes()); v++ {
			if in.Degree(int32(v)) > from {
				h.isHub[w] |= 1 << (v & 63)
				h.numNodes++
			}
		}
	}
	return h
}

// number returns the number of hub v, -1 where v isn't one.
func (h *hubSet) number(v int32) int {
	word, bit := h.isHub[v>>6], uint64(1)<<(v&63)
	if word&bit == 0 {
		return -1
	}
	return int(h.before[v>>6]) + bits.OnesCount64(word&(bit-1))
}

// acquire returns the draws of a variant for one more user. release gives them back; the
// memory of a variant without users goes to the next one.
func (m *Memo) acquire(variant int) *variantDraws {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.variants[variant]
	if d == nil {
		if n := len(m.spare); n > 0 {
			d, m.spare = m.spare[n-1], m.spare[:n-1]
			d.clear()
		} else {
			d = m.newVariant()
		}
		m.variants[variant] = d
	}
	d.users++
	return d
}

func (m *Memo) release(variant int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.variants[variant]
	if d.users--; d.users == 0 {
		delete(m.variants, variant)
		m.spare = append(m.spare, d)
	}
}

func (m *Memo) newVariant() *variantDraws {
	d := &variantDraws{hops: make([]hopDraws, len(m.hubs))}
	for i, hubs := range m.hubs {
		if hubs != nil {
			d.hops[i] = newHopDraws(hubs)
		}
	}
	return d
}

// keysOf returns a copy of the keys of the graph's nodes that is quick to read at random. Its 8 bytes a node are shared by all samplers.
func (m *Memo) keysOf(keys []uint64) []uint64 {
	m.copyKeys.Do(func() {
		m.keys = makeHuge[uint64](len(keys))
		copy(m.keys, keys)
	})
	return m.keys
}

func newHopDraws(hubs *hubSet) hopDraws {
	return hopDraws{hubs, make([]atomic.Uint32, hubs.numNodes), makeHuge[int32](hubs.numNodes * hubs.slotLen())}
}

func (d *variantDraws) clear() {
	for i := range d.hops {
		clear(d.hops[i].state)
	}
}

// slotLen is the length of a hubSlot.
func (h *hubSet) slotLen() int {
	n := 2 + h.width
	if h.entries {
		n += h.width
	}
	if h.weighted {
		n += h.width
	}
	return n
}

// slot returns the slot of hub number i.
func (d *hopDraws) slot(i int) hubSlot {
	n := d.hubs.slotLen()
	return d.slots[i*n : (i+1)*n : (i+1)*n]
}

// hubSlot is what a hub takes at a hop: the number of its neighbours, the number taken and those taken; then, as far as they are kept, their places in the row, and the bits of their importances.
type hubSlot []int32

// set keeps what the layer has of a hub, whose row starts at entry first, from edge start to its end.
func (s hubSlot) set(layer *Layer, start, numNeighbours int, first int64, h *hubSet) {
	taken := layer.Indices[start:]
	s[0], s[1] = int32(numNeighbours), int32(len(taken))
	copy(s[2:], taken)
	at := 2 + h.width
	if h.entries {
		for i, entry := range layer.Entries[start:] {
			s[at+i] = int32(entry - first)
		}
		at += h.width
	}
	if h.weighted {
		for i, x := range layer.EdgeImportance[start:] {
			s[at+i] = floatBits(x)
		}
	}
}

// appendTo appends what is kept to a layer; the hub's row starts at entry first. It returns the number of the hub's neighbours.
func (s hubSlot) appendTo(layer *Layer, first int64, h *hubSet) (numNeighbours int) {
	n := int(s[1])
	layer.Indices = append(layer.Indices, s[2:2+n]...)
	at := 2 + h.width
	if h.entries {
		for _, place := range s[at : at+n] {
			layer.Entries = append(layer.Entries, first+int64(place))
		}
		at += h.width
	}
	if h.weighted {
		for _, x := range s[at : at+n] {
			layer.EdgeImportance = append(layer.EdgeImportance, math.Float32frombits(uint32(x)))
		}
	}
	return int(s[0])
}
