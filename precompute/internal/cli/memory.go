package cli

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/prelift/prelift/format/command"
	"golang.org/x/sys/unix"
)

const (
	memAuto = "auto"
	// leastMem is what a run needs for its buffers, whatever the graph.
	leastMem = 256 << 20
)

// memoryOf understands --mem.
func memoryOf(s string) (int64, error) {
	if s == memAuto {
		return max(availableMemory()/4*3, leastMem), nil
	}
	n, err := parseBytes(s)
	if err != nil {
		return 0, command.Usage("--mem %q: %v", s, err)
	}
	if n < leastMem {
		return 0, command.Usage("--mem %s is less than 256MiB, which is needed for buffers alone", s)
	}
	return n, nil
}

// checkTmp refuses a directory of --tmp in which no file can be made, before the work begins; "", the system's, is looked at when it is needed.
func checkTmp(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	var file *os.File
	if err == nil {
		file, err = os.CreateTemp(dir, "prelift-try-")
	}
	if err != nil {
		err = fmt.Errorf("--tmp %q: %w", dir, pathless(err))
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return err
		}
		return command.Usage("%w", err)
	}
	file.Close()
	return os.Remove(file.Name())
}

// parseBytes reads a size: a number with one of k, M, G, T behind it, all powers of 1024, and perhaps B or iB.
func parseBytes(s string) (int64, error) {
	number := strings.TrimSpace(s)
	lower := strings.ToLower(number)
	for _, ending := range []string{"ib", "b"} {
		if strings.HasSuffix(lower, ending) {
			lower = lower[:len(lower)-len(ending)]
			break
		}
	}
	unit := 1.0
	if n := len(lower); n > 0 {
		if i := strings.IndexByte("kmgt", lower[n-1]); i >= 0 {
			unit = float64(int64(1) << (10 * (i + 1)))
			lower = lower[:n-1]
		}
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(lower), 64)
	if err != nil || !(x > 0) || x*unit > math.MaxInt64/2 {
		return 0, fmt.Errorf("want a size as 4G or 512MiB")
	}
	return int64(x * unit), nil
}

// availableMemory returns what the system has free for programs, and the limit of the control group where that is less.
func availableMemory() int64 {
	most := int64(8 << 30) // where nothing tells
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range bytes.Lines(b) {
			var kib int64
			if n, _ := fmt.Sscanf(string(line), "MemAvailable: %d kB", &kib); n == 1 {
				most = kib << 10
			}
		}
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && limit > 0 {
			most = min(most, limit)
		}
	}
	return most
}
