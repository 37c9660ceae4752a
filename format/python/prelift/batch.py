"""A batch or an evaluation block: what a model reads and is held against."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .blocks import Block
from .container import Record
from .errors import LayoutError, MismatchError
from .layout import ANY_LAYER, Part, Space
from .rows import to_float32

if TYPE_CHECKING:
    from .batchset import BatchSet


@dataclass(frozen=True)
class Pairs:
    """Pairs of nodes with their targets, in the record's index space."""

    src: np.ndarray  # i32 [pairs]
    dst: np.ndarray  # i32 [pairs]
    rel: np.ndarray | None  # i32 [pairs]
    label: np.ndarray | None  # f32 [pairs]
    weight: np.ndarray | None  # f32 [pairs]


class Batch:
    """One record of a batch set. Arrays are read-only: views of the mapped files, decoded where those hold them coded, but for what a method says it makes."""

    def __init__(self, set: "BatchSet", record: Record) -> None:
        self._set, self.record = set, record
        self.number, self.variant = record.number, record.variant
        self.split, self.num_layers = record.split, record.num_layers
        self.num_nodes, self.num_seeds = record.num_nodes, record.num_seeds
        self.hop_nodes = record.hop_nodes
        self.local = record.space == Space.LOCAL

    def __repr__(self) -> str:
        return f"Batch({self.number}, variant {self.variant}, {self.num_seeds} seeds, {self.num_nodes} nodes, {self.num_layers} layers)"

    # Nodes.

    @cached_property
    def nodes(self) -> np.ndarray:
        """Node numbers of the batch's nodes, seeds first: i32 [num_nodes]. In a global record all numbers."""
        numbers = self.record.array("nodes.number")
        return np.arange(self.num_nodes, dtype=np.int32) if numbers is None else numbers

    @property
    def seeds(self) -> np.ndarray:
        """Node numbers of the seeds: i32 [num_seeds]."""
        return self.nodes[self.record.dst_start:self.record.dst_start + self.num_seeds]

    @property
    def node_type(self) -> np.ndarray | None:
        """i32 [num_nodes]"""
        return self.record.array("nodes.type")

    def external_ids(self) -> list[bytes]:
        """The external ids of ``nodes``."""
        return self._set.ids.take(self.nodes)

    # Blocks.

    def layers(self, num_layers: int | None = None) -> list[Block]:
        """The blocks of a model of num_layers layers, input side first; all that the batch has, or its one block, without a number.

        With fewer layers than the batch has these are its last blocks; where a block serves any depth it is repeated.
        MismatchError where the batch has fewer.
        """
        if self.num_layers == 0:
            return [self._block(ANY_LAYER)] * (1 if num_layers is None else num_layers)
        k = self.num_layers if num_layers is None else num_layers
        if k > self.num_layers:
            raise MismatchError(self.record.place, f"{self.num_layers} layers, the model has {k}; write the set with a fanout for each layer")
        return [self._block(layer) for layer in range(self.num_layers - k, self.num_layers)]

    @property
    def blocks(self) -> list[Block]:
        return self.layers()

    def _block(self, layer: int) -> Block:
        coefs = self._set.coefs if self.record.space == Space.GLOBAL else None
        return Block(self.record, layer, self._set.norm, coefs)

    def num_input(self, num_layers: int | None = None) -> int:
        """How many of the nodes a model of num_layers layers reads: the first hops; of a block of any depth all, or without layers the seeds."""
        if self.local and num_layers == 0:
            return self.num_seeds
        if not self.local or num_layers is None or self.num_layers == 0:
            return self.num_nodes
        return self.hop_nodes[num_layers] if num_layers < self.num_layers else self.num_nodes

    def edges_by_hop(self, layer: int) -> list[int]:
        """Edges of the block of a layer by the hop of their dst."""
        return self.record.layer_edges[layer]

    # Features.

    def features(self, num_layers: int | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Feature rows of the nodes that a model of num_layers layers reads, f32 [num_input, columns].

        A view where they lie in the file as they are (float32 rows of the batch's own, or the whole table); else gathered and converted, into
        out if it is given. MismatchError where the set has no features, or not the table.
        """
        n = self.num_input(num_layers)
        own, row = self.record.find("table.rows"), self.record.array("nodes.row")
        if row is None:
            if own is not None:
                return self._own(slice(0, n), out)
            numbers = None if not self.local else self.nodes[:n]
            return self._set.feature_rows(numbers, out)
        table = self.record.array("nodes.table")
        if table is None:
            return self._set.feature_rows(row[:n], out)
        row, table = row[:n], table[:n]
        if out is None:
            out = np.empty((n, self._set.num_features if own is None else own.shape[1]), np.float32)
        for number in range(4):
            at = np.flatnonzero(table == number)
            if not at.size:
                continue
            if number == 0:
                out[at] = self._set.feature_rows(row[at], None)
            else:
                of = self.record if number == 1 else self._set.shared_rows(number, self.number)
                assert of is not None  # check_across has seen to it
                out[at] = rows_of(of, row[at], None)
        return out

    def _own(self, rows: Any, out: np.ndarray | None) -> np.ndarray:
        return rows_of(self.record, rows, out)

    # Targets.

    @property
    def labels(self) -> np.ndarray | None:
        """Targets of the seeds: i32 [seeds], -1 = none; or u8 [seeds, classes], 255 = none; or f32 [seeds, targets], NaN = none."""
        return self.record.array("seeds.label")

    @property
    def mask(self) -> np.ndarray | None:
        """Part of each seed in each split, u8 [seeds, splits]: 0 none, 1 train, 2 valid, 3 test."""
        return self.record.array("seeds.mask")

    @property
    def seed_weight(self) -> np.ndarray | None:
        """Weight of each seed in the loss, f32 [seeds]; None: all 1."""
        return self.record.array("seeds.weight")

    def in_part(self, part: Part | str, column: int = 0) -> np.ndarray:
        """Which seeds are in a part of a split column: bool [seeds]. Without masks all are of the batch's own part."""
        p = Part[part.upper()] if isinstance(part, str) else Part(part)
        mask = self.mask
        if mask is None:
            own = self.split if self.split != Part.NONE else Part.TRAIN
            return np.full(self.num_seeds, own == p)
        if not 0 <= column < mask.shape[1]:
            raise MismatchError(self.record.place, f"split column {column} of {mask.shape[1]}")
        return mask[:, column] == p

    @property
    def pairs(self) -> Pairs | None:
        """Pairs of a batch of task link; None without."""
        src, dst = self.record.array("pairs.src"), self.record.array("pairs.dst")
        if src is None or dst is None:
            return None
        return Pairs(src, dst, self.record.array("pairs.rel"), self.record.array("pairs.label"), self.record.array("pairs.weight"))

    def kge(self) -> dict[str, np.ndarray]:
        """The kge sections by the word behind the dot."""
        names = [s.name for s in self.record.sections if s.name.startswith("kge.")]
        return {name[4:]: a for name in names if (a := self.record.array(name)) is not None}

    # Frameworks. Each is imported when it is asked for.

    def torch(self, **options: Any) -> Any:
        """The batch as tensors: see adapters.torch.tensors."""
        from .adapters import torch as adapter
        return adapter.tensors(self, **options)

    def to_pyg(self, **options: Any) -> Any:
        """The batch as a torch_geometric Data: see adapters.pyg.data."""
        from .adapters import pyg
        return pyg.data(self, **options)

    def to_dgl(self, **options: Any) -> Any:
        """(input_nodes, output_nodes, blocks) as DGL's DataLoader gives them: see adapters.dgl.blocks."""
        from .adapters import dgl
        return dgl.blocks(self, **options)


def rows_of(r: Record, rows: Any, out: np.ndarray | None) -> np.ndarray:
    """Rows of a record's table.rows, as float32."""
    s = r.find("table.rows")
    assert s is not None
    return to_float32(r.array("table.rows")[rows], s.dtype, r.array("table.scale"), out)  # type: ignore[index]


def check_across(batch: Batch, num_nodes: int, num_classes: int, table_rows: int | None) -> None:
    """SPEC 9.4 for a verified record: what other files bound."""
    r = batch.record
    check_shared(batch)

    def bound(name: str, high: int, where: np.ndarray | None = None) -> None:
        a = r.array(name)
        if a is None or a.size == 0:
            return
        if where is not None:
            a = np.where(where, a, 0)
        if int(a.max()) >= high:
            k = int(np.argmax(a >= high))
            raise LayoutError(f"{r.place}: section {name}", f"element {k} is {a.flat[k]}, must be below {high}")
    bound("nodes.number", num_nodes)
    if r.space == Space.GLOBAL and r.num_nodes != num_nodes:
        raise LayoutError(r.place, f"{r.num_nodes} nodes, the manifest says {num_nodes}")
    if (label := r.find("seeds.label")) is not None and len(label.shape) == 1:
        bound("seeds.label", num_classes)
    if table_rows is not None:
        table = r.array("nodes.table")
        bound("nodes.row", table_rows, None if table is None else table == 0)


def check_shared(batch: Batch) -> None:
    """That rows which a batch shares with others are there, and its nodes'."""
    r = batch.record
    row, table = r.array("nodes.row"), r.array("nodes.table")
    if row is None or table is None or r.space == Space.GLOBAL:
        return
    for number in (2, 3):
        at = np.flatnonzero(table == number)
        if not at.size:
            continue
        shared = batch._set.shared_rows(number, batch.number)
        numbers = None if shared is None else shared.array("nodes.number")
        if numbers is None:
            raise LayoutError(r.place, f"node {at[0]} has its features in table {number}, which the set doesn't have")
        if (beyond := np.flatnonzero(row[at] >= len(numbers))).size:
            raise LayoutError(r.place, f"node {at[beyond[0]]} has row {row[at[beyond[0]]]} of table {number}, which has {len(numbers)}")
        if (other := np.flatnonzero(numbers[row[at]] != batch.nodes[at])).size:
            raise LayoutError(r.place, f"node {at[other[0]]} has row {row[at[other[0]]]} of table {number}, which is another node's")
