"""Batch sets as a whole, against the graph that they were written of."""

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import prelift
from prelift import manifest
from prelift.order import epoch_order
from prelift.rows import to_float32
from prelift.tables import Ids

from . import artefacts
from .artefacts import mv


class WithSets(unittest.TestCase):
    def setUp(self):
        self._dir = tempfile.TemporaryDirectory()
        self.addCleanup(self._dir.cleanup)
        self.dir = Path(self._dir.name)

    def write(self, g, name="set", **options):
        return artefacts.write_set(self.dir / name, g, **options)


class TestFanout(WithSets):
    def test_batches(self):
        g = artefacts.Graph()
        for store in ("ids", "packed", "mixed"):
            with self.subTest(store):
                s = prelift.open(self.write(g, store, store=store))
                s.verify()
                for epoch in range(3):
                    seen = []
                    for b in s.epoch(epoch, seed=5):
                        self.assertEqual(b.variant, epoch % 2)
                        self.check_batch(g, b)
                        seen += b.seeds.tolist()
                    self.assertEqual(sorted(seen), np.flatnonzero((g.part == 1) & (g.label >= 0)).tolist())

    def check_batch(self, g, b):
        np.testing.assert_array_equal(b.features(), g.features[b.nodes])
        np.testing.assert_array_equal(b.features(1), g.features[b.nodes[:b.hop_nodes[1]]])
        np.testing.assert_array_equal(b.labels, g.label[b.seeds])
        self.assertEqual(b.external_ids(), [g.ids[v] for v in b.nodes])
        self.assertEqual([k.num_dst for k in b.blocks], [b.hop_nodes[1], b.num_seeds])
        self.assertEqual(b.layers(1)[0].num_dst, b.num_seeds)
        f = g.gcn(b.nodes)
        for k, fanout in zip(b.blocks, (3, 4)):
            w, own = k.edge_weight("gcn"), k.self_weight("gcn")
            for d in range(k.num_dst):
                v, row = int(b.nodes[d]), slice(k.indptr[d], k.indptr[d + 1])
                drawn = b.nodes[k.indices[row]]
                self.assertLessEqual(set(drawn.tolist()), set(g.rows[v]))
                self.assertEqual(len(drawn), min(g.degree(v), fanout))
                importance = g.degree(v) / max(len(drawn), 1)
                np.testing.assert_allclose(w[row], f[d] * importance * f[k.indices[row]], rtol=1e-6)
                self.assertAlmostEqual(own[d], 1 / (g.degree(v) + 1), 6)
            np.testing.assert_array_equal(k.edge_index(), [k.indices, k.dst])

    def test_layers(self):
        s = prelift.open(self.write(artefacts.Graph()))
        with self.assertRaisesRegex(prelift.MismatchError, "2 layers, the model has 3"):
            s.batch(0).layers(3)
        with self.assertRaisesRegex(prelift.MismatchError, "no coefficients mean, the set has gcn"):
            s.batch(0).blocks[0].coefficients("mean")
        with self.assertRaisesRegex(ValueError, "'gnc' is no coefficient kind"):
            s.batch(0).blocks[0].coefficients("gnc")

    def test_types(self):
        g = artefacts.Graph(nodes=60)
        for dtype in ("f16", "bf16", "int8"):
            want = artefacts.stored(g.features, dtype)[3]
            for store in ("ids", "packed", "mixed"):
                with self.subTest(dtype=dtype, store=store):
                    s = prelift.open(self.write(g, f"{dtype}-{store}", dtype=dtype, store=store, fanout=(2,)))
                    s.verify()
                    for b in s.epoch(0):
                        got = b.features()
                        self.assertEqual(got.dtype, np.float32)
                        if dtype == "int8" and store != "ids":  # every batch has a scale of its own
                            np.testing.assert_allclose(got, g.features[b.nodes], atol=np.abs(g.features).max() / 127)
                        else:
                            np.testing.assert_array_equal(got, want[b.nodes])

    def test_shared_rows(self):
        """Rows of groups and hot rows come through nodes.row and nodes.table, whatever their type; a record of other rows is refused."""
        g = artefacts.Graph(nodes=120)
        for dtype in ("f32", "f16", "bf16", "int8"):
            want = artefacts.stored(g.features, dtype)[3]
            for hot_rows, group in ((0.25, 0), (0, 2), (0.1, 3), (1, 0)):
                with self.subTest(dtype=dtype, hot_rows=hot_rows, group=group):
                    dir = self.write(g, f"{dtype}-{hot_rows}-{group}", dtype=dtype, store="packed", hot_rows=hot_rows, group=group, batch_size=9)
                    s = prelift.open(dir)
                    s.verify()
                    tables = set()
                    for b in s.epoch(1):
                        np.testing.assert_array_equal(b.features(), want[b.nodes])
                        np.testing.assert_array_equal(b.features(1), want[b.nodes[:b.num_input(1)]])
                        tables |= set(b.record.array("nodes.table").tolist())
                    self.assertEqual(tables - {1}, ({3} if hot_rows else set()) | ({2} if group else set()))
        for hot_rows, group, text in ((0.05, 2, "row .* of table 3, which has"), (0.1, 0, "rows-00000.plf isn't listed")):
            with self.subTest(text):
                a = self.write(g, f"a-{group}", store="packed", hot_rows=0.1, group=2)
                m = json.loads(Path(a, "manifest.json").read_text())
                other = self.write(g, f"b-{group}", store="packed", hot_rows=hot_rows, group=group)
                if group:
                    data = bytearray(Path(other, "hot.plf").read_bytes())
                    data[64:96] = bytes.fromhex(m["set_key"][7:])
                    data[124:128] = artefacts.mv.crc(bytes(data[:124])).to_bytes(4, "little")
                    Path(a, "hot.plf").write_bytes(data)
                    next(f for f in m["files"] if f["name"] == "hot.plf").update(size_bytes=str(len(data)), sha256=manifest.digest(bytes(data)))
                else:
                    m["files"] = [f for f in m["files"] if not f["name"].startswith("rows-")]
                data = manifest.canonical(m)
                Path(a, "manifest.json").write_bytes(data)
                Path(a, "manifest.sha256").write_text(manifest.digest(data)[7:] + "  manifest.json\n")
                with self.assertRaisesRegex(prelift.PreliftError, text):
                    list(prelift.open(a).epoch(0))

    def test_relations(self):
        g = artefacts.Graph(rels=3)
        s = prelift.open(self.write(g, norm=["none", "relmean"]))
        s.verify()
        for b in s.epoch(0):
            for k in b.blocks:
                np.testing.assert_array_equal(k.rel, [g.rel[int(b.nodes[d]), int(b.nodes[u])] for u, d in zip(k.indices, k.dst)])
                x = np.ones((k.num_src, 1), np.float32)
                kinds = [len({int(r) for r in k.rel[k.indptr[d]:k.indptr[d + 1]]}) for d in range(k.num_dst)]
                importance = k.coefficients("relmean").importance
                np.testing.assert_allclose(k.aggregate(x, "relmean")[:, 0], kinds * importance, rtol=1e-5)  # a mean of ones for each relation
                np.testing.assert_allclose(k.edge_weight("none"), importance[k.dst])

    def test_evaluation(self):
        """The evaluation blocks give what the full graph gives."""
        g = artefacts.Graph()
        s, full = prelift.open(self.write(g)), prelift.open(self.write(g, "full", mode="full"))
        full.verify()
        x = g.features.astype(np.float64)
        got = np.concatenate([b.blocks[0].aggregate(x, "gcn") for b in s.eval_blocks()])
        one = full.batch(0)
        np.testing.assert_allclose(got, one.layers(2)[1].aggregate(x, "gcn"), rtol=1e-12)
        dense = np.eye(g.nodes)
        for v, row in enumerate(g.rows):
            dense[v, row] = 1
        d = 1 / np.sqrt(dense.sum(axis=1))
        np.testing.assert_allclose(got, (d[:, None] * dense * d) @ x, atol=1e-5)
        self.assertEqual(list(full.eval_blocks())[0].num_nodes, g.nodes)
        self.assertEqual((s.class_names, s.splits), (["class 0", "class 1", "class 2"], ["only"]))
        np.testing.assert_array_equal(s.labels, g.label)
        np.testing.assert_array_equal(s.masks[:, 0], g.part)
        self.assertEqual([s.ids.number(i) for i in g.ids], list(range(g.nodes)))
        np.testing.assert_array_equal(np.concatenate([b.seeds for b in s.eval_blocks()]), np.arange(g.nodes))
        for part in ("train", "valid", "test"):
            np.testing.assert_array_equal(np.flatnonzero(one.in_part(part)), s.part(part))
        t = one.blocks[0].transpose
        np.testing.assert_array_equal(one.blocks[0].indices[t.edge], np.repeat(np.arange(g.nodes), np.diff(t.indptr)))

    def test_subgraphs(self):
        """A local batch without layers has one block over its nodes, for any depth; the seeds are its first nodes."""
        g = artefacts.Graph()
        s = prelift.open(self.write(g, mode="khop"))
        s.verify()
        for b in s.epoch(0):
            one, two = b.layers(2)
            there = set(b.nodes.tolist())
            self.assertEqual((one.num_dst, two.num_src, b.num_input(2)), (b.num_nodes,) * 3)
            self.assertEqual((b.num_input(0), len(b.features(0))), (b.num_seeds,) * 2)
            np.testing.assert_array_equal(b.labels, g.label[b.seeds])
            np.testing.assert_array_equal(b.features(2), g.features[b.nodes])
            self.assertEqual({(int(b.nodes[u]), int(b.nodes[v])) for u, v in one.edge_index().T}, {(u, v) for v in there for u in g.rows[v] if u in there})
            np.testing.assert_allclose(one.self_weight("gcn"), [1 / (g.degree(v) + 1) for v in b.nodes], rtol=1e-6)

    def test_pairs(self):
        def pairs(nodes, seeds):
            return [artefacts.i32(mv.P_SRC, [0, 1]), artefacts.i32(mv.P_DST, [1, 2]), artefacts.f32(mv.P_LABEL, [1, 0]), artefacts.f32(mv.S_WEIGHT, np.arange(len(seeds)))]
        s = prelift.open(self.write(artefacts.Graph(nodes=60), extra=pairs))
        b = s.batch(0)
        self.assertEqual((b.pairs.src.tolist(), b.pairs.dst.tolist(), b.pairs.label.tolist(), b.pairs.rel), ([0, 1], [1, 2], [1, 0], None))
        self.assertEqual(b.seed_weight.tolist(), list(range(b.num_seeds)))

    def test_absent_table(self):
        def shared(nodes, seeds):
            return [artefacts.i32(mv.NODES_ROW, [0] * len(nodes)), mv.Section(mv.NODES_TABLE, mv.U8, bytes([2] * len(nodes)))]
        s = prelift.open(self.write(artefacts.Graph(nodes=60), extra=shared))
        with self.assertRaisesRegex(prelift.LayoutError, "table 2"):
            s.batch(0).features()

    def test_views(self):
        """Arrays are views that nobody can write to; gathered features are the caller's."""
        s = prelift.open(self.write(artefacts.Graph(nodes=60), store="packed"))
        b = s.batch(0)
        for a in (b.nodes, b.blocks[0].indices, b.labels, b.features(), s.features):
            self.assertFalse(a.flags.writeable)
            self.assertFalse(a.flags.owndata)
        out = np.empty((b.num_nodes, s.num_features), np.float32)
        self.assertIs(b.features(out=out), out)
        np.testing.assert_array_equal(out, b.features())

    def test_pickle(self):
        s = prelift.open(self.write(artefacts.Graph(nodes=60)))
        again = pickle.loads(pickle.dumps(s))
        np.testing.assert_array_equal(again.batch(1).nodes, s.batch(1).nodes)
        shutil.rmtree(s.dir)
        data = pickle.dumps(s)
        self.write(artefacts.Graph(nodes=61))
        with self.assertRaisesRegex(prelift.MismatchError, "another process opened"):
            pickle.loads(data)


class TestRefused(WithSets):
    def rewrite(self, dir, change):
        """Changes the manifest and makes its sum fit."""
        path = Path(dir, "manifest.json")
        m = json.loads(path.read_text())
        change(m)
        text = manifest.canonical(m)
        path.write_bytes(text)
        Path(dir, "manifest.sha256").write_text(hashlib.sha256(text).hexdigest() + "  manifest.json\n")

    def test_manifest(self):
        def files(m):
            return {f["name"]: f for f in m["files"]}
        for name, change, label, part in (
            ("key", lambda m: m.update(set_key="sha256:" + "0" * 64), "mismatch", "set key"),
            ("snapshot", lambda m: m.update(snapshot_id="sha256:" + "1" * 64), "mismatch", "snapshot"),
            ("batches", lambda m: m.update(num_batches="7", batches_per_variant="7", params={**m["params"], "variants": 1}), "layout", "the shards have"),
            ("variants", lambda m: m.update(params={**m["params"], "variants": 0}), "layout", "0 variants"),
            ("nodes", lambda m: m.update(num_nodes="59"), "layout", "the manifest says 59"),
            ("columns", lambda m: m.update(num_features="9"), "layout", "9 columns"),
            ("negative", lambda m: m.update(num_nodes="-1"), "layout", "must not be negative"),
            ("layers", lambda m: m.update(num_layers=3), "layout", "2 layers"),
            ("classes", lambda m: m.update(num_classes="2"), "layout", "must be below 2"),
            ("eval", lambda m: m.update(num_eval_blocks="1"), "layout", "num_eval_blocks"),
            ("field", lambda m: m["params"].update(mood="good"), "layout", "unknown field 'mood'"),
            ("type", lambda m: m["params"].update(fanout=["4"]), "layout", "element 0 must be a whole number"),
            ("kind", lambda m: m.update(kind="batches"), "version", "kind 'batches'"),
            ("shard", lambda m: m.update(files=[f for f in m["files"] if f["name"] != "batches-00000.plf"]), "missing", "batches-00000.plf"),
            ("ids", lambda m: m.update(files=[f for f in m["files"] if f["name"] != "ids.plf"]), "missing", "ids.plf"),
        ):
            with self.subTest(name):
                dir = self.write(artefacts.Graph(nodes=60), name, batch_size=10)
                self.rewrite(dir, change)
                with self.assertRaises(prelift.PreliftError) as raised:
                    s = prelift.open(dir)
                    for number in range(s.num_batches):
                        s.batch(number)
                self.assertEqual(raised.exception.label, label, raised.exception)
                self.assertIn(part, str(raised.exception))
                self.assertTrue(str(raised.exception).isprintable())

    def test_swapped_shards(self):
        dir = Path(self.write(artefacts.Graph(), batch_size=10))
        a, b = dir / "batches-00000.plf", dir / "batches-00001.plf"
        b_bytes = b.read_bytes()
        b.write_bytes(a.read_bytes())
        a.write_bytes(b_bytes)

        def fix(m):
            for f in m["files"]:
                path = dir / f["name"]
                f.update(size_bytes=str(path.stat().st_size), sha256="sha256:" + hashlib.sha256(path.read_bytes()).hexdigest())
        self.rewrite(dir, fix)
        with self.assertRaisesRegex(prelift.LayoutError, "shard 1, its name says 0"):
            prelift.open(dir)

    def test_numbers_beyond(self):
        def far(nodes, seeds):
            return [artefacts.i32(mv.NODES_ROW, [60] + [0] * (len(nodes) - 1))]
        s = prelift.open(self.write(artefacts.Graph(nodes=60), extra=far))
        with self.assertRaisesRegex(prelift.LayoutError, "nodes.row: .*element 0 is 60, must be below 60"):
            s.batch(0)

    def test_damage(self):
        """A batch is checked when it is first used, others don't suffer."""
        dir = self.write(artefacts.Graph(), batch_size=10)
        path = Path(dir, "batches-00000.plf")
        b = bytearray(path.read_bytes())
        b[-1] ^= 1  # the last record of the shard
        path.write_bytes(b)
        s = prelift.open(dir)
        s.batch(0), s.batch(1)
        with self.assertRaises(prelift.ChecksumError):
            s.batch(2)
        with self.assertRaises(prelift.ChecksumError):
            s.verify()

    def test_without_features(self):
        s = prelift.open(self.write(artefacts.Graph(nodes=60), features=False))
        with self.assertRaisesRegex(prelift.MismatchError, "the snapshot has no features"):
            s.batch(0).features()

    def test_errors_pickle(self):
        e = prelift.LayoutError("place\n", "text\x1b")
        again = pickle.loads(pickle.dumps(e))
        self.assertEqual((str(again), again.label, again.place), ("place\\n: invalid layout: text\\x1b", "layout", "place\\n"))


class TestParts(unittest.TestCase):
    def test_order(self):
        self.assertEqual(epoch_order(1, 0, 8).tolist(), [4, 7, 0, 6, 3, 5, 1, 2])  # SPEC 8.1
        self.assertEqual(epoch_order(1, 1, 8).tolist(), [0, 6, 7, 1, 5, 3, 2, 4])
        self.assertEqual(epoch_order(2**64 - 1, 7, 5).tolist(), [0, 4, 3, 1, 2])
        self.assertEqual(epoch_order(1, 0, 0).tolist(), [])

    def test_bf16(self):
        """Each bf16 is the float32 whose upper half it is, NaN and infinity too."""
        bits = np.arange(1 << 16, dtype=np.uint16).reshape(-1, 4)
        got = to_float32(bits, prelift.DType.BF16)
        np.testing.assert_array_equal(got.view(np.uint32), bits.astype(np.uint32) << 16)

    def test_ids(self):
        for words in ([b"-3", b"0", b"7", b"12"], [b"-3", b"007", b"7", "né".encode()], [b"a"], [], [b"", b"10", b"9"], [b"\xff"]):
            ids = Ids(np.cumsum([0] + [len(w) for w in words]), np.frombuffer(b"".join(words), np.uint8))
            self.assertEqual(list(ids), words)
            self.assertEqual(ids.numbers(words).tolist(), list(range(len(words))))
            self.assertEqual(ids.numbers(ids.texts()).tolist(), list(range(len(words))))
            for other in (b"8", b"zz", b"-4", b"00"):
                with self.assertRaises(KeyError):
                    ids.number(other)

    def test_canonical(self):
        """RFC 8785, appendix B and section 3.2.2."""
        for bits, text in ((0, "0"), (1 << 63, "0"), (1, "5e-324"), (0x7FEFFFFFFFFFFFFF, "1.7976931348623157e+308"), (0x4340000000000000, "9007199254740992"),
                           (0x4430000000000000, "295147905179352830000"), (0x44B52D02C7E14AF5, "9.999999999999997e+22"), (0x44B52D02C7E14AF6, "1e+23"),
                           (0x444B1AE4D6E2EF4E, "999999999999999700000"), (0x444B1AE4D6E2EF50, "1e+21"), (0x3EB0C6F7A0B5ED8D, "0.000001"),
                           (0x3EB0C6F7A0B5ED8C, "9.999999999999997e-7"), (0x41B3DE4355555553, "333333333.3333332"), (0xBECBF647612F3696, "-0.0000033333333333333333"),
                           (0x43143FF3C1CB0959, "1424953923781206.2")):
            x = np.array([bits], np.uint64).view(np.float64)[0]
            self.assertEqual(manifest.canonical(float(x)), text.encode())
        self.assertEqual(manifest.canonical({"b": [1, 1.5, True, None, "€$\u000f\nA'B\"\\\""], "": {}, "\u20ac": 1, "\r": 2, "\U0001f600": 3, "\ufb33": 4}),
                         '{"":{},"\\r":2,"b":[1,1.5,true,null,"€$\\u000f\\nA\'B\\"\\\\\\""],"€":1,"\U0001f600":3,"\ufb33":4}'.encode())


class TestSpec(unittest.TestCase):
    """prelift/layout.py against the tables of SPEC.md."""

    @classmethod
    def setUpClass(cls):
        cls.tables, header = {}, None
        for line in (Path(__file__).resolve().parents[3] / "SPEC.md").read_text().splitlines():
            cells = [c.strip().strip("`") for c in line.strip().strip("|").split("|")] if line.startswith("|") else None
            if cells is None:
                header = None
            elif header is None:
                header = cells
            elif not set("".join(cells)) <= set("- "):
                cls.tables.setdefault(header[0], []).append(cells)

    def test_constants(self):
        from prelift import layout
        names = {"Version": "VERSION", "ByteOrderMark": "BYTE_ORDER_MARK", "HeaderSize": "HEADER_SIZE", "TableEntrySize": "TABLE_ENTRY_SIZE", "RecordHeaderSize": "RECORD_HEADER_SIZE",
                 "SectionEntrySize": "SECTION_ENTRY_SIZE", "SectionAlign": "SECTION_ALIGN", "RecordAlign": "RECORD_ALIGN", "RecordMark": "RECORD_MARK", "MaxRecords": "MAX_RECORDS",
                 "MaxSections": "MAX_SECTIONS", "MaxLayers": "MAX_LAYERS", "MaxHops": "MAX_HOPS", "MaxColumns": "MAX_COLUMNS"}
        self.assertEqual({row[0]: int(row[1], 0) for row in self.tables["constant"]}, {spec: getattr(layout, ours) for spec, ours in names.items()})

    def test_kinds(self):
        from prelift.layout import KINDS
        spec = {}
        for number, name, dtypes, shape, _ in self.tables["section kind"]:
            ranks = {s.count(",") + 1 for s in shape.split(" or ")}
            spec[int(number, 0)] = (name, set(dtypes.split(", ")), ranks)
        self.assertEqual({k.number: (k.name, {t.name.lower() for t in k.dtypes}, set(k.ranks)) for k in KINDS.values()}, spec)

    def test_words(self):
        from prelift.layout import Coef, DType, FileKind, NUMPY
        self.assertEqual([(int(r[0]), r[1]) for r in self.tables["file kind"]], [(k.value, k.name.lower()) for k in FileKind])
        self.assertEqual([(int(r[0]), r[1], int(r[2])) for r in self.tables["dtype"]], [(t.value, t.name.lower(), NUMPY[t].itemsize) for t in DType])
        self.assertEqual([(int(r[0]), r[1]) for r in self.tables["coef"]], [(c.value, c.name.lower()) for c in Coef])
        classes = {c.label: c.exit_code for c in prelift.PreliftError.__subclasses__()}
        self.assertEqual({r[0]: int(r[2]) for r in self.tables["error class"]}, classes)

    def test_fields(self):
        from prelift import batchset, snapshot
        for table, fields, params in (("batch set field", batchset.FIELDS, batchset.PARAMS), ("snapshot field", snapshot.FIELDS, snapshot.PARAMS)):
            rows = {r[0]: r for r in self.tables[table]}
            self.assertEqual(set(rows), set(fields) - set(manifest.COMMON_FIELDS))
            for name in params:
                self.assertRegex("`" + rows["params"][2], f"`{name}`")


class TestCommand(WithSets):
    def prelift(self, *args):
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
        r = subprocess.run([sys.executable, "-m", "prelift", *args], capture_output=True, text=True, env=env)
        return r.returncode, r.stdout, r.stderr

    def test_command(self):
        dir = self.write(artefacts.Graph(nodes=60))
        code, out, err = self.prelift(dir)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("sha256:" + hashlib.sha256(Path(dir, "manifest.json").read_bytes()).hexdigest(), out)
        code, out, _ = self.prelift(dir, "--json")
        self.assertEqual(json.loads(out)["verified"], True)
        path = Path(dir, "ids.plf")
        code, out, err = self.prelift(str(path))
        self.assertEqual(code, 0)
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-1])
        for args, want, part in (([dir], 4, "ids.plf: truncated"), ([str(path)], 4, "ids.plf: truncated"), ([str(path) + "x"], 3, "No such file"), ([str(self.dir)], 4, "manifest.json isn't there"),
                                 ([str(path), "--epoch", "1"], 4, "truncated"), ([], 2, "usage")):
            code, out, err = self.prelift(*args)
            self.assertEqual((code, out), (want, ""), err)
            self.assertIn(part, err)


if __name__ == "__main__":
    unittest.main()
