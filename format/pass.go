package format

import (
	"crypto/sha256"
	"hash"
	"os"
)

// pass is one look over a mapped file that takes all of it in: what has been checked is digested by a second goroutine, while it is
// still in the cache, and then leaves this process's memory. So a file of any size needs little of it, and is fetched once.
// The methods of a nil pass do nothing: a reader keeps what it has checked.
type pass struct {
	data []byte
	end  int // all before it has been checked
	sent int // all before it has been handed over

	parts chan []byte   // checked, to be digested
	done  chan struct{} // closed by the digesting goroutine at its end
	sum   hash.Hash     // nil: not wanted
	err   error         // of the digesting goroutine
}

// passBytes is what is handed over at a time: little beside the memory of a machine, much beside what handing over costs.
const passBytes = 4 << 20

// startPass begins a look over data, a mapped file called name, with a digest or without. finish must be called.
func startPass(name string, data []byte, digest bool) *pass {
	p := &pass{data: data, parts: make(chan []byte, 1), done: make(chan struct{})}
	if digest {
		p.sum = sha256.New()
	}
	go func() {
		defer close(p.done)
		p.err = Guard(name, p.take)
		for range p.parts { // after a fault
		}
	}()
	return p
}

// take digests what has been checked and lets go of its pages, but for the one at the end that the next part shares.
func (p *pass) take() error {
	dropped, end := 0, 0
	for part := range p.parts {
		if p.sum != nil {
			p.sum.Write(part)
		}
		end += len(part)
		whole := end &^ (os.Getpagesize() - 1)
		if dropped < whole {
			dropPages(p.data[dropped:whole])
		}
		dropped = whole
	}
	return nil
}

// seen says that the next n bytes of the file have been checked.
func (p *pass) seen(n int) {
	if p == nil {
		return
	}
	if p.end += n; p.end-p.sent >= passBytes {
		p.send()
	}
}

func (p *pass) send() {
	p.parts <- p.data[p.sent:p.end]
	p.sent = p.end
}

// drop lets go of all pages, for those who look at what has been checked once more.
func (p *pass) drop() {
	if p != nil {
		dropPages(p.data)
	}
}

// finish ends the look and returns the digest of what was seen; an error is a memory fault.
func (p *pass) finish() (d Digest, err error) {
	p.send()
	close(p.parts)
	<-p.done
	if p.sum != nil {
		p.sum.Sum(d[:0])
	}
	return d, p.err
}
