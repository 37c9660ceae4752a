"""Reads Prelift's artefacts: snapshots and batch sets, as NumPy views of mapped files (SPEC.md).

    import prelift
    set = prelift.open("batches")
    for epoch in range(10):
        for batch in set.epoch(epoch, seed=1):          # the trainer's order
            x, y = batch.features(), batch.labels       # float32 [nodes, columns]; targets of the seeds
            for block in batch.blocks:                  # input side first
                block.indptr, block.indices, block.edge_weight("gcn"), block.self_weight("gcn")

``batch.torch()``, ``batch.to_pyg()`` and ``batch.to_dgl()`` hand a batch to PyTorch, PyG and DGL. Whatever is wrong
with an artefact is a PreliftError, whose ``label`` is SPEC 9's word for its class.
"""

from __future__ import annotations

import os

from . import manifest
from .batch import Batch, Pairs
from .batchset import BatchSet
from .blocks import Block, Coefficients, Transpose
from .container import File, Header, Record, Section
from .errors import (ChecksumError, LayoutError, LimitError, MagicError, MismatchError, MissingError, PreliftError, TruncatedError, VersionError)
from .layout import Coef, DType, FileKind, Part, Space, Task
from .snapshot import Snapshot

__version__ = "0.1.0"


def open(dir: str | os.PathLike[str], features: str | os.PathLike[str] | None = None) -> Snapshot | BatchSet:
    """Opens the artefact in a directory: a Snapshot or a BatchSet, as its manifest says.

    features is the feature table of a batch set that was written without it (``--link-features none``).
    """
    kind = manifest.kind_of(dir)
    if kind == "snapshot":
        if features is not None:
            raise MismatchError(dir, "a snapshot has its own features; features= is for batch sets")
        return Snapshot(dir)
    if kind == "batch_set":
        return BatchSet(dir, features)
    raise VersionError(os.path.join(os.fspath(dir), manifest.NAME), f"artefact of kind {kind!r}")


__all__ = ["Batch", "BatchSet", "Block", "ChecksumError", "Coef", "Coefficients", "DType", "File", "FileKind", "Header", "LayoutError", "LimitError", "MagicError",
           "MismatchError", "MissingError", "Pairs", "Part", "PreliftError", "Record", "Section", "Snapshot", "Space", "Task", "Transpose", "TruncatedError", "VersionError",
           "open"]
