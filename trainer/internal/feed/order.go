package feed

import (
	"math/bits"

	"github.com/prelift/prelift/trainer/internal/backend"
)

// orderWord sets the draws of the batch order apart from all others of the same seed.
const orderWord = 0x6f72646572 // "order"

// Order returns the order in which an epoch takes its n batches: a shuffle (Fisher and
// Yates) that is a pure function of seed and epoch.
func Order(seed uint64, epoch, n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	key := backend.Key(orderWord, seed, uint64(epoch))
	for i := n - 1; i > 0; i-- {
		// The high word of a product with i+1 is uniform in 0..i but for a bias of 2^-32 at most.
		j, _ := bits.Mul64(backend.Mix64(key+backend.Golden*uint64(i)), uint64(i+1))
		order[i], order[j] = order[j], order[i]
	}
	return order
}
