"""Batch sets, SPEC 7."""

from __future__ import annotations

import os
from typing import Iterator

import numpy as np

from . import manifest
from .batch import Batch, check_across
from .container import File, Record
from .errors import LayoutError, MismatchError, MissingError
from .layout import FileKind, Part, Space, Task
from .manifest import Check, Fields, Optional, array, is_bool, is_count, is_digest, is_int, is_number, is_positive, is_small, is_string, obj, one_of
from .order import epoch_order
from .rows import to_float32
from .tables import Ids, Names

KIND = "batch_set"
_NO_ID = bytes(32)

PARAMS: Fields = {name: is_string for name in ("task", "mode", "transpose", "store", "dtype", "eval", "order", "link_features", "index_codec")} | {
    name: is_small for name in ("batch_size", "variants", "split", "batches_per_file")} | {
    "fanout": array(is_small), "norm": array(is_string), "seed": is_int, "hot_rows": is_number, "group": is_small,
    "weighted": Optional(one_of(True)), "hub_cap": Optional(is_positive), "cluster": Optional(obj({"size": is_small, "per_batch": is_small})), "khop": Optional(obj({"hops": one_of(1, 2)})),
    "ppr": Optional(obj({"select": one_of("node", "batch"), "top_k": is_small, "alpha": is_number, "epsilon": is_number})),
    "stratify": Optional(obj({"dense_share": is_number, "min_size": is_small, "min_degree": is_number}))}
_COUNTS = ("num_nodes", "num_features", "num_classes", "num_batches", "batches_per_variant", "num_seeds", "num_rows", "num_sampled_edges", "num_eval_blocks",
           "max_eval_edges", "num_hot_rows", "num_group_rows", "bytes", "bytes_per_variant", "eval_bytes", "feature_table_bytes")
_is_file: Check = obj(manifest.FILE_FIELDS)
FIELDS: Fields = {**manifest.COMMON_FIELDS, "kind": one_of(KIND), "snapshot_id": is_digest, "snapshot_key": is_digest, "params": obj(PARAMS), "label_task": is_string,
                  "splits": array(is_string), "directed": is_bool, "weighted": is_bool, "num_layers": is_small, **{name: is_count for name in _COUNTS},
                  "maxima": obj({"nodes": is_count, "seeds": is_count, "layer_edges": array(is_count), "record_bytes": is_count}), "row_error": Optional(obj({"relative": is_number, "absolute": is_number, "largest": is_number})), "features": Optional(_is_file)}


class BatchSet:
    """A batch set, open: its files are mapped, and contents checked when they are first used.

    ``for batch in set.epoch(e, seed)`` gives the batches of epoch e in the trainer's order. Safe to share between threads, and after a fork;
    a pickled one opens the directory again.
    """

    def __init__(self, dir: str | os.PathLike[str], features: str | os.PathLike[str] | None = None) -> None:
        """features: the feature table of a set written with ``--link-features none``."""
        m = self.manifest = manifest.read(dir, KIND, FIELDS)
        self.dir, self.id, self.params = m.dir, m.id, m["params"]
        self.extra_files = manifest.check_files(m)
        self.num_nodes, self.num_features, self.num_classes = m.int("num_nodes"), m.int("num_features"), m.int("num_classes")
        self.num_batches, self.batches_per_variant = m.int("num_batches"), m.int("batches_per_variant")
        self.num_layers: int = m["num_layers"]
        self.num_variants: int = self.params["variants"]
        self.norm: list[str] = self.params["norm"]
        self.splits: list[str] = m["splits"]
        self.label_task: str = m["label_task"]
        if self.num_variants < 1 or self.batches_per_variant * self.num_variants != self.num_batches:
            raise LayoutError(m.place, f"{self.num_variants} variants of {self.batches_per_variant} batches, {self.num_batches} in all")
        self._features_path = None if features is None else os.path.abspath(features)
        self._files: dict[str, File] = {}
        self._shards = self._open_shards("batches", FileKind.BATCHES)
        self._eval = [(f, i) for f in self._open_shards("eval", FileKind.EVAL) for i in range(len(f))]
        self._locate_batches()
        if len(self._eval) != m.int("num_eval_blocks"):
            raise LayoutError(m.place, f"num_eval_blocks is {m['num_eval_blocks']}, the files have {len(self._eval)}")
        ids = self._table("ids.plf", FileKind.IDS, required=True)
        assert ids is not None
        self.ids = Ids(need(ids, "ids.offsets"), need(ids, "ids.bytes"), ids.array("ids.key"))
        self._labels = self._table("labels.plf", FileKind.LABELS, self.label_task != "")
        self._splits = self._table("splits.plf", FileKind.LABELS, bool(self.splits))
        self.coefs: Record | None = self._table("coefs.plf", FileKind.COEFS, False)
        self._features = self._open_features()
        self._open_shared()
        self._crossed: set[str | int] = set()

    def __repr__(self) -> str:
        return f"BatchSet({self.dir!r}, {self.params['mode']}, {self.num_variants} variants of {self.batches_per_variant} batches, {self.num_nodes} nodes)"

    def __reduce__(self):
        return _reopen, (os.path.abspath(self.dir), self._features_path, self.id)

    # Files.

    def _open(self, name: str, kind: FileKind, shard: int = 0, path: str | None = None) -> File:
        f = File.open(path or os.path.join(self.dir, name))
        if f.header.kind != kind:
            raise LayoutError(f.name, f"file kind {f.header.kind.name.lower()}, must be {kind.name.lower()}")
        ours = kind in (FileKind.BATCHES, FileKind.EVAL, FileKind.COEFS, FileKind.ROWS) or kind == FileKind.FEATURES and self.params["dtype"] != "f32"
        key = bytes.fromhex(self.manifest["set_key" if ours else "snapshot_key"][7:])
        snapshot = bytes.fromhex(self.manifest["snapshot_id"][7:]) if ours else _NO_ID
        if f.header.set_key != key:
            raise MismatchError(f.name, f"set key {f.header.set_key.hex()}, the manifest has {key.hex()}")
        if f.header.snapshot_id != snapshot:
            raise MismatchError(f.name, f"snapshot {f.header.snapshot_id.hex()}, the manifest has {snapshot.hex()}")
        if f.header.shard != shard:
            raise LayoutError(f.name, f"shard {f.header.shard}, its name says {shard}")
        self._files[name] = f
        return f

    def _open_shards(self, stem: str, kind: FileKind) -> list[File]:
        names = sorted((f.name for f in self.manifest.files if f.name.startswith(stem + "-")), key=lambda s: (len(s), s))
        files = []
        for i, name in enumerate(names):
            if name != f"{stem}-{i:05d}.plf":
                raise MissingError(self.manifest.place, f"{stem}-{i:05d}.plf isn't listed, {name} is")
            files.append(self._open(name, kind, i))
        return files

    def _locate_batches(self) -> None:
        per, have = self.params["batches_per_file"], sum(len(f) for f in self._shards)
        if have != self.num_batches:
            raise LayoutError(self.manifest.place, f"num_batches is {self.num_batches}, the shards have {have}")
        for f in self._shards[:-1]:
            if len(f) != per:
                raise LayoutError(f.name, f"{len(f)} batches, batches_per_file is {per}")

    def _table(self, name: str, kind: FileKind, required: bool) -> Record | None:
        if self.manifest.file(name) is None:
            if required:
                raise MissingError(self.manifest.place, f"{name} isn't listed")
            return None
        return self._open(name, kind).table(self.num_nodes)

    def _open_features(self) -> Record | None:
        stated = self.manifest.fields.get("features")
        if self._features_path is None:
            r = self._table("features.plf", FileKind.FEATURES, self.num_features > 0 and self.params["link_features"] != "none")
        elif stated is None or self.manifest.file("features.plf"):
            raise MismatchError(self.manifest.place, "the set has its own feature table, or its snapshot none; features= is for sets written with --link-features none")
        else:
            if (got := manifest.file_digest(self._features_path)) != stated["sha256"]:
                raise MismatchError(self._features_path, f"its SHA-256 is {got[7:]}, the set's snapshot has {stated['sha256'][7:]}")
            r = self._open("features.plf", FileKind.FEATURES, path=self._features_path).table(self.num_nodes)
        if r is not None:
            s = r.find("table.rows")
            if s is None or s.shape != (self.num_nodes, self.num_features):
                raise LayoutError(r.place, f"no table of {self.num_nodes} rows and {self.num_features} columns")
        return r

    def _open_shared(self) -> None:
        """The files of rows that batches share, SPEC 7."""
        m, per, group = self.manifest, self.params["batches_per_file"], self.params["group"]
        if not 0 <= self.params["hot_rows"] <= 1 or group == 1 or not 0 <= group <= per:
            raise LayoutError(m.place, f"hot_rows {self.params['hot_rows']}, group {group}, batches_per_file {per}")
        self._hot, self._groups = None, []
        if self.params["hot_rows"]:
            self._hot = self._shared("hot.plf", 0, 1)[0]
        if group:
            for shard, f in enumerate(self._shards):
                self._groups.append(self._shared(f"rows-{shard:05d}.plf", shard, -(-len(f) // group)))

    def _shared(self, name: str, shard: int, count: int) -> list[Record]:
        if self.manifest.file(name) is None:
            raise MissingError(self.manifest.place, f"{name} isn't listed")
        f = self._open(name, FileKind.ROWS, shard)
        if len(f) != count:
            raise LayoutError(f.name, f"{len(f)} records, must be {count}")
        return [f.record(i) for i in range(count)]

    def shared_rows(self, table: int, number: int) -> Record | None:
        """The record of rows that batch number shares with others: nodes.table 2, those of its group, 3, the hot ones; None where the set has none.

        Checked when it is first used."""
        r = self._hot
        if table == 2:
            per, group = self.params["batches_per_file"], self.params["group"]
            r = self._groups[number // per][number % per // group] if group else None
        if r is not None and (key := f"{r.file.name} {r.index}") not in self._crossed:
            r.verify()
            s, numbers = r.find("table.rows"), r.array("nodes.number")
            if r.space != Space.LOCAL or numbers is None or s is None or s.shape != (len(numbers), self.num_features):
                raise LayoutError(r.place, f"no rows of {self.num_features} columns with their nodes")
            if len(numbers) and int(numbers.max()) >= self.num_nodes:
                raise LayoutError(r.place, f"row of node {numbers.max()} of {self.num_nodes}")
            self._crossed.add(key)
        return r

    # Batches.

    def __len__(self) -> int:
        """Batches of one variant: steps of an epoch."""
        return self.batches_per_variant

    def batch(self, number: int) -> Batch:
        """A batch by its number in the set, variants one after the other. Checked in full when it is first used in this process."""
        if not 0 <= number < self.num_batches:
            raise IndexError(f"batch {number} of {self.num_batches}")
        per = self.params["batches_per_file"]
        f, i = (self._shards[number // per], number % per) if len(self._shards) > 1 else (self._shards[0], number)
        b = Batch(self, f.record(i))
        r = b.record
        if r.number != number or r.variant != number // self.batches_per_variant or r.task == Task.NONE:
            raise LayoutError(r.place, f"batch {r.number} of variant {r.variant}, task {r.task.name.lower()}; must be batch {number} of variant {number // self.batches_per_variant}")
        if r.space == Space.LOCAL and r.num_layers != self.num_layers:
            raise LayoutError(r.place, f"{r.num_layers} layers, the manifest says {self.num_layers}")
        self._cross(number, b)
        return b

    def _cross(self, key: str | int, b: Batch) -> None:
        if key not in self._crossed:
            if isinstance(key, int) and b.record.index == 0:
                b.record.file.verify_padding()  # the bytes between records belong to no record
            b.record.verify()
            check_across(b, self.num_nodes, self.num_classes, None if self._features is None else self.num_nodes)
            self._crossed.add(key)

    def order(self, epoch: int, seed: int = 1, shuffle: bool = True) -> np.ndarray:
        """Batch numbers in the order in which epoch takes them (from 0): variant epoch mod V, shuffled as trainer-gnn does with --seed. int64 [len(self)]"""
        if epoch < 0:
            raise ValueError(f"epoch {epoch}: epochs count from 0")
        n = self.batches_per_variant
        return epoch % self.num_variants * n + (epoch_order(seed, epoch, n) if shuffle else np.arange(n, dtype=np.int64))

    def epoch(self, epoch: int, seed: int = 1, shuffle: bool = True) -> Iterator[Batch]:
        """The batches of an epoch (from 0) in the trainer's order."""
        return (self.batch(int(number)) for number in self.order(epoch, seed, shuffle))

    def eval_blocks(self) -> Iterator[Batch]:
        """Exact blocks for evaluation: consecutive dst rows with all their in-neighbours, from node 0 to N. A model walks all of them once a layer.

        The one batch of a set of mode full is its one block; MismatchError where there are none (``--eval none``).
        """
        if not self._eval:
            if self.params["mode"] != "full":
                raise MismatchError(self.manifest.place, "no evaluation blocks; write the set with --eval layerwise")
            yield self.batch(0)
            return
        at = 0
        for k, (f, i) in enumerate(self._eval):
            b = Batch(self, f.record(i))
            if b.record.space != Space.GLOBAL or b.record.dst_start != at:
                raise LayoutError(b.record.place, f"rows from {b.record.dst_start}, the blocks before it end at {at}")
            self._cross(f"eval {k}", b)
            at = b.record.dst_end
            yield b
        if at != self.num_nodes:
            raise LayoutError(self.manifest.place, f"the evaluation blocks end at row {at} of {self.num_nodes}")

    # Tables.

    @property
    def features(self) -> np.ndarray | None:
        """The feature table as it is stored, [N, num_features]; None where the set has none. bf16 comes as u16."""
        return None if self._features is None else self._features.array("table.rows")

    def feature_rows(self, numbers: np.ndarray | None, out: np.ndarray | None = None) -> np.ndarray:
        """Rows of the feature table by number (all of them for None), f32 [len(numbers), num_features]. A view where all of a float32 table is asked for."""
        if self._features is None:
            text = "the snapshot has no features" if self.num_features == 0 else "the set was written with --link-features none; open it with features=SNAPSHOT/features.plf"
            raise MismatchError(self.manifest.place, text)
        s, table = self._features.find("table.rows"), self.features
        assert s is not None and table is not None
        if numbers is None:
            return to_float32(table, s.dtype, self._features.array("table.scale"), out)
        if out is not None and table.dtype == np.float32:
            return np.take(table, numbers, axis=0, out=out)
        return to_float32(np.take(table, numbers, axis=0), s.dtype, self._features.array("table.scale"), out)

    @property
    def labels(self) -> np.ndarray | None:
        """Targets of all nodes (see Batch.labels); None without labels."""
        return None if self._labels is None else self._labels.array("seeds.label")

    @property
    def class_names(self) -> list[str]:
        """Names of the classes, or of the columns of other targets."""
        return names_of(self._labels)

    @property
    def masks(self) -> np.ndarray | None:
        """Part of each node in each split, u8 [N, splits]; None without splits."""
        return None if self._splits is None else self._splits.array("seeds.mask")

    def part(self, part: Part | str, column: int = 0) -> np.ndarray:
        """Node numbers of a part of a split column, int64, ascending. Without splits every node is of the part train."""
        p, masks = Part[part.upper()] if isinstance(part, str) else Part(part), self.masks
        if masks is None:
            return np.arange(self.num_nodes if p == Part.TRAIN else 0)
        if not 0 <= column < masks.shape[1]:
            raise MismatchError(self.manifest.place, f"split column {column} of {masks.shape[1]}")
        return np.flatnonzero(masks[:, column] == p)

    def files(self) -> dict[str, File]:
        """The open files by name."""
        return dict(self._files)

    def verify(self) -> None:
        """Every check of SPEC 9: digests, every byte of every file, what files say of each other. Cost: two looks at each byte."""
        m = self.manifest
        want = manifest.digest(manifest.canonical({"params": m["params"], "snapshot_id": m["snapshot_id"]}))
        if m["set_key"] != want:
            raise LayoutError(m.place, f"set_key is {m['set_key']}, snapshot_id and params give {want}")
        manifest.verify_files(m)
        for f in self._files.values():
            f.verify()
        for number in range(self.num_batches):
            self.batch(number)
        if self._eval:
            for _ in self.eval_blocks():
                pass
        for r, names, what in ((self._labels, self.num_classes, "class names"), (self._splits, len(self.splits), "split names")):
            if r is not None and len(names_of(r)) != names:
                raise LayoutError(r.place, f"{len(names_of(r))} {what}, the manifest says {names}")
        if self._labels is not None:
            check_across(Batch(self, self._labels), self.num_nodes, self.num_classes, None)


def _reopen(dir: str, features: str | None, id: str) -> BatchSet:
    s = BatchSet(dir, features)
    if s.id != id:
        raise MismatchError(s.dir, f"batch set {s.id}, another process opened {id}")
    return s


def need(r: Record, name: str) -> np.ndarray:
    """A section of a table that must be there."""
    a = r.array(name)
    if a is None:
        raise MissingError(r.place, f"no section {name}")
    return a


def names_of(r: Record | None) -> list[str]:
    """The names in a table; none without the table."""
    return [] if r is None else Names(need(r, "names.offsets"), need(r, "names.bytes")).texts()
