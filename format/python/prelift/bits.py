"""Codec bits, SPEC 10.2: integers in blocks of 128, each less the block's base, in as many bits as the block needs."""

from __future__ import annotations

import numpy as np

BLOCK = 128
MAX_WIDTH = 32


def directory_bytes(n: int, itemsize: int) -> int:
    """Bytes of the bases and widths of n numbers."""
    return -(-n // BLOCK) * (itemsize + 1)


class Coded:
    """A coded array [n] of i32 or i64, decoded as far as it is asked for: ``a[i]``, ``a[i:j]``, or all of it by ``a[:]``.

    stored: the section's bytes, at least those of bases and widths. ValueError where its widths don't fit them (C49 of SPEC 9.3).
    """

    def __init__(self, stored: np.ndarray, dtype: np.dtype, n: int) -> None:
        self.dtype, self._n = dtype, n
        blocks = -(-n // BLOCK)
        self._base = stored[:blocks * dtype.itemsize].view(dtype.str.replace("i", "u"))
        width = stored[blocks * dtype.itemsize:directory_bytes(n, dtype.itemsize)]
        if blocks and width.max() > MAX_WIDTH:
            k = int(np.argmax(width > MAX_WIDTH))
            raise ValueError(f"block {k} has {width[k]} bits a number, at most {MAX_WIDTH} are allowed")
        self._width = width.astype(np.int64)
        self._packed = stored[directory_bytes(n, dtype.itemsize):]
        self._start = np.zeros(blocks + 1, np.int64)  # of each block in packed
        np.cumsum(self._width * (BLOCK // 8), out=self._start[1:])
        fill = 0
        if blocks:
            used = (n - (blocks - 1) * BLOCK) * int(width[-1])  # bits of the last block
            self._start[-1] = self._start[-2] + -(-used // 8)
            fill = used % 8
        if self._start[-1] != len(self._packed):
            raise ValueError(f"{len(self._packed)} bytes of packed numbers, its widths give {self._start[-1]}")
        if fill and int(self._packed[-1]) >> fill:
            raise ValueError("bits behind the last number aren't zero")

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, at: int | slice) -> np.ndarray:
        if isinstance(at, slice):
            low, high, step = at.indices(self._n)
            if step < 0:
                raise ValueError("a coded array is read forward")
            return self._decode(low, max(low, high))[::step]
        i = at + self._n if at < 0 else at
        if not 0 <= i < self._n:
            raise IndexError(f"element {at} of {self._n}")
        return self._decode(i, i + 1)[0]

    def _decode(self, low: int, high: int) -> np.ndarray:
        """The elements low to high-1, in new memory."""
        if low == high:
            return np.empty(0, self.dtype)
        first, last = low // BLOCK, -(-high // BLOCK)
        base, width, start = self._base[first:last, None], self._width[first:last], self._start[first:last] - self._start[first]
        # Each number is part of the 8 bytes from the byte it begins in, and the last block is taken as a whole one.
        packed = np.zeros(int(start[-1] + width[-1] * (BLOCK // 8)) + 8, np.uint8)
        there = self._packed[self._start[first]:self._start[last]]
        packed[:len(there)] = there
        words = np.ndarray(len(packed) - 7, "<u8", packed, strides=(1,))
        out = np.empty((last - first, BLOCK), self._base.dtype)
        for w in np.unique(width).tolist():
            blocks, bit = np.flatnonzero(width == w), np.arange(BLOCK) * w
            number = words[start[blocks, None] + (bit >> 3)]
            number >>= (bit & 7).astype(np.uint64)
            number &= np.uint64((1 << w) - 1)
            out[blocks] = base[blocks] + number.astype(out.dtype)  # unsigned sums wrap around
        return out.reshape(-1)[low - first * BLOCK:high - first * BLOCK].view(self.dtype)
