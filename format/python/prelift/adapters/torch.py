"""Batches as tensors, and a data set for torch's DataLoader.

Tensors are views of the mapped files (torch.from_numpy), where the arrays are. The mapping is private: writing to such a tensor changes
nothing on disk, but it is seen by later uses of the same batch in this process. Take ``copy=True`` to have tensors of your own.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Callable, Iterator

import numpy as np
import torch
import torch.utils.data

from ..batch import Batch
from ..batchset import BatchSet
from ..blocks import Block
from ..layout import ANY_SPLIT, Coef, Part


def tensor(a: np.ndarray, copy: bool = False) -> torch.Tensor:
    """a as a tensor without a copy, unless asked for. A read-only view of a mapped file is as good as any: its pages are copied on write."""
    if copy:
        return torch.from_numpy(np.array(a))
    if not a.flags.writeable:
        a = _writable(a)
    return torch.from_numpy(a)


def _writable(a: np.ndarray) -> np.ndarray:
    """The same memory without the read-only flag, which torch has no word for (it warns). A copy where the memory is read-only itself."""
    base: Any = a
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    if isinstance(base, np.ndarray) or memoryview(base).readonly or not a.flags.c_contiguous or a.size == 0:
        return np.array(a)
    address = np.frombuffer(base, np.uint8).__array_interface__["data"][0]
    return np.frombuffer(base, a.dtype, a.size, a.__array_interface__["data"][0] - address).reshape(a.shape)


class _Moves:
    """Moves a dataclass of tensors, lists and further such dataclasses."""

    def _map(self, f: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        def apply(v: Any) -> Any:
            if isinstance(v, torch.Tensor):
                return f(v)
            if isinstance(v, _Moves):
                return v._map(f)
            if isinstance(v, list):
                return [apply(e) for e in v]
            if isinstance(v, dict):
                return {k: apply(e) for k, e in v.items()}
            return v
        assert is_dataclass(self)
        return type(self)(**{x.name: apply(getattr(self, x.name)) for x in fields(self)})

    def to(self, device: Any, non_blocking: bool = False) -> Any:
        """A copy on a device; without blocking where it is pinned and that is asked for."""
        return self._map(lambda t: t.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Any:
        """A copy in page-locked memory (DataLoader's pin_memory=True calls it)."""
        return self._map(lambda t: t.pin_memory())

    def clone(self) -> Any:
        """A copy that shares nothing with the mapped files."""
        return self._map(lambda t: t.clone())


@dataclass
class TorchBlock(_Moves):
    """One layer's bipartite graph. Messages go src -> dst; of a batch the dst are the first num_dst src, else those from dst_start on."""

    num_dst: int
    num_src: int
    dst_start: int
    indptr: torch.Tensor  # i64 [num_dst+1]
    indices: torch.Tensor  # i32 [edges], src of each edge
    rel: torch.Tensor | None  # i32 [edges]
    edge_weight: dict[str, torch.Tensor]  # f32 [edges], importance included, by coefficient kind
    self_weight: dict[str, torch.Tensor]  # f32 [num_dst], coefficient of each dst's own row

    @property
    def dst(self) -> torch.Tensor:
        """dst of each edge, i64 [edges]."""
        rows = torch.arange(self.num_dst, device=self.indptr.device)
        return torch.repeat_interleave(rows, self.indptr[1:] - self.indptr[:-1])

    def edge_index(self) -> torch.Tensor:
        """i64 [2, edges]: src and dst of each edge."""
        return torch.stack([self.indices.long(), self.dst])

    def aggregate(self, x: torch.Tensor, kind: str) -> torch.Tensor:
        """The layer's aggregation (SPEC 5.3) of x [num_src, dim]: [num_dst, dim]. Differentiable; takes edges * dim elements of memory."""
        messages = self.edge_weight[kind].unsqueeze(1) * x[self.indices.long()]
        out = self.self_weight[kind].unsqueeze(1) * x[self.dst_start:self.dst_start + self.num_dst]
        return out.index_add(0, self.dst, messages)


@dataclass
class TorchBatch(_Moves):
    """A batch as tensors."""

    number: int
    num_seeds: int
    n_id: torch.Tensor  # i32 [nodes], node numbers, seeds first
    x: torch.Tensor | None  # f32 [nodes that the model reads, columns]
    y: torch.Tensor | None  # i64 [seeds], -1 = none; or u8 [seeds, classes], 255 = none; or f32 [seeds, targets], NaN = none
    mask: torch.Tensor | None  # u8 [seeds, splits]: 0 none, 1 train, 2 valid, 3 test
    train: torch.Tensor  # bool [seeds]: those to be trained on: in the part train, with a label
    weight: torch.Tensor | None  # f32 [seeds], None: all 1
    blocks: list[TorchBlock]  # input side first
    pairs: dict[str, torch.Tensor]  # src, dst and where they are there rel, label, weight; of link prediction


def tensors(batch: Batch, coefs: list[str] | str | None = None, num_layers: int | None = None, column: int | None = None, features: bool = True, copy: bool = False,
            pin: bool = False) -> TorchBatch:
    """A batch as tensors: batch.torch(...).

    coefs are the coefficient kinds to have weights of (all that the set has), num_layers is the model's (all that the batch has), column the
    split column of ``train`` (the batch's own, else 0). pin gives page-locked copies for asynchronous transfers (nothing changes where there is no
    CUDA), copy ordinary ones; else tensors are views where that is possible.
    """
    kinds = [coefs] if isinstance(coefs, str) else batch._set.norm if coefs is None else coefs
    pairs = batch.pairs
    labels = batch.labels
    own = batch.record.split_column
    t = TorchBatch(
        number=batch.number, num_seeds=batch.num_seeds, n_id=tensor(batch.nodes, copy),
        x=tensor(batch.features(num_layers), copy) if features and has_features(batch) else None,
        y=None if labels is None else tensor(labels.astype(np.int64) if labels.ndim == 1 else labels, copy),
        mask=_maybe(batch.mask, copy), train=torch.from_numpy(to_train(batch, column if column is not None else own if own != ANY_SPLIT else 0)),
        weight=_maybe(batch.seed_weight, copy),
        blocks=[_block(b, kinds, copy) for b in batch.layers(num_layers)] if has_blocks(batch) else [],
        pairs={} if pairs is None else {k: tensor(v, copy) for k, v in vars(pairs).items() if v is not None})
    return t.pin_memory() if pin and torch.cuda.is_available() else t


def has_features(batch: Batch) -> bool:
    return batch.record.find("table.rows") is not None or batch._set.features is not None


def has_blocks(batch: Batch) -> bool:
    return batch.num_layers > 0 or batch.record.find("block.indptr") is not None


def to_train(batch: Batch, column: int) -> np.ndarray:
    """bool [seeds]: seeds of the part train with a label in some column."""
    train, labels = batch.in_part(Part.TRAIN, column), batch.labels
    if labels is None:
        return train
    known = labels >= 0 if labels.dtype == np.int32 else labels != 255 if labels.dtype == np.uint8 else ~np.isnan(labels)
    return train & (known if known.ndim == 1 else known.any(axis=1))


def _maybe(a: np.ndarray | None, copy: bool) -> torch.Tensor | None:
    return None if a is None else tensor(a, copy)


def _block(b: Block, kinds: list[str], copy: bool) -> TorchBlock:
    kinds = [Coef[k.upper()].name.lower() for k in kinds]
    return TorchBlock(b.num_dst, b.num_src, b.dst_start, tensor(b.indptr, copy), tensor(b.indices, copy), _maybe(b.rel, copy),
                      {k: tensor(b.edge_weight(k), copy) for k in kinds}, {k: tensor(b.self_weight(k), copy) for k in kinds})


class BatchDataset(torch.utils.data.IterableDataset):
    """The batches of an epoch in the trainer's order, for ``DataLoader(dataset, batch_size=None, num_workers=...)``.

    Worker i of n takes places i, i+n, ... of the order, and DataLoader takes from the workers in turn, so that the order is
    the same for any number of workers. Call ``set_epoch`` before each epoch (from 0); it reaches persistent workers too.
    """

    def __init__(self, set: BatchSet, seed: int = 1, shuffle: bool = True, convert: Callable[[Batch], Any] | None = None, **options: Any) -> None:
        """convert makes of a Batch what is given out: by default ``batch.torch(**options)``; for PyG ``lambda b: b.to_pyg()``."""
        super().__init__()
        if convert is not None and options:
            raise ValueError(f"options {sorted(options)} are for batch.torch, which convert takes the place of")
        self.set, self.seed, self.shuffle, self.convert, self.options = set, seed, shuffle, convert, options
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    @property
    def epoch(self) -> int:
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        self._epoch.fill_(epoch)

    def __len__(self) -> int:
        return len(self.set)

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for number in self.set.order(self.epoch, self.seed, self.shuffle)[first::step]:
            b = self.set.batch(int(number))
            yield self.convert(b) if self.convert else tensors(b, **self.options)
