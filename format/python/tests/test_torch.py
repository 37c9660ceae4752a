"""PyTorch, PyG and DGL. Each is skipped, with the reason, where it can't be imported; `make python-adapters` has them all."""

import importlib.util
import os
import runpy
import sys
import unittest
import warnings
from pathlib import Path

import numpy as np

import prelift

from . import artefacts
from .test_sets import WithSets


def needs(name, package):
    there = importlib.util.find_spec(name) is not None
    return unittest.skipUnless(there, f"{name} isn't here for {sys.executable} ({package}); make python-adapters has it")


with_torch = needs("torch", "Debian: python3-torch")
if importlib.util.find_spec("torch"):
    import torch

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


class TestLazy(unittest.TestCase):
    def test_nothing_is_imported(self):
        code = "import sys, prelift, prelift.__main__; sys.exit(any(m in sys.modules for m in ('torch', 'dgl', 'torch_geometric')))"
        self.assertEqual(os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}), 0)


@with_torch
class TestTensors(WithSets):
    def test_views(self):
        """Tensors share memory with the file's mapping, without a warning; a write stays in the process."""
        dir = self.write(artefacts.Graph(nodes=60), store="packed")
        s = prelift.open(dir)
        b = s.batch(0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            t = b.torch()
        for a, x in ((b.nodes, t.n_id), (b.features(), t.x), (b.blocks[0].indptr, t.blocks[0].indptr), (b.blocks[1].indices, t.blocks[1].indices)):
            self.assertEqual(a.__array_interface__["data"][0], x.data_ptr())
            np.testing.assert_array_equal(a, x.numpy())
        before = Path(dir, "batches-00000.plf").read_bytes()
        own = b.torch(copy=True)
        own.x += 1
        self.assertNotEqual(float(own.x[0, 0]), float(t.x[0, 0]))
        t.x += 1
        self.assertEqual(float(b.features()[0, 0]), float(t.x[0, 0]))
        self.assertEqual(Path(dir, "batches-00000.plf").read_bytes(), before)
        prelift.open(dir).verify()

    def test_targets(self):
        s = prelift.open(self.write(artefacts.Graph(), "full", mode="full"))
        b = s.batch(0)
        t = b.torch(num_layers=2)
        np.testing.assert_array_equal(t.train.numpy(), (s.masks[:, 0] == 1) & (s.labels >= 0))
        self.assertEqual((t.y.dtype, len(t.blocks), t.mask.shape), (torch.int64, 2, (240, 1)))
        self.assertTrue(prelift.open(self.write(artefacts.Graph())).batch(0).torch().train.all())

    def test_moves(self):
        b = prelift.open(self.write(artefacts.Graph(nodes=60))).batch(0)
        t = b.torch()
        for other in (t.to("cpu"), t.clone(), b.torch(pin=True)):
            self.assertIsInstance(other.blocks[0], type(t.blocks[0]))
            self.assertTrue(torch.equal(other.blocks[0].edge_weight["gcn"], t.blocks[0].edge_weight["gcn"]))
        self.assertEqual(t.to(torch.device("meta")).blocks[1].indices.device.type, "meta")

    def test_aggregate(self):
        """Against NumPy's, and its gradient against finite differences in 64 bits."""
        s = prelift.open(self.write(artefacts.Graph(nodes=60)))
        for b in [s.batch(0), *s.eval_blocks()]:
            t = b.torch()
            for k, tk in zip(b.blocks, t.blocks):
                x = torch.randn(k.num_src, 3, dtype=torch.float64, requires_grad=True)
                np.testing.assert_allclose(tk.aggregate(x, "gcn").detach().numpy(), k.aggregate(x.detach().numpy(), "gcn"), rtol=1e-6, atol=1e-9)
                np.testing.assert_array_equal(tk.edge_index().numpy(), k.edge_index())
        self.assertTrue(torch.autograd.gradcheck(lambda x: tk.aggregate(x, "gcn"), x))

    def test_dataset(self):
        """One order for any number of workers, another each epoch, also in workers that stay."""
        from prelift.adapters.torch import BatchDataset
        s = prelift.open(self.write(artefacts.Graph(), batch_size=8))
        want = [[int(n) for n in s.order(epoch, 3)] for epoch in range(3)]
        for workers in (0, 1, 2):
            data = BatchDataset(s, seed=3, coefs="gcn")
            loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers, persistent_workers=workers > 0)
            self.assertEqual(len(loader), len(s))
            for epoch in range(3):
                data.set_epoch(epoch)
                got = list(loader)
                self.assertEqual([t.number for t in got], want[epoch], f"{workers} workers, epoch {epoch}")
                for t in got:
                    np.testing.assert_array_equal(t.x.numpy(), s.batch(t.number).features())
            del loader
        numbers = BatchDataset(s, convert=lambda b: b.number)
        self.assertEqual(list(numbers), s.order(0, 1).tolist())
        with self.assertRaises(ValueError):
            BatchDataset(s, convert=lambda b: b, copy=True)

    def test_gcn(self):
        """The example learns: well above the largest class, on fanout sets of both stores and on the whole graph."""
        g = artefacts.Graph(nodes=400)
        example = runpy.run_path(str(EXAMPLES / "gcn.py"))
        for name, options in (("ids", {}), ("packed", {"store": "packed"}), ("full", {"mode": "full"}), ("half", {"dtype": "f16"}), ("khop", {"mode": "khop"})):
            with self.subTest(name):
                _, score = example["train"](self.write(g, name, **options), epochs=10 if name != "full" else 60)
                self.assertGreater(score, 0.8)


    def test_readme(self):
        """The lines of the README run."""
        text = (EXAMPLES.parents[2] / "README.md").read_text()
        code = text.split("## Python", 1)[1].split("```python\n", 1)[1].split("```", 1)[0]
        self.assertIn("prelift.open", code)
        names = {}
        exec(code.replace('"own/batches"', repr(self.write(artefacts.Graph(nodes=60)))).replace("range(10)", "range(2)"), names)
        self.assertEqual(names["tensors"].x.shape, names["x"].shape)


@needs("torch_geometric", "PyPI: torch_geometric")
class TestPyG(WithSets):
    def test_data(self):
        s = prelift.open(self.write(artefacts.Graph()))
        b = s.batch(1)
        d = b.to_pyg(self_loops=False)
        np.testing.assert_array_equal(d.n_id, b.nodes)
        np.testing.assert_array_equal(d.x, b.features())
        np.testing.assert_array_equal(d.y[:d.batch_size], b.labels)
        np.testing.assert_array_equal(d.y, s.labels[b.nodes])
        self.assertEqual((d.num_nodes, d.batch_size, sum(d.num_sampled_nodes), sum(d.num_sampled_edges)), (b.num_nodes, b.num_seeds, b.num_nodes, d.num_edges))
        self.assertTrue(d.validate())
        for h, (low, high) in enumerate(((0, b.hop_nodes[0]), (b.hop_nodes[0], b.hop_nodes[1]))):  # edges of hop h+1 lead to nodes of hop h
            dst = np.split(d.edge_index[1].numpy(), np.cumsum(d.num_sampled_edges))[h]
            self.assertTrue(((dst >= low) & (dst < high)).all())
        self.assertFalse(any(k in b.to_pyg(coef=None) for k in ("edge_weight", "train_mask")))

    def test_layers(self):
        """A GCNConv on it is our layer: layer by layer on adjs; with all neighbours drawn, on the one graph too, trimmed or not."""
        from torch_geometric.nn import GCNConv
        from torch_geometric.utils import trim_to_layer
        torch.manual_seed(1)
        g = artefacts.Graph()
        convs = [GCNConv(8, 6, normalize=False), GCNConv(6, 3, normalize=False)]
        for name, options in (("all", {"fanout": (-1, -1)}), ("some", {}), ("full", {"mode": "full"}), ("khop", {"mode": "khop"})):
            s = prelift.open(self.write(g, name, **options))
            b = s.batch(0)
            d, t = b.to_pyg(adjs=True), b.torch(num_layers=2)
            want = t.x
            for conv, block in zip(convs, t.blocks):
                want = block.aggregate(conv.lin(want), "gcn") + conv.bias
            layered = d.x
            for conv, (edge_index, weight, (_, num_dst)) in zip(convs, d.adjs * (1 if b.num_layers else 2)):
                layered = conv(layered, edge_index, weight)[:num_dst]
            flat, trimmed, edges, weights = d.x, d.x, d.edge_index, d.edge_weight
            for i, conv in enumerate(convs):
                flat = conv(flat, d.edge_index, d.edge_weight)
                if b.num_layers:
                    trimmed, edges, weights = trim_to_layer(i, d.num_sampled_nodes, d.num_sampled_edges, trimmed, edges, weights)
                    trimmed = conv(trimmed, edges, weights)
            results = [layered] + ([] if name == "some" else [flat[:len(want)]]) + ([trimmed[:b.num_seeds]] if name == "all" else [])
            for got in results:
                torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)

    def test_loader(self):
        from torch.utils.data import DataLoader
        from prelift.adapters.torch import BatchDataset
        s = prelift.open(self.write(artefacts.Graph(rels=2), norm=["none", "relmean"]))
        for d in DataLoader(BatchDataset(s, convert=lambda b: b.to_pyg(coef="relmean")), batch_size=None, num_workers=2):
            self.assertEqual(d.edge_type.shape, d.edge_weight.shape)
            self.assertTrue(d.validate())


@needs("dgl", "PyPI: dgl")
class TestDGL(WithSets):
    def test_blocks(self):
        os.environ.setdefault("DGLBACKEND", "pytorch")
        from dgl.nn.pytorch import GraphConv
        torch.manual_seed(1)
        g = artefacts.Graph()
        for name, options in (("some", {}), ("full", {"mode": "full"})):
            s = prelift.open(self.write(g, name, **options))
            for b in [s.batch(0), *s.eval_blocks()]:
                layers = b.num_layers or 1
                convs = [GraphConv(8, 8, norm="none", allow_zero_in_degree=True) for _ in range(layers)]
                t = b.torch(num_layers=layers)
                want = t.x
                for conv, block in zip(convs, t.blocks):
                    want = block.aggregate(want @ conv.weight, "gcn") + conv.bias
                input_nodes, output_nodes, blocks = b.to_dgl()
                h = blocks[0].srcdata["feat"]
                for conv, block in zip(convs, blocks):
                    h = conv(block, h, edge_weight=block.edata["weight"])
                torch.testing.assert_close(h, want, rtol=1e-4, atol=1e-5)
                np.testing.assert_array_equal(output_nodes, b.seeds)
                np.testing.assert_array_equal(blocks[0].srcdata["feat"], g.features[input_nodes])
                np.testing.assert_array_equal(blocks[-1].dstdata["label"], b.labels)

    def test_relations(self):
        s = prelift.open(self.write(artefacts.Graph(rels=2), norm=["none", "relmean"]))
        _, _, blocks = s.batch(0).to_dgl(coef="relmean")
        np.testing.assert_array_equal(blocks[0].edata["etype"], s.batch(0).blocks[0].rel)


if __name__ == "__main__":
    unittest.main()
