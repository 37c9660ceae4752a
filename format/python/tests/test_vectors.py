"""The vectors of format/testdata: this reader gives each file the verdict of the list, and good ones the listed content."""

import hashlib
import json
import unittest
from pathlib import Path

from prelift import errors, manifest
from prelift.container import File

VECTORS = Path(__file__).resolve().parents[2] / "testdata" / "vectors"
INDEX = json.loads((VECTORS / "vectors.json").read_text())


def verdict(work):
    """The label of what work raises, "ok" and its result where it doesn't."""
    try:
        return "ok", work()
    except errors.PreliftError as e:
        return e.label, e


class TestVectors(unittest.TestCase):
    def test_files(self):
        for v in INDEX["files"]:
            with self.subTest(v["file"], about=v["about"]):
                path = VECTORS / v["file"]
                label, mapped = verdict(lambda: File.open(path).verify())
                self.assertEqual(label, v["class"], mapped)
                _, parsed = verdict(lambda: File(v["file"], path.read_bytes()).verify())
                if label != "ok":
                    self.assertEqual(str(mapped), str(parsed))
                    self.assertTrue(str(mapped).startswith(v["file"] + ": "), mapped)
                    self.assertTrue(str(mapped).isprintable(), mapped)
                    continue
                self.assertEqual(section_digests(mapped), v.get("sections") or [])

    def test_all_are_there(self):
        self.assertGreaterEqual(len(INDEX["files"]), 300)
        self.assertEqual({v["file"] for v in INDEX["files"]}, {p.name for p in VECTORS.glob("*.plf")})
        self.assertEqual({v["dir"] for v in INDEX["manifests"]}, {f"manifests/{p.name}" for p in (VECTORS / "manifests").iterdir()})

    def test_every_bit(self):
        """CRCs, reserved bytes and padding cover every bit of a file."""
        b = bytearray((VECTORS / "good-tiny.plf").read_bytes())
        for i in range(len(b)):
            b[i] ^= 1 << i % 8
            label, _ = verdict(lambda: File("flipped", bytes(b)).verify())
            self.assertNotEqual(label, "ok", f"bit {i % 8} of byte {i}")
            b[i] ^= 1 << i % 8

    def test_every_length(self):
        b = (VECTORS / "good-layers.plf").read_bytes()
        for n in range(len(b)):
            label, _ = verdict(lambda: File("cut", b[:n]).verify())
            self.assertEqual(label, "truncated", f"cut to {n} bytes")

    def test_manifests(self):
        fields = {name: manifest.COMMON_FIELDS[name] for name in ("kind", "format_version", "files")} | {"num_nodes": manifest.is_int}

        def read(path):
            m = manifest.read(path, "vector", fields)
            extra = manifest.check_files(m)
            manifest.verify_files(m)
            return m.id, extra
        for v in INDEX["manifests"]:
            with self.subTest(v["dir"], about=v["about"]):
                label, got = verdict(lambda: read(VECTORS / v["dir"]))
                self.assertEqual(label, v["class"], got)
                if label == "ok":
                    self.assertEqual(got, (v["id"], v.get("extra") or []))
                else:
                    self.assertTrue(str(got).isprintable(), got)


def section_digests(f):
    return [f"record {r.index} kind 0x{s.number:04x} layer {s.layer} coef {s.coef} sha256 {hashlib.sha256(r.view(s).tobytes()).hexdigest()}"
            for r in f.records() for s in r.sections]


if __name__ == "__main__":
    unittest.main()
