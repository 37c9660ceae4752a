"""Batches as torch_geometric Data, as NeighborLoader gives them."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from ..batch import Batch
from ..blocks import Block
from ..layout import Part
from .torch import has_features, tensor


def data(batch: Batch, coef: str | None = "gcn", self_loops: bool = True, adjs: bool = False, copy: bool = False) -> Data:
    """One graph over the batch's nodes: batch.to_pyg(...). What users of NeighborLoader know is where they know it:

    x [n, columns], edge_index [2, E] in positions of n_id, edge_weight [E], n_id [n] node numbers (seeds first), batch_size (seeds), y of all n nodes where
    the set has all labels, else of the seeds; ``y[:batch_size]`` are the seeds' either way. num_sampled_nodes and num_sampled_edges by hop, so that
    torch_geometric.utils.trim_to_layer works. A batch over the whole graph has train_mask, val_mask and test_mask (of the first split column) instead.

    An edge is in it once: a node of hop h has the neighbours that it drew at hop h+1. Blocks are richer where nodes draw anew for each
    layer (a seed of a two-layer batch draws at hop 1 for the last layer, at hop 2 for the first); ``adjs=True`` adds them as data.adjs, a list of
    (edge_index, edge_weight, (num_src, num_dst)), input side first, for layers called as conv((x, x[:num_dst]), edge_index, edge_weight).

    edge_weight are coefficients of kind coef with importance (SPEC 5.3), for layers that don't normalise: GCNConv(..., normalize=False). Its
    self terms are edges v -> v, unless self_loops is False or edges have relations; coef=None leaves weights and self terms out, for layers that
    aggregate by themselves (SAGEConv, GATConv). edge_type is there with relations.
    """
    if batch.num_layers:
        parts = [_rows_of_hop(batch, h) for h in range(batch.num_layers)]
    else:
        parts = [(batch.layers()[0], 0, batch.layers()[0].num_dst)]
    made = [_edges(block, first, last, coef, self_loops) for block, first, last in parts]
    labels = batch._set.labels
    d = Data(edge_index=torch.from_numpy(np.concatenate([index for index, _ in made], axis=1)), n_id=torch.from_numpy(batch.nodes.astype(np.int64)))
    d.num_nodes = batch.num_nodes
    d.batch_size = batch.num_seeds
    d.batch_number = batch.number
    if coef is not None:
        d.edge_weight = torch.from_numpy(np.concatenate([w for _, w in made]))
    if has_features(batch):
        d.x = tensor(batch.features(), copy)
    y = batch.labels if labels is None or batch.num_nodes == batch.num_seeds else labels[batch.nodes]
    if y is not None:
        d.y = tensor(y.astype(np.int64) if y.ndim == 1 else y, copy)
    if batch.num_layers:
        d.num_sampled_nodes = np.diff(batch.hop_nodes, prepend=0).tolist()
        d.num_sampled_edges = [index.shape[1] for index, _ in made]
    elif batch.mask is not None and batch.mask.shape[1]:
        for name, part in (("train_mask", Part.TRAIN), ("val_mask", Part.VALID), ("test_mask", Part.TEST)):
            d[name] = torch.from_numpy(batch.in_part(part))
    rels = [rel[int(block.indptr[first]):int(block.indptr[last])] for block, first, last in parts if (rel := block.rel) is not None]
    if rels:
        d.edge_type = torch.from_numpy(np.concatenate(rels).astype(np.int64))
    if adjs:
        d.adjs = []
        for block in batch.layers():
            index, w = _edges(block, 0, block.num_dst, coef, self_loops)
            d.adjs.append((torch.from_numpy(index), None if w is None else torch.from_numpy(w), (block.num_src, block.num_dst)))
    return d


def _rows_of_hop(batch: Batch, h: int) -> tuple[Block, int, int]:
    """The block in which nodes of hop h have what they drew at hop h+1, and their rows: the last ones of it."""
    return batch._block(batch.num_layers - 1 - h), batch.hop_nodes[h - 1] if h else 0, batch.hop_nodes[h]


def _edges(block: Block, first: int, last: int, coef: str | None, self_loops: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """edge_index [2, edges] and weights of the rows first to last-1 of a block, edges v -> v of their self terms behind them."""
    low, high = int(block.indptr[first]), int(block.indptr[last])
    index = np.stack([block.indices[low:high], block.dst[low:high] + np.int32(block.dst_start)]).astype(np.int64)
    if coef is None:
        return index, None
    w = block.edge_weight(coef)[low:high]
    if self_loops and block.rel is None:
        own = block.self_weight(coef)[first:last]
        if own.any():
            rows = np.arange(block.dst_start + first, block.dst_start + last)
            return np.concatenate([index, np.stack([rows, rows])], axis=1), np.concatenate([w, own])
    return index, w

