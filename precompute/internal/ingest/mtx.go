package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/prelift/prelift/snapshot"
)

// mtxBanner starts a Matrix Market file (Boisvert, Pozo and Remington, The Matrix Market Exchange Formats, NISTIR 5935, 1996).
var mtxBanner = []byte("%%MatrixMarket")

// maxLoneNodes is how many nodes a file may declare whatever its size; beyond, 64 for each of its bytes.
const maxLoneNodes = 1 << 24

// mtxHead is what the banner and the size line say.
type mtxHead struct {
	pattern, symmetric, skew bool
	nodes                    int64
}

// openMTXText opens a Matrix Market file behind its size line. Its rows are row, column[, value]: edge (i, j) is
// entry (i, j), so src is the row.
func openMTXText(ctx context.Context, opt *Options, path, role string) (*table, *mtxHead, error) {
	h := &mtxHead{}
	t, err := openText(ctx, opt, path, role, func(t *table) error {
		line, _, _ := bytes.Cut(t.in.carry, []byte{'\n'})
		words := strings.Fields(strings.ToLower(string(line[:min(len(line), 1<<10)])))
		fault := func(msg, hint string) error { return &Error{File: t.in.name, Line: 1, Msg: msg, Hint: hint} }
		if len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
			return fault("is no Matrix Market banner", "%%MatrixMarket matrix coordinate FIELD SYMMETRY")
		}
		if words[2] != "coordinate" {
			return fault(fmt.Sprintf("the format %s is not read", quote(words[2])), "only coordinate: a graph is sparse")
		}
		switch words[3] {
		case "pattern":
			h.pattern = true
		case "real", "integer", "double":
		default:
			return fault(fmt.Sprintf("values of the field %s are no weights", quote(words[3])), "real, integer or pattern")
		}
		switch words[4] {
		case "general":
		case "symmetric":
			h.symmetric = true
		case "skew-symmetric":
			if h.pattern || opt.WeightCol != WeightNone {
				return fault("a skew-symmetric matrix has a negative value for each positive one", "--weight-col none ignores them")
			}
			h.symmetric, h.skew = true, true
		default:
			return fault(fmt.Sprintf("the symmetry %s is not read", quote(words[4])), "general, symmetric or skew-symmetric")
		}
		t.format = FormatSNAP
		t.head = func(first []string) (int, error) {
			var sizes [3]int64
			for i := range sizes {
				v, ok := snapshot.CanonicalInt([]byte(at(first, i)))
				if !ok || v < 0 || len(first) != 3 {
					return 0, t.headError("three numbers: rows, columns, entries", "is no size line of a Matrix Market file: %s", quote(strings.Join(first, " ")))
				}
				sizes[i] = v
			}
			switch {
			case sizes[0] != sizes[1]:
				return 0, t.headError("a graph needs a square one", "the matrix has %d rows and %d columns", sizes[0], sizes[1])
			case sizes[0] > maxNumber:
				return 0, t.headError("", "%d rows, but at most %d nodes can be numbered", sizes[0], maxNumber)
			case sizes[0] > maxLoneNodes+64*t.in.size:
				return 0, t.headError("is the size line damaged?", "%d nodes in a file of %d bytes", sizes[0], t.in.size)
			}
			h.nodes, t.wantRows = sizes[0], sizes[2]
			if h.pattern {
				return 2, nil
			}
			return 3, nil
		}
		return nil
	})
	if err == nil && t.wantRows < 0 {
		t.close()
		err = &Error{File: t.in.name, Msg: "has no size line", Hint: "the file is cut"}
	}
	if err != nil {
		return nil, nil, err
	}
	t.report.Format = FormatMTX
	return t, h, nil
}

// openMTX opens a Matrix Market file as edges, or as the table of its nodes: 1 to the number of rows.
func openMTX(ctx context.Context, opt *Options, path, role string) (*table, error) {
	t, h, err := openMTXText(ctx, opt, path, role)
	if err != nil {
		return nil, err
	}
	if role == roleEdges {
		return t, nil
	}
	defer t.close()
	if role != roleNodes {
		return nil, &Error{File: t.in.name, Msg: "is a Matrix Market file: it can give edges only"}
	}
	nodes := newSourceTable(opt, path, role, FormatMTX, []string{"id"}, false, &countingSource{end: h.nodes, first: 1})
	nodes.headLine, nodes.fixedID = t.headLine, true
	return nodes, nil
}

// countingSource has one column: the integers from first on, end of them.
type countingSource struct{ first, end, done int64 }

func (c *countingSource) next(_ context.Context, t *table) error {
	if c.done == c.end {
		return io.EOF
	}
	t.scan.startRow(t.headLine)
	t.scan.text = strconv.AppendInt(t.scan.text, c.first+c.done, 10)
	t.scan.fields = append(t.scan.fields, span{0, len(t.scan.text)})
	c.done++
	return nil
}

func (c *countingSource) close() {}

// mtxEdges is textEdges behind the size line.
type mtxEdges struct{ textEdges }

func (mtxEdges) match(_ *Options, kind string) bool { return kind == FormatMTX }

func (f mtxEdges) read(ctx context.Context, r *reader, path string, sink *edgeSink) error {
	t, h, err := openMTXText(ctx, &r.opt, path, roleEdges)
	if err != nil {
		return err
	}
	t.close()
	sink.lower, sink.mirror = h.symmetric, h.symmetric && r.opt.Directed
	err = f.textEdges.read(ctx, r, path, sink)
	sink.lower, sink.mirror = false, false
	return err
}

// mtxColumns are the columns of a Matrix Market file.
func (t *table) mtxColumns() edgeColumns {
	c := edgeColumns{src: 0, dst: 1, weight: -1, rel: -1, width: t.width}
	if t.width == 3 && t.opt.WeightCol != WeightNone {
		c.weight = 2
	}
	return c
}
