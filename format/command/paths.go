package command

import (
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// PathsVar makes a flag for several paths: given several times, or once with commas between them. A comma in the name of
// a file that is there separates nothing.
func PathsVar(flags *pflag.FlagSet, p *[]string, name, usage string) {
	flags.Var(&pathList{list: p}, name, usage)
}

// pathList is a pflag.Value, and a pflag.SliceValue.
type pathList struct {
	list *[]string
}

// Set adds the paths of one use of the flag.
func (l *pathList) Set(s string) error {
	if _, err := os.Stat(s); err == nil {
		return l.Append(s)
	}
	*l.list = append(*l.list, strings.Split(s, ",")...) // an empty part is refused once all flags are there
	return nil
}

func (l *pathList) Type() string { return "paths" }

func (l *pathList) String() string { return strings.Join(l.GetSlice(), ",") }

// Append adds one path as it is.
func (l *pathList) Append(path string) error {
	*l.list = append(*l.list, path)
	return nil
}

// Replace sets the paths, each as it is.
func (l *pathList) Replace(paths []string) error {
	*l.list = paths
	return nil
}

func (l *pathList) GetSlice() []string {
	if l.list == nil {
		return nil
	}
	return *l.list
}
