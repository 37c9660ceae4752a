package command

import "testing"

func TestShellQuoting(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"data/cora", "data/cora"}, {"my data/x", "'my data/x'"}, {"it's", `'it'\''s'`}, {"", "''"}, {"$HOME", "'$HOME'"}, {"train=a,valid=b", "train=a,valid=b"},
	} {
		if got := ShellLine([]string{"x", c.arg}); got != "x "+c.want {
			t.Errorf("%q: %s, want x %s", c.arg, got, c.want)
		}
	}
}
