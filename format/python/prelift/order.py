"""The order in which an epoch takes its batches, SPEC 8.1."""

from __future__ import annotations

import numpy as np

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 0x6F72646572  # "order"


def mix(z: int) -> int:
    """SplitMix64's output function on a 64-bit word."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31


def epoch_order(seed: int, epoch: int, n: int) -> np.ndarray:
    """A permutation of 0 to n-1, int64 [n]: a pure function of seed and epoch, the trainer's own."""
    key = 0
    for word in (_WORD, seed, epoch):
        key = mix((key + _GOLDEN + word) & _MASK)
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = mix((key + _GOLDEN * i) & _MASK) * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)
