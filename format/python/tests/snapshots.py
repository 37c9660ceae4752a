"""Holds parts of snapshots that say the same against each other: prints "DIR ok" for each directory, dies where they differ."""

import hashlib
import sys

import numpy as np

import prelift
from prelift.hops import run_bytes


def check(s):
    s.verify()
    g, n = s.graph, s.num_nodes
    rows = [np.unique(g.indices[g.indptr[v]:g.indptr[v + 1]]) for v in range(n)]
    # External ids: in the order of the collation, found both ways, keys as SPEC 8 has them.
    ids = list(s.ids)
    assert ids == sorted(ids, key=int if s.collation == "integer" else None)
    assert s.ids.numbers(ids).tolist() == list(range(n))
    assert s.ids.keys.tolist() == [int.from_bytes(hashlib.sha256(i).digest()[:8], "big") for i in ids]
    # The transpose of a directed graph; an undirected one is its own.
    pairs = {(int(u), v) for v in range(n) for u in rows[v]}
    assert {(v, int(u)) for v in range(n) for u in s.out_neighbors(v)} == pairs
    # Components are connected, and no edge leaves one.
    assert all(s.component[u] == s.component[v] for u, v in pairs)
    assert np.bincount(s.component, minlength=len(s.component_size)).tolist() == s.component_size.tolist()
    # gcn: 1 / sqrt(d_u d_v) with a loop of weight 1 where there is none.
    loops = np.array([v in rows[v] for v in range(n)])
    weight = np.ones(g.num_edges) if g.weight is None else g.weight.astype(np.float64)
    own = np.bincount(g.dst[g.indices == g.dst], weight[g.indices == g.dst], minlength=n)
    own[~loops] = 1
    message = g.indices != g.dst
    d = np.bincount(g.dst[message], weight[message], minlength=n) + own
    with np.errstate(divide="ignore"):
        f = np.where(d > 0, 1 / np.sqrt(d), 0)
    np.testing.assert_allclose(g.edge_weight("gcn")[message], (f[g.indices] * f[g.dst] * weight)[message], rtol=1e-6)
    np.testing.assert_allclose(g.self_weight("gcn"), f * f * own, rtol=1e-6)
    check_hops(s, rows)
    if s.locality_order is not None:
        component = s.component[s.locality_order]
        assert len(component) == n and (np.diff(component) >= 0).all()
    if s.pagerank is not None:
        np.testing.assert_allclose(s.pagerank.sum(), 1, rtol=1e-9)


def check_hops(s, rows):
    """SPEC 5.5: every row of the index is the graph's, in the form for its degree; directories point where they must; two hops are two hops."""
    hops = s.hop1()
    if hops is None:
        return
    neighbours = [r[r != v] for v, r in enumerate(rows)]
    forms, compact, large = set(), 0, 0
    for v, want in enumerate(neighbours):
        np.testing.assert_array_equal(hops.row(v), want)
        form = "compact" if len(want) < s.params["compact_below"] else "sorted" if len(want) < s.params["hub_from"] else "hub"
        forms.add(form)
        assert (int(hops._get("code")[v]) == 255) == (form != "compact")
        found = hops.directory(v)
        assert (found is not None) == (form == "hub")
        if form == "compact":
            compact += run_bytes(len(want), s.num_nodes)[2] if len(want) else 0
            continue
        bases = want[::128].tolist()
        if found:
            shift, entries = found
            large += 4 * len(entries)
            assert entries.tolist() == [max((k for k, base in enumerate(bases) if base <= b << shift), default=0) for b in range(len(entries))]
        large += sum(run_bytes(len(want[i:i + 128]), (bases[i // 128 + 1] if i + 128 < len(want) else s.num_nodes) - int(want[i]))[2] for i in range(0, len(want), 128))
    assert compact == len(hops._get("compact")) - 8 and large == len(hops._get("large")) - 8  # without gaps
    print("forms", *sorted(forms))
    if s.hop2(0) is not None and s.manifest["hop2"]["num_cut"] == s.manifest["hop2"]["num_sampled"] == "0":
        for v, near in enumerate(neighbours):
            two = set().union(*(set(neighbours[u].tolist()) for u in near)) - set(near.tolist()) - {v}
            assert s.hop2(v).tolist() == sorted(two)


for dir in sys.argv[1:]:
    check(prelift.open(dir))
    print(dir, "ok")
