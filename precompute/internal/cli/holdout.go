package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prelift/prelift/format"
	"github.com/prelift/prelift/format/command"
	"github.com/prelift/prelift/precompute/internal/ingest"
	"github.com/prelift/prelift/snapshot"
	"github.com/spf13/pflag"
)

// holdoutFlags are the flags of `precompute snapshot` that hold pairs out of the edges.
type holdoutFlags struct {
	shares    string
	seed      int64
	spareLast bool
}

// holdoutSeed is the default of --holdout-seed.
const holdoutSeed = 1

func (f *holdoutFlags) add(fl *pflag.FlagSet, in *ingest.Options) {
	fl.StringVar(&in.HoldoutEdges, "holdout-edges", "", "lists of pairs to leave out of the graph and keep for link prediction: valid=F,test=F, edge files of any format")
	fl.StringVar(&f.shares, "holdout", "", "shares of the pairs to leave out and keep, drawn by hash: `valid,test`, as 0.05,0.10")
	fl.Int64Var(&f.seed, "holdout-seed", holdoutSeed, "seed of --holdout")
	fl.BoolVar(&f.spareLast, "holdout-spare-last", false, "--holdout leaves every node one of its pairs")
}

// params returns what the flags ask for, nil for nothing.
func (f *holdoutFlags) params(in *ingest.Options) (*snapshot.HoldoutParams, error) {
	switch {
	case f.shares != "" && in.HoldoutEdges != "":
		return nil, command.Usage("--holdout and --holdout-edges both choose the pairs to hold out; give one")
	case f.shares == "" && (f.spareLast || f.seed != holdoutSeed):
		return nil, command.Usage("--holdout-seed and --holdout-spare-last are for --holdout, which isn't given")
	case in.HoldoutEdges != "":
		return &snapshot.HoldoutParams{Kind: snapshot.HoldoutGiven}, nil
	case f.shares == "":
		return nil, nil
	}
	p := &snapshot.HoldoutParams{Kind: snapshot.HoldoutHash, Seed: format.Int(f.seed), SpareLast: f.spareLast}
	valid, test, ok := strings.Cut(f.shares, ",")
	var errs [2]error
	p.Valid, errs[0] = strconv.ParseFloat(strings.TrimSpace(valid), 64)
	p.Test, errs[1] = strconv.ParseFloat(strings.TrimSpace(test), 64)
	if !ok || errs[0] != nil || errs[1] != nil {
		return nil, command.Usage("--holdout %q is not two shares, for valid and for test, as 0.05,0.10", f.shares)
	}
	if !(p.Valid >= 0 && p.Test >= 0 && p.Valid+p.Test > 0 && p.Valid+p.Test <= 1) {
		return nil, command.Usage("--holdout %s: want shares of at least 0, together over 0 and at most 1", f.shares)
	}
	return p, nil
}

// noteHoldout tells what is unusual about the held-out pairs: those whose answers the graph gives away, in both lists, repeated,
// or in no line of the edges.
func noteHoldout(env *command.Env, m *snapshot.Manifest) {
	a := m.Heldout
	if a == nil {
		return
	}
	if a.KnownValid+a.KnownTest > 0 {
		env.Note("warning", fmt.Sprintf("%d of %d pairs for valid and %d of %d for test are edges of the graph too: a model has seen the answers", a.KnownValid, a.NumValid, a.KnownTest, a.NumTest))
	}
	if a.InBoth > 0 {
		env.Note("warning", fmt.Sprintf("%d pairs are in the lists for valid and for test", a.InBoth))
	}
	if a.ReversedValid+a.ReversedTest > 0 {
		env.Note("note", fmt.Sprintf("the graph has the reverse of %d pairs for valid and of %d for test, of the same or another relation: inverse relations give answers away", a.ReversedValid, a.ReversedTest))
	}
	if a.RepeatsValid+a.RepeatsTest > 0 {
		env.Note("note", fmt.Sprintf("%d lines of the pairs for valid and %d for test repeat others, and are left out", a.RepeatsValid, a.RepeatsTest))
	}
	if a.UnseenNodes+a.UnseenRels > 0 {
		what := fmt.Sprintf("%d nodes", a.UnseenNodes)
		if a.UnseenRels > 0 {
			what += fmt.Sprintf(" and %d relations", a.UnseenRels)
		}
		env.Note("note", what+" of the pairs for valid and test have no edge in the graph: nothing can be learnt of them")
	}
	if a.MissingValid+a.MissingTest == 0 {
		return
	}
	env.Note("note", fmt.Sprintf("of the held-out pairs %d of %d for valid and %d of %d for test are in no line of the edges", a.MissingValid, a.NumValid, a.MissingTest, a.NumTest))
}

// heldoutText says what was held out.
func heldoutText(t command.Table, d *snapshot.HeldoutDescription) {
	if d == nil {
		return
	}
	t.Row("held out", fmt.Sprintf("%d pairs for valid, %d for test; %d lines left the graph", d.NumValid, d.NumTest, d.NumLines))
	if d.KnownValid+d.KnownTest+d.UnseenNodes+d.UnseenRels > 0 {
		t.Row("  of them", fmt.Sprintf("%d and %d are edges of the graph too; %d nodes and %d relations have no edge in it", d.KnownValid, d.KnownTest, d.UnseenNodes, d.UnseenRels))
	}
	if d.ReversedValid+d.ReversedTest+d.InBoth+d.RepeatsValid+d.RepeatsTest > 0 {
		t.Row("  leaks", fmt.Sprintf("the graph has the reverse of %d and %d; %d are in both lists; %d and %d lines were repeats", d.ReversedValid, d.ReversedTest, d.InBoth, d.RepeatsValid, d.RepeatsTest))
	}
	switch {
	case d.Kind == snapshot.HoldoutHash:
		spared := ""
		if d.SpareLast {
			spared = ", each node's last pair spared"
		}
		t.Row("  drawn", fmt.Sprintf("shares %g and %g, seed %d%s", d.Valid, d.Test, d.Seed, spared))
	case d.Kind == snapshot.HoldoutGiven:
		t.Row("  given", fmt.Sprintf("%d and %d of the pairs are in no line of the edges", d.MissingValid, d.MissingTest))
	}
}
