package cpu

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// task is one operation cut into parts that touch different output rows, so that parts
// may run in any order on any goroutine.
type task interface{ do(part int) }

// pool runs tasks on a fixed set of goroutines: the caller and numThreads-1 workers, which
// live until close. One task runs at a time; run must not be called concurrently.
//
// Every goroutine turns memory faults into panics while it works (debug.SetPanicOnFault),
// so that a truncated input file ends in an error and not in a signal.
type pool struct {
	workers []worker
	alive   sync.WaitGroup // workers that have not ended
	busy    sync.WaitGroup // workers on the current task, or offered it

	task     task
	numParts int64
	next     atomic.Int64 // the next part to take

	mu      sync.Mutex
	problem any    // what the first failed part panicked with
	stack   []byte // its stack, for panics that are bugs
}

// worker is a goroutine's side of the pool. The caller offers it the current task and wakes
// it; whoever moves state away from offered first decides: the worker takes part, or the
// caller, done alone, takes the offer back. So nobody waits for a worker that the system
// hasn't run yet.
type worker struct {
	state atomic.Int32
	wake  chan struct{} // holds at most one token; a worker may find nothing to do
	_     [48]byte      // a cache line each
}

const (
	idle int32 = iota
	offered
	working
)

func newPool(numThreads int) *pool {
	p := &pool{workers: make([]worker, numThreads-1)}
	for i := range p.workers {
		w := &p.workers[i]
		w.wake = make(chan struct{}, 1)
		p.alive.Add(1)
		go p.work(w)
	}
	return p
}

func (p *pool) work(w *worker) {
	defer p.alive.Done()
	debug.SetPanicOnFault(true)
	for range w.wake {
		if w.state.CompareAndSwap(offered, working) {
			p.drain()
			w.state.Store(idle)
			p.busy.Done()
		}
	}
}

// close stops the workers and waits for them.
func (p *pool) close() {
	for i := range p.workers {
		close(p.workers[i].wake)
	}
	p.alive.Wait()
	p.workers = nil
}

// run does parts 0 to numParts-1 of t and returns the address of a memory fault, if there
// was one. Any other panic of a part comes back on the caller's goroutine.
func (p *pool) run(t task, numParts int) (addr uintptr, fault bool) {
	if numParts <= 0 {
		return 0, false
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	p.task, p.numParts = t, int64(numParts)
	p.next.Store(0)
	helpers := p.workers[:min(len(p.workers), numParts-1)]
	p.busy.Add(len(helpers))
	for i := range helpers {
		helpers[i].state.Store(offered)
		select {
		case helpers[i].wake <- struct{}{}:
		default: // a token of an earlier offer is still there
		}
	}
	p.drain()
	for i := range helpers {
		if helpers[i].state.CompareAndSwap(offered, idle) {
			p.busy.Done()
		}
	}
	p.busy.Wait()
	p.task = nil
	if p.problem == nil {
		return 0, false
	}
	problem, stack := p.problem, p.stack
	p.problem, p.stack = nil, nil
	if f, ok := problem.(faultError); ok {
		return f.Addr(), true
	}
	panic(fmt.Sprintf("cpu: a kernel panicked: %v\n\n%s", problem, stack))
}

// faultError is the panic of an access to memory that can't be read; the runtime gives
// it an Addr method under SetPanicOnFault.
type faultError interface {
	runtime.Error
	Addr() uintptr
}

// drain takes parts until none is left or one fails.
func (p *pool) drain() {
	defer func() {
		problem := recover()
		if problem == nil {
			return
		}
		p.next.Store(p.numParts) // the others stop at their next part
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.problem == nil {
			p.problem, p.stack = problem, debug.Stack()
		}
	}()
	for {
		i := p.next.Add(1) - 1
		if i >= p.numParts {
			return
		}
		p.task.do(int(i))
	}
}
