"""Artefacts for the tests: a small graph as a batch set, written from SPEC.md.

The bytes are put together by format/testdata/make_vectors.py, which knows SPEC.md on its own and Python's standard library only.
"""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np

_path = Path(__file__).resolve().parents[2] / "testdata" / "make_vectors.py"
_spec = importlib.util.spec_from_file_location("make_vectors", _path)
mv = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(mv)

PART = {"none": 0, "train": 1, "valid": 2, "test": 3}


class Graph:
    """An undirected block model: neighbours mostly of one's own class, features that lean towards it."""

    def __init__(self, nodes=240, classes=3, degree=6, columns=8, rels=1, seed=1):
        rng = np.random.default_rng(seed)
        self.nodes, self.classes, self.rels = nodes, classes, rels
        self.ids = sorted(b"n%d" % i for i in range(nodes))
        self.label = rng.integers(0, classes, nodes).astype(np.int32)
        self.part = rng.choice([1, 1, 2, 3], nodes).astype(np.uint8)
        self.label[::17] = -1
        self.part[::17] = 0
        pairs = set()
        for v in range(nodes - 1):  # the last node stays alone
            for _ in range(degree // 2):
                alike = np.flatnonzero(self.label[:-1] == self.label[v])
                u = int(rng.choice(alike)) if rng.random() < 0.9 else int(rng.integers(0, nodes - 1))
                if u != v:
                    pairs.add((min(u, v), max(u, v)))
        self.rows = [[] for _ in range(nodes)]
        for u, v in sorted(pairs):
            self.rows[u].append(v)
            self.rows[v].append(u)
        self.rows = [sorted(r) for r in self.rows]
        self.features = rng.normal(0, 1, (nodes, columns)).astype(np.float32)
        self.features[np.arange(nodes), self.label % columns] += 1.5
        self.rel = {(v, u): (u + v) % rels for v in range(nodes) for u in self.rows[v]}

    def degree(self, v):
        return len(self.rows[v])

    def gcn(self, nodes):
        return np.array([1 / np.sqrt(self.degree(v) + 1) for v in nodes], np.float32)


def stored(rows, dtype):
    """(section type, bytes, scale, what a reader must make of them)."""
    if dtype == "f32":
        return mv.F32, rows.tobytes(), None, rows
    if dtype == "f16":
        return mv.F16, rows.astype("<f2").tobytes(), None, rows.astype("<f2").astype(np.float32)
    if dtype == "bf16":
        bits = rows.view(np.uint32) & np.uint32(0xFFFF0000)
        return mv.BF16, (bits >> 16).astype("<u2").tobytes(), None, bits.view(np.float32)
    scale = (np.abs(rows).max(axis=0) / 127).astype(np.float32)
    q = np.rint(rows / scale).astype("<i1")
    return mv.I8, q.tobytes(), scale, np.array([[np.float32(np.float32(e) * s) for e, s in zip(r, scale)] for r in q], np.float32)


def rows_sections(rows, dtype):
    t, data, scale, _ = stored(rows, dtype)
    return [mv.Section(mv.ROWS, t, data, shape=list(rows.shape))] + ([] if scale is None else [f32(mv.SCALE, scale)])


def f32(kind, values, **o):
    return mv.Section(kind, mv.F32, np.asarray(values, np.float32).tobytes(), **o)


def i32(kind, values, **o):
    return mv.Section(kind, mv.I32, np.asarray(values, np.int32).tobytes(), **o)


def i64(kind, values, **o):
    return mv.Section(kind, mv.I64, np.asarray(values, np.int64).tobytes(), **o)


def write_set(dir, g, mode="fanout", fanout=(4, 3), batch_size=32, variants=2, per_file=3, store="ids", dtype="f32", norm=("gcn",), extra=lambda nodes, seeds: [],
              features=True, eval_rows=50, hot_rows=0, group=0):
    """A batch set of g in dir. store: ids, packed, or mixed (some rows of the batch's own, some of the table).

    hot_rows, group: as the parameters of the set. The first nodes are hot, which is a rule of these tests."""
    dir = Path(dir)
    dir.mkdir()
    rng = np.random.default_rng(7)
    snapshot_id, snapshot_key = hashlib.sha256(b"snapshot").digest(), hashlib.sha256(b"snapshot key").digest()
    params = dict(task="node", mode=mode, transpose="inner", store="packed" if store == "packed" else "ids", dtype=dtype, eval="layerwise", order="random", link_features="auto", index_codec="raw",
                  fanout=list(fanout) if mode == "fanout" else [], norm=list(norm), batch_size=batch_size if mode != "full" else 0, variants=variants if mode != "full" else 1, split=0 if mode != "full" else -1,
                  batches_per_file=per_file, seed="1", hot_rows=hot_rows, group=group)
    hex_id = lambda b: "sha256:" + b.hex()  # noqa: E731
    set_key = hashlib.sha256(mv.canonical({"snapshot_id": hex_id(snapshot_id), "params": params})).digest()
    written = {}

    def put(name, kind, records, linked=False, shard=0):
        b = mv.build(kind, records, set_key=snapshot_key if linked else set_key, snapshot_id=bytes(32) if linked else snapshot_id, shard=shard)
        (dir / name).write_bytes(b)
        written[name] = b

    def names_of(words):
        return mv.names([w.encode() for w in words])

    n = g.nodes
    keys = b"".join(hashlib.sha256(w).digest()[:8][::-1] for w in g.ids)
    put("ids.plf", mv.IDS, [mv.table_record(n, [i64(mv.ID_OFFSETS, mv.offsets_of(g.ids)), mv.Section(mv.ID_BYTES, mv.U8, b"".join(g.ids)), mv.Section(mv.ID_KEY, mv.U64, keys)])], True)
    put("labels.plf", mv.LABELS, [mv.table_record(n, [i32(mv.S_LABEL, g.label)] + names_of([f"class {c}" for c in range(g.classes)]), num_seeds=n)], True)
    put("splits.plf", mv.LABELS, [mv.table_record(n, [mv.Section(mv.S_MASK, mv.U8, g.part.tobytes(), shape=[n, 1])] + names_of(["only"]), num_seeds=n)], True)
    if features:
        put("features.plf", mv.FEATURES, [mv.table_record(n, rows_sections(g.features, dtype))], dtype == "f32")

    def csr(rows, layer=mv.ANY_LAYER):
        flat = [u for r in rows for u in r]
        return [i64(mv.INDPTR, np.cumsum([0] + [len(r) for r in rows]), layer=layer), i32(mv.INDICES, flat, layer=layer)]

    def gcn_sections(nodes, num_dst=None):
        if "gcn" not in norm:
            return []
        f = g.gcn(nodes)
        return [f32(mv.C_SRC, f, coef=mv.GCN), f32(mv.C_DST, f[:num_dst], coef=mv.GCN), f32(mv.C_SELF, (f * f)[:num_dst], coef=mv.GCN)]

    def relation_sections(dst_nodes, rows, src_nodes, layer):
        """Edges of a row sorted by relation, with relptr, and relmean as one number an edge."""
        rel = [[g.rel[v, int(src_nodes[s])] for s in r] for v, r in zip(dst_nodes, rows)]
        flat, relptr, edge = [], [0], []
        for r in rel:
            flat += r
            for k in range(g.rels):
                relptr.append(relptr[-1] + r.count(k))
            edge += [1 / r.count(k) for k in r]
        out = [i32(mv.REL, flat, layer=layer), i64(mv.RELPTR, relptr, layer=layer)]
        return out + ([f32(mv.C_EDGE, edge, layer=layer, coef=mv.RELMEAN)] if "relmean" in norm else [])

    counts = dict(rows=0, edges=0, nodes=0, seeds=0, record=0)
    layer_max = [0] * max(1, len(fanout))

    def batch(number, variant, seeds):
        hops, nodes, draws = [len(seeds)], [int(v) for v in seeds], []
        place = {v: i for i, v in enumerate(nodes)}
        for k in fanout:
            drawn = []
            for v in nodes[:hops[-1]]:
                row = g.rows[v] if k < 0 or len(g.rows[v]) <= k else sorted(rng.choice(g.rows[v], k, replace=False).tolist())
                drawn.append([int(u) for u in row])
            for u in sorted({u for r in drawn for u in r} - set(place)):
                place[u] = len(nodes)
                nodes.append(u)
            hops.append(len(nodes))
            draws.append(drawn)
        sections, edges = [i32(mv.NODES_NUMBER, nodes)], []
        blocks, num_layers = [], len(fanout)
        for layer in range(num_layers):
            drawn = draws[num_layers - 1 - layer]
            local = [[place[u] for u in r] for r in drawn]
            if g.rels > 1:
                local = [sorted(r, key=lambda s, v=v: (g.rel[v, nodes[s]], nodes[s])) for v, r in zip(nodes, local)]
            blocks += csr(local, layer)
            if g.rels > 1:
                blocks += relation_sections(nodes, local, nodes, layer)
            importance = [g.degree(v) / len(r) if r else 1 for v, r in zip(nodes, drawn)]
            blocks.append(f32(mv.C_IMPORTANCE, importance, layer=layer))
            row_edges = [len(r) for r in drawn]
            bounds = [0] + hops
            edges += [sum(row_edges[bounds[h]:bounds[h + 1]]) if h < num_layers - layer else 0 for h in range(num_layers + 1)]
            layer_max[layer] = max(layer_max[layer], sum(row_edges))
        own, sections_own = list(range(len(nodes))), []
        if store == "mixed":  # every third row in the batch, in turned order, the others in the table
            own = [i for i in range(len(nodes)) if i % 3 == 0][::-1]
            row = np.array(nodes, np.int32)
            row[own] = np.arange(len(own))
            table = np.zeros(len(nodes), np.uint8)
            table[own] = 1
            sections_own = [i32(mv.NODES_ROW, row), mv.Section(mv.NODES_TABLE, mv.U8, table.tobytes())]
        sections += sections_own + blocks + gcn_sections(nodes, hops[-2]) + [i32(mv.S_LABEL, g.label[seeds])]
        if store in ("packed", "mixed"):
            sections += rows_sections(g.features[np.array(nodes)[own]], dtype)
        sections += extra(nodes, seeds)
        counts["rows"] += len(nodes)
        counts["edges"] += sum(edges)
        counts["nodes"], counts["seeds"] = max(counts["nodes"], len(nodes)), max(counts["seeds"], len(seeds))
        return mv.Record(sections, hops, edges, task=mv.NODE, split=PART["train"], number=number, variant=variant, num_seeds=len(seeds), split_column=0)

    def subgraph(number, variant, seeds):
        """A batch without layers: the seeds, their neighbours, and all edges among them."""
        nodes = [int(v) for v in seeds] + sorted({u for v in seeds for u in g.rows[v]} - {int(v) for v in seeds})
        place = {v: i for i, v in enumerate(nodes)}
        rows = [[place[u] for u in g.rows[v] if u in place] for v in nodes]
        sections = [i32(mv.NODES_NUMBER, nodes)] + csr(rows) + gcn_sections(nodes) + [i32(mv.S_LABEL, g.label[seeds])]
        if store == "packed":
            sections += rows_sections(g.features[nodes], dtype)
        counts["rows"] += len(nodes)
        counts["edges"] += sum(map(len, rows))
        counts["nodes"], counts["seeds"] = max(counts["nodes"], len(nodes)), max(counts["seeds"], len(seeds))
        layer_max[0] = max(layer_max[0], sum(map(len, rows)))
        return mv.Record(sections, [len(nodes)], task=mv.NODE, split=PART["train"], number=number, variant=variant, num_seeds=len(seeds), split_column=0)

    def share(records):
        """Moves the rows of packed batches to hot.plf and rows-*.plf."""
        numbers = [np.frombuffer(next(s.data for s in r.sections if s.kind == mv.NODES_NUMBER), "<i4") for r in records]
        hot = np.arange(int(hot_rows * n))
        all_rows = rows_sections(g.features, dtype)

        def rows_of(nodes):
            width = len(all_rows[0].data) // n
            return [mv.Section(mv.ROWS, all_rows[0].dtype, b"".join(all_rows[0].data[v * width:(v + 1) * width] for v in nodes), shape=[len(nodes), g.features.shape[1]])] + all_rows[1:]

        def record(number, nodes):
            return mv.Record([i32(mv.NODES_NUMBER, nodes)] + rows_of(nodes), [len(nodes)], number=number)
        if hot_rows:
            put("hot.plf", mv.SHARED_ROWS, [record(0, hot)])
        number = 0
        for shard, i in enumerate(range(0, len(records), per_file)):
            of_shard = range(i, min(i + per_file, len(records)))
            groups = []
            for first in of_shard[::group or len(of_shard)]:
                members = range(first, min(first + (group or len(of_shard)), of_shard.stop))
                nodes, uses = np.unique(np.concatenate([numbers[b] for b in members]), return_counts=True)
                shared = nodes[(uses > 1) & (nodes >= len(hot))] if group else nodes[:0]
                groups.append(record(number, shared))
                number += 1
                for b in members:
                    table = np.where(numbers[b] < len(hot), 3, np.where(np.isin(numbers[b], shared), 2, 1))
                    row = np.where(table == 3, numbers[b], np.where(table == 2, np.searchsorted(shared, numbers[b]), np.cumsum(table == 1) - 1))
                    records[b].sections = [s for s in records[b].sections if s.kind not in (mv.ROWS, mv.SCALE)] + rows_of(numbers[b][table == 1]) + [
                        i32(mv.NODES_ROW, row), mv.Section(mv.NODES_TABLE, mv.U8, table.astype("u1").tobytes())]
            if group:
                put(f"rows-{shard:05d}.plf", mv.SHARED_ROWS, groups, shard=shard)

    full_rows = [list(r) for r in g.rows]
    mask = lambda lo, hi: mv.Section(mv.S_MASK, mv.U8, g.part[lo:hi].tobytes(), shape=[hi - lo, 1])  # noqa: E731
    if mode == "full":
        t = [i64(mv.T_INDPTR, np.cumsum([0] + [len(r) for r in full_rows])), i32(mv.T_INDICES, [u for r in full_rows for u in r])]  # the graph is its own transpose
        order = sorted((u, v) for v in range(n) for u in g.rows[v])
        at = {e: i for i, e in enumerate((u, v) for v in range(n) for u in g.rows[v])}
        t.append(i64(mv.T_EDGE, [at[e] for e in order]))
        records = [mv.Record(csr(full_rows) + t + gcn_sections(range(n)) + [i32(mv.S_LABEL, g.label), mask(0, n)], [n], space=mv.GLOBAL, task=mv.NODE, dst_end=n, num_seeds=n)]
        per_variant, seeds = 1, np.flatnonzero(g.label >= 0)
        counts.update(rows=n, edges=len(order), nodes=n, seeds=n)
    else:
        seeds = np.flatnonzero((g.part == 1) & (g.label >= 0))
        chunks = [seeds[i:i + batch_size] for i in range(0, len(seeds), batch_size)]
        make = subgraph if mode == "khop" else batch
        records = [make(v * len(chunks) + i, v, c) for v in range(variants) for i, c in enumerate(chunks)]
        per_variant = len(chunks)
        blocks = [mv.Record(csr(full_rows[lo:lo + eval_rows]) + [i32(mv.S_LABEL, g.label[lo:lo + eval_rows]), mask(lo, min(lo + eval_rows, n))], [n], space=mv.GLOBAL, task=mv.NODE,
                            dst_start=lo, dst_end=min(lo + eval_rows, n), num_seeds=min(lo + eval_rows, n) - lo, number=lo // eval_rows) for lo in range(0, n, eval_rows)]
        put("eval-00000.plf", mv.EVAL, blocks)
        put("coefs.plf", mv.COEFS, [mv.table_record(n, gcn_sections(range(n)))])
    if hot_rows or group:
        share(records)
    for shard, i in enumerate(range(0, len(records), per_file)):
        put(f"batches-{shard:05d}.plf", mv.BATCHES, records[i:i + per_file], shard=shard)

    def info(name):
        return {"name": name, "size_bytes": str(len(written[name])), "sha256": hex_id(hashlib.sha256(written[name]).digest())}
    size = sum(len(b) for name, b in written.items() if name.startswith("batches-"))
    m = dict(kind="batch_set", format_version=1, set_key=hex_id(set_key), snapshot_id=hex_id(snapshot_id), snapshot_key=hex_id(snapshot_key), params=params,
             files=[info(name) for name in sorted(written)], num_nodes=str(n), num_features=str(g.features.shape[1] if features else 0), label_task="multiclass", num_classes=str(g.classes),
             splits=["only"], directed=False, weighted=False, num_layers=0 if mode in ("full", "khop") else len(fanout), num_batches=str(len(records)), batches_per_variant=str(per_variant),
             num_seeds=str(len(seeds)), num_rows=str(counts["rows"]), num_sampled_edges=str(counts["edges"]),
             maxima=dict(nodes=str(counts["nodes"]), seeds=str(counts["seeds"]), layer_edges=[str(e) for e in layer_max], record_bytes=str(size)),
             num_eval_blocks=str(0 if mode == "full" else len(blocks)), max_eval_edges="0", bytes=str(size), bytes_per_variant=str(size // max(params["variants"], 1)), eval_bytes="0",
             num_hot_rows="0", num_group_rows="0", feature_table_bytes=str(4 * g.features.size if features else 0))
    if features:
        m["features"] = info("features.plf")
        if dtype != "f32":
            m["row_error"] = dict(relative=0, absolute=1, largest=0.5)
    text = mv.canonical(m)
    (dir / "manifest.json").write_bytes(text)
    (dir / "manifest.sha256").write_text(hashlib.sha256(text).hexdigest() + "  manifest.json\n")
    return str(dir)
