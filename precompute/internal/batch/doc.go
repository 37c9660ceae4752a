// Package batch cuts a snapshot into a batch set: training batches, evaluation blocks
// and the tables a trainer needs, in one directory that is enough by itself (SPEC 7).
//
// Resolve checks what was asked, settles what was left open (store, order, transposes)
// and predicts sizes before a byte is written. Write then builds the shard files, each
// a function of batch numbers alone, links the snapshot's tables beside them and publishes. Verify
// and VerifyAgainst recompute what a finished set claims; Describe says what is in it.
package batch
