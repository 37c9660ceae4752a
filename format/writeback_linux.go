package format

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteBack asks the system to begin writing size bytes of file from offset on to the disk, without waiting: so
// the disk works while the rest is computed, and fsync finds little to do.
func startWriteBack(file *os.File, offset, size int64) {
	unix.SyncFileRange(int(file.Fd()), offset, size, unix.SYNC_FILE_RANGE_WRITE) // a hint: fsync is what counts
}

// dropPages takes a read-only mapping of a file out of this process's memory; the next access maps it again.
func dropPages(mapping []byte) { unix.Madvise(mapping, unix.MADV_DONTNEED) }
