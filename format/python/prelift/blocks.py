"""Blocks of SPEC 5.2 with their coefficients (5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .container import Record
from .errors import LayoutError, MismatchError
from .layout import ANY_LAYER, Coef, Space


@dataclass(frozen=True)
class Transpose:
    """A block by src: edges that leave src s are indptr[s] to indptr[s+1]-1 of the others."""

    indptr: np.ndarray  # i64 [num_src+1]
    indices: np.ndarray  # i32 [edges], dst of each
    edge: np.ndarray | None  # i64 [edges], position of each in the block's indices
    rel: np.ndarray | None  # i32 [edges]


@dataclass(frozen=True)
class Coefficients:
    """Factors of one kind for a block. None is all ones, for self_ all zeros.

    weight of edge e, src -> dst = dst[d] * importance[d] * edge[e] * src[indices[e]]; of d's own row self_[d].
    """

    src: np.ndarray | None  # f32 [num_src]
    dst: np.ndarray | None  # f32 [num_dst]
    self_: np.ndarray | None  # f32 [num_dst]
    edge: np.ndarray | None  # f32 [edges]
    importance: np.ndarray | None  # f32 [num_dst]


def coef_kind(kind: str | Coef) -> Coef:
    """A coefficient kind by its name in SPEC 5.3. ValueError for other words."""
    try:
        return Coef(kind) if isinstance(kind, int) else Coef[kind.upper()]
    except (KeyError, ValueError):
        raise ValueError(f"{kind!r} is no coefficient kind; there are {', '.join(c.name.lower() for c in Coef)}") from None


class Block:
    """One layer's bipartite graph in CSR: messages go src -> dst, row d has the src of dst d.

    Arrays are read-only views of the mapped file, or decoded where it holds them coded. In a local block the dst are the first num_dst src; in a global one src are node numbers
    and dst d is node dst_start + d.
    """

    def __init__(self, record: Record, layer: int, kinds: list[str] | None = None, coefs: Record | None = None) -> None:
        """kinds: the coefficient kinds that the set has, None for any. coefs: the table of factors over all nodes, for evaluation blocks."""
        self._record, self._section, self._kinds, self._coefs = record, layer, kinds, coefs
        self.num_dst, self.num_src = record.block_size(layer)
        self.dst_start = record.dst_start
        indptr, indices = record.array("block.indptr", layer), record.array("block.indices", layer)
        if indptr is None or indices is None:
            raise LayoutError(record.place, "no block")
        self.indptr, self.indices = indptr, indices  # i64 [num_dst+1], i32 [edges]

    @property
    def num_edges(self) -> int:
        return len(self.indices)

    def _get(self, name: str) -> np.ndarray | None:
        return self._record.array(name, self._section)

    @property
    def rel(self) -> np.ndarray | None:
        """Relation of each edge, i32 [edges]; None in a graph of one relation. Made of relptr where the block has only that."""
        rel = self._get("block.rel")
        if rel is None and (relptr := self.relptr) is not None and self.num_dst:
            rels = (len(relptr) - 1) // self.num_dst
            rel = np.repeat(np.tile(np.arange(rels, dtype=np.int32), self.num_dst), np.diff(relptr))
        return rel

    @property
    def relptr(self) -> np.ndarray | None:
        """i64 [num_dst*rels+1]: edges of dst d and relation r are relptr[d*rels+r] to relptr[d*rels+r+1]-1."""
        return self._get("block.relptr")

    @property
    def weight(self) -> np.ndarray | None:
        """Weight of each edge in the input, f32 [edges]; None: all 1."""
        return self._get("block.weight")

    @property
    def edge_id(self) -> np.ndarray | None:
        return self._get("block.edge_id")

    @property
    def time(self) -> np.ndarray | None:
        return self._get("block.time")

    @property
    def transpose(self) -> Transpose | None:
        indptr, indices = self._get("transpose.indptr"), self._get("transpose.indices")
        if indptr is None or indices is None:
            return None
        return Transpose(indptr, indices, self._get("transpose.edge"), self._get("transpose.rel"))

    @cached_property
    def dst(self) -> np.ndarray:
        """dst of each edge as a row number, i32 [edges]. Made, not stored."""
        return np.repeat(np.arange(self.num_dst, dtype=np.int32), np.diff(self.indptr))

    def edge_index(self) -> np.ndarray:
        """i64 [2, edges]: src and dst of each edge."""
        return np.stack([self.indices, self.dst]).astype(np.int64)

    def coefficients(self, kind: str | Coef) -> Coefficients:
        """The factors of a kind. MismatchError where the set wasn't written with it (``precompute batches --norm``)."""
        c = coef_kind(kind)
        if c != Coef.NONE and self._kinds is not None and c.name.lower() not in self._kinds:
            raise MismatchError(self._record.place, f"no coefficients {c.name.lower()}, the set has {', '.join(self._kinds)}; write it with --norm {','.join([*self._kinds, c.name.lower()])}")
        if c == Coef.NONE:
            return Coefficients(None, None, None, None, self._importance())
        return Coefficients(self._factor("coef.src", c), self._factor("coef.dst", c), self._factor("coef.self", c),
                            self._record.array("coef.edge", self._section, c), self._importance())

    def _importance(self) -> np.ndarray | None:
        for layer in dict.fromkeys((self._section, ANY_LAYER)):
            if (a := self._record.array("coef.importance", layer)) is not None:
                return a[:self.num_dst]
        return None

    def _factor(self, name: str, c: Coef) -> np.ndarray | None:
        if self._section != ANY_LAYER and (own := self._record.array(name, self._section, c)) is not None:
            return own
        for record in (self._record, self._coefs):
            if record is not None and (nodes := record.array(name, ANY_LAYER, c)) is not None:
                if name == "coef.src":
                    return nodes[:self.num_src]
                return nodes[self.dst_start:self.dst_start + self.num_dst]  # dst_start is 0 in a local record
        return None

    def edge_weight(self, kind: str | Coef) -> np.ndarray:
        """Coefficient of each edge, importance included: f32 [edges]."""
        c = self.coefficients(kind)
        w = np.ones(self.num_edges, np.float32) if c.edge is None else c.edge.copy()
        if c.src is not None:
            w *= c.src[self.indices]
        for factor in (c.dst, c.importance):
            if factor is not None:
                w *= factor[self.dst]
        return w

    def self_weight(self, kind: str | Coef) -> np.ndarray:
        """Coefficient of each dst's own row: f32 [num_dst]."""
        c = self.coefficients(kind)
        return np.zeros(self.num_dst, np.float32) if c.self_ is None else c.self_

    def aggregate(self, x: np.ndarray, kind: str | Coef) -> np.ndarray:
        """SPEC 5.3's sum for x [num_src, dim]: [num_dst, dim], in x's type. Slow; for checks."""
        w, out = self.edge_weight(kind), np.zeros((self.num_dst, x.shape[1]), x.dtype)
        np.add.at(out, self.dst, w[:, None] * x[self.indices])
        return out + self.self_weight(kind)[:, None] * x[self.dst_start:self.dst_start + self.num_dst]

    def __repr__(self) -> str:
        where = "" if self._record.space == Space.LOCAL else f", dst from {self.dst_start}"
        return f"Block({self.num_src} src -> {self.num_dst} dst, {self.num_edges} edges{where})"
