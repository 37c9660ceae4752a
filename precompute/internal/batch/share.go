package batch

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prelift/prelift/format"
	"golang.org/x/sync/errgroup"
)

// Rows that several batches of a packed set have are stored once (SPEC 7): those of the set's most used nodes in
// hot.plf, and those that the batches of a group share in the group's record of rows-*.plf. Which they are follows from
// the node lists of all batches, or of those of the group. These are drawn for it once more than the batches are built: lists of all would
// not fit in memory, and a draw costs less than reading and writing the rows.

// nodeSet is a set of nodes, with their places in it.
type nodeSet struct {
	nodes  []int32  // ascending
	member []uint64 // a bit a node
	before []int32  // members before each word
}

// newNodeSet makes a set of the nodes whose bits are set; member is kept.
func newNodeSet(member []uint64) *nodeSet {
	s := &nodeSet{member: member, before: make([]int32, len(member))}
	n := 0
	for i, word := range member {
		s.before[i] = int32(n)
		n += bits.OnesCount64(word)
	}
	s.nodes = make([]int32, 0, n)
	for i, word := range member {
		for ; word != 0; word &= word - 1 {
			s.nodes = append(s.nodes, int32(i*64+bits.TrailingZeros64(word)))
		}
	}
	return s
}

// place returns the place of node v in the set, -1 where it is not there. A nil set has no nodes.
func (s *nodeSet) place(v int32) int32 {
	if s == nil {
		return -1
	}
	word, bit := s.member[v/64], uint64(1)<<(v%64)
	if word&bit == 0 {
		return -1
	}
	return s.before[v/64] + int32(bits.OnesCount64(word&(bit-1)))
}

// sharesRows reports whether a packed set of these parameters stores some rows for several batches.
func sharesRows(p *format.BatchParams) bool { return p.HotRows > 0 || p.Group > 1 }

// maxHotRows is the most hot rows of a set.
func maxHotRows(p *format.BatchParams, numNodes int) int {
	return int(math.Floor(p.HotRows * float64(numNodes)))
}

// groupsPerFile is the number of groups of a full shard.
func groupsPerFile(p *format.BatchParams) int { return (p.BatchesPerFile + p.Group - 1) / p.Group }

// numGroups is that of a set.
func numGroups(p *format.BatchParams, numBatches int) int {
	if p.Group < 2 {
		return 0
	}
	last := numBatches % p.BatchesPerFile
	return numBatches/p.BatchesPerFile*groupsPerFile(p) + (last+p.Group-1)/p.Group
}

// batchGroup returns the group of a batch.
func batchGroup(p *format.BatchParams, number int) int {
	return number/p.BatchesPerFile*groupsPerFile(p) + number%p.BatchesPerFile/p.Group
}

// groupBatches returns the first batch of a group, and one past its last.
func groupBatches(p *format.BatchParams, group, numBatches int) (first, last int) {
	file, place := group/groupsPerFile(p), group%groupsPerFile(p)
	first = file*p.BatchesPerFile + place*p.Group
	return first, min(first+p.Group, (file+1)*p.BatchesPerFile, numBatches)
}

// findHot decides which nodes are hot, once: it draws every batch and counts in how many each node is.
func (s *source) findHot(ctx context.Context, threads int, progress func(string, int64, int64)) error {
	s.hotMu.Lock()
	defer s.hotMu.Unlock()
	if s.hot != nil || s.params.HotRows == 0 || s.params.Store == StoreIDs {
		return nil
	}
	counts := make([]uint32, s.snap.NumNodes())
	var next, done atomic.Int64
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for range min(max(threads, 1), s.numBatches()) {
		group.Go(func() error {
			return format.Guard(s.snap.Dir, func() error {
				a := newAssembler(s)
				defer a.release()
				for i := next.Add(1) - 1; i < int64(s.numBatches()); i = next.Add(1) - 1 {
					if err := ctx.Err(); err != nil {
						return err
					}
					for _, v := range a.nodesOf(int(i)) {
						atomic.AddUint32(&counts[v], 1)
					}
					if n := done.Add(1); progress != nil {
						mu.Lock()
						progress("count uses of rows", n, int64(s.numBatches()))
						mu.Unlock()
					}
				}
				return nil
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.hot = newNodeSet(mostUsed(counts, maxHotRows(&s.params, len(counts))))
	return nil
}

// mostUsed marks at most n nodes, those with the largest counts of 2 and more; of equal ones the smaller numbers.
func mostUsed(counts []uint32, n int) []uint64 {
	member := make([]uint64, (len(counts)+63)/64)
	if n <= 0 || len(counts) == 0 {
		return member
	}
	most := slices.Max(counts)
	withCount := make([]int, uint64(most)+1)
	for _, c := range counts {
		withCount[c]++
	}
	least, above := uint32(max(most, 1))+1, 0 // all of at least `least` are in; above is their number
	for least > 2 && above+withCount[least-1] <= n {
		least--
		above += withCount[least]
	}
	ties := n - above // of those with the next smaller count
	for v, c := range counts {
		switch {
		case c >= least:
		case c == least-1 && c >= 2 && ties > 0:
			ties--
		default:
			continue
		}
		member[v/64] |= 1 << (v % 64)
	}
	return member
}

// useGroup finds the nodes that the batches of a group share, unless it is the one at hand. It draws these batches: what the
// assembler has built before is no longer valid.
func (a *assembler) useGroup(group int) *nodeSet {
	if a.shared != nil && a.group == group {
		return a.shared
	}
	words := (a.snap.NumNodes() + 63) / 64
	seen, again := make([]uint64, words), make([]uint64, words)
	first, last := groupBatches(&a.params, group, a.numBatches())
	for number := first; number < last; number++ {
		for _, v := range a.nodesOf(number) {
			bit := uint64(1) << (v % 64)
			again[v/64] |= seen[v/64] & bit
			seen[v/64] |= bit
		}
	}
	if a.hot != nil {
		for i, word := range a.hot.member {
			again[i] &^= word
		}
	}
	a.group, a.shared = group, newNodeSet(again)
	return a.shared
}

// prepareRows makes ready what packedRows of a batch needs, before the batch is drawn.
func (a *assembler) prepareRows(number int) {
	if a.params.Store != StoreIDs && a.params.Group > 1 {
		a.useGroup(batchGroup(&a.params, number))
	}
}

// packedRows are the sections by which a batch of these nodes has its feature rows in a packed set, and own the nodes whose rows
// it has itself. They are valid until the next batch.
func (a *assembler) packedRows(nodes []int32) (specs []format.SectionSpec, own []int32) {
	if !sharesRows(&a.params) {
		return a.rowsOf(nodes), nodes
	}
	row, table := resize(a.row, len(nodes)), resize(a.tables, len(nodes))
	own = a.own[:0]
	for i, v := range nodes {
		if place := a.hot.place(v); place >= 0 {
			row[i], table[i] = place, format.HotTable
		} else if place := a.shared.place(v); place >= 0 {
			row[i], table[i] = place, format.GroupTable
		} else {
			row[i], table[i] = int32(len(own)), format.OwnTable
			own = append(own, v)
		}
	}
	a.row, a.tables, a.own = row, table, own
	specs = []format.SectionSpec{format.Int32Section(format.NodesRow, format.AnyLayer, row), format.Uint8Section(format.NodesTable, format.AnyLayer, table)}
	return append(specs, a.rowsOf(own)...), own
}

// sharedRecord builds a record of rows that batches share.
func (a *assembler) sharedRecord(number int, nodes []int32) *record {
	a.reset(format.RecordHeader{Space: format.SpaceLocal, Number: uint32(number), SplitColumn: format.AnySplit, HopNodes: []uint64{uint64(len(nodes))}, LayerEdges: []uint64{}})
	a.add(format.Int32Section(format.NodesNumber, format.AnyLayer, nodes))
	a.add(a.rowsOf(nodes)...)
	return &a.record
}

// groupRecord builds the rows that a group of batches shares.
func (a *assembler) groupRecord(group int) *record {
	return a.sharedRecord(group, a.useGroup(group).nodes)
}

// hotRecord builds the one record of hot.plf.
func (a *assembler) hotRecord() *record { return a.sharedRecord(0, a.hot.nodes) }
