package command

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// applyConfig sets the flags of c that the command line didn't, from a YAML file. Its
// keys are flag names, at the top or under the command's name; the latter win:
//
//	seed: 1
//	batches:
//	  fanout: [10, 5]
//
// A top-level key may be the flag of another command, and a top-level map may be
// anything (one params file serves a whole pipeline); a key under the command's own
// name must be a flag of it.
func applyConfig(c *cobra.Command, path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return Usage("--config %s is not a regular file", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return Usage("--config: %v", err)
	}
	return SetFlags(c, b, "--config "+path)
}

// SetFlags sets the flags of c that have no value yet from the text of a YAML file, by the
// rules of --config. Its errors are usage errors that begin with place.
func SetFlags(c *cobra.Command, text []byte, place string) error {
	var top map[string]any
	if err := yaml.Unmarshal(text, &top); err != nil {
		return Usage("%s: %s", place, yamlReason(err))
	}
	if own, ok := top[c.Name()].(map[string]any); ok {
		for _, key := range sortedKeys(own) {
			if c.Flags().Lookup(key) == nil {
				return Usage("%s: %s has no flag --%s", place, c.CommandPath(), key)
			}
			if err := setFlag(c, place, key, own[key]); err != nil {
				return err
			}
		}
	}
	for _, key := range sortedKeys(top) {
		if _, isMap := top[key].(map[string]any); isMap {
			if c.Flags().Lookup(key) != nil && key != c.Name() && !isSection(c.Root(), key) {
				return Usage("%s: %s is a map; --%s takes a value or a list", place, key, key)
			}
			continue
		}
		if c.Flags().Lookup(key) != nil {
			if err := setFlag(c, place, key, top[key]); err != nil {
				return err
			}
		} else if !isFlagOfAny(c.Root(), key) {
			return Usage("%s: %s has no flag --%s; what is for other programs goes under a name of its own, as train:", place, c.Root().Name(), key)
		}
	}
	return nil
}

// checkGiven refuses flags that are given, on the command line or in a file, as an empty text or list, or with an empty element: a variable that
// isn't set must not silently be a flag that isn't given. No flag has a meaning for it.
func checkGiven(c *cobra.Command) (err error) {
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Changed {
			return
		}
		texts := []string{flag.Value.String()}
		if slice, ok := flag.Value.(pflag.SliceValue); ok {
			texts = slice.GetSlice()
		}
		if err == nil && (len(texts) == 0 || slices.Contains(texts, "")) {
			err = Usage("--%s is given, but empty; leave it out, or say its value", flag.Name)
		}
	})
	return err
}

// setFlag gives a flag its value from the file, unless it has one already.
func setFlag(c *cobra.Command, place, key string, value any) error {
	if key == "config" || key == "help" {
		return Usage("%s: --%s can't be given in a file", place, key)
	}
	if c.Flags().Changed(key) {
		return nil
	}
	if !isPlain(value) {
		return Usage("%s: %s is a map, or holds one; --%s takes a value or a list", place, key, key)
	}
	if value == nil {
		return Usage("%s: %s has no value; leave it out, or say its value", place, key)
	}
	flag := c.Flags().Lookup(key)
	if list, ok := value.([]any); ok {
		if slice, ok := flag.Value.(pflag.SliceValue); ok { // elements as they are, commas and all
			var texts []string
			for _, v := range list {
				texts = append(texts, flagText(v))
			}
			flag.Changed = true
			if err := slice.Replace(texts); err != nil {
				return Usage("%s: --%s: %s", place, key, valueReason(err))
			}
			return nil
		}
	}
	if err := c.Flags().Set(key, flagText(value)); err != nil {
		return Usage("%s: --%s: %s", place, key, valueReason(err))
	}
	return nil
}

// isPlain reports whether a YAML value is one that a flag can have: a scalar, or a list of such.
func isPlain(value any) bool {
	switch value := value.(type) {
	case []any:
		return !slices.ContainsFunc(value, func(v any) bool {
			_, isList := v.([]any)
			return isList || !isPlain(v)
		})
	case map[string]any, map[any]any:
		return false
	}
	return true
}

// yamlReason says what is wrong with a file without the names of Go's types.
func yamlReason(err error) string {
	msg := err.Error()
	if strings.Contains(msg, "cannot unmarshal") {
		return "is no map of flags to values, as `seed: 1`"
	}
	return strings.Join(strings.Fields(strings.Replace(msg, "unmarshal errors:", "", 1)), " ")
}

// flagText is how a YAML value is written on a command line.
func flagText(value any) string {
	list, ok := value.([]any)
	switch {
	case value == nil: // an element of a list; empty, it is refused
		return ""
	case !ok:
		return fmt.Sprint(value)
	}
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = flagText(v)
	}
	return strings.Join(parts, ",")
}

// pipeline are the commands of all programs that name a section where another program has a flag of that name.
var pipeline = []string{"snapshot", "batches"}

// isSection reports whether a top-level map of that name is for a command, of this or another program.
func isSection(root *cobra.Command, name string) bool {
	return slices.Contains(pipeline, name) || slices.ContainsFunc(root.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name })
}

func isFlagOfAny(c *cobra.Command, key string) bool {
	if c.Flags().Lookup(key) != nil || c.PersistentFlags().Lookup(key) != nil {
		return true
	}
	return slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return isFlagOfAny(sub, key) })
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
