"""The hop index of SPEC 5.5: a node's neighbours, compressed by degree."""

from __future__ import annotations

import numpy as np

from .container import Record
from .errors import LayoutError, MissingError

_CHUNK = 128  # neighbours of each chunk but a row's last


def run_bytes(count: int, universe: int) -> tuple[int, int, int]:
    """(low bits of a number, bits of the high part, bytes) of a run of count numbers below universe; count is 1 to universe."""
    low = (universe // count).bit_length() - 1
    high = count + ((universe - 1) >> low)
    return low, high, (high + count * low + 7) // 8


def decode_run(data: np.ndarray, count: int, universe: int) -> np.ndarray:
    """The count strictly ascending numbers below universe of a run (Elias-Fano code), i64. data is u8 and begins with the run; ValueError where it is none."""
    if not 0 < count <= universe:
        raise ValueError(f"a run of {count} numbers below {universe}")
    low, high, size = run_bytes(count, universe)
    if len(data) < size:
        raise ValueError(f"a run of {size} bytes, {len(data)} are left")
    bits = np.unpackbits(data[:size], bitorder="little")
    ones = np.flatnonzero(bits[:high])
    if len(ones) != count or bits[high + count * low:].any():
        raise ValueError(f"{len(ones)} numbers in a run of {count}, or bits behind it")
    numbers = (ones - np.arange(count)) << low
    if low:
        numbers |= bits[high:high + count * low].reshape(count, low).astype(np.int64) @ (1 << np.arange(low, dtype=np.int64))
    if numbers[-1] >= universe or (np.diff(numbers) <= 0).any():
        raise ValueError(f"numbers of a run don't ascend below {universe}")
    return numbers


class HopIndex:
    """Random access to the neighbours of nodes, themselves left out. What a row consists of is checked whenever it is read."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.num_nodes = record.num_nodes

    def _get(self, name: str) -> np.ndarray:
        a = self._record.array("hop1." + name)
        if a is None:
            raise MissingError(self._record.place, f"no section hop1.{name}")
        return a

    def row(self, v: int) -> np.ndarray:
        """Neighbours of node v, ascending: i32."""
        if not 0 <= v < self.num_nodes:
            raise IndexError(f"node {v} of {self.num_nodes}")
        code, group, offset = int(self._get("code")[v]), v // 32, int(self._get("offset")[v])
        try:
            if code == 0:
                return np.empty(0, np.int32)
            if code < 255:
                at = int(self._get("group_start")[group]) + offset
                return decode_run(self._get("compact")[at:-8], code, self.num_nodes).astype(np.int32)
            return self._large(int(self._get("group_large")[group]) + offset)
        except (ValueError, IndexError) as e:
            raise LayoutError(f"{self._record.place}: hop 1 of node {v}", str(e)) from None

    def _large(self, r: int) -> np.ndarray:
        chunk, base, start, data = self._get("large_chunk"), self._get("chunk_base"), self._get("chunk_start"), self._get("large")
        if r >= len(chunk) - 1:
            raise ValueError(f"large row {r} of {len(chunk) - 1}")
        first, last, at = int(chunk[r]), int(chunk[r + 1]) - 1, int(self._get("large_start")[r])
        parts = []
        for k in range(first, last + 1):
            end = int(base[k + 1]) if k < last else self.num_nodes
            count = _CHUNK if k < last else int(self._get("large_last")[r]) + 1
            numbers = decode_run(data[at + int(start[k]):-8], count, end - int(base[k]))
            if numbers[0] != 0:
                raise ValueError(f"chunk {k} begins with {numbers[0] + base[k]}, its base is {base[k]}")
            parts.append(numbers + int(base[k]))
        return np.concatenate(parts).astype(np.int32) if parts else np.empty(0, np.int32)

    def directory(self, v: int) -> tuple[int, np.ndarray] | None:
        """(shift, entries) of a hub's directory: entry b is the last chunk of the row whose base is at most b << shift. None for other rows."""
        if self._get("code")[v] != 255:
            return None
        r = int(self._get("group_large")[v // 32]) + int(self._get("offset")[v])
        shift = int(self._get("large_shift")[r])
        if shift == 255:
            return None
        n, at = ((self.num_nodes - 1) >> shift) + 1, int(self._get("large_start")[r])
        return shift, np.frombuffer(self._get("large")[at:at + 4 * n].tobytes(), "<u4")
