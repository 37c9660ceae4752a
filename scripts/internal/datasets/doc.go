// Package datasets downloads public data sets and lays them out so that `precompute snapshot` takes them as they are.
//
// A Set lists the files of a data set by https address. Fetch downloads them into DIR/NAME.partial, checks sizes and
// SHA-256 digests, unpacks archives and renames the whole to DIR/NAME. What is there afterwards is recorded in
// DIR/NAME.lock.json, by which a later run checks it without a network.
//
// A digest is pinned only where it is known: computed here from a copy of the very file (Measured), or stated by
// independent public projects that pin the same address (Published). Any other file is taken on first use: its digest
// goes into the lock file, every later download must match it, and the output says so.
package datasets
