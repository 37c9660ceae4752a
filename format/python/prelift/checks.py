"""The checks of a record's contents, SPEC 9.3: lengths, offsets, bounds of every index.

Lengths come from section entries, which the file's size bounds; only then elements are looked at, a piece at a time,
so that a check needs little memory whatever the file says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

import numpy as np

from .errors import LayoutError
from .layout import ANY_LAYER, BY_NAME, MAX_NODES, Codec, DType, Space

if TYPE_CHECKING:
    from .bits import Coded
    from .container import Record, Section

_PIECE = 1 << 20  # elements looked at together
_MAX_INDEX = MAX_NODES - 1


def number_of(name: str) -> int:
    """The number of a section kind by its name in SPEC 5.1."""
    return BY_NAME[name].number


def contents(r: "Record") -> None:
    """C3 to C49 of SPEC 9.3. LayoutError names the section and the first offending place."""
    c = _Contents(r)
    c.codecs()
    layers = range(r.num_layers) if r.num_layers else (ANY_LAYER,)
    c.nodes()
    for layer in layers:
        c.block(layer)
        c.transpose(layer)
    c.coefs()
    c.seeds()
    c.pairs()
    c.kge()
    c.table()
    c.graph()
    c.names()
    c.layer_edges()
    c.hop1()
    c.hop2()
    c.rank()
    c.lines()


class _Contents:
    def __init__(self, r: "Record") -> None:
        self.r = r

    # What the checks are made of.

    def get(self, name: str, layer: int = ANY_LAYER, coef: int = 0) -> "Section | None":
        return self.r.find(name, layer, coef)

    def len(self, name: str, layer: int = ANY_LAYER) -> int:
        """First dimension of a section, 0 where it is absent."""
        s = self.get(name, layer)
        return s.shape[0] if s else 0

    def elements(self, s: "Section") -> "np.ndarray | Coded":
        """The elements of a section of one dimension, to be looked at in pieces."""
        return self.r.view(s) if s.codec == Codec.RAW else self.r.coded(s)

    def fail(self, s: "Section", text: str) -> None:
        raise LayoutError(f"{self.r.place}: {s}", text)

    def length(self, s: "Section", want: int) -> None:
        if s.shape[0] != want:
            self.fail(s, f"{s.shape[0]} elements, must be {want}")

    def each(self, s: "Section", bad: Callable[[np.ndarray], np.ndarray], text: str) -> None:
        """Fails at the first element for which bad, a function from elements to truth, is true."""
        a = self.r.view(s).reshape(-1) if len(s.shape) > 1 else self.elements(s)
        for i in range(0, len(a), _PIECE):
            piece = a[i:i + _PIECE]
            wrong = bad(piece)
            if wrong.any():
                k = int(np.argmax(wrong))
                self.fail(s, f"element {i + k} is {piece[k]}, must be {text}")

    def bounds(self, s: "Section", low: int, high: int) -> None:
        """Every element is low to high, both included."""
        a = self.r.view(s).reshape(-1) if len(s.shape) > 1 else self.elements(s)
        for i in range(0, len(a), _PIECE):
            piece = a[i:i + _PIECE]
            if int(piece.min()) < low or int(piece.max()) > high:
                k = int(np.argmax((piece < low) | (piece > high) if high >= low else np.ones(len(piece), bool)))
                self.fail(s, f"element {i + k} is {piece[k]}, must be {low} to {high}")

    def rising(self, s: "Section") -> None:
        """No element is below the one before."""
        a = self.elements(s)
        for i in range(0, max(len(a) - 1, 0), _PIECE):
            piece = a[i:i + 1 + _PIECE]
            falls = piece[1:] < piece[:-1]
            if falls.any():
                k = i + 1 + int(np.argmax(falls))
                self.fail(s, f"element {k} is {a[k]}, the one before {a[k - 1]}")

    def offsets(self, s: "Section", end: int) -> None:
        """Offsets from 0 to end."""
        if s.shape[0] == 0:
            self.fail(s, "no elements, offsets have one at least")
        a = self.elements(s)
        if a[0] != 0:
            self.fail(s, f"begins with {a[0]}, must be 0")
        self.rising(s)
        if int(a[-1]) != end:
            self.fail(s, f"ends with {a[-1]}, must be {end}")

    def need(self, s: "Section", name: str, layer: int = ANY_LAYER) -> "Section":
        other = self.get(name, layer)
        if other is None:
            self.fail(s, f"there is no {name}")
        return other  # type: ignore[return-value]

    # The checks, a group of sections each.

    def codecs(self) -> None:
        for s in self.r.sections:
            if s.codec == Codec.BITS:  # C49
                self.r.coded(s)

    def nodes(self) -> None:
        n = self.r.num_nodes
        for name in ("nodes.number", "nodes.type", "nodes.row"):  # C3
            if s := self.get(name):
                self.length(s, n)
                self.bounds(s, 0, _MAX_INDEX)
        if s := self.get("nodes.table"):  # C4
            self.length(s, n)
            self.bounds(s, 0, 3)
        row, table = self.get("nodes.row"), self.get("nodes.table")
        if row and table:  # C5
            rows, t = self.elements(row), self.r.view(table)
            own = self.len("table.rows")
            for i in range(0, n, _PIECE):
                wrong = (t[i:i + _PIECE] == 1) & (rows[i:i + _PIECE] >= own)
                if wrong.any():
                    k = i + int(np.argmax(wrong))
                    self.fail(row, f"element {k} is {rows[k]}, the record's own table has {own} rows")

    def block(self, layer: int) -> None:
        num_dst, num_src = self.r.block_size(layer)
        indptr, indices = self.get("block.indptr", layer), self.get("block.indices", layer)
        edges = self.len("block.indices", layer)
        if indptr:  # C6
            self.length(indptr, num_dst + 1)
            self.offsets(indptr, edges)
        if indices:  # C7
            self.need(indices, "block.indptr", layer)
            self.bounds(indices, 0, num_src - 1)
        if s := self.get("block.rel", layer):  # C8
            self.length(s, edges)
            self.bounds(s, 0, _MAX_INDEX)
        if s := self.get("block.relptr", layer):  # C9
            rels, rest = divmod(s.shape[0] - 1, num_dst) if num_dst else (1, s.shape[0] - 1)
            if rest or rels < 1:
                self.fail(s, f"{s.shape[0]} elements for {num_dst} dst")
            self.offsets(s, edges)
            if indptr:
                runs, starts = self.elements(s), self.elements(indptr)
                for i in range(0, num_dst + 1, step := max(1, _PIECE // rels)):
                    differ = runs[i * rels:(i + step) * rels:rels] != starts[i:i + step]
                    if differ.any():
                        self.fail(s, f"dst {i + int(np.argmax(differ))} doesn't start where block.indptr has it")
        for name in ("block.weight", "block.edge_id", "block.time"):  # C10
            if s := self.get(name, layer):
                self.length(s, edges)

    def coefs(self) -> None:
        r = self.r
        for s in r.sections:  # C11
            if s.kind is None or not s.name.startswith("coef."):
                continue
            num_dst, num_src = r.block_size(0 if s.layer == ANY_LAYER else s.layer)
            if s.layer == ANY_LAYER and r.space == Space.GLOBAL and s.name in ("coef.src", "coef.dst", "coef.self"):
                want = r.num_nodes
            else:
                want = {"coef.src": num_src, "coef.edge": self.len("block.indices", s.layer)}.get(s.name, num_dst)
            self.length(s, want)

    def transpose(self, layer: int) -> None:
        num_dst, num_src = self.r.block_size(layer)
        edges = self.len("block.indices", layer)
        if s := self.get("transpose.indptr", layer):  # C12
            self.need(s, "transpose.indices", layer)
            self.length(s, num_src + 1)
            self.offsets(s, edges)
        for name, high in (("transpose.indices", num_dst - 1), ("transpose.edge", edges - 1), ("transpose.rel", _MAX_INDEX)):  # C13, C14, C48
            if s := self.get(name, layer):
                self.need(s, "transpose.indptr", layer)
                self.length(s, edges)
                self.bounds(s, 0, high)

    def seeds(self) -> None:
        n = self.r.num_seeds
        if s := self.get("seeds.label"):  # C15
            if len(s.shape) != (1 if s.dtype == DType.I32 else 2):
                self.fail(s, f"{len(s.shape)} dimensions of {s.dtype.name.lower()}")
            self.length(s, n)
            if s.dtype == DType.I32:
                self.bounds(s, -1, _MAX_INDEX + 1)
            elif s.dtype == DType.U8:
                self.each(s, lambda a: (a > 1) & (a != 255), "0, 1 or 255")
        if s := self.get("seeds.mask"):  # C16
            self.length(s, n)
            self.bounds(s, 0, 3)
        if s := self.get("seeds.weight"):  # C17
            self.length(s, n)

    def pairs(self) -> None:
        n, nodes = self.len("pairs.src"), self.r.num_nodes
        for name in ("pairs.src", "pairs.dst", "pairs.rel", "pairs.label", "pairs.weight"):  # C18
            if s := self.get(name):
                self.length(s, n)
                if name in ("pairs.src", "pairs.dst"):
                    self.bounds(s, 0, nodes - 1)
                elif name == "pairs.rel":
                    self.bounds(s, 0, _MAX_INDEX)

    def kge(self) -> None:
        for name in ("kge.positives", "kge.edges"):  # C19
            if s := self.get(name):
                if s.shape[1] != 3:
                    self.fail(s, f"{s.shape[1]} columns, must be 3")
                self.bounds(s, 0, _MAX_INDEX)
        if s := self.get("kge.chunkptr"):  # C20
            self.offsets(s, self.len("kge.positives"))
        for name in ("kge.known", "kge.guests", "kge.depth"):  # C21
            if s := self.get(name):
                if name == "kge.depth":
                    self.length(s, self.r.num_nodes)
                self.bounds(s, 0, _MAX_INDEX)
        if s := self.get("kge.range"):  # C22
            self.length(s, 2)
            first, second = self.r.view(s).tolist()
            if not 0 <= first <= second:
                self.fail(s, f"from {first} to {second}")

    def table(self) -> None:
        rows = self.get("table.rows")
        if rows and not self.get("nodes.row"):  # C23
            self.length(rows, self.r.num_nodes)
        s = self.get("table.scale")  # C24
        if s:
            if rows:
                self.length(s, rows.shape[1])
            scale = self.r.view(s)
            if not ((scale > 0) & (scale < np.inf)).all():
                self.fail(s, "elements must be over 0 and below infinity")
        elif rows and rows.dtype == DType.I8:
            self.fail(rows, "i8 rows without table.scale")

    def graph(self) -> None:
        nodes, components = self.r.num_nodes, self.len("graph.component_size")
        if s := self.get("graph.component"):  # C25
            self.length(s, nodes)
            self.bounds(s, 0, components - 1)
        if s := self.get("graph.component_size"):  # C26
            if components > nodes:
                self.fail(s, f"{components} components of {nodes} nodes")
            self.bounds(s, 1, nodes)  # so the sum can't pass 2^62
            if (total := int(self.r.view(s).sum())) != nodes:
                self.fail(s, f"their sum is {total}, must be {nodes}")

    def names(self) -> None:
        if s := self.get("ids.offsets"):  # C27
            self.length(s, self.r.num_nodes + 1)
            self.offsets(s, self.len("ids.bytes"))
        if s := self.get("ids.key"):  # C28
            self.length(s, self.r.num_nodes)
        if s := self.get("names.offsets"):  # C29
            self.offsets(s, self.len("names.bytes"))

    def layer_edges(self) -> None:
        r = self.r
        for layer in range(r.num_layers):  # C30
            s = self.get("block.indptr", layer)
            if s is None:
                raise LayoutError(r.place, f"layer {layer} has no block.indptr")
            indptr, at = self.elements(s), 0
            for h, stated in enumerate(r.layer_edges[layer]):
                edges = 0
                if h < r.num_layers - layer:
                    edges, at = int(indptr[r.hop_nodes[h]]) - at, int(indptr[r.hop_nodes[h]])
                if stated != edges:
                    self.fail(s, f"{edges} edges of hop {h}, the head says {stated}")

    def hop1(self) -> None:
        names = [name for name in BY_NAME if name.startswith("hop1.")]
        there = {name: s for name in names if (s := self.get(name))}
        if not there:
            return
        if len(there) != len(names):  # C31
            raise LayoutError(self.r.place, f"there is no {next(n for n in names if n not in there)} beside {next(iter(there))}")
        parts = {name.partition(".")[2]: section for name, section in there.items()}
        nodes = self.r.num_nodes
        groups, large, chunks = -(-nodes // 32), parts["large_start"].shape[0], parts["chunk_base"].shape[0]
        self.length(parts["code"], nodes)  # C32
        self.length(parts["offset"], nodes)
        for name in ("compact", "large"):  # C35
            if parts[name].shape[0] < 8 or self.r.view(parts[name])[-8:].any():
                self.fail(parts[name], "its last 8 bytes must be there and be zero")
        self.length(parts["group_start"], groups + 1)  # C33
        self.offsets(parts["group_start"], parts["compact"].shape[0] - 8)
        self.length(parts["group_large"], groups + 1)  # C34
        self.offsets(parts["group_large"], large)
        self.length(parts["large_chunk"], large + 1)  # C36
        self.offsets(parts["large_chunk"], chunks)
        self.rising(parts["large_start"])  # C37
        self.bounds(parts["large_start"], 0, parts["large"].shape[0] - 8)
        self.length(parts["large_last"], large)  # C38
        self.bounds(parts["large_last"], 0, 127)
        self.length(parts["large_shift"], large)
        self.each(parts["large_shift"], lambda a: (a > 31) & (a != 255), "0 to 31, or 255")
        self.bounds(parts["chunk_base"], 0, nodes - 1)  # C39
        self.length(parts["chunk_start"], chunks)

    def hop2(self) -> None:
        if s := self.get("hop2.indptr"):  # C40
            self.need(s, "hop2.indices")
            self.length(s, self.r.num_nodes + 1)
            self.offsets(s, self.len("hop2.indices"))
        if s := self.get("hop2.indices"):  # C41
            self.need(s, "hop2.indptr")
            self.bounds(s, 0, self.r.num_nodes - 1)

    def rank(self) -> None:
        nodes = self.r.num_nodes
        for name in ("rank.pagerank", "rank.weight", "rank.mass"):  # C42
            if s := self.get(name):
                if name != "rank.mass":
                    self.length(s, nodes)
                self.each(s, lambda a: ~((a > 0) & np.isfinite(a)), "over 0 and finite")
        if s := self.get("rank.order"):  # C43
            self.length(s, nodes)
            self.bounds(s, 0, nodes - 1)
            met = np.zeros(nodes, bool)  # no more than the section has elements
            met[self.r.view(s)] = True
            if not met.all():
                self.fail(s, f"node {int(np.argmin(met))} isn't in it")

    def lines(self) -> None:
        counts, large = self.get("lines.count"), self.get("lines.large")
        escaped = total = 0
        if counts:  # C44
            if counts.shape[1] != 2:
                self.fail(counts, f"{counts.shape[1]} columns, must be 2")
            a = self.r.view(counts)
            for i in range(0, len(a), _PIECE):
                piece = a[i:i + _PIECE]
                empty = ~piece.any(axis=1)
                if empty.any():
                    self.fail(counts, f"row {i + int(np.argmax(empty))} is zero")
                is_large = piece == 255
                escaped += int(is_large.sum())
                total += int(piece[~is_large].sum(dtype=np.int64))
            if escaped != self.len("lines.large"):
                self.fail(counts, f"{escaped} elements of 255, lines.large has {self.len('lines.large')}")
        if large:  # C45
            rows = self.need(large, "lines.count").shape[0]
            self.each(large, lambda a: a < 255, "at least 255")
            exact = sum(sum(self.r.view(large)[i:i + _PIECE].tolist()) for i in range(0, large.shape[0], _PIECE))
            if exact + 255 * rows >= 1 << 63:
                self.fail(large, f"the counts add up to {exact}")
            total += exact
        if s := self.get("lines.weight"):  # C46
            self.need(s, "lines.count")
            self.length(s, total)
        if s := self.get("lines.named"):  # C47
            nodes = self.r.num_nodes
            self.length(s, -(-nodes // 8))
            if nodes % 8 and int(self.r.view(s)[-1]) >> nodes % 8:
                self.fail(s, "bits behind the last node's aren't zero")
