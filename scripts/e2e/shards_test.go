package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// shardSnapshot generates a graph and builds its snapshot in dir.
func shardSnapshot(t *testing.T, dir, seed string) string {
	t.Helper()
	graph, snap := filepath.Join(dir, "graph"+seed), filepath.Join(dir, "snap"+seed)
	ok(t, "precompute", "gen", "--kind", "sbm", "--nodes", "20000", "--edges", "100000", "--features", "8", "--classes", "4", "--seed", seed, "--out", graph)
	raw := func(name string) string { return filepath.Join(graph, name) }
	ok(t, "precompute", "snapshot", "--edges", raw("edges.csv"), "--features", raw("features.npy"), "--labels", raw("labels.csv"), "--splits", raw("split.csv"), "--hops", "0", "--out", snap)
	return snap
}

// shardFlags are those of a set of 150 batches in 19 files.
func shardFlags(snap, out string, more ...string) []string {
	return append([]string{"batches", "--snapshot", snap, "--out", out, "--fanout", "5,5", "--batch-size", "32", "--variants", "3", "--batches-per-file", "8"}, more...)
}

// TestShards: four processes at a time, of one, two and eight threads, and a merge make what one process makes. Reruns answer at once.
func TestShards(t *testing.T) {
	dir := t.TempDir()
	snap := shardSnapshot(t, dir, "3")
	ref, out := filepath.Join(dir, "ref"), filepath.Join(dir, "set")
	ok(t, "precompute", shardFlags(snap, ref)...)
	want := hashDir(t, ref)

	refused(t, 4, []string{"set.parts", "no part is there", "--shard 0/N"}, "precompute", shardFlags(snap, out, "--merge")...)
	var wg sync.WaitGroup
	results := make([]result, 4)
	for i := range results {
		wg.Go(func() {
			results[i] = run(t, "precompute", shardFlags(snap, out, "--shard", fmt.Sprint(i, "/4"), "--threads", []string{"1", "2", "8", "1"}[i])...)
		})
	}
	wg.Wait()
	for _, r := range results {
		if r.code != 0 {
			t.Fatal(r.stderr)
		}
	}
	r := object(t, "precompute", shardFlags(snap, out, "--shard", "2/4")...)
	if r["up_to_date"] != true || r["kind"] != "batch_part" || r["shard"] != "2/4" || r["id"] != nil || r["num_batches"] == 0.0 {
		t.Errorf("rerun of a finished part: %v", r)
	}
	if r := object(t, "precompute", shardFlags(snap, out, "--merge")...); r["up_to_date"] != false || r["num_batches"] != 150.0 {
		t.Errorf("merge: %v", r)
	}
	if hashDir(t, out) != want {
		t.Error("parts merged are other bytes than one process writes")
	}
	ok(t, "precompute", "verify", out, "--snapshot", snap)
	for _, suffix := range []string{".parts", ".partial"} {
		if _, err := os.Stat(out + suffix); err == nil {
			t.Errorf("%s%s was left", out, suffix)
		}
	}
	for _, again := range [][]string{{"--merge"}, {"--shard", "1/4"}, {"--shard", "7/8"}, nil} {
		if r := object(t, "precompute", shardFlags(snap, out, again...)...); r["up_to_date"] != true || r["kind"] != "batch_set" {
			t.Errorf("%v after the merge: %v", again, r)
		}
	}
	if _, err := os.Stat(out + ".parts"); err == nil {
		t.Error("an answer left OUT.parts")
	}
}

// TestShardsRefused: what can't be merged, in one line that says what to do.
func TestShardsRefused(t *testing.T) {
	dir := t.TempDir()
	snap, other := shardSnapshot(t, dir, "3"), shardSnapshot(t, dir, "4")
	out := filepath.Join(dir, "set")
	for _, c := range []struct {
		flags []string
		part  string
	}{
		{[]string{"--shard", "4/4"}, "numbered 0 to 3"},
		{[]string{"--shard", "auto/4"}, "JOB_COMPLETION_INDEX"},
		{[]string{"--shard", "1"}, "want i/n"},
		{[]string{"--shard", ""}, "--shard"},
		{[]string{"--shard", "0/4", "--merge"}, "a part is written first"},
		{[]string{"--merge", "--dry-run"}, "--dry-run"},
	} {
		refused(t, 2, []string{c.part}, "precompute", shardFlags(snap, out, c.flags...)...)
	}
	ok(t, "precompute", shardFlags(snap, out, "--shard", "0/2", "--dry-run")...)
	if _, err := os.Stat(out + ".parts"); err == nil {
		t.Error("--dry-run wrote something")
	}
	ok(t, "precompute", shardFlags(snap, out, "--shard", "0/2")...)
	refused(t, 4, []string{"1 of 2 parts aren't finished: 1/2", "--shard 1/2"}, "precompute", shardFlags(snap, out, "--merge")...)
	ok(t, "precompute", shardFlags(snap, out, "--shard", "1/2", "--seed", "2")...)
	refused(t, 5, []string{"set.parts/1-of-2", "--seed 2 where now it is 1", "--shard 1/2"}, "precompute", shardFlags(snap, out, "--merge")...)
	ok(t, "precompute", shardFlags(other, out, "--shard", "1/2")...)
	refused(t, 5, []string{"set.parts/1-of-2", "of snapshot sha256:", "--shard 1/2"}, "precompute", shardFlags(snap, out, "--merge")...)
	refused(t, 1, []string{"lies in the artefact"}, "precompute", shardFlags(snap, filepath.Join(snap, "x"), "--shard", "0/2")...)
	refused(t, 1, []string{".parts"}, "precompute", shardFlags(snap, out+".parts", "--shard", "0/2")...)
	if r := run(t, "precompute", "verify", out+".parts/0-of-2"); r.code == 0 {
		t.Error("a part is taken for an artefact")
	}
	ok(t, "precompute", shardFlags(snap, out, "--shard", "1/2")...)
	ok(t, "precompute", shardFlags(snap, out, "--merge")...)
	ok(t, "precompute", "verify", out)
}

// TestKilledShards kills processes at random moments, the one that writes a set, those that write parts and the one that merges, and starts them
// again. PRELIFT_KILLS sets how often (make test-kill); the default is a few.
func TestKilledShards(t *testing.T) {
	kills := 3
	if text := os.Getenv("PRELIFT_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	snap := shardSnapshot(t, dir, "3")
	ref := filepath.Join(dir, "ref")
	start := time.Now()
	ok(t, "precompute", shardFlags(snap, ref)...)
	took, want := time.Since(start), hashDir(t, ref)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	moment := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }

	numKept := 0
	for k := range kills {
		out, finished := filepath.Join(dir, fmt.Sprintf("one%d", k)), map[string]os.FileInfo{}
		args := shardFlags(snap, out, "--threads", "2")
		killAfter(t, moment(took), args...)
		older := ""
		if k%2 == 1 { // which is exchanged for the new one
			ok(t, "precompute", "batches", "--snapshot", snap, "--out", out, "--mode", "full")
			older = hashDir(t, out)
		}
		for range 2 { // and again, from what is left
			killAfter(t, moment(took), args...)
			numKept += len(wantKept(t, k, out, finished))
			finished = journalled(t, out)
			if _, err := os.Stat(out); err == nil {
				if got := hashDir(t, out); got != want && got != older {
					t.Errorf("kill %d left other bytes under the set's name", k)
				}
			} else if older != "" {
				t.Errorf("kill %d: the older set is gone: %v", k, err)
			}
		}
		ok(t, "precompute", args...)
		numKept += len(wantKept(t, k, out, finished))
		if hashDir(t, out) != want {
			t.Errorf("kill %d: the rerun made other bytes", k)
		}
		wantNoPartial(t, out)
		if r := object(t, "precompute", args...); r["up_to_date"] != true {
			t.Errorf("kill %d: a further run isn't up to date", k)
		}
	}
	t.Logf("%d finished files were kept over %d kills", numKept, 2*kills)
	for k := range kills {
		out := filepath.Join(dir, fmt.Sprintf("parts%d", k))
		var wg sync.WaitGroup
		for i := range 3 {
			args := shardFlags(snap, out, "--shard", fmt.Sprint(i, "/3"), "--threads", "1")
			delay := moment(took)
			wg.Go(func() {
				part := filepath.Join(out+".parts", fmt.Sprint(i, "-of-3"))
				killAfter(t, delay, args...)
				finished := journalled(t, part)
				if r := run(t, "precompute", args...); r.code != 0 {
					t.Errorf("kill %d, part %d: %s", k, i, r.stderr)
				}
				wantKept(t, k, part, finished)
			})
		}
		wg.Wait()
		for range 2 {
			killAfter(t, moment(took/2), shardFlags(snap, out, "--merge")...)
			if _, err := os.Stat(out); err == nil && hashDir(t, out) != want {
				t.Errorf("kill %d: a killed merge left other bytes under its name", k)
			}
		}
		ok(t, "precompute", shardFlags(snap, out, "--merge")...)
		if hashDir(t, out) != want {
			t.Errorf("kill %d: the merge made other bytes", k)
		}
		wantNoPartial(t, out)
		if _, err := os.Stat(out + ".parts"); err == nil {
			t.Errorf("kill %d: parts were left", k)
		}
	}
}

// journalled describes the files that the journal beside out has, whose line is whole.
func journalled(t *testing.T, out string) map[string]os.FileInfo {
	t.Helper()
	files := map[string]os.FileInfo{}
	text, err := os.ReadFile(filepath.Join(out+".state", "journal"))
	if err != nil {
		return files // not begun, or published
	}
	for line := range strings.Lines(string(text)) {
		_, rest, found := strings.Cut(line, `"name":"`)
		name, _, _ := strings.Cut(rest, `"`)
		if info, err := os.Stat(filepath.Join(out+".partial", name)); found && strings.HasSuffix(line, "\n") && err == nil {
			files[name] = info
		}
	}
	return files
}

// wantKept checks that files of an interrupted job weren't written again, and returns them.
func wantKept(t *testing.T, k int, out string, finished map[string]os.FileInfo) map[string]os.FileInfo {
	t.Helper()
	for name, info := range finished {
		kept := false
		for _, dir := range []string{out, out + ".partial"} { // one of them may be an older set
			now, err := os.Stat(filepath.Join(dir, name))
			kept = kept || err == nil && os.SameFile(info, now) && now.ModTime().Equal(info.ModTime())
		}
		if !kept {
			t.Errorf("kill %d: %s of %s was finished and is written again", k, name, filepath.Base(out))
		}
	}
	return finished
}

// TestSamePartTwice: of several jobs on one part one writes it and the others say so.
func TestSamePartTwice(t *testing.T) {
	dir := t.TempDir()
	snap := shardSnapshot(t, dir, "3")
	out := filepath.Join(dir, "set")
	results := make([]result, 4)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			results[i] = run(t, "precompute", shardFlags(snap, out, "--shard", "0/1", "--threads", "1")...)
		})
	}
	wg.Wait()
	done := 0
	for _, r := range results {
		if r.code == 0 {
			done++
			continue
		}
		wantRefused(t, r, 1, "0-of-1", "another job")
	}
	if done == 0 {
		t.Error("no job wrote the part")
	}
	ok(t, "precompute", shardFlags(snap, out, "--merge")...)
	ok(t, "precompute", "verify", out)
}

// TestShardDiskFull: a part and a merge without room say so, keep what is finished and go on when there is room.
func TestShardDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	dir := t.TempDir()
	snap := shardSnapshot(t, dir, "3")
	ref := filepath.Join(dir, "ref")
	ok(t, "precompute", shardFlags(snap, ref)...)
	want := hashDir(t, ref)
	small := filepath.Join(dir, "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, fmt.Sprintf("size=%dk", dirBytes(t, ref)*9/10240)); err != nil {
		t.Skipf("can't mount a tmpfs: %v", err)
	}
	defer syscall.Unmount(small, syscall.MNT_DETACH)
	out := filepath.Join(small, "set")
	ok(t, "precompute", shardFlags(snap, out, "--shard", "0/2")...)
	r := run(t, "precompute", shardFlags(snap, out, "--shard", "1/2", "--threads", "1")...)
	wantRefused(t, r, 1, "no space left on device", "finished files stay in", "1-of-2.partial")
	finished := journalled(t, filepath.Join(out+".parts", "1-of-2"))
	if len(finished) == 0 {
		t.Error("nothing of the part was kept")
	}
	refused(t, 4, []string{"1 of 2 parts aren't finished: 1/2"}, "precompute", shardFlags(snap, out, "--merge")...)
	if err := syscall.Mount("tmpfs", small, "tmpfs", syscall.MS_REMOUNT, "size=512m"); err != nil {
		t.Fatal(err)
	}
	ok(t, "precompute", shardFlags(snap, out, "--shard", "1/2")...)
	wantKept(t, 0, filepath.Join(out+".parts", "1-of-2"), finished)
	ok(t, "precompute", shardFlags(snap, out, "--merge")...)
	if hashDir(t, out) != want {
		t.Error("other bytes than on a big disk")
	}
}

// podSpec is as much of a Kubernetes job as a test looks at.
type podSpec struct {
	Kind string
	Spec struct {
		Completions, Parallelism int
		CompletionMode           string `yaml:"completionMode"`
		PodFailurePolicy         struct {
			Rules []struct {
				Action      string
				OnExitCodes struct {
					Values []int
				} `yaml:"onExitCodes"`
			}
		} `yaml:"podFailurePolicy"`
		Template struct {
			Spec struct {
				RestartPolicy   string `yaml:"restartPolicy"`
				SecurityContext struct {
					RunAsNonRoot bool  `yaml:"runAsNonRoot"`
					RunAsUser    int64 `yaml:"runAsUser"`
				} `yaml:"securityContext"`
				Containers []struct {
					Image           string
					Command         []string
					Args            []string
					SecurityContext struct {
						ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
						AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
						Capabilities             struct{ Drop []string }
					} `yaml:"securityContext"`
					Resources    struct{ Requests, Limits map[string]string }
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct{ Name string }
			}
		}
	}
}

// TestKubernetesJobs reads the manifests under scripts/kubernetes and runs what their pods run, on a directory in place of the volume: the set
// is the one that the same flags give without shards.
func TestKubernetesJobs(t *testing.T) {
	dir := t.TempDir()
	snap := shardSnapshot(t, dir, "3")
	if err := os.Rename(snap, filepath.Join(dir, "snapshot")); err != nil {
		t.Fatal(err)
	}
	var plain []string // flags of the parts, without --shard
	for _, c := range []struct {
		file    string
		indexed bool
	}{{"batches.yaml", true}, {"merge.yaml", false}} {
		text, err := os.ReadFile(filepath.Join("..", "kubernetes", c.file))
		if err != nil {
			t.Fatal(err)
		}
		var job podSpec
		dec := yaml.NewDecoder(bytes.NewReader(text))
		if err := dec.Decode(&job); err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		if err := dec.Decode(&job); err == nil {
			t.Errorf("%s has several documents", c.file)
		}
		spec := &job.Spec
		pod := &spec.Template.Spec
		if job.Kind != "Job" || (spec.CompletionMode == "Indexed") != c.indexed || len(pod.Containers) != 1 || pod.RestartPolicy != "Never" {
			t.Fatalf("%s: %+v", c.file, job)
		}
		box := &pod.Containers[0]
		if s := &box.SecurityContext; !pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser == 0 || !s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s: security contexts %+v, %+v", c.file, pod.SecurityContext, s)
		}
		for _, what := range []string{"cpu", "memory"} {
			if box.Resources.Requests[what] == "" || box.Resources.Limits[what] == "" {
				t.Errorf("%s: no request or limit of %s", c.file, what)
			}
		}
		if len(box.VolumeMounts) != 1 || len(pod.Volumes) != 1 || box.VolumeMounts[0].Name != pod.Volumes[0].Name {
			t.Fatalf("%s: volumes %+v, mounted %+v", c.file, pod.Volumes, box.VolumeMounts)
		}
		mount := box.VolumeMounts[0].MountPath
		args := append([]string{}, box.Args...)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], mount, dir)
		}
		if !c.indexed {
			if len(args) < 2 || args[len(args)-1] != "--merge" || strings.Join(args[:len(args)-1], " ") != strings.Join(plain, " ") {
				t.Errorf("%s has flags %q, the parts have %q", c.file, args, plain)
			}
			ok(t, "precompute", args...)
			continue
		}
		plain = args[:len(args)-2]
		if args[len(args)-2] != "--shard" || args[len(args)-1] != fmt.Sprint("auto/", spec.Completions) || spec.Parallelism < 1 {
			t.Errorf("%s: %q for %d pods, %d at a time", c.file, args, spec.Completions, spec.Parallelism)
		}
		for i := range spec.Completions {
			if r := runIn(t, "", []string{fmt.Sprint("JOB_COMPLETION_INDEX=", i)}, "precompute", args...); r.code != 0 {
				t.Fatal(r.stderr)
			}
		}
		for _, rule := range spec.PodFailurePolicy.Rules {
			if rule.Action == "FailJob" && fmt.Sprint(rule.OnExitCodes.Values) != "[2 3 4 5]" {
				t.Errorf("%s gives up on exit codes %v", c.file, rule.OnExitCodes.Values)
			}
		}
	}
	set, one := filepath.Join(dir, "batches"), filepath.Join(dir, "one")
	args := append([]string{}, plain...)
	for i, arg := range args {
		if arg == set {
			args[i] = one
		}
	}
	ok(t, "precompute", args...)
	if hashDir(t, set) != hashDir(t, one) {
		t.Error("the pods' set is not that of one process")
	}
	if _, err := exec.LookPath("kubectl"); errors.Is(err, exec.ErrNotFound) {
		t.Log("kubectl isn't here: the manifests aren't checked against the API")
	}
}
