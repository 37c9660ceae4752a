// Command snapshot measures how fast `precompute snapshot` turns an edge file into a verified snapshot, stage by
// stage beside what the machine can do, and how small and fast the index of neighbours is.
//
//	go run ./scripts/bench/snapshot [-nodes N] [-pairs M] [-mem 4G] [-kinds csv,parquet,hex] [-runs 3] [-dir bench-out] [-touch GIB]
//
// The graph is a generated R-MAT one, kept in -dir for the next run. The input lies in the page cache (warm). Times are wall
// times of the whole command, the median of -runs.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	b := bench{}
	kinds := flag.String("kinds", "csv,parquet,hex", "what edge files hold: csv (integers), parquet, hex (16-digit strings, csv)")
	flag.IntVar(&b.nodes, "nodes", 2_400_000, "nodes of the generated graph")
	flag.IntVar(&b.pairs, "pairs", 62_000_000, "pairs of the generated graph")
	flag.StringVar(&b.mem, "mem", "4G", "--mem of the command")
	flag.StringVar(&b.dir, "dir", "bench-out", "directory for files, kept")
	flag.StringVar(&b.bin, "bin", "bin/precompute", "the binary to measure")
	flag.IntVar(&b.runs, "runs", 3, "runs of each kind")
	flag.IntVar(&b.touchGiB, "touch", 4, "GiB of memory to use and free before each run: on some virtual machines memory that wasn't used lately comes at 0.3 GB/s; 0 measures that too")
	flag.BoolVar(&b.ceilings, "ceilings", true, "measure what the machine can do first")
	ranks := flag.Bool("ranks", true, "measure PageRank and the order, apart")
	flag.BoolVar(&b.index, "index", true, "measure the index of neighbours")
	flag.Parse()
	if err := b.run(strings.Split(*kinds, ","), *ranks); err != nil {
		fmt.Fprintln(os.Stderr, "bench-snapshot:", err)
		os.Exit(1)
	}
}

type bench struct {
	nodes, pairs, runs int
	touchGiB           int
	mem, dir, bin      string
	ceilings, index    bool
	machine            ceilings
	edges              string // the CSV file of integers
}

func (b *bench) run(kinds []string, ranks bool) error {
	b.dir = filepath.Join(b.dir, fmt.Sprintf("rmat-%d-%d", b.nodes, b.pairs))
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	if err := b.generate(); err != nil {
		return err
	}
	fmt.Printf("R-MAT graph of %d nodes and %d edge lines; %d cores\n", b.nodes, b.pairs, runtime.NumCPU())
	if b.ceilings {
		var err error
		if b.machine, err = measureCeilings(b.edges, b.dir); err != nil {
			return err
		}
		b.machine.print()
	}
	for _, kind := range kinds {
		if err := b.kind(kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	if ranks {
		if err := b.ranks(); err != nil {
			return err
		}
	}
	if b.index {
		return measureIndex(b.snapshot())
	}
	return nil
}

func (b *bench) snapshot() string { return filepath.Join(b.dir, "snapshot") }

// generate makes the graph, unless it is there.
func (b *bench) generate() error {
	graph := filepath.Join(b.dir, "graph")
	b.edges = filepath.Join(graph, "edges.csv")
	if _, err := os.Stat(filepath.Join(graph, "gen.json")); err == nil {
		return nil
	}
	os.RemoveAll(graph)
	c := exec.Command(b.bin, "gen", "--kind", "rmat", "--nodes", fmt.Sprint(b.nodes), "--edges", fmt.Sprint(b.pairs), "--seed", "1", "--out", graph)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}

// result is what the command says of itself.
type result struct {
	ID       string  `json:"id"`
	Seconds  float64 `json:"seconds"`
	NumNodes int64   `json:"num_nodes"`
	NumEdges int64   `json:"num_edges"`
	Stages   []struct {
		Step    string  `json:"step"`
		Seconds float64 `json:"seconds"`
	} `json:"stages"`
	Beside []struct {
		Step    string  `json:"step"`
		Bytes   float64 `json:"bytes"`
		Seconds float64 `json:"seconds"`
	} `json:"beside"`
	rssBytes int64
	cpu      float64
}

// kind measures one kind of input.
func (b *bench) kind(kind string) error {
	path := b.edges
	switch kind {
	case "csv":
	case "parquet":
		path = filepath.Join(b.dir, "edges.parquet")
	case "hex":
		path = filepath.Join(b.dir, "hex.csv")
	default:
		return fmt.Errorf("want csv, parquet or hex")
	}
	if _, err := os.Stat(path); err != nil {
		if err := convert(b.edges, path); err != nil {
			return err
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := warm(path); err != nil {
		return err
	}
	var results []result
	for range b.runs {
		r, err := b.once(path)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	slices.SortFunc(results, func(a, b result) int { return int(1e6 * (a.Seconds - b.Seconds)) })
	r := results[len(results)/2]
	most := int64(0)
	for _, x := range results {
		most = max(most, x.rssBytes)
	}
	fmt.Printf("\n== %s, %.2f GB, --mem %s: %.2f s (median of %d; %.2f to %.2f), %.2f M edges/s, %.1f core seconds, peak memory %.2f GiB\n",
		kind, float64(info.Size())/1e9, b.mem, r.Seconds, len(results), results[0].Seconds, results[len(results)-1].Seconds,
		float64(b.pairs)/1e6/r.Seconds, r.cpu, float64(most)/(1<<30))
	fmt.Printf("   %d nodes, %d distinct pairs, %s\n", r.NumNodes, r.NumEdges, r.ID)
	for _, s := range r.Stages {
		fmt.Printf("   %-24s %7.2f s  %s\n", s.Step, s.Seconds, b.rate(s.Step, s.Seconds))
	}
	fmt.Println("   beside these, on the same cores:")
	for _, s := range r.Beside {
		fmt.Printf("   %-24s %7.2f s  %8.2f GB/s%s\n", s.Step, s.Seconds, s.Bytes/1e9/s.Seconds, b.besideCeiling(s.Step))
	}
	return nil
}

// ranks measures what --with adds, which isn't part of the rates above.
func (b *bench) ranks() error {
	r, err := b.once(b.edges, "--with", "pagerank,order")
	if err != nil {
		return err
	}
	fmt.Printf("\n== csv with PageRank and order: %.2f s, peak memory %.2f GiB\n", r.Seconds, float64(r.rssBytes)/(1<<30))
	for _, s := range r.Stages {
		if s.Step == "pagerank" || s.Step == "order" {
			fmt.Printf("   %-24s %7.2f s\n", s.Step, s.Seconds)
		}
	}
	return nil
}

// once runs the command.
func (b *bench) once(edges string, flags ...string) (result, error) {
	out := b.snapshot()
	for _, p := range []string{out, out + ".state", out + ".partial"} {
		if err := os.RemoveAll(p); err != nil {
			return result{}, err
		}
	}
	touch(b.touchGiB)
	c := exec.Command(b.bin, "snapshot", "--edges", edges, "--hops", "1", "--mem", b.mem, "--tmp", b.dir, "--out", out, "--json")
	c.Args = append(c.Args, flags...)
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		return result{}, err
	}
	peak := watchMemory(c.Process.Pid)
	if err := c.Wait(); err != nil {
		return result{}, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	var r result
	if err := json.Unmarshal([]byte(stdout.String()), &r); err != nil {
		return r, err
	}
	r.rssBytes = peak()
	r.cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	return r, nil
}

// watchMemory follows the peak of a process's resident memory; what it returns gives it, once the process is over. (The system's own word, ru_maxrss,
// begins with the memory of the process that started this one.)
func watchMemory(pid int) (peak func() int64) {
	most := make(chan int64)
	stop := make(chan struct{})
	go func() {
		var kib int64
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				most <- kib << 10
				return
			case <-tick.C:
				status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
				if err != nil {
					continue
				}
				if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
					fmt.Sscan(rest, &kib) // stays as it was where that fails
				}
			}
		}
	}()
	return func() int64 { close(stop); return <-most }
}

// besideCeiling says what the machine could do.
func (b *bench) besideCeiling(step string) string {
	switch {
	case !b.ceilings:
		return ""
	case step == "write files":
		return fmt.Sprintf(" of %.2f (the disk)", b.machine.disk)
	}
	return fmt.Sprintf(" of %.2f (SHA-256)", b.machine.sha)
}

// rate says what a stage came to and what the machine could do.
func (b *bench) rate(step string, seconds float64) string {
	perSecond := func(amount float64, unit string, ceiling float64) string {
		s := fmt.Sprintf("%8.2f %s", amount/seconds, unit)
		if ceiling > 0 && b.ceilings {
			s += fmt.Sprintf(" of %.2f", ceiling)
		}
		return s
	}
	edges := float64(b.pairs) / 1e6
	switch {
	case strings.HasPrefix(step, "digest"), strings.HasPrefix(step, "write "):
		return "what was left of it: it goes on beside the stages before"
	case step == "edges":
		return perSecond(edges, "M edges/s", b.machine.parse)
	case step == "sort edges":
		return perSecond(edges, "M edges/s", b.machine.sort)
	case step == "distribute edges" || step == "rows":
		return perSecond(edges, "M edges/s", 0)
	}
	return ""
}
