package format

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// specTables parses the tables of SPEC.md. They are keyed by the head of their first
// column; tables of the same head are joined. Each row maps a column's head to its text.
func specTables(t testing.TB) map[string][]map[string]string {
	t.Helper()
	b, err := os.ReadFile("../SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][]map[string]string{}
	var heads []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			heads = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		switch {
		case strings.HasPrefix(cells[0], "---"):
		case heads == nil:
			heads = cells
		default:
			if len(cells) != len(heads) {
				t.Fatalf("SPEC.md: row %q has %d cells, its table %d", line, len(cells), len(heads))
			}
			row := map[string]string{}
			for i, c := range cells {
				row[heads[i]] = c
			}
			tables[heads[0]] = append(tables[heads[0]], row)
		}
	}
	return tables
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatalf("SPEC.md: %q is not a number", text)
	}
	return n
}

func TestSpecTables(t *testing.T) {
	tables := specTables(t)
	t.Run("constants", func(t *testing.T) {
		compare(t, tables["constant"], "constant", "value", map[string]string{
			"Version": "1", "ByteOrderMark": fmt.Sprintf("0x%08X", ByteOrderMark), "HeaderSize": fmt.Sprint(HeaderSize),
			"TableEntrySize": fmt.Sprint(TableEntrySize), "RecordHeaderSize": fmt.Sprint(RecordHeaderSize),
			"SectionEntrySize": fmt.Sprint(SectionEntrySize), "SectionAlign": fmt.Sprint(SectionAlign), "RecordAlign": fmt.Sprint(RecordAlign),
			"RecordMark": fmt.Sprintf("0x%08X", RecordMark), "MaxRecords": fmt.Sprint(MaxRecords), "MaxSections": fmt.Sprint(MaxSections),
			"MaxLayers": fmt.Sprint(MaxLayers), "MaxHops": fmt.Sprint(MaxHops), "MaxColumns": fmt.Sprint(MaxColumns),
		})
	})
	t.Run("file kinds", func(t *testing.T) { compare(t, tables["file kind"], "file kind", "name", texts(fileKindNames)) })
	t.Run("coefficients", func(t *testing.T) { compare(t, tables["coef"], "coef", "name", texts(coefNames)) })
	t.Run("codecs", func(t *testing.T) { compare(t, tables["codec"], "codec", "name", texts(codecNames)) })
	t.Run("element types", func(t *testing.T) {
		compare(t, tables["dtype"], "dtype", "name", texts(dtypeNames))
		sizes := map[string]string{}
		for d := range dtypeNames {
			sizes[fmt.Sprint(uint8(d))] = fmt.Sprint(d.SizeBytes())
		}
		compare(t, tables["dtype"], "dtype", "bytes", sizes)
	})
	t.Run("error classes", func(t *testing.T) {
		exit := map[string]string{}
		for _, c := range errorClasses {
			exit[c.name] = map[bool]string{true: "4", false: "5"}[IsCorrupt(c.err)]
		}
		compare(t, tables["error class"], "error class", "exit code", exit)
	})
	t.Run("feature bits", func(t *testing.T) {
		compare(t, tables["feature word"], "feature word", "bit", map[string]string{"required": "0"})
		if RequireEncryption != 1<<0 || knownRequired != 0 || knownOptional != 0 {
			t.Error("SPEC 10.1 has one required bit, 0, that no reader knows")
		}
	})
	t.Run("section kinds", func(t *testing.T) {
		names, types, ranks := map[string]string{}, map[string]string{}, map[string]string{}
		for k, s := range kindSpecs {
			key := fmt.Sprintf("0x%04X", uint16(k))
			names[key] = s.name
			types[key] = strings.Trim(strings.ReplaceAll(fmt.Sprint(s.dtypes), " ", ", "), "[]")
			ranks[key] = fmt.Sprint(s.rank)
		}
		compare(t, tables["section kind"], "section kind", "name", names)
		compare(t, tables["section kind"], "section kind", "dtype", types)
		for _, row := range tables["section kind"] {
			rank := fmt.Sprint(1 + strings.Count(row["shape"], ","))
			if strings.Contains(row["shape"], " or ") {
				rank = "-1" // depends on the element type
			}
			if want := ranks[row["section kind"]]; rank != want {
				t.Errorf("%s: shape %s has rank %s, the code %s", row["name"], row["shape"], rank, want)
			}
		}
	})
	t.Run("words", func(t *testing.T) {
		// The numbers that SPEC 4.1 spells out in the meaning of a field.
		text := ""
		for _, row := range tables["offset"] {
			text += row["meaning"] + "\n"
		}
		for _, want := range []string{
			list(TaskNone, TaskNode, TaskLink, TaskKGE), list(PartNone, PartTrain, PartValid, PartTest), list(SpaceLocal, SpaceGlobal),
		} {
			if !strings.Contains(strings.ReplaceAll(text, "none (a table)", "none"), want) {
				t.Errorf("SPEC 4.1 doesn't say %q", want)
			}
		}
		if AnyLayer != 0xFFFF || AnySplit != 0xFFFFFFFF || Unlabelled != 255 {
			t.Error("SPEC 4 and 5 have other values of AnyLayer, AnySplit or Unlabelled")
		}
	})
}

func list[T interface {
	fmt.Stringer
	~uint8 | ~uint16
}](values ...T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprintf("%d %s", uint64(v), v)
	}
	return strings.Join(words, ", ")
}

func texts[K ~uint8 | ~uint16](names map[K]string) map[string]string {
	out := map[string]string{}
	for k, n := range names {
		out[fmt.Sprint(uint64(k))] = n
	}
	return out
}

// compare wants exactly the rows of want, from the text of column key to that of column value.
func compare(t *testing.T, rows []map[string]string, key, value string, want map[string]string) {
	t.Helper()
	seen := map[string]bool{}
	for _, row := range rows {
		if got, ok := want[row[key]]; !ok || got != row[value] {
			t.Errorf("SPEC.md has %s %q with %s %q, the code %q (known: %t)", key, row[key], value, row[value], got, ok)
		}
		if seen[row[key]] {
			t.Errorf("SPEC.md has %s %q twice", key, row[key])
		}
		seen[row[key]] = true
	}
	for k, v := range want {
		if !seen[k] {
			t.Errorf("the code has %s %q (%s), SPEC.md doesn't", key, k, v)
		}
	}
}

// TestSpecOffsets adds up the field tables of SPEC 3 and 4.
func TestSpecOffsets(t *testing.T) {
	b, err := os.ReadFile("../SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	field := regexp.MustCompile(`^\| (\d+) \| (\d+) \| ([a-z0-9]+)(?:\[(\d+)\])? \| (\w+) \|`)
	sizes := map[string]uint64{"u8": 1, "u16": 2, "u32": 4, "u64": 8}
	var ends []uint64
	end := uint64(0)
	for line := range strings.Lines(string(b)) {
		m := field.FindStringSubmatch(line)
		if m == nil {
			if end > 0 {
				ends = append(ends, end)
			}
			end = 0
			continue
		}
		if offset := number(t, m[1]); offset != end {
			t.Errorf("%s starts at %d, the field before it ends at %d", m[5], offset, end)
		}
		size := sizes[m[3]]
		if m[4] != "" {
			size *= number(t, m[4])
		}
		if number(t, m[2]) != size {
			t.Errorf("%s has %s bytes, its type %d", m[5], m[2], size)
		}
		end += size
	}
	if got, want := fmt.Sprint(ends), fmt.Sprint([]int{HeaderSize, TableEntrySize, RecordHeaderSize, SectionEntrySize}); got != want {
		t.Errorf("field tables end at %s, want %s", got, want)
	}
}

// TestSpecBatchSetFields compares section 7's field table with the manifest in Go.
func TestSpecBatchSetFields(t *testing.T) {
	var want []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[BatchSet]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch name {
		case "kind", "format_version", "set_key", "files": // section 2
		default:
			want = append(want, name)
		}
	}
	var got []string
	for _, row := range specTables(t)["batch set field"] {
		got = append(got, row["batch set field"])
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("SPEC 7 has the fields %q, BatchSet %q", got, want)
	}
}
