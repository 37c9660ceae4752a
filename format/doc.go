// Package format is the codec of SPEC.md: the one container that every Prelift
// artefact is made of, and the basics that artefacts share.
//
// A file is a header, a table of records and the records; a record is a head
// (header, counts, section entries) and sections; a section is one array. A batch
// file holds one record a batch, a feature table one record with the rows, a
// snapshot's files one record each. An artefact is a directory of such files under
// manifest.json, whose SHA-256 is the artefact's id.
//
// The package maps files and hands out typed views of them without copying. It
// trusts nothing in a file: every count is bounded by the file's size before it is
// used, every byte is under a CRC-32 or must be zero, and what a reader must check
// (SPEC 9) is checked here, once, for the trainer, the verifier and the tests alike.
//
// It knows the layout of blocks, not how they came to be: no graph algorithm lives here.
package format
