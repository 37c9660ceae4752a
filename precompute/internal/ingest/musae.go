package ingest

import (
	"context"
	"path/filepath"
	"slices"
)

// musaeFiles finds a directory with the files of a MUSAE graph (Rozemberczki, Allen and Sarkar, Multi-Scale Attributed
// Node Embedding, 2021).
func musaeFiles(path string) []string {
	var files []string
	for _, name := range []string{"edges.csv", "features.json", "target.csv"} {
		file := filepath.Join(path, name)
		if !isFile(file) {
			return nil
		}
		files = append(files, file)
	}
	return files
}

// openMUSAE reads edges.csv by position, since its header differs from graph to graph. target.csv names graph ids
// new_id where it has other ids too; its class is mature or target, and target without classes is a value.
func openMUSAE(ctx context.Context, opt *Options, files []string) error {
	if len(opt.Edges) == 0 {
		opt.Edges, opt.Header = files[:1], HeaderYes
		if opt.SrcCol == "" && opt.DstCol == "" {
			opt.SrcCol, opt.DstCol = "1", "2"
		}
	}
	if opt.Features == "" {
		opt.Features = files[1]
	}
	if opt.Labels != "" {
		return nil
	}
	opt.Labels = files[2]
	t, err := openTable(ctx, opt, files[2], roleLabels)
	if err != nil {
		return err
	}
	t.close()
	if opt.IDCol == "" && slices.Contains(t.names, "new_id") {
		opt.IDCol = "new_id"
	}
	if opt.LabelCol == "" && slices.Contains(t.names, "mature") {
		opt.LabelCol = "mature"
	}
	return nil
}
