package e2e

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prelift/prelift/scripts/internal/datasets"
)

// downloaded serves the files of a data set from a server of the test and downloads them. Contents are by file name.
func downloaded(t *testing.T, set *datasets.Set, contents func(name string) []byte) *datasets.Result {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(contents(strings.TrimPrefix(r.URL.Path, "/")))
	}))
	defer server.Close()
	for i := range set.Files {
		f := &set.Files[i]
		f.URL = server.URL + "/" + f.Name
	}
	result, err := datasets.Fetch(context.Background(), set, t.TempDir(), datasets.Options{Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// readDownloaded runs the command that a download ends with, and inspects the snapshot.
func readDownloaded(t *testing.T, r *datasets.Result) map[string]any {
	t.Helper()
	out := filepath.Join(t.TempDir(), "snapshot")
	if r.Read[0] != "bin/precompute" || r.Read[len(r.Read)-2] != "--out" {
		t.Fatalf("read by %q", r.Read)
	}
	ok(t, "precompute", append(r.Read[1:len(r.Read)-1], out)...)
	return object(t, "precompute", "inspect", out)
}

// The layouts that scripts/datasets makes are those that the printed commands read.
func TestDownloadedSets(t *testing.T) {
	for _, c := range []struct {
		name, copies           string // where PRELIFT_DATA has the files
		nodes, edges, features float64
	}{
		{"cora", "planetoid-cora/original/", 2708, 5278, 1433},
		{"citeseer", "planetoid-citeseer/original/", 3327, 4676, 3703},
		{"fb15k-237", "kg-fb15k-237/original/ConvE-", 14541, 0, 0},
		{"wn18rr", "kg-wn18rr/original/ConvE-", 40943, 0, 0},
		{"nations", "kg-nations/original/ConvE-", 14, 0, 0},
		{"umls", "kg-umls/original/ConvE-", 135, 0, 0},
		{"codex-s", "kg-codex-s/original/", 2034, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, err := datasets.Find(c.name)
			if err != nil {
				t.Fatal(err)
			}
			folder, prefix, _ := strings.Cut(c.copies, "/")
			dir := dataDir(t, folder)
			r := downloaded(t, set, func(name string) []byte {
				content, err := os.ReadFile(filepath.Join(dir, prefix+name))
				if err != nil {
					t.Error(err)
				}
				return content
			})
			got := readDownloaded(t, r)
			if got["num_nodes"] != c.nodes || c.edges > 0 && got["num_edges"] != c.edges || got["num_features"] != c.features {
				t.Errorf("%v nodes, %v edges, %v features; want %v, %v, %v", got["num_nodes"], got["num_edges"], got["num_features"], c.nodes, c.edges, c.features)
			}
		})
	}
}

// An archive of OGB's layout, with a digest of its own, in place of the real ones.
func TestDownloadedOGB(t *testing.T) {
	for _, name := range []string{"arxiv", "products", "proteins"} {
		files := map[string]string{
			"RELEASE_v1.txt": "", "mapping/nodeidx2paperid.csv.gz": "0,7\n", "processed/x": "x",
			"raw/edge.csv.gz": "0,1\n1,2\n2,3\n", "raw/num-node-list.csv.gz": "4\n", "raw/num-edge-list.csv.gz": "3\n",
			"raw/node-label.csv.gz": "0\n1\n0\n1\n", "raw/node-feat.csv.gz": "0.5,1\n1,2\n2,3\n3,4\n",
			"split/one/train.csv.gz": "0\n1\n", "split/one/valid.csv.gz": "2\n", "split/one/test.csv.gz": "3\n",
		}
		if name == "proteins" {
			delete(files, "raw/node-feat.csv.gz")
			files["raw/node-label.csv.gz"] = "0,1,1\n1,0,0\n0,0,1\n1,1,0\n"
			files["raw/edge-feat.csv.gz"], files["raw/node_species.csv.gz"] = "1\n1\n1\n", "9\n9\n9\n9\n"
		}
		set, err := datasets.Find("ogbn-" + name)
		if err != nil {
			t.Fatal(err)
		}
		f := &set.Files[0]
		f.SHA256, f.Known, f.SizeBytes, f.MaxBytes = "", "", 0, 1<<20
		got := readDownloaded(t, downloaded(t, set, func(string) []byte { return zipped(t, name, files) }))
		if got["num_nodes"] != 4.0 || got["num_edges"] != 3.0 || got["num_classes"] != map[bool]float64{false: 2, true: 3}[name == "proteins"] {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// zipped packs files under a folder; those named .gz are compressed.
func zipped(t *testing.T, folder string, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, text := range files {
		var content bytes.Buffer
		if strings.HasSuffix(name, ".gz") {
			g := gzip.NewWriter(&content)
			g.Write([]byte(text))
			g.Close()
		} else {
			content.WriteString(text)
		}
		w, err := z.Create(folder + "/" + name)
		if err == nil {
			_, err = w.Write(content.Bytes())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
