"""What tables of one record hold: external ids both ways, lists of names (SPEC 6)."""

from __future__ import annotations

import re
from typing import Iterable, Iterator

import numpy as np

_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")


class Names:
    """A list of byte strings: views of offsets [n+1] and bytes. ``names[k]`` is bytes, ``names.text(k)`` a str."""

    def __init__(self, offsets: np.ndarray, data: np.ndarray) -> None:
        self._offsets, self._data = offsets, data

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, k: int) -> bytes:
        k = int(k)
        if not 0 <= k < len(self):
            raise IndexError(f"{k} of {len(self)} names")
        return self._data[self._offsets[k]:self._offsets[k + 1]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return (self[k] for k in range(len(self)))

    def text(self, k: int) -> str:
        """Name k as a str; bytes that are no UTF-8 become lone surrogates (os.fsdecode's way), so nothing is lost."""
        return self[k].decode("utf-8", "surrogateescape")

    def texts(self) -> list[str]:
        return [self.text(k) for k in range(len(self))]

    def take(self, numbers: Iterable[int]) -> list[bytes]:
        return [self[k] for k in numbers]


class Ids(Names):
    """The external ids by node number, and back. ``ids[v]`` is bytes, ``ids.number(id)`` a node number.

    ``keys`` [N] u64 are the nodes' keys (SPEC 8), None where the file has none.
    """

    def __init__(self, offsets: np.ndarray, data: np.ndarray, keys: np.ndarray | None = None) -> None:
        super().__init__(offsets, data)
        self.keys = keys

    def number(self, id: bytes | str | int) -> int:
        """The number of the node with this external id; KeyError where there is none. Cost: O(log N)."""
        wanted = id if isinstance(id, bytes) else str(id).encode("utf-8", "surrogateescape")
        # The collation is a property of the ids (SPEC 6), which a batch set doesn't repeat: the numeric one only where all ids are
        # canonical integers. A hit of either search is right, whatever the order is.
        for as_integers in (True, False):
            v = self._search(wanted, as_integers)
            if v is not None:
                return v
        raise KeyError(id)

    def numbers(self, ids: Iterable[bytes | str | int]) -> np.ndarray:
        """Node numbers of many external ids, i32. KeyError names the first that isn't there."""
        return np.fromiter((self.number(i) for i in ids), np.int32)

    def _search(self, wanted: bytes, as_integers: bool) -> int | None:
        if as_integers and not _INTEGER.fullmatch(wanted):
            return None
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            name = self[middle]
            if as_integers and not _INTEGER.fullmatch(name):
                return None
            if (int(name) < int(wanted)) if as_integers else (name < wanted):
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self[low] == wanted else None
