package format

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Guard runs fn, which reads mapped files, and turns a memory fault into an error.
// A mapping faults (SIGBUS) when its file was truncated after it was mapped, or
// when the disk under it gives an I/O error; without Guard either ends the process.
// Faults of goroutines that fn starts are not caught: they need a Guard of their own.
func Guard(what string, fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if r := recover(); r != nil {
			fault := FaultOf(r)
			if fault == nil {
				panic(r)
			}
			err = fmt.Errorf("%s: %w", what, fault)
		}
	}()
	return fn()
}

// FaultOf returns an error of class ErrTruncated if the recovered panic value is a
// memory fault that debug.SetPanicOnFault raised, else nil.
func FaultOf(recovered any) error {
	err, ok := recovered.(error)
	if !ok {
		return nil
	}
	var fault interface {
		runtime.Error
		Addr() uintptr
	}
	if !errors.As(err, &fault) {
		return nil
	}
	return fmt.Errorf("%w: a page of a mapped file can't be read (file cut short, or an I/O error of its disk)", ErrTruncated)
}
