"""Snapshots, SPEC 6."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np

from . import manifest
from .batch import Pairs
from .batchset import names_of, need
from .blocks import Block
from .container import File, Record
from .errors import LayoutError, MismatchError, MissingError
from .hops import HopIndex
from .layout import ANY_LAYER, FileKind, Part, Space, Task
from .manifest import Fields, Optional, array, is_bool, is_count, is_digest, is_number, is_small, is_string, obj, one_of
from .rows import to_float32
from .tables import Ids, Names

KIND = "snapshot"

_HOLDOUT: Fields = {"kind": one_of("hash", "given"), "valid": is_number, "test": is_number, "seed": manifest.is_int, "spare_last": is_bool}
PARAMS: Fields = {"direction": one_of("undirected", "directed"), "feature_norm": one_of("none", "row", "standard"), "missing_features": one_of("error", "zero"),
                  "hops": one_of(0, 1, 2), "compact_below": is_small, "hub_from": is_small, "expand_limit": is_small, "hop2_cap": is_small,
                  "with": array(one_of("order", "pagerank")), "holdout": Optional(obj(_HOLDOUT)), "updatable": is_bool, "anonymized": Optional(is_digest),
                  "merge_relations": Optional(one_of(True))}
_AUDIT: Fields = {name: is_count for name in ("num_lines", "duplicates_merged", "self_loops", "isolated_nodes", "one_directional", "num_pairs", "max_degree", "num_components",
                                              "largest_component")} | {"degree_histogram": array(is_count)}
_HELDOUT: Fields = {name: is_count for name in ("num_valid", "num_test", "missing_valid", "missing_test", "num_lines", "known_valid", "known_test", "unseen_nodes", "unseen_rels",
                                                "reversed_valid", "reversed_test", "in_both", "repeats_valid", "repeats_test")}
FIELDS: Fields = {
    **manifest.COMMON_FIELDS, "kind": one_of(KIND), "params": obj(PARAMS), "collation": one_of("integer", "bytes"), "weighted": is_bool,
    **{name: is_count for name in ("num_nodes", "num_edges", "num_entries", "num_rels", "num_features", "num_classes")},
    "edges_per_rel": Optional(array(is_count)), "nodes_per_type": Optional(array(is_count)),
    "task": Optional(one_of("multiclass", "binary", "multilabel", "regression")), "splits": array(is_string), "audit": obj(_AUDIT),
    "update": Optional(obj({"code": one_of("forward", "backward", "both", "counted", "mixed"), "num_counted": is_count, "declared": is_bool, "named": one_of("all", "none", "some")})),
    "hop2": Optional(obj({**{name: is_count for name in ("hop1_entries", "num_entries", "num_uncut", "num_cut", "num_sampled", "cap")}, "forced": is_bool})),
    "heldout": Optional(obj(_HELDOUT)),
    "pagerank": Optional(obj({**{name: is_number for name in ("damping", "tolerance", "max_iterations", "iterations", "delta")}, "converged": is_bool})),
}

# TABLES are the files of SPEC 6, with the file kind and the number of records.
TABLES: dict[str, tuple[FileKind, int]] = {
    "ids.plf": (FileKind.IDS, 1), "topology.plf": (FileKind.TOPOLOGY, 1), "features.plf": (FileKind.FEATURES, 1), "labels.plf": (FileKind.LABELS, 1),
    "splits.plf": (FileKind.LABELS, 1), "hops.plf": (FileKind.HOPS, 1), "rank.plf": (FileKind.RANK, 1), "relations.plf": (FileKind.LABELS, 1),
    "types.plf": (FileKind.LABELS, 1), "heldout.plf": (FileKind.HELDOUT, 2), "lines.plf": (FileKind.LINES, 1),
}


class Snapshot:
    """A snapshot, open: its files are mapped, and the contents of each checked when it is first used.

    Arrays are read-only views without a copy; None where the snapshot doesn't have them.
    """

    def __init__(self, dir: str | os.PathLike[str]) -> None:
        m = self.manifest = manifest.read(dir, KIND, FIELDS)
        self.dir, self.id, self.params = m.dir, m.id, m["params"]
        self.extra_files = manifest.check_files(m)
        self.num_nodes, self.num_edges, self.num_entries, self.num_rels = m.int("num_nodes"), m.int("num_edges"), m.int("num_entries"), m.int("num_rels")
        self.num_features, self.num_classes = m.int("num_features"), m.int("num_classes")
        self.directed: bool = self.params["direction"] == "directed"
        self.weighted: bool = m["weighted"]
        self.collation: str = m["collation"]
        self.task: str | None = m.fields.get("task")
        self.splits: list[str] = m["splits"]
        self._files: dict[str, File] = {}
        self._records: dict[tuple[str, int], Record] = {}
        for f in m.files:
            if f.name not in TABLES:
                raise LayoutError(m.place, f"file {f.name!r} is none of a snapshot's")
            self._open(f.name, *TABLES[f.name])
        for name, wanted in (("ids.plf", True), ("topology.plf", True), ("features.plf", self.num_features > 0), ("labels.plf", self.task is not None),
                             ("splits.plf", bool(self.splits)), ("hops.plf", self.params["hops"] > 0), ("rank.plf", bool(self.params["with"])),
                             ("relations.plf", "edges_per_rel" in m.fields), ("types.plf", "nodes_per_type" in m.fields), ("heldout.plf", "heldout" in m.fields)):
            if wanted and name not in self._files:
                raise MissingError(m.place, f"{name} isn't listed")

    def __repr__(self) -> str:
        return f"Snapshot({self.dir!r}, {self.num_nodes} nodes, {self.num_edges} edges, {self.params['direction']})"

    def __reduce__(self):
        return Snapshot, (os.path.abspath(self.dir),)

    def _open(self, name: str, kind: FileKind, num_records: int) -> None:
        f = File.open(os.path.join(self.dir, name))
        key = bytes.fromhex(self.manifest["set_key"][7:])
        if f.header.kind != kind:
            raise LayoutError(name, f"file kind {f.header.kind.name.lower()}, must be {kind.name.lower()}")
        if f.header.set_key != key or any(f.header.snapshot_id):
            raise MismatchError(name, f"set key {f.header.set_key.hex()}, the manifest has {key.hex()}")
        if len(f) != num_records:
            raise LayoutError(name, f"{len(f)} records, must be {num_records}")
        self._files[name] = f

    def record(self, name: str, index: int = 0) -> Record | None:
        """A verified record of a file by its name; None where the snapshot has no such file."""
        if (name, index) in self._records:
            return self._records[name, index]
        f = self._files.get(name)
        if f is None:
            return None
        r = f.record(index).verify()
        if r.space != Space.GLOBAL or r.task != Task.NONE or r.num_nodes != self.num_nodes:
            raise LayoutError(r.place, f"task {r.task}, index space {r.space}, {r.num_nodes} nodes; must be a table over {self.num_nodes}")
        self._records[name, index] = r
        return r

    def array(self, file: str, section: str, coef: int = 0) -> np.ndarray | None:
        """A section of one of the files, None where either is absent."""
        r = self.record(file)
        return None if r is None else r.array(section, ANY_LAYER, coef)

    @property
    def ids(self) -> Ids:
        """External ids by node number, and back."""
        r = self.record("ids.plf")
        assert r is not None
        return Ids(need(r, "ids.offsets"), need(r, "ids.bytes"), r.array("ids.key"))

    @cached_property
    def graph(self) -> Block:
        """The whole graph's in-rows, self loops of the input included: a block with dst 0 to N, with coefficients gcn and mean."""
        r = self.record("topology.plf")
        assert r is not None
        return Block(r, ANY_LAYER, ["gcn", "mean"])

    def in_neighbors(self, v: int) -> np.ndarray:
        """src of the edges into v, i32, ascending."""
        g = self.graph
        return g.indices[g.indptr[v]:g.indptr[v + 1]]

    def out_neighbors(self, v: int) -> np.ndarray:
        """dst of the edges out of v, i32, ascending."""
        t = self.graph.transpose if self.directed else None
        return self.in_neighbors(v) if t is None else t.indices[t.indptr[v]:t.indptr[v + 1]]

    @property
    def component(self) -> np.ndarray:
        """Weakly connected component of each node, i32 [N]."""
        return self._need("topology.plf", "graph.component")

    @property
    def component_size(self) -> np.ndarray:
        """Nodes of each component, i64 [components]."""
        return self._need("topology.plf", "graph.component_size")

    @property
    def features(self) -> np.ndarray | None:
        """Feature rows as they are stored, [N, num_features]."""
        return self.array("features.plf", "table.rows")

    def feature_rows(self, numbers: np.ndarray | None = None) -> np.ndarray | None:
        """Feature rows as float32, of some nodes or of all."""
        r = self.record("features.plf")
        if r is None or (s := r.find("table.rows")) is None:
            return None
        rows = r.view(s) if numbers is None else np.take(r.view(s), numbers, axis=0)
        return to_float32(rows, s.dtype, r.array("table.scale"))

    @property
    def labels(self) -> np.ndarray | None:
        """i32 [N], -1 = none; u8 [N, classes], 255 = none; f32 [N, targets], NaN = none."""
        return self.array("labels.plf", "seeds.label")

    @property
    def class_names(self) -> list[str]:
        return names_of(self.record("labels.plf"))

    @property
    def masks(self) -> np.ndarray | None:
        """Part of each node in each split, u8 [N, splits]."""
        return self.array("splits.plf", "seeds.mask")

    @property
    def rel_names(self) -> list[str]:
        return names_of(self.record("relations.plf"))

    @property
    def node_type(self) -> np.ndarray | None:
        """i32 [N]"""
        return self.array("types.plf", "nodes.type")

    @property
    def type_names(self) -> list[str]:
        return names_of(self.record("types.plf"))

    @property
    def pagerank(self) -> np.ndarray | None:
        """f64 [N]"""
        return self.array("rank.plf", "rank.pagerank")

    @property
    def locality_order(self) -> np.ndarray | None:
        """The node at each place of the order, i32 [N]."""
        return self.array("rank.plf", "rank.order")

    def hop1(self) -> HopIndex | None:
        """The hop index: the neighbours of nodes, compressed; None without one."""
        r = self.record("hops.plf")
        return None if r is None else HopIndex(r)

    def hop2(self, v: int) -> np.ndarray | None:
        """Nodes two hops from v, i32, ascending; None without hop 2."""
        indptr, indices = self.array("hops.plf", "hop2.indptr"), self.array("hops.plf", "hop2.indices")
        return None if indptr is None or indices is None else indices[indptr[v]:indptr[v + 1]]

    def heldout(self, part: Part | str) -> Pairs | None:
        """The pairs held out for a part, valid or test; None where the snapshot has no lists."""
        p = Part[part.upper()] if isinstance(part, str) else Part(part)
        if p not in (Part.VALID, Part.TEST):
            raise ValueError(f"pairs are held out for valid and test, not for {p.name.lower()}")
        r = self.record("heldout.plf", 0 if p == Part.VALID else 1)
        if r is None:
            return None
        if r.split != p:
            raise LayoutError(r.place, f"part {r.split.name.lower()}, must be {p.name.lower()}")
        return Pairs(need(r, "pairs.src"), need(r, "pairs.dst"), r.array("pairs.rel"), None, r.array("pairs.weight"))

    def _need(self, file: str, section: str) -> np.ndarray:
        a = self.array(file, section)
        if a is None:
            raise MissingError(file, f"no section {section}")
        return a

    def files(self) -> dict[str, File]:
        """The open files by name."""
        return dict(self._files)

    def verify(self) -> None:
        """Every check of SPEC 9: digests, every byte of every file, what files say of each other. Cost: two looks at each byte."""
        m = self.manifest
        want = manifest.digest(manifest.canonical({**m.fields, "set_key": manifest.ZERO_DIGEST, "files": []}))
        if m["set_key"] != want:
            raise LayoutError(m.place, f"set_key is {m['set_key']}, the manifest gives {want}")
        manifest.verify_files(m)
        for f in self._files.values():
            f.verify()
        self._verify_counts()

    def _verify_counts(self) -> None:
        """SPEC 9.4."""
        def want(file: str, what: str, got: Any, stated: Any) -> None:
            if got != stated:
                raise LayoutError(file, f"{what}: {got}, must be {stated}")
        want("ids.plf", "ids", len(self.ids), self.num_nodes)
        want("topology.plf", "entries", self.graph.num_edges, self.num_entries)
        if "labels.plf" in self._files:
            want("labels.plf", "names", len(self.class_names), self.num_classes)
        if "splits.plf" in self._files:
            want("splits.plf", "names", names_of(self.record("splits.plf")), self.splits)
        if self.features is not None:
            want("features.plf", "shape", self.features.shape, (self.num_nodes, self.num_features))
        labels = self.labels
        if labels is not None and labels.ndim == 1 and labels.size:
            want("labels.plf", "classes below num_classes", int(labels.max()) < self.num_classes, True)
        if self.array("rank.plf", "rank.mass") is not None:
            want("rank.plf", "masses", len(self._need("rank.plf", "rank.mass")), len(self.component_size))
        if stated := self.manifest.fields.get("heldout"):
            for part in ("valid", "test"):
                pairs = self.heldout(part)
                assert pairs is not None
                want("heldout.plf", f"pairs for {part}", len(pairs.src), int(stated[f"num_{part}"]))
                keys = [pairs.src, pairs.dst] + ([] if pairs.rel is None else [pairs.rel])
                order = np.lexsort(keys[::-1])
                rising = all((k[order] == k).all() for k in keys) and not np.logical_and.reduce([k[1:] == k[:-1] for k in keys]).any()
                want("heldout.plf", f"pairs for {part} ascend", rising, True)
        self._verify_lines()

    def _verify_lines(self) -> None:
        update, r = self.manifest.fields.get("update"), self.record("lines.plf")
        if update is None or r is None:
            return
        code, counted = r.array("lines.code"), {"counted": self.num_edges}.get(update["code"], 0)
        if code is not None:
            bits = (code[:, None] >> np.arange(0, 8, 2, dtype=np.uint8) & 3).reshape(-1)
            if len(bits) != -(-self.num_edges // 4) * 4 or bits[self.num_edges:].any():
                raise LayoutError("lines.plf", f"lines.code has {len(code)} bytes, or bits behind the last of {self.num_edges} edges")
            counted = int((bits[:self.num_edges] == 3).sum())
        rows = r.array("lines.count")
        have = 0 if rows is None else len(rows)
        if not have == counted == int(update["num_counted"]):
            raise LayoutError("lines.plf", f"{have} rows of lines.count, {counted} edges of code 3, the manifest says {update['num_counted']}")
