"""Batches as DGL's message flow graphs, as its DataLoader gives them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

os.environ.setdefault("DGLBACKEND", "pytorch")  # DGL asks for a choice in the home directory otherwise

import dgl  # noqa: E402

from ..batch import Batch
from ..blocks import Block
from .torch import has_features, tensor


def blocks(batch: Batch, coef: str | None = "gcn", num_layers: int | None = None, self_loops: bool = True, copy: bool = False) -> tuple[torch.Tensor, torch.Tensor, list[Any]]:
    """(input_nodes, output_nodes, blocks), node numbers i64 and a DGL block a layer, input side first: batch.to_dgl(...).

    edata["weight"] are coefficients of kind coef with importance (SPEC 5.3), for layers that don't normalise: GraphConv(norm="none") with edge_weight. The self
    terms are edges v -> v, unless self_loops is False or edges have relations; dstdata["self"] has them either way. coef=None leaves weights and self terms out.
    edata["etype"] is there with relations. The first block's srcdata["feat"] has the features, the last one's dstdata["label"] the targets.
    """
    layers = batch.layers(num_layers)
    nodes = torch.from_numpy(batch.nodes.astype(np.int64))
    made = [_block(b, nodes, coef, self_loops) for b in layers]
    if has_features(batch):
        made[0].srcdata["feat"] = tensor(batch.features(num_layers)[_dst_first(layers[0])] if layers[0].dst_start else batch.features(num_layers), copy)
    if (y := batch.labels) is not None and layers[-1].num_dst == batch.num_seeds:
        made[-1].dstdata["label"] = tensor(y.astype(np.int64) if y.ndim == 1 else y, copy)
    return made[0].srcdata[dgl.NID], made[-1].dstdata[dgl.NID], made


def _block(b: Block, nodes: torch.Tensor, coef: str | None, self_loops: bool) -> Any:
    indptr, indices, src_nodes = b.indptr, b.indices, nodes[:b.num_src]
    if b.dst_start:
        order = _dst_first(b)
        place = np.empty(b.num_src, np.int64)
        place[order] = np.arange(b.num_src)
        indices, src_nodes = place[indices], nodes[torch.from_numpy(order)]
    weight = None if coef is None else b.edge_weight(coef)
    if coef is not None and weight is not None and self_loops and b.rel is None and (own := b.self_weight(coef)).any():
        # Behind the edges of each row; dst d is src d by now.
        indices, weight = np.insert(indices, indptr[1:], np.arange(b.num_dst)), np.insert(weight, indptr[1:], own)
        indptr = indptr + np.arange(b.num_dst + 1)
    graph = dgl.create_block(("csc", (tensor(indptr), torch.from_numpy(indices.astype(np.int64)), torch.empty(0, dtype=torch.int64))),
                             num_src_nodes=b.num_src, num_dst_nodes=b.num_dst)
    graph.srcdata[dgl.NID], graph.dstdata[dgl.NID] = src_nodes, src_nodes[:b.num_dst]
    if coef is not None and weight is not None:
        graph.edata["weight"] = torch.from_numpy(weight)
        graph.dstdata["self"] = tensor(b.self_weight(coef))
    if (rel := b.rel) is not None:
        graph.edata["etype"] = torch.from_numpy(rel.astype(np.int64))
    return graph


def _dst_first(b: Block) -> np.ndarray:
    """DGL's dst are the first src. Those of a global block are the nodes from dst_start on: the order of nodes that has them in front."""
    return np.concatenate([np.arange(b.dst_start, b.dst_start + b.num_dst), np.arange(b.dst_start), np.arange(b.dst_start + b.num_dst, b.num_src)])
