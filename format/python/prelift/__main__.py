"""python -m prelift PATH: what is in a snapshot, a batch set or one file, and whether it is whole."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from typing import Any, Sequence

import numpy as np

from . import open as open_artefact
from .batch import Batch
from .batchset import BatchSet
from .container import File
from .errors import PreliftError
from .snapshot import Snapshot


def main(args: Sequence[str] | None = None) -> int:
    """Exit codes are SPEC 9's: 0 done, 2 usage, 3 a path that can't be read, 4 corrupt, 5 mismatched."""
    parser = argparse.ArgumentParser(prog="python -m prelift", description="Says what is in a snapshot, a batch set or one .plf file, and verifies it: digests, CRCs, "
                                     "offsets, every index.")
    parser.add_argument("path", help="a directory or a file")
    parser.add_argument("--features", metavar="FILE", help="the feature table of a set that was written with --link-features none")
    parser.add_argument("--no-verify", action="store_true", help="only say what is there")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--hashes", action="store_true", help="a line for each section, with the SHA-256 of its elements")
    parser.add_argument("--epoch", type=int, metavar="E", help="a JSON line for each batch of epoch E, in the trainer's order, with the SHA-256 of what a model gets")
    parser.add_argument("--seed", type=int, default=1, help="of --epoch: the trainer's seed (1)")
    parser.add_argument("--coef", default="gcn", help="of --epoch: coefficient kind (gcn)")
    parser.add_argument("--layers", type=int, help="of --epoch: layers of the model (all)")
    o = parser.parse_args(args)
    try:
        run(o)
    except PreliftError as e:
        print(f"prelift: error: {e}", file=sys.stderr)
        return e.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to write goes nowhere
        return 1
    except OSError as e:
        print(f"prelift: error: {e.filename or o.path}: {e.strerror or e}", file=sys.stderr)
        return 3
    except ValueError as e:
        print(f"prelift: error: {e}", file=sys.stderr)
        return 2
    return 0


def run(o: argparse.Namespace) -> None:
    a: File | Snapshot | BatchSet = open_artefact(o.path, o.features) if os.path.isdir(o.path) else File.open(o.path)
    if o.epoch is not None:
        if not isinstance(a, BatchSet):
            raise ValueError(f"{o.path}: --epoch is for batch sets")
        for b in a.epoch(o.epoch, o.seed):
            print(json.dumps(batch_hashes(b, o.coef, o.layers)))
        return
    if not o.no_verify:
        a.verify()
    files = {a.name: a} if isinstance(a, File) else a.files()
    if o.hashes:
        for name in sorted(files):
            for line in section_hashes(files[name]):
                print(name, line)
        return
    d = describe(a)
    d["files"] = [{"name": name, "kind": f.header.kind.name.lower(), "size_bytes": f.size, "records": len(f)} for name, f in sorted(files.items())]
    d["verified"] = not o.no_verify
    if o.json:
        print(json.dumps(d))
        return
    width = max(len(k) for k in d)
    for k, v in d.items():
        if k != "files":
            print(f"{k:{width}}  {text(v)}")
    for f in d["files"]:
        print(f"{'file':{width}}  {f['name']}: {f['kind']}, {f['size_bytes']} bytes, {f['records']} record{'s' * (f['records'] != 1)}")


def text(v: Any) -> str:
    if isinstance(v, bool):
        return "yes" if v else "no"
    if isinstance(v, dict):
        return ", ".join(f"{k} {text(e)}" for k, e in v.items())
    if isinstance(v, list):
        return ", ".join(map(text, v[:12])) + (f" and {len(v) - 12} more" if len(v) > 12 else "") if v else "none"
    return str(v)


def describe(a: File | Snapshot | BatchSet) -> dict[str, Any]:
    """What an artefact holds, for people and --json."""
    if isinstance(a, File):
        return {"kind": "file", "name": a.name, "shard": a.header.shard, "set_key": a.header.set_key.hex()}
    if isinstance(a, Snapshot):
        return {"kind": "snapshot", "id": a.id, "nodes": a.num_nodes, "edges": a.num_edges, "entries": a.num_entries, "direction": a.params["direction"], "weighted": a.weighted,
                "relations": a.rel_names, "node_types": a.type_names, "components": len(a.component_size), "features": a.num_features, "task": a.task or "none",
                "classes": a.class_names, "splits": a.splits}
    p = a.params
    return {"kind": "batch_set", "id": a.id, "snapshot": a.manifest["snapshot_id"], "mode": p["mode"], "store": p["store"], "dtype": p["dtype"], "fanout": p["fanout"],
            "coefficients": a.norm, "layers": a.num_layers, "batches": a.num_batches, "variants": a.num_variants, "seeds": a.manifest.int("num_seeds"), "nodes": a.num_nodes,
            "features": a.num_features, "task": a.label_task or "none", "classes": a.class_names, "splits": a.splits, "eval_blocks": a.manifest.int("num_eval_blocks")}


def section_hashes(f: File):
    """``record I kind 0xKKKK layer L coef C dtype T shape A,B sha256 H`` of each section: H is of the elements, little-endian, row-major."""
    for r in f.records():
        for s in r.sections:
            yield (f"record {r.index} kind 0x{s.number:04x} layer {s.layer} coef {s.coef} dtype {s.dtype.name.lower()} shape {','.join(map(str, s.shape))} "
                   f"sha256 {sha256(r.view(s))}")


def sha256(a: np.ndarray | None) -> str:
    """SHA-256 of an array's elements; "" for None."""
    return "" if a is None else hashlib.sha256(np.ascontiguousarray(a).data).hexdigest()


def batch_hashes(b: Batch, coef: str, num_layers: int | None) -> dict[str, Any]:
    """Digests of what a model of num_layers layers gets of a batch; "" where there is nothing."""
    blocks = []
    for block in b.layers(num_layers):
        c = block.coefficients(coef)
        blocks.append({"indptr": sha256(block.indptr), "indices": sha256(block.indices), "src": sha256(c.src), "dst": sha256(c.dst), "self": sha256(c.self_),
                       "edge": sha256(c.edge), "importance": sha256(c.importance)})
    return {"number": b.number, "seeds": b.num_seeds, "nodes": b.num_input(num_layers), "features": sha256(b.features(num_layers)) if b._set.num_features else "",
            "labels": sha256(b.labels), "blocks": blocks}


if __name__ == "__main__":
    sys.exit(main())
