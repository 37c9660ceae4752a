package command

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// plainEvery is the least time between two lines about one step where there is no terminal.
const plainEvery = 5 * time.Second

// Progress shows how far the steps of a command are: a live bar with rate and time left
// on a terminal, plain lines elsewhere. Safe for concurrent use.
type Progress struct {
	w        io.Writer
	terminal bool

	mu      sync.Mutex
	step    string
	total   int64
	started time.Time
	printed time.Time
	bar     *progressbar.ProgressBar
	stages  []Stage
	beside  []BesideStage
}

// Stage is how long a step took. Steps that run beside others are cut into pieces, which are added up.
type Stage struct {
	Step    string  `json:"step"`
	Seconds float64 `json:"seconds"`
}

// BesideStage is work that goes on beside the steps: its bytes, and how long those took which had the machine to share.
type BesideStage struct {
	Step    string  `json:"step"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// NewProgress makes a Progress that writes to w.
func NewProgress(w io.Writer) *Progress {
	f, ok := w.(*os.File)
	return &Progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

// Step reports that done of total units of a step are finished; a new step ends the one
// before. total <= 0 means unknown. Cheap enough to be called often.
func (p *Progress) Step(step string, done, total int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if step != p.step {
		p.end()
		p.step, p.total, p.started, p.printed = step, total, time.Now(), time.Now()
		if p.terminal {
			p.bar = newBar(p.w, step, total)
		}
	}
	if total != p.total {
		p.total = total
		if p.bar != nil && total > 0 {
			p.bar.ChangeMax64(total)
		}
	}
	if p.bar != nil {
		p.bar.Set64(done)
		return
	}
	if now := time.Now(); now.Sub(p.printed) >= plainEvery {
		p.printed = now
		fmt.Fprintln(p.w, p.line(done, now.Sub(p.started)))
	}
}

func newBar(w io.Writer, step string, total int64) *progressbar.ProgressBar {
	if total <= 0 {
		total = -1
	}
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(step),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}

// line says how far the step is, at what rate, and what is left.
func (p *Progress) line(done int64, elapsed time.Duration) string {
	rate := float64(done) / max(elapsed.Seconds(), 1e-9)
	if p.total <= 0 || done <= 0 {
		return fmt.Sprintf("%s: %d done, %.3g/s", p.step, done, rate)
	}
	left := time.Duration(float64(p.total-done) / rate * float64(time.Second))
	return fmt.Sprintf("%s: %d of %d, %.3g/s, %s left", p.step, done, p.total, rate, left.Round(time.Second))
}

// end finishes the current step. A step of some length leaves a line with its time.
func (p *Progress) end() {
	if p.step == "" {
		return
	}
	if p.bar != nil {
		p.bar.Finish()
		p.bar = nil
	}
	elapsed := time.Since(p.started)
	i := slices.IndexFunc(p.stages, func(s Stage) bool { return s.Step == p.step })
	if i < 0 {
		i = len(p.stages)
		p.stages = append(p.stages, Stage{Step: p.step})
	}
	p.stages[i].Seconds += elapsed.Seconds()
	if elapsed >= plainEvery/10 {
		fmt.Fprintf(p.w, "%s: %s\n", p.step, elapsed.Round(10*time.Millisecond))
	}
	p.step = ""
}

// Stages ends the current step and returns all there were, in the order they began.
func (p *Progress) Stages() []Stage {
	if p == nil {
		return []Stage{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	return append([]Stage{}, p.stages...)
}

// Beside reports work done beside the current step; that of one name is added up.
func (p *Progress) Beside(step string, bytes int64, took time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.beside, func(s BesideStage) bool { return s.Step == step })
	if i < 0 {
		i = len(p.beside)
		p.beside = append(p.beside, BesideStage{Step: step})
	}
	p.beside[i].Bytes += bytes
	p.beside[i].Seconds += took.Seconds()
}

// BesideStages returns all that Beside was told, in the order it began.
func (p *Progress) BesideStages() []BesideStage {
	if p == nil {
		return []BesideStage{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]BesideStage{}, p.beside...)
}

// Done ends the current step, so that other output can follow.
func (p *Progress) Done() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}
