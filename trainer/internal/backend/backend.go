// Package backend is the line between the trainer and the machine that computes.
//
// A model is written once, in about a dozen layer-sized operations over device
// matrices (package model); a Backend runs them: backend/cpu here, a CUDA one behind
// its build tag. Topology arrives as plain host slices (Block, Coef) that the feed cut
// out of a batch file; a backend reads them and never makes them.
//
// The rules every implementation keeps, checked by backend/conformance:
//
//   - A Backend is one stream of work. Operations take effect in call order and may
//     run later than the call (Sync waits). It is not safe for concurrent use.
//   - Host slices given to an operation (indices, coefficients, labels, masks) must stay
//     unchanged until Sync returns or, with a device, until the feed's event for that
//     buffer has passed. A device backend may recognise a slice that lies inside a buffer it
//     has already copied by its address; so neither model nor feed needs a device type.
//   - The first failure is kept: operations after it do nothing, and Sync, Download and
//     TakeLoss return it, for ever. Nothing computed since then may be used. A file fault
//     (SIGBUS) while reading a mapped input is such a failure, a *Fault.
//   - A shape mismatch is a bug of ours and panics, naming the package.
//   - Outputs are overwritten unless an operation says that it accumulates. An output must
//     not overlap an input unless the operation says that it may.
//   - Results are the same bits for any number of threads, on one KernelSet.
//   - After warm-up an operation allocates nothing.
package backend

import "fmt"

// Backend is one compute device with its memory. See the package comment for the rules.
type Backend interface {
	// Name says what computes: "cpu", "cuda:0".
	Name() string
	// KernelSet names the twin of the kernels in use ("go", "avx2", ...); results are
	// bit-identical within one set only, so a checkpoint records it.
	KernelSet() string
	// Sync waits for all work and returns the first failure since the backend was made.
	Sync() error
	// Close ends the backend and its goroutines; every matrix of it is dead afterwards.
	Close() error

	// Alloc returns a zeroed matrix that lives until Free (parameters, moments, tables).
	Alloc(rows, cols int) Matrix
	// Free gives back a matrix of Alloc; views of it die with it.
	Free(m Matrix)
	// Scratch returns a matrix with unspecified contents from the step's arena; it lives
	// until ResetScratch. Once the arena has grown to a step's need this costs nothing.
	Scratch(rows, cols int) Matrix
	// ResetScratch ends the life of everything that Scratch returned.
	ResetScratch()
	// Wrap makes a matrix of the caller's row-major memory, len(data) = rows*cols. The
	// CPU works in place, on a mapped file too (read-only if the mapping is: then it may be
	// an input only). data must outlive the matrix; a device keeps data current at Sync.
	Wrap(data []float32, rows, cols int) Matrix
	// Upload copies row-major src, len(src) = m.Rows*m.Cols, into m.
	Upload(m Matrix, src []float32)
	// Download waits, then copies m into row-major dst, len(dst) = m.Rows*m.Cols.
	Download(dst []float32, m Matrix) error

	// Zero sets m to 0.
	Zero(m Matrix)
	// Copy sets dst to src, of the same shape.
	Copy(dst, src Matrix)
	// Scale computes m = a*m.
	Scale(m Matrix, a float32)
	// Add computes y += a*x, of the same shape; x may be y.
	Add(y Matrix, a float32, x Matrix)
	// Gather computes out[i,:] = table[rows[i],:]; len(rows) = out.Rows, repeats allowed.
	// The rows must be inside the table: the loader has checked them.
	Gather(out, table Matrix, rows []int32)
	// GEMM computes out = op(a)*op(b), or out += with accumulate; a sum over no elements
	// is 0. Terms are added in the order of the inner index. Where an element of a is 0 a
	// backend may skip its term, so Inf and NaN in b need not show.
	GEMM(form Form, accumulate bool, out, a, b Matrix)
	// SpMM computes out = the block's weighted neighbour sum of x, see Block and Coef:
	// out[d] = Dst[d]*Importance[d] * sum over e in row d of Edge[e]*Src[s]*x[s] + Self[d]*x[DstStart+d]
	// with s = Indices[e], terms in edge order. x is [NumSrc, F], out [NumDst, F]. A row with no
	// edge and no self term is 0.
	SpMM(out Matrix, blk *Block, c *Coef, x Matrix)
	// SpMMBackward computes the gradient of SpMM to its x over the stored transpose:
	// dx[s] = Src[s] * sum over t in transposed row s of Edge[TEdge[t]]*Dst[d]*Importance[d]*dout[d]
	// + Self[s]*dout[s] for s < NumDst, with d = TIndices[t], terms in the transpose's order.
	// The block must have its transpose and DstStart 0.
	SpMMBackward(dx Matrix, blk *Block, c *Coef, dout Matrix)
	// BiasAct computes out = drop(act(x + bias)): bias [1, cols] added to each row (the zero
	// Matrix: none), then ReLU, then dropout, as e asks. out may be x.
	BiasAct(out, x, bias Matrix, e Epilogue)
	// BiasActBackward computes dx from dout and out, what BiasAct gave with the same e. The
	// mask isn't kept: with ReLU, out > 0 marks what passed; without, it is drawn again.
	// dx may be dout.
	BiasActBackward(dx, dout, out Matrix, e Epilogue)
	// Dropout computes out = x where d keeps the element, scaled by d.Scale, else 0. It is
	// its own backward. out may be x.
	Dropout(out, x Matrix, d Drop)
	// ColSums computes out[0,c] = sum over r of x[r,c], in fixed chunks of rows added in
	// order. out is [1, cols]; no rows give 0.
	ColSums(out, x Matrix)
	// SoftmaxCE is softmax and cross-entropy of t.Class over the counted rows (see Targets).
	// dlogits = (softmax - onehot) / count on them and 0 elsewhere, 0 everywhere when nothing
	// counts. The sum of the losses and the count are added to what TakeLoss gives.
	// dlogits may be logits, or the zero Matrix when no gradient is wanted.
	SoftmaxCE(dlogits, logits Matrix, t *Targets)
	// SigmoidBCE is the logistic loss of each element against t.Bits (or of one column
	// against t.Class) over the counted elements; else as SoftmaxCE. Here count is elements,
	// not rows, so that sum/count is PyTorch's BCEWithLogitsLoss.
	SigmoidBCE(dlogits, logits Matrix, t *Targets)
	// TakeLoss waits, then returns the sum of losses and the count since the last call
	// and starts again from zero. The mean loss is sum/count.
	TakeLoss() (sum float64, count int64, err error)
	// Adam makes one step of Adam or AdamW on p with its moments m and v and gradient g.
	Adam(p, m, v, g Matrix, s AdamStep)
}

// Form is which factors of a GEMM are transposed. Matrices are stored row-major.
type Form uint8

// The three forms that training needs.
const (
	NN Form = iota // out[m,n] = a[m,k] * b[k,n]: forward
	TN             // out[m,n] = a[k,m]ᵀ * b[k,n]: gradient of weights
	NT             // out[m,n] = a[m,k] * b[n,k]ᵀ: gradient of inputs
)

func (f Form) String() string { return [...]string{"NN", "TN", "NT"}[f] }

// Shape returns the output shape and the inner dimension of a GEMM and panics where
// the operands don't fit.
func (f Form) Shape(out, a, b Matrix) (m, n, k int) {
	var kb int
	switch f {
	case NN:
		m, k, kb, n = a.Rows, a.Cols, b.Rows, b.Cols
	case TN:
		k, m, kb, n = a.Rows, a.Cols, b.Rows, b.Cols
	case NT:
		m, k, n, kb = a.Rows, a.Cols, b.Rows, b.Cols
	default:
		panic(fmt.Sprintf("backend: GEMM form %d is unknown", f))
	}
	if k != kb || out.Rows != m || out.Cols != n {
		panic(fmt.Sprintf("backend: GEMM %s: out %v, a %v, b %v don't fit", f, out, a, b))
	}
	return m, n, k
}

// Epilogue is what follows a layer's product.
type Epilogue struct {
	ReLU bool
	Drop Drop
}

// AdamStep holds the numbers of one optimiser step (Kingma and Ba 2015; decoupled decay:
// Loshchilov and Hutter 2019), with PyTorch's arrangement:
//
//	g += WeightDecay*p          (L2; skipped when Decoupled)
//	p *= 1 - LR*WeightDecay     (only when Decoupled)
//	m = Beta1*m + (1-Beta1)*g
//	v = Beta2*v + (1-Beta2)*g*g
//	p -= LR/(1-Beta1^Step) * m / (sqrt(v)/sqrt(1-Beta2^Step) + Eps)
type AdamStep struct {
	LR, Beta1, Beta2, Eps float64
	WeightDecay           float64
	Decoupled             bool
	Step                  int64 // counted from 1
}

// Targets are the labels of the rows of a batch's logits: Class for softmax and for
// one-column logistic loss, Bits for several columns.
type Targets struct {
	// Class [rows]; a negative one is unlabelled and never counted.
	Class []int32
	// Bits [rows, cols], one byte an element: 0 or 1; any other value is unlabelled and
	// never counted.
	Bits []uint8
	// Mask [rows]; a row counts where it is not 0. nil: every row.
	Mask []uint8
}

// Counts reports whether row r is in the mask.
func (t *Targets) Counts(r int) bool { return t.Mask == nil || t.Mask[r] != 0 }

// Fault is a memory fault while reading host memory under an operation: the mapped
// file was truncated, or its disk failed.
type Fault struct {
	Op   string  // the operation that read
	Addr uintptr // the address, inside one of its inputs
}

func (f *Fault) Error() string {
	return fmt.Sprintf("backend: memory fault at %#x in %s: a mapped input file was truncated or can't be read", f.Addr, f.Op)
}
