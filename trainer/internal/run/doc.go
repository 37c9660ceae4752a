// Package run trains a model on a batch set, evaluates it exactly, and keeps the run
// directory: what a training run is, apart from the command line that asks for one.
//
// # A run directory
//
//	params.yaml        every setting that shapes the result, and the ids of the parents
//	metrics.jsonl      one JSON object an epoch; what has no value is null
//	best.safetensors   parameters of the best epoch by validation
//	last.safetensors   parameters of the last epoch
//	checkpoint/        all that resuming needs: parameters, moments, best so far, counters
//	result.json        what `train --json` printed, once training is over
//
// # What is promised
//
// The same batch set, settings and kernel set give the same bits for any number of
// threads, and for a run that was interrupted and resumed, killed and resumed, or
// extended to more epochs. Nothing here asks a clock or a global source of random
// numbers for a decision: how often to evaluate and to write a checkpoint follows from
// counts.
//
// # Heads
//
// Multiclass labels train by softmax and cross-entropy over the classes; binary ones by
// the logistic loss of one logit, that of the second class; multilabel ones by the
// logistic loss of a logit a class. Unlabelled nodes never count.
package run
