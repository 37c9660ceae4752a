#!/usr/bin/env python3
"""Builds the test vectors of SPEC.md: good files and one file for each fault.

Written from SPEC.md alone, with Python's standard library, so that a misreading in the
Go code can't hide in its own output. Usage: make_vectors.py [DIR]  (default: vectors
beside this file). The output is a function of this file's text.

vectors.json lists every file with its class (SPEC 9; "ok" for good ones), the label of
the check it is about, and for good files the SHA-256 of each section's array.
vectors/manifests holds artefact directories, listed in vectors.json too.
"""

import hashlib
import json
import os
import shutil
import struct
import sys
import zlib

MAGIC = b"\x89PLF\r\n\x1a\n"
ANY_LAYER = 0xFFFF
ANY_SPLIT = 0xFFFFFFFF
LOCAL, GLOBAL = 0, 1
NODE, LINK, KGE = 1, 2, 3
TRAIN, VALID, TEST = 1, 2, 3
GCN, MEAN, SUM, RELMEAN = 1, 2, 3, 4

# SPEC 3.1: file kinds.
BATCHES, EVAL, FEATURES, IDS, LABELS, TOPOLOGY, HOPS, RANK, KG, COEFS, HELDOUT, LINES, SHARED_ROWS = range(1, 14)

# SPEC 4.3: element types, their sizes and struct codes (bf16 is given as raw u16).
U8, I8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64 = range(1, 13)
CODE = {U8: "B", I8: "b", I16: "h", U16: "H", I32: "i", U32: "I", I64: "q", U64: "Q", F16: "e", BF16: "H", F32: "f", F64: "d"}
SIZE = {t: struct.calcsize("<" + c) for t, c in CODE.items()}

# SPEC 5.1: section kinds.
NODES_NUMBER, NODES_TYPE, NODES_ROW, NODES_TABLE = 0x0101, 0x0102, 0x0103, 0x0104
INDPTR, INDICES, REL, RELPTR, WEIGHT, EDGE_ID, TIME = range(0x0201, 0x0208)
C_SRC, C_DST, C_SELF, C_EDGE, C_IMPORTANCE = range(0x0301, 0x0306)
T_INDPTR, T_INDICES, T_EDGE, T_REL = range(0x0401, 0x0405)
S_LABEL, S_MASK, S_WEIGHT = range(0x0501, 0x0504)
P_SRC, P_DST, P_REL, P_LABEL, P_WEIGHT = range(0x0601, 0x0606)
K_POSITIVES, K_CHUNKPTR, K_KNOWN, K_RANGE, K_GUESTS, K_DEPTH, K_EDGES = range(0x0701, 0x0708)
ROWS, SCALE = 0x0801, 0x0802
G_COMPONENT, G_SIZE = 0x0901, 0x0902
ID_OFFSETS, ID_BYTES, ID_KEY = 0x0A01, 0x0A02, 0x0A03
NAME_OFFSETS, NAME_BYTES = 0x0B01, 0x0B02
(H_CODE, H_OFFSET, H_GROUP_START, H_GROUP_LARGE, H_COMPACT, H_LARGE_CHUNK, H_LARGE_START, H_LARGE_LAST, H_LARGE_SHIFT, H_CHUNK_BASE, H_CHUNK_START,
 H_LARGE) = range(0x0C01, 0x0C0D)
H2_INDPTR, H2_INDICES = 0x0D01, 0x0D02
R_PAGERANK, R_WEIGHT, R_MASS, R_ORDER = range(0x0E01, 0x0E05)
L_CODE, L_COUNT, L_LARGE, L_WEIGHT, L_NAMED = range(0x0F01, 0x0F06)

NAN = struct.unpack("<f", struct.pack("<I", 0x7FC00000))[0]


def crc(b):
    return zlib.crc32(b) & 0xFFFFFFFF


def up(n, align):
    return (n + align - 1) // align * align


class Section:
    """One array. Keyword arguments beyond layer and coef override fields of the entry."""

    def __init__(self, kind, dtype, values, shape=None, layer=ANY_LAYER, coef=0, **override):
        self.kind, self.dtype, self.layer, self.coef = kind, dtype, layer, coef
        self.data = values if isinstance(values, bytes) else struct.pack("<%d%s" % (len(values), CODE[dtype]), *values)
        self.shape = shape if shape is not None else [len(self.data) // SIZE[dtype]]
        self.override = override

    def entry(self, offset):
        """SPEC 4.3."""
        f = dict(kind=self.kind, layer=self.layer, coef=self.coef, dtype=self.dtype, codec=0, shape=self.shape, offset=offset,
                 stored=len(self.data), plain=len(self.data), crc=crc(self.data), rank=len(self.shape),
                 nonce=bytes(12), tag=bytes(16), reserved=bytes(4))
        f.update(self.override)
        shape = (list(f["shape"]) + [0, 0, 0])[:3]
        return struct.pack("<HHHBB3QQQQII12s16s4s", f["kind"], f["layer"], f["coef"], f["dtype"], f["codec"], *shape,
                           f["offset"], f["stored"], f["plain"], f["crc"], f["rank"], f["nonce"], f["tag"], f["reserved"])


def bits_of(values, dtype, base=None, width=None, fill=0):
    """SPEC 10.2: integers under the codec bits. base, width: lists that override what a writer takes; fill: the bits behind the last number."""
    blocks = [values[i:i + 128] for i in range(0, len(values), 128)]
    base = base or [min(b) for b in blocks]
    width = width or [(max(b) - min(b)).bit_length() for b in blocks]
    packed = b""
    for b, lo, w in zip(blocks, base, width):
        number, n = 0, 0
        for x in b:
            number |= (x - lo) % (1 << w) << n
            n += w
        packed += (number | fill << n).to_bytes((n + 7) // 8, "little")
    return struct.pack("<%d%s" % (len(base), CODE[dtype]), *base) + bytes(width) + packed


def array_of(data, dtype, n):
    """The inverse, as bytes: each number by itself."""
    size, mask = SIZE[dtype], (1 << 8 * SIZE[dtype]) - 1
    blocks = (n + 127) // 128
    width, packed = data[blocks * size:blocks * (size + 1)], data[blocks * (size + 1):]
    out = b""
    for i in range(n):
        k, w = i // 128, width[i // 128]
        base = int.from_bytes(data[k * size:(k + 1) * size], "little")
        bit = 8 * 16 * sum(width[:k]) + i % 128 * w
        x = int.from_bytes(packed[bit // 8:(bit + w + 7) // 8], "little") >> bit % 8 & ((1 << w) - 1)
        out += (base + x & mask).to_bytes(size, "little")
    return out


def coded(kind, dtype, values, layer=ANY_LAYER, data=None, **override):
    """A section under the codec bits; data overrides its stored bytes."""
    f = dict(codec=1, plain=len(values) * SIZE[dtype], rank=1)
    f.update(override)
    return Section(kind, dtype, bits_of(values, dtype) if data is None else data, shape=f.pop("shape", [len(values)]), layer=layer, **f)


class Record:
    """A record. Keyword arguments override fields of the head; table_* those of the table entry.

    gap adds bytes between the sections, tail after the last one."""

    def __init__(self, sections, hop_nodes, layer_edges=(), gap=0, tail=b"", **fields):
        self.sections, self.hop_nodes, self.layer_edges, self.gap, self.tail, self.fields = sections, list(hop_nodes), list(layer_edges), gap, tail, fields

    def build(self):
        """Returns head and record bytes (SPEC 4)."""
        layers = len(self.layer_edges) // len(self.hop_nodes) if self.hop_nodes else 0
        f = dict(mark=0x42464C50, task=0, split=0, space=LOCAL, number=0, variant=0, num_layers=layers, num_hops=len(self.hop_nodes),
                 num_sections=len(self.sections), dst_start=0, dst_end=0, num_seeds=0, split_column=ANY_SPLIT, reserved=bytes(12))
        f.update(self.fields)
        head_size = 64 + 8 * len(self.hop_nodes) + 8 * len(self.layer_edges) + 96 * len(self.sections)
        body, entries = b"", b""
        for s in self.sections:
            end = head_size + len(body)
            offset = up(end, 64) + self.gap
            body += bytes(offset - end) + s.data
            entries += s.entry(offset)
        head = struct.pack("<IHBBIIHHIQQQI12s", f["mark"], f["task"], f["split"], f["space"], f["number"], f["variant"], f["num_layers"], f["num_hops"],
                           f["num_sections"], f["dst_start"], f["dst_end"], f["num_seeds"], f["split_column"], f["reserved"])
        counts = self.hop_nodes + self.layer_edges
        head += struct.pack("<%dQ" % len(counts), *counts) + entries
        return head, head + body + self.tail


def build(kind, records, gap=0, table=None, **header):
    """A file (SPEC 3). table holds overrides of the table entries, by record."""
    n = len(records)
    blob, entries = b"", b""
    for i, r in enumerate(records):
        head, data = r.build()
        end = 128 + 32 * n + len(blob)
        offset = up(end, 4096) + gap
        blob += bytes(offset - end) + data
        f = dict(offset=offset, size=len(data), number=r.fields.get("number", 0), variant=r.fields.get("variant", 0), head_crc=crc(head), reserved=0)
        f.update((table or {}).get(i, {}))
        entries += struct.pack("<QQIIII", f["offset"], f["size"], f["number"], f["variant"], f["head_crc"], f["reserved"])
    h = dict(magic=MAGIC, version=1, kind=kind, bom=0x0A0B0C0D, required=0, optional=0, snapshot_id=bytes(32), set_key=bytes(32),
             size=128 + 32 * n + len(blob), shard=0, num_records=n, table_crc=crc(entries), reserved=bytes(8))
    h.update(header)
    b = struct.pack("<8sHHIQQ32s32sQIII8s", h["magic"], h["version"], h["kind"], h["bom"], h["required"], h["optional"], h["snapshot_id"], h["set_key"],
                    h["size"], h["shard"], h["num_records"], h["table_crc"], h["reserved"])
    return b + struct.pack("<I", header.get("header_crc", crc(b))) + entries + blob


def patch(b, offset, new):
    return b[:offset] + new + b[offset + len(new):]


# ---- good records ----

SNAPSHOT = hashlib.sha256(b"a snapshot").digest()
SET = hashlib.sha256(b"a set").digest()


def tiny(replace=None, extra=(), drop=(), **fields):
    """The worked example of SPEC 11; replace, drop and extra change its sections by kind."""
    s = [
        Section(NODES_NUMBER, I32, [5, 9, 2, 7]),
        Section(INDPTR, I64, [0, 2, 3], layer=0),
        Section(INDICES, I32, [2, 3, 3], layer=0),
        Section(C_SELF, F32, [0.25, 0.5], layer=0, coef=GCN),
        Section(C_EDGE, F32, [0.5, 0.25, 0.5], layer=0, coef=GCN),
        Section(S_LABEL, I32, [1, -1]),
        Section(S_MASK, U8, [TRAIN, VALID], shape=[2, 1]),
    ]
    s = [(replace or {}).get(x.kind, x) for x in s if x.kind not in drop] + list(extra)
    f = dict(task=NODE, split=TRAIN, num_seeds=2, split_column=0)
    f.update(fields)
    return Record(s, f.pop("hop_nodes", [2, 4]), f.pop("layer_edges", [3, 0]), **f)


def layers(replace=None, extra=(), drop=(), **fields):
    """Two layers, hops of 2, 2 and 2 nodes, every section a block can have."""
    # Layer 0: dst 0..3, src 0..5. Layer 1: dst 0..1, src 0..3.
    s = [
        Section(NODES_NUMBER, I32, [10, 11, 20, 21, 30, 31]),
        Section(NODES_TYPE, I32, [0, 0, 1, 1, 0, 2]),
        Section(INDPTR, I64, [0, 1, 2, 4, 5], layer=0),
        Section(INDICES, I32, [2, 3, 4, 5, 5], layer=0),
        Section(REL, I32, [0, 1, 0, 1, 1], layer=0),
        Section(RELPTR, I64, [0, 1, 1, 1, 2, 3, 4, 4, 5], layer=0),
        Section(WEIGHT, F32, [1, 2, 3, 4, 5], layer=0),
        Section(EDGE_ID, I64, [7, 8, 9, 10, 1 << 40], layer=0),
        Section(TIME, I64, [-1, 0, 1, 2, 3], layer=0),
        Section(C_IMPORTANCE, F32, [1, 1.5, 2, 1], layer=0),
        Section(T_INDPTR, I64, [0, 0, 0, 1, 2, 3, 5], layer=0),
        Section(T_INDICES, I32, [0, 1, 2, 2, 3], layer=0),
        Section(T_EDGE, I64, [0, 1, 2, 3, 4], layer=0),
        Section(T_REL, I32, [0, 1, 0, 1, 1], layer=0),
        Section(INDPTR, I64, [0, 1, 2], layer=1),
        Section(INDICES, I32, [2, 3], layer=1),
        Section(C_SRC, F32, [1, 1, 0.5, 0.5, 0.25, 0.25], coef=GCN),
        Section(C_DST, F32, [1, 1, 0.5, 0.5], coef=GCN),
        Section(C_SELF, F32, [1, 1, 0.25, 0.25], coef=GCN),
        Section(C_DST, F32, [1, 1, 0.5, 1], layer=0, coef=MEAN),
        Section(C_DST, F32, [1, 1], layer=1, coef=MEAN),
        Section(S_LABEL, U8, [0, 1, 255, 1, 0, 0], shape=[2, 3]),
        Section(S_MASK, U8, [1, 0, 2, 3], shape=[2, 2]),
        Section(S_WEIGHT, F32, [1, 0.5]),
    ]
    s = [(replace or {}).get((x.kind, x.layer), x) for x in s if (x.kind, x.layer) not in drop] + list(extra)
    f = dict(task=NODE, split=TRAIN, num_seeds=2, variant=1, number=4)
    f.update(fields)
    return Record(s, f.pop("hop_nodes", [2, 4, 6]), f.pop("layer_edges", [2, 3, 0, 2, 0, 0]), **f)


BITS_EDGES = [[(37 * d + 11 * e) % 300 for e in range(d % 4)] for d in range(200)]


def bits(replace=None, **fields):
    """A layer of 200 dst and 300 src whose integers are all coded: several blocks, the last one short; widths of 0 and 32 bits."""
    edges = [s for row in BITS_EDGES for s in row]
    leaving = [[(d, e) for e, (s, d) in enumerate((s, d) for d, row in enumerate(BITS_EDGES) for s in row) if s == src] for src in range(300)]
    s = [
        coded(NODES_NUMBER, I32, list(range(5, 605, 3)) + list(range(2000, 2100))),
        coded(NODES_TYPE, I32, [1] * 128 + [0] * 172),
        coded(INDPTR, I64, offsets_of(BITS_EDGES), layer=0),
        coded(INDICES, I32, edges, layer=0),
        coded(TIME, I64, [-5] + [2**32 - 6] * 127 + [-(2**60)] * (len(edges) - 128), layer=0),
        coded(T_INDPTR, I64, offsets_of(leaving), layer=0),
        coded(T_INDICES, I32, [d for row in leaving for d, _ in row], layer=0),
        coded(T_EDGE, I64, [e for row in leaving for _, e in row], layer=0),
        Section(C_DST, F32, [0.5] * 200, coef=MEAN),
        Section(S_LABEL, I32, [0] * 200),
    ]
    s = [(replace or {}).get(x.kind, x) for x in s]
    f = dict(task=NODE, split=TRAIN, num_seeds=200, split_column=0)
    f.update(fields)
    return Record(s, [200, 300], [len(edges), 0], **f)


def table_record(n, sections, **fields):
    """A global record over n nodes."""
    f = dict(space=GLOBAL, dst_end=n)
    f.update(fields)
    return Record(sections, f.pop("hop_nodes", [n]), **f)


def packed(row, table, rows, drop=()):
    """A batch with own feature rows. row, table: lists or None; rows: number of own rows."""
    extra = [] if row is None else [Section(NODES_ROW, I32, row)]
    extra += [] if table is None else [Section(NODES_TABLE, U8, table)]
    extra += [] if rows is None else [Section(ROWS, F32, [float(i) for i in range(3 * rows)], shape=[rows, 3])]
    return tiny(extra=extra, drop=drop)


def offsets_of(words):
    out = [0]
    for w in words:
        out.append(out[-1] + len(w))
    return out


def ids_record(replace=None):
    words = [b"-3", b"7", b"007", "né".encode()]
    keys = [int.from_bytes(hashlib.sha256(w).digest()[:8], "big") for w in words]
    s = [Section(ID_OFFSETS, I64, offsets_of(words)), Section(ID_BYTES, U8, b"".join(words)), Section(ID_KEY, U64, keys)]
    return table_record(4, [(replace or {}).get(x.kind, x) for x in s])


def names(words):
    return [Section(NAME_OFFSETS, I64, offsets_of(words)), Section(NAME_BYTES, U8, b"".join(words))]


def topology(replace=None):
    s = [
        Section(INDPTR, I64, [0, 1, 3, 3]), Section(INDICES, I32, [1, 0, 2]), Section(WEIGHT, F32, [0.5, 0.5, 2]),
        Section(T_INDPTR, I64, [0, 1, 2, 3]), Section(T_INDICES, I32, [1, 0, 1]),
        Section(G_COMPONENT, I32, [0, 0, 0]), Section(G_SIZE, I64, [3]),
        Section(C_SRC, F32, [1, 0.5, 0.25], coef=GCN), Section(C_DST, F32, [1, 0.5, 0.25], coef=GCN), Section(C_SELF, F32, [1, 0.25, 0.0625], coef=GCN),
    ]
    return table_record(3, [(replace or {}).get(x.kind, x) for x in s])


HOP_NODES = 300
HOP_ROWS = {0: range(1, 300, 2), 1: range(0, 300, 3), 2: range(170, 300), 3: [0, 299], 5: range(1, 64, 7), 299: [298]}


def log2(n):
    return n.bit_length() - 1


def run(numbers, universe):
    """SPEC 5.5: a run."""
    if not numbers:
        return b""
    low = log2(universe // len(numbers))
    bits = [0] * (len(numbers) + ((universe - 1) >> low))
    for j, x in enumerate(numbers):
        bits[(x >> low) + j] = 1
    for x in numbers:
        bits += [x >> i & 1 for i in range(low)]
    bits += [0] * (-len(bits) % 8)
    return bytes(sum(bits[i + k] << k for k in range(8)) for i in range(0, len(bits), 8))


def directory(bases, n):
    """SPEC 5.5: shift and entries of a hub's directory."""
    def entries(shift, count):
        return [max([k for k, base in enumerate(bases) if base <= b << shift], default=0) for b in range(count)]

    shift = log2(n // len(bases))
    for _ in range(2):
        e = entries(shift, ((n - 1) >> shift) + 2)
        if shift == 0 or max(b - a for a, b in zip(e, e[1:])) <= 4:
            break
        shift -= 1
    return shift, entries(shift, ((n - 1) >> shift) + 1)


def hops(n=HOP_NODES, rows=HOP_ROWS, compact_below=10, hub_from=140, replace=None, drop=(), hop2=True):
    """The hop index of rows, a map from a node to its neighbours; other nodes have none."""
    code, offset, group_start, group_large, compact = [], [], [], [], b""
    large_chunk, large_start, large_last, large_shift, chunk_base, chunk_start, large = [0], [], [], [], [], [], b""
    for v in range(n):
        if v % 32 == 0:
            group_start.append(len(compact))
            group_large.append(len(large_start))
        row = list(rows.get(v, []))
        if len(row) < compact_below:
            code.append(len(row))
            offset.append(len(compact) - group_start[-1])
            compact += run(row, n)
            continue
        code.append(255)
        offset.append(len(large_start) - group_large[-1])
        chunks = [row[i:i + 128] for i in range(0, len(row), 128)]
        large_start.append(len(large))
        shift = 255
        if len(row) >= hub_from:
            shift, entries = directory([c[0] for c in chunks], n)
            large += struct.pack("<%dI" % len(entries), *entries)
        large_shift.append(shift)
        large_last.append(len(chunks[-1]) - 1)
        for k, c in enumerate(chunks):
            chunk_base.append(c[0])
            chunk_start.append(len(large) - large_start[-1])
            large += run([u - c[0] for u in c], (chunks[k + 1][0] if k + 1 < len(chunks) else n) - c[0])
        large_chunk.append(len(chunk_base))
    s = [
        Section(H_CODE, U8, code), Section(H_OFFSET, U16, offset), Section(H_GROUP_START, I64, group_start + [len(compact)]),
        Section(H_GROUP_LARGE, I32, group_large + [len(large_start)]), Section(H_COMPACT, U8, compact + bytes(8)),
        Section(H_LARGE_CHUNK, I64, large_chunk), Section(H_LARGE_START, I64, large_start), Section(H_LARGE_LAST, U8, large_last),
        Section(H_LARGE_SHIFT, U8, large_shift), Section(H_CHUNK_BASE, I32, chunk_base), Section(H_CHUNK_START, U32, chunk_start), Section(H_LARGE, U8, large + bytes(8)),
    ]
    if hop2:
        s += [Section(H2_INDPTR, I64, [0] + [2] * n), Section(H2_INDICES, I32, [5, n - 1])]
    return build(HOPS, [table_record(n, [(replace or {}).get(x.kind, x) for x in s if x.kind not in drop])])


def rank(replace=None):
    s = [Section(R_PAGERANK, F64, [0.5, 0.25, 0.25]), Section(R_WEIGHT, F32, [1, 0.5, 0.5]), Section(R_MASS, F64, [0.5, 0.5]), Section(R_ORDER, I32, [0, 2, 1])]
    return build(RANK, [table_record(3, [(replace or {}).get(x.kind, x) for x in s])])


def eval_block(start, end, indptr, indices, **fields):
    n = end - start
    s = [Section(INDPTR, I64, indptr), Section(INDICES, I32, indices), Section(C_EDGE, F32, [0.5] * len(indices), coef=MEAN),
         Section(S_LABEL, I32, [0] * n), Section(S_MASK, U8, [TEST] * n, shape=[n, 1])]
    f = dict(task=NODE, space=GLOBAL, dst_start=start, dst_end=end, num_seeds=n)
    f.update(fields)
    return Record(s, [5], **f)


def kge(replace=None):
    s = [
        Section(NODES_NUMBER, I32, [4, 8]),
        Section(K_POSITIVES, I32, [0, 0, 1, 1, 2, 0, 1, 0, 1], shape=[3, 3]), Section(K_CHUNKPTR, I64, [0, 2, 3]), Section(K_KNOWN, I32, [4, 8]),
        Section(K_RANGE, I64, [4, 9]), Section(K_GUESTS, I32, [77]), Section(K_DEPTH, I32, [0, 3]), Section(K_EDGES, I32, [0, 1, 1], shape=[1, 3]),
    ]
    return Record([(replace or {}).get(x.kind, x) for x in s], [2], task=KGE, split=TRAIN)


def link(replace=None, drop=()):
    s = [
        Section(P_SRC, I32, [0, 3]), Section(P_DST, I32, [1, 2]), Section(P_REL, I32, [0, 9]), Section(P_LABEL, F32, [1, 0]),
    ]
    s = [(replace or {}).get(x.kind, x) for x in s if x.kind not in drop]
    return tiny(extra=s, drop=(S_LABEL, S_MASK), task=LINK)


def heldout():
    """The pairs held out of a directed graph of four nodes: two for validation, with relations and weights, none for test."""
    valid = [Section(P_SRC, I32, [0, 3]), Section(P_DST, I32, [1, 2]), Section(P_REL, I32, [7, 0]), Section(P_WEIGHT, F32, [0.5, 2])]
    return build(HELDOUT, [table_record(4, valid, split=VALID), table_record(4, [Section(k, t, []) for k, t in [(P_SRC, I32), (P_DST, I32), (P_REL, I32), (P_WEIGHT, F32)]], split=TEST, number=1)])


def lines(replace=None, drop=()):
    """The lines of five edges with weights, in a graph of nine nodes: one line, one the other way round, one with 2 and 1 lines, one with 300, one line."""
    s = [Section(L_CODE, U8, [0 | 1 << 2 | 3 << 4 | 3 << 6, 0]), Section(L_COUNT, U8, [2, 1, 0, 255], shape=[2, 2]), Section(L_LARGE, U64, [300]),
         Section(L_WEIGHT, F32, [0, 0.5, 2] + [1] * 300), Section(L_NAMED, U8, [0b10000001, 1])]
    return build(LINES, [table_record(9, [(replace or {}).get(x.kind, x) for x in s if x.kind not in drop])])


def batch(record, **header):
    h = dict(snapshot_id=SNAPSHOT, set_key=SET)
    h.update(header)
    return build(BATCHES, [record], **h)


class Vectors:
    def __init__(self):
        self.list, self.files, self.base = [], {}, {}

    def good(self, name, data, about):
        self.list.append(dict(file="good-" + name + ".plf", **{"class": "ok"}, about=about, sections=section_digests(data)))
        self.files["good-" + name + ".plf"] = data

    def bad(self, check, name, data, cls, about):
        file = "%s-%s.plf" % (check.lower(), name)
        assert file not in self.files, file
        self.list.append(dict(file=file, **{"class": cls}, check=check, about=about))
        self.files[file] = data


def section_digests(b):
    """Reads a good file back, by the tables of SPEC.md, for the digests in vectors.json."""
    out = []
    (num,) = struct.unpack_from("<I", b, 108)
    for r in range(num):
        start, _ = struct.unpack_from("<QQ", b, 128 + 32 * r)
        l, h, s = struct.unpack_from("<HHI", b, start + 16)
        for k in range(s):
            at = start + 64 + 8 * h + 8 * l * h + 96 * k
            kind, layer, coef, dtype, codec, n = struct.unpack_from("<HHHBBQ", b, at)
            offset, stored = struct.unpack_from("<QQ", b, at + 32)
            data = b[start + offset:start + offset + stored]
            if codec == 1:
                data = array_of(data, dtype, n)
            out.append("record %d kind 0x%04x layer %d coef %d sha256 %s" % (r, kind, layer, coef, hashlib.sha256(data).hexdigest()))
    return out


def good(v):
    v.good("tiny", batch(tiny()), "the worked example of SPEC 11")
    v.good("layers", batch(layers(), shard=3), "two layers with every section of a block")
    v.good("variants", build(BATCHES, [tiny(number=i, variant=i // 2) for i in range(4)], snapshot_id=SNAPSHOT, set_key=SET), "four batches of two variants")
    v.good("full", batch(Record([
        Section(NODES_NUMBER, I32, [0, 1, 2]), Section(INDPTR, I64, [0, 1, 3, 3]), Section(INDICES, I32, [1, 0, 2]),
        Section(T_INDPTR, I64, [0, 1, 2, 3]), Section(T_INDICES, I32, [1, 0, 1]), Section(T_EDGE, I64, [1, 0, 2]),
        Section(C_EDGE, F32, [1, 0.5, 0.5], coef=MEAN), Section(S_MASK, U8, [0, 1, 2, 3, 1, 1], shape=[2, 3])], [3], task=NODE, num_seeds=2)),
        "no layers: a block for any number of them; two of three nodes are seeds")
    v.good("no-edges", batch(tiny(replace={INDPTR: Section(INDPTR, I64, [0, 0, 0], layer=0), INDICES: Section(INDICES, I32, [], layer=0),
                                           C_EDGE: Section(C_EDGE, F32, [], layer=0, coef=GCN)}, layer_edges=[0, 0])), "sections of no bytes")
    v.good("bits", batch(bits()), "codec bits: blocks of 128 numbers and a short one")
    v.good("bits-short", batch(tiny(replace={NODES_NUMBER: coded(NODES_NUMBER, I32, [5, 9, 2, 7])})), "codec bits: the example of SPEC 10.2")
    v.good("bits-wide", batch(tiny(replace={NODES_NUMBER: coded(NODES_NUMBER, I32, [5, 9, 2, 7], data=bits_of([5, 9, 2, 7], I32, base=[2**31 - 1], width=[32]))})),
           "codec bits: numbers that come round from a large base")
    v.good("bits-none", batch(tiny(replace={INDPTR: coded(INDPTR, I64, [0, 0, 0], layer=0), INDICES: coded(INDICES, I32, [], layer=0),
                                            C_EDGE: Section(C_EDGE, F32, [], layer=0, coef=GCN)}, layer_edges=[0, 0])), "codec bits: numbers of 0 bits, and no numbers")
    v.good("packed", batch(packed(None, None, 4)), "own rows in node order")
    v.good("packed-rows", batch(packed([1, 900, 0, 1], [1, 0, 1, 1], 2)), "own rows and rows of the feature table")
    v.good("rows-elsewhere", batch(packed([800, 900, 0, 1], None, None)), "rows of the feature table by nodes.row")
    v.good("rows-shared", batch(packed([1, 0, 0, 7], [2, 3, 1, 2], 1)), "one own row, two of the group, one hot row")
    v.good("rows", build(SHARED_ROWS, [Record([Section(NODES_NUMBER, I32, [2, 9]), Section(ROWS, I8, [1, -127, 5, 0], shape=[2, 2]), Section(SCALE, F32, [0.5, 2])], [2]),
                                       Record([Section(NODES_NUMBER, I32, []), Section(ROWS, I8, [], shape=[0, 2]), Section(SCALE, F32, [0.5, 2])], [0], number=1)], snapshot_id=SNAPSHOT, set_key=SET),
           "rows of two groups, of two nodes and of none")
    v.good("eval", build(EVAL, [eval_block(0, 3, [0, 2, 2, 3], [1, 4, 0]), eval_block(3, 5, [0, 0, 1], [3], number=1)], snapshot_id=SNAPSHOT, set_key=SET), "evaluation blocks of 3 and 2 rows of 5")
    v.good("eval-empty-range", build(EVAL, [eval_block(5, 5, [0], [])]), "no rows")
    v.good("features-f16", build(FEATURES, [table_record(3, [Section(ROWS, F16, [0, 1, -2, 0.5, 65504, 6e-8], shape=[3, 2])])]), "f16 rows")
    v.good("features-i8", build(FEATURES, [table_record(2, [Section(ROWS, I8, [-128, 127, 0, 1], shape=[2, 2]), Section(SCALE, F32, [0.5, 2])])]), "i8 rows with a scale")
    v.good("features-bf16", build(FEATURES, [table_record(1, [Section(ROWS, BF16, [0x3F80, 0xC000], shape=[1, 2])])]), "bf16 rows")
    v.good("features-no-columns", build(FEATURES, [table_record(2, [Section(ROWS, F32, [], shape=[2, 0])])]), "two rows of no columns")
    v.good("ids", build(IDS, [ids_record()]), "external ids of 2, 1, 3 and 3 bytes")
    v.good("labels-class", build(LABELS, [table_record(3, [Section(S_LABEL, I32, [0, -1, 1])] + names([b"cat", "ö".encode()]), num_seeds=3)]), "classes and their names")
    v.good("labels-values", build(LABELS, [table_record(2, [Section(S_LABEL, F32, [0.5, NAN, -1, 2], shape=[2, 2])], num_seeds=2)]), "values, one of them absent")
    v.good("splits", build(LABELS, [table_record(2, [Section(S_MASK, U8, [0, 1, 2, 3], shape=[2, 2])] + names([b"split_0", b""]), num_seeds=2)]), "two splits, one with an empty name")
    v.good("topology", build(TOPOLOGY, [topology()]), "a directed graph of three nodes")
    v.good("coefs", build(COEFS, [table_record(2, [Section(C_DST, F32, [1, 0.5], coef=MEAN), Section(C_SELF, F32, [0, 0.5], coef=RELMEAN), Section(C_SRC, F32, [1, 1], coef=SUM)])]), "per-node coefficients")
    v.good("no-nodes", build(TOPOLOGY, [table_record(0, [])]), "a record of no nodes and no sections")
    v.good("hops", hops(), "a hop index of 300 nodes: two sorted rows, a hub, compact rows; two nodes at hop 2")
    v.good("hops-empty", hops(n=0, rows={}, hop2=False), "a hop index of no nodes")
    v.good("rank", rank(), "ranks, sampling weights of two components, an order")
    v.good("link", batch(link()), "pairs")
    v.good("heldout", heldout(), "two pairs held out for validation, none for test")
    v.good("lines", lines(), "the lines of five edges")
    v.good("kge", batch(kge()), "triples")
    v.good("optional", batch(tiny(extra=[Section(0x7777, F64, [1.0, 2.0], shape=[1, 2, 1], layer=0, coef=99)]), optional=1 << 63), "a section of an unknown kind under an unknown optional bit: skipped")
    v.good("optional-unused", batch(tiny(), optional=2), "an unknown optional bit, no unknown kinds")


def faulty_files(v):
    g = batch(tiny())
    two = build(BATCHES, [tiny(number=0), tiny(number=1)], snapshot_id=SNAPSHOT, set_key=SET)
    v.bad("F1", "empty", b"", "truncated", "no bytes")
    v.bad("F1", "short", g[:127], "truncated", "one byte short of a header")
    v.bad("F2", "magic", patch(g, 0, b"\x88"), "magic", "first byte")
    v.bad("F2", "crlf", g[:4] + b"\n" + g[6:], "magic", "CR LF turned into LF by a text transfer")
    v.bad("F2", "zeros", bytes(5184), "magic", "zeros")
    v.bad("F2", "text", b"src,dst\n" * 40, "magic", "a CSV file")
    v.bad("F3", "future", batch(tiny(), version=2), "version", "version 2")
    v.bad("F3", "zero", batch(tiny(), version=0), "version", "version 0")
    v.bad("F3", "big-endian", batch(tiny(), version=256), "version", "version 1 with its bytes swapped")
    v.bad("F4", "header-crc", batch(tiny(), header_crc=0), "checksum", "header CRC")
    v.bad("F4", "header-bit", patch(g, 40, bytes([g[40] ^ 1])), "checksum", "one bit of the snapshot id")
    v.bad("F5", "bom", batch(tiny(), bom=0x0D0C0B0A), "layout", "byte-order mark")
    v.bad("F6", "kind-zero", build(0, [tiny()]), "version", "file kind 0")
    v.bad("F6", "kind-unknown", build(99, [tiny()]), "version", "file kind 99")
    v.bad("F7", "required-unknown", batch(tiny(), required=1 << 40), "version", "an unknown required bit")
    v.bad("F7", "required-encryption", batch(tiny(), required=1), "version", "the reserved bit of encryption")
    v.bad("F8", "cut-in-table", g[:140], "truncated", "cut within the record table")
    v.bad("F8", "cut-in-padding", g[:4000], "truncated", "cut before the first record")
    v.bad("F8", "cut-in-record", g[:4200], "truncated", "cut within a record head")
    v.bad("F8", "cut-one", g[:-1], "truncated", "the last byte is gone")
    v.bad("F8", "size-huge", batch(tiny(), size=(1 << 64) - 1), "truncated", "size field 2^64-1")
    v.bad("F9", "trailing", g + b"\0", "layout", "one byte after the end")
    v.bad("F9", "size-zero", batch(tiny(), size=0), "layout", "size field 0")
    v.bad("F10", "reserved", batch(tiny(), reserved=b"\0\0\0\0\0\0\0\1"), "layout", "reserved header byte")
    v.bad("F11", "no-records", build(BATCHES, []), "limit", "no records")
    v.bad("F11", "records-huge", batch(tiny(), num_records=0xFFFFFFFF), "limit", "2^32-1 records")
    v.bad("F12", "table-beyond", batch(tiny(), num_records=1 << 24), "truncated", "the table of 2^24 records isn't there")
    v.bad("F13", "table-crc", batch(tiny(), table_crc=0), "checksum", "table CRC")
    v.bad("F13", "table-bit", patch(g, 144, b"\1"), "checksum", "a bit of the table")
    v.bad("F14", "table-reserved", batch(tiny(), table={0: dict(reserved=1)}), "layout", "reserved table bytes")
    v.bad("F15", "offset-unaligned", batch(tiny(), table={0: dict(offset=4160)}), "layout", "record at 4160")
    v.bad("F15", "offset-zero", batch(tiny(), table={0: dict(offset=0)}), "layout", "record at 0")
    v.bad("F15", "offset-gap", batch(tiny(), gap=4096), "layout", "an unused page before the record")
    v.bad("F15", "overlap", build(BATCHES, [tiny(number=0), tiny(number=1)], table={1: dict(offset=4096)}), "layout", "two records in one place")
    v.bad("F15", "swapped", swap_table(two), "layout", "records listed in the other order")
    v.bad("F16", "record-beyond", batch(tiny(), table={0: dict(size=1 << 20)}), "truncated", "record of 1 MiB")
    v.bad("F16", "record-huge", batch(tiny(), table={0: dict(size=(1 << 64) - 4096)}), "truncated", "offset + size overflows")
    v.bad("F17", "record-small", batch(tiny(), table={0: dict(size=63)}), "layout", "record of 63 bytes")
    v.bad("F18", "record-short", batch(tiny(), table={0: dict(size=512)}), "layout", "the record ends before the file")
    v.bad("F19", "padding-first", patch(g, 200, b"\1"), "layout", "a byte before the first record")
    v.bad("F19", "padding-between", patch(two, 8191, b"\1"), "layout", "a byte before the second record")


def swap_table(b):
    a, c = b[128:160], b[160:192]
    b = patch(b, 128, c + a)
    b = patch(b, 112, struct.pack("<I", crc(c + a)))
    return patch(b, 124, struct.pack("<I", crc(b[:124])))


def faulty_heads(v):
    v.bad("R1", "mark", batch(tiny(mark=0)), "layout", "record mark")
    v.bad("R2", "layers", batch(tiny(num_layers=65)), "limit", "65 layers")
    v.bad("R2", "hops", batch(tiny(num_hops=66)), "limit", "66 hops")
    v.bad("R2", "sections", batch(tiny(num_sections=4097)), "limit", "4097 sections")
    v.bad("R2", "sections-huge", batch(tiny(num_sections=0xFFFFFFFF)), "limit", "2^32-1 sections")
    v.bad("R3", "head-beyond", batch(tiny(num_sections=4096)), "truncated", "the head of 4096 sections isn't there")
    v.bad("R4", "head-crc", batch(tiny(), table={0: dict(head_crc=0)}), "checksum", "head CRC")
    v.bad("R4", "head-bit", patch(batch(tiny()), 4096 + 140, b"\1"), "checksum", "a bit of a section entry")
    v.bad("R5", "reserved", batch(tiny(reserved=b"\1" + bytes(11))), "layout", "reserved head byte")
    v.bad("R6", "number", batch(tiny(number=1), table={0: dict(number=0)}), "layout", "another batch number than the table's")
    v.bad("R6", "variant", batch(tiny(), table={0: dict(variant=1)}), "layout", "another variant than the table's")
    v.bad("R7", "task", batch(tiny(task=4)), "layout", "task 4")
    v.bad("R7", "split", batch(tiny(split=4)), "layout", "part 4")
    v.bad("R7", "space", batch(tiny(space=2)), "layout", "index space 2")

    def weight(**override):
        return batch(tiny(extra=[Section(S_WEIGHT, F32, [1, 1], **override)]))

    v.bad("S1", "dtype-zero", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), dtype=0)])), "layout", "element type 0")
    v.bad("S1", "dtype-unknown", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), dtype=13)])), "layout", "element type 13")
    v.bad("S2", "codec-next", weight(codec=2), "version", "codec 2")
    v.bad("S2", "codec-unknown", weight(codec=200), "version", "codec 200")
    v.bad("S3", "nonce", weight(nonce=b"\1" + bytes(11)), "layout", "nonce")
    v.bad("S3", "tag", weight(tag=bytes(15) + b"\1"), "layout", "tag")
    v.bad("S3", "reserved", weight(reserved=b"\0\0\0\1"), "layout", "reserved entry bytes")
    v.bad("S4", "rank-zero", weight(rank=0), "layout", "no dimensions")
    v.bad("S4", "rank-four", weight(rank=4), "layout", "four dimensions")
    v.bad("S4", "rank-huge", weight(rank=0xFFFFFFFF), "layout", "2^32-1 dimensions")
    v.bad("S4", "shape-beyond-rank", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), shape=[2, 1], rank=1)])), "layout", "a second dimension with rank 1")
    v.bad("S5", "overflow", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), shape=[1 << 62], rank=1)])), "limit", "4 * 2^62 bytes")
    v.bad("S5", "overflow-product", batch(tiny(extra=[entry(Section(ROWS, F32, []), shape=[1 << 48, 1 << 20], rank=2)])), "limit", "2^48 * 2^20 elements")
    v.bad("S5", "columns", batch(tiny(extra=[Section(ROWS, F32, [], shape=[0, (1 << 24) + 1])])), "limit", "no rows of 2^24+1 columns")
    v.bad("S6", "plain", weight(plain=12), "layout", "plain length")
    v.bad("S6", "stored", weight(stored=4), "layout", "stored length")
    v.bad("S6", "bits-plain", batch(tiny(replace={NODES_NUMBER: coded(NODES_NUMBER, I32, [5, 9, 2, 7], plain=12)})), "layout", "plain length of a coded section")
    v.bad("S6", "bits-stored", batch(tiny(replace={NODES_NUMBER: coded(NODES_NUMBER, I32, [5, 9, 2, 7], data=bytes(4))})), "layout", "a coded section without its width")
    v.bad("S6", "bits-huge", batch(tiny(replace={NODES_NUMBER: coded(NODES_NUMBER, I32, [5, 9, 2, 7], shape=[1 << 40], plain=1 << 42)})), "layout", "a coded section of 2^40 numbers in 6 bytes")
    v.bad("S6", "shape", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), shape=[3], rank=1)])), "layout", "shape of three for two elements")
    v.bad("S6", "shape-huge", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), shape=[1 << 40], rank=1)])), "layout", "shape of 2^40")
    v.bad("S7", "unknown-kind", batch(tiny(extra=[Section(0x7777, F32, [1])])), "layout", "an unknown kind without an optional bit")
    v.bad("S7", "kind-zero", batch(tiny(extra=[Section(0, F32, [1])])), "layout", "kind 0")
    v.bad("S8", "rank-of-kind", batch(tiny(extra=[Section(S_WEIGHT, F32, [1, 1], shape=[2, 1])])), "layout", "seeds.weight with two dimensions")
    v.bad("S9", "dtype-of-kind", batch(tiny(extra=[Section(S_WEIGHT, F64, [1, 1])])), "layout", "seeds.weight in f64")
    v.bad("S9", "indices-i64", batch(tiny(replace={INDICES: Section(INDICES, I64, [2, 3, 3], layer=0)})), "layout", "block.indices in i64")
    v.bad("S10", "coef-missing", batch(tiny(replace={C_SELF: Section(C_SELF, F32, [1, 1], layer=0)})), "layout", "coef.self of no kind")
    v.bad("S10", "coef-unknown", batch(tiny(replace={C_SELF: Section(C_SELF, F32, [1, 1], layer=0, coef=5)})), "layout", "coefficient kind 5")
    v.bad("S10", "coef-on-weight", batch(tiny(extra=[Section(S_WEIGHT, F32, [1, 1], coef=GCN)])), "layout", "seeds.weight with a coefficient kind")
    v.bad("S10", "coef-on-importance", batch(tiny(extra=[Section(C_IMPORTANCE, F32, [1, 1], layer=0, coef=GCN)])), "layout", "coef.importance with a coefficient kind")
    v.bad("S11", "gap", batch(tiny(gap=64)), "layout", "64 unused bytes before each section")
    v.bad("S11", "unaligned", batch(tiny(gap=32)), "layout", "sections at odd multiples of 32")
    v.bad("S11", "overlap", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), offset=832)])), "layout", "two sections in one place")
    v.bad("S11", "offset-huge", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), offset=(1 << 64) - 64)])), "layout", "offset 2^64-64")
    v.bad("S12", "beyond", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), shape=[1 << 20], rank=1, plain=1 << 22, stored=1 << 22)])), "truncated", "a section of 4 MiB")
    v.bad("S12", "huge", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), shape=[1 << 60], rank=1, plain=1 << 62, stored=1 << 62)])), "truncated", "a section of 2^62 bytes")
    v.bad("S13", "tail", batch(tiny(tail=bytes(64))), "layout", "64 bytes after the last section")
    v.bad("S14", "twice", batch(tiny(extra=[Section(S_MASK, U8, [1, 1], shape=[2, 1])])), "layout", "seeds.mask twice")
    v.bad("S14", "twice-unknown", batch(tiny(extra=[Section(0x7777, U8, [1]), Section(0x7777, U8, [1])]), optional=1), "layout", "an unknown kind twice")

    v.bad("N1", "hops-fall", batch(tiny(hop_nodes=[4, 2], num_seeds=4)), "layout", "fewer nodes at hop 1 than at hop 0")
    v.bad("N1", "hops-huge", batch(tiny(hop_nodes=[2, 1 << 31])), "layout", "2^31 nodes")
    v.bad("N1", "hops-overflow", batch(tiny(hop_nodes=[2, (1 << 64) - 1])), "layout", "2^64-1 nodes")
    v.bad("N2", "global-layers", build(EVAL, [Record([], [5, 5], [0, 0], space=GLOBAL)]), "layout", "a global record with a layer")
    v.bad("N2", "global-no-hops", build(EVAL, [Record([], [], space=GLOBAL)]), "layout", "a global record without hop_nodes")
    v.bad("N3", "range-turned", build(EVAL, [Record([], [5], space=GLOBAL, dst_start=3, dst_end=2)]), "layout", "dst rows 3 to 2")
    v.bad("N3", "range-beyond", build(EVAL, [Record([], [5], space=GLOBAL, dst_start=3, dst_end=6)]), "layout", "dst rows 3 to 6 of 5 nodes")
    v.bad("N4", "global-seeds", build(EVAL, [Record([], [5], space=GLOBAL, dst_start=3, dst_end=5, num_seeds=3)]), "layout", "3 seeds in 2 rows")
    v.bad("N5", "local-range", batch(tiny(dst_end=2)), "layout", "a local record with a dst range")
    v.bad("N6", "hops-missing", batch(tiny(hop_nodes=[2, 4, 6], layer_edges=[3, 0, 0])), "layout", "three hops for one layer")
    v.bad("N6", "no-hops", batch(Record([], [], task=KGE)), "layout", "a local record without hop_nodes")
    v.bad("N7", "seeds-few", batch(tiny(num_seeds=1)), "layout", "one seed, two nodes of hop 0")
    v.bad("N7", "seeds-many", batch(Record([], [2], task=KGE, num_seeds=3)), "layout", "three seeds among two nodes")
    v.bad("N7", "seeds-huge", batch(Record([], [2], task=KGE, num_seeds=(1 << 64) - 1)), "layout", "2^64-1 seeds")
    v.bad("N8", "layer-beyond", batch(tiny(replace={C_SELF: Section(C_SELF, F32, [1, 1], layer=1, coef=GCN)})), "layout", "coef.self of layer 1 of 1")
    v.bad("N8", "layer-of-none", build(TOPOLOGY, [topology(replace={WEIGHT: Section(WEIGHT, F32, [1, 1, 1], layer=0)})]), "layout", "block.weight of layer 0 in a record of no layers")
    v.bad("N9", "layer-of-nodes", batch(tiny(replace={S_LABEL: Section(S_LABEL, I32, [1, -1], layer=0)})), "layout", "seeds.label of layer 0")
    v.bad("N10", "block-of-all", batch(tiny(extra=[Section(WEIGHT, F32, [1, 1, 1])])), "layout", "block.weight of no layer in a record of one")
    v.bad("N10", "coef-edge-of-all", batch(tiny(replace={C_EDGE: Section(C_EDGE, F32, [1, 1, 1], coef=GCN)})), "layout", "coef.edge of no layer in a record of one")
    v.bad("N12", "bits-kind", weight(codec=1), "layout", "seeds.weight under the codec bits")
    v.bad("N12", "bits-float", batch(tiny(extra=[entry(Section(WEIGHT, F32, [1, 1, 1], layer=0), codec=1)])), "layout", "floats under the codec bits")
    v.bad("N12", "bits-bytes", batch(tiny(extra=[entry(Section(NODES_TABLE, U8, [0] * 4), codec=1, stored=4)])), "layout", "bytes under the codec bits")
    v.bad("N12", "bits-label", batch(tiny(replace={S_LABEL: coded(S_LABEL, I32, [1, -1])})), "layout", "labels under the codec bits")
    v.bad("N12", "bits-global", build(EVAL, [table_record(3, [coded(INDPTR, I64, [0, 1, 3, 3]), Section(INDICES, I32, [1, 0, 2])])]), "layout", "a coded section in a global record")
    v.bad("N11", "no-numbers", batch(tiny(drop=(NODES_NUMBER,))), "layout", "a batch without nodes.number")


def entry(section, **override):
    """The section with fields of its entry overridden, whatever their names are."""
    section.override = override
    return section


def faulty_contents(v):
    g = batch(tiny())
    two_layers = batch(layers())
    at = section_offset(two_layers, 0)
    v.bad("C1", "padding-head", patch(two_layers, at - 1, b"\1"), "layout", "a byte between head and first section")
    v.bad("C1", "padding-between", patch(two_layers, at + 24, b"\1"), "layout", "a byte between two sections")
    for k, s in enumerate(tiny().sections):
        o = section_offset(g, k)
        v.bad("C2", "section-%d" % k, patch(g, o, bytes([g[o] ^ 0x80])), "checksum", "a bit of section %d" % k)
    v.bad("C2", "crc", batch(tiny(extra=[entry(Section(S_WEIGHT, F32, [1, 1]), crc=0)])), "checksum", "the CRC of a section")

    def t(check, name, kind, section, about, **fields):
        v.bad(check, name, batch(tiny(replace={kind: section}, **fields)), "layout", about)

    def x(check, name, about, *sections):
        v.bad(check, name, batch(tiny(extra=sections)), "layout", about)

    def l(check, name, kind, layer, section, about):
        v.bad(check, name, batch(layers(replace={(kind, layer): section})), "layout", about)

    t("C3", "number-negative", NODES_NUMBER, Section(NODES_NUMBER, I32, [5, 9, 2, -1]), "node number -1")
    t("C3", "number-huge", NODES_NUMBER, Section(NODES_NUMBER, I32, [5, 9, 2, 2**31 - 1]), "node number 2^31-1")
    t("C3", "number-length", NODES_NUMBER, Section(NODES_NUMBER, I32, [5, 9, 2]), "three numbers of four nodes")
    x("C3", "type-negative", "node type -1", Section(NODES_TYPE, I32, [0, 0, -1, 0]))
    x("C3", "row-negative", "row -1", Section(NODES_ROW, I32, [0, 0, -1, 0]))
    x("C4", "table-four", "table 4", Section(NODES_ROW, I32, [0, 0, 0, 0]), Section(NODES_TABLE, U8, [0, 0, 0, 4]))
    x("C4", "table-length", "three tables of four nodes", Section(NODES_TABLE, U8, [0, 0, 0]))
    v.bad("C5", "row-beyond", batch(packed([1, 900, 2, 1], [1, 0, 1, 1], 2)), "layout", "row 2 of two own rows")
    v.bad("C5", "row-nowhere", batch(packed([0, 0, 0, 0], [1, 1, 1, 1], None)), "layout", "own rows in a record without table.rows")
    t("C6", "indptr-start", INDPTR, Section(INDPTR, I64, [1, 2, 3], layer=0), "block.indptr starts at 1")
    t("C6", "indptr-falls", INDPTR, Section(INDPTR, I64, [0, 4, 3], layer=0), "block.indptr falls")
    t("C6", "indptr-negative", INDPTR, Section(INDPTR, I64, [0, -1, 3], layer=0), "block.indptr has -1")
    t("C6", "indptr-end", INDPTR, Section(INDPTR, I64, [0, 2, 4], layer=0), "block.indptr ends beyond the edges")
    t("C6", "indptr-end-negative", INDPTR, Section(INDPTR, I64, [0, 2, -3], layer=0), "block.indptr ends at -3")
    t("C6", "indptr-end-huge", INDPTR, Section(INDPTR, I64, [0, 2, 2**63 - 1], layer=0), "block.indptr ends at 2^63-1")
    t("C6", "indptr-length", INDPTR, Section(INDPTR, I64, [0, 3], layer=0), "block.indptr of one dst, the block has two")
    t("C6", "indptr-empty", INDPTR, Section(INDPTR, I64, [], layer=0), "block.indptr of no elements")
    v.bad("C6", "indptr-without-indices", batch(tiny(drop=(INDICES,))), "layout", "block.indptr counts edges, there is no block.indices")
    v.bad("C7", "indices-without-indptr", build(TOPOLOGY, [table_record(3, [Section(INDICES, I32, [1, 0])])]), "layout", "block.indices without block.indptr")
    t("C7", "indices-beyond", INDICES, Section(INDICES, I32, [2, 3, 4], layer=0), "src 4 of four")
    t("C7", "indices-negative", INDICES, Section(INDICES, I32, [2, -1, 3], layer=0), "src -1")
    l("C7", "indices-of-next-hop", INDICES, 1, Section(INDICES, I32, [2, 4], layer=1), "layer 1 uses a node of hop 2")
    v.bad("C7", "indices-global", build(EVAL, [eval_block(0, 3, [0, 2, 2, 3], [1, 5, 0])]), "layout", "src 5 of five nodes")
    l("C8", "rel-negative", REL, 0, Section(REL, I32, [0, 1, 0, -1, 1], layer=0), "relation -1")
    l("C8", "rel-length", REL, 0, Section(REL, I32, [0, 1, 0, 1], layer=0), "four relations of five edges")
    l("C9", "relptr-falls", RELPTR, 0, Section(RELPTR, I64, [0, 1, 1, 1, 2, 5, 4, 4, 5], layer=0), "block.relptr falls")
    l("C9", "relptr-row", RELPTR, 0, Section(RELPTR, I64, [0, 1, 2, 2, 2, 3, 4, 4, 5], layer=0), "a row starts elsewhere than in block.indptr")
    l("C9", "relptr-length", RELPTR, 0, Section(RELPTR, I64, [0, 1, 2, 4, 4, 4, 5], layer=0), "six runs for four dst")
    l("C9", "relptr-one", RELPTR, 0, Section(RELPTR, I64, [0], layer=0), "no runs for four dst")
    l("C10", "weight-length", WEIGHT, 0, Section(WEIGHT, F32, [1, 2, 3, 4], layer=0), "four weights of five edges")
    l("C10", "edge-id-length", EDGE_ID, 0, Section(EDGE_ID, I64, [1] * 6, layer=0), "six ids of five edges")
    l("C10", "time-length", TIME, 0, Section(TIME, I64, [], layer=0), "no times of five edges")
    t("C11", "self-length", C_SELF, Section(C_SELF, F32, [1, 1, 1, 1], layer=0, coef=GCN), "coef.self of the layer for four dst of two")
    t("C11", "edge-length", C_EDGE, Section(C_EDGE, F32, [1, 1], layer=0, coef=GCN), "two edge coefficients of three edges")
    l("C11", "src-length", C_SRC, ANY_LAYER, Section(C_SRC, F32, [1] * 4, coef=GCN), "coef.src of all layers for four of six nodes")
    l("C11", "dst-length", C_DST, 1, Section(C_DST, F32, [1] * 4, layer=1, coef=MEAN), "coef.dst of layer 1 for four dst of two")
    l("C11", "importance-length", C_IMPORTANCE, 0, Section(C_IMPORTANCE, F32, [1] * 6, layer=0), "six importances of four dst")
    v.bad("C11", "dst-global", build(EVAL, [Record([Section(C_DST, F32, [1, 1], coef=GCN)], [5], space=GLOBAL, dst_start=1, dst_end=3)]), "layout", "coef.dst of a global record has its rows, not all nodes")
    v.bad("C12", "transpose-indptr-alone", batch(layers(drop=((T_INDICES, 0), (T_EDGE, 0), (T_REL, 0)))), "layout", "transpose.indptr without transpose.indices")
    l("C12", "transpose-indptr-length", T_INDPTR, 0, Section(T_INDPTR, I64, [0, 0, 1, 2, 5], layer=0), "transpose.indptr of four src, the block has six")
    l("C12", "transpose-indptr-end", T_INDPTR, 0, Section(T_INDPTR, I64, [0, 0, 0, 1, 2, 3, 4], layer=0), "transpose.indptr ends before the edges")
    l("C12", "transpose-indptr-falls", T_INDPTR, 0, Section(T_INDPTR, I64, [0, 0, 2, 1, 2, 3, 5], layer=0), "transpose.indptr falls")
    v.bad("C13", "transpose-indices-alone", batch(layers(drop=((T_INDPTR, 0), (T_EDGE, 0), (T_REL, 0)))), "layout", "transpose.indices without transpose.indptr")
    l("C13", "transpose-indices-beyond", T_INDICES, 0, Section(T_INDICES, I32, [0, 1, 2, 2, 4], layer=0), "dst 4 of four")
    l("C13", "transpose-indices-length", T_INDICES, 0, Section(T_INDICES, I32, [0, 1, 2, 2], layer=0), "four of five edges")
    v.bad("C14", "transpose-edge-alone", batch(layers(drop=((T_INDPTR, 0), (T_INDICES, 0), (T_REL, 0)))), "layout", "transpose.edge without transpose.indptr")
    l("C14", "transpose-edge-beyond", T_EDGE, 0, Section(T_EDGE, I64, [0, 1, 2, 3, 5], layer=0), "edge 5 of five")
    l("C14", "transpose-edge-negative", T_EDGE, 0, Section(T_EDGE, I64, [0, 1, 2, 3, -1], layer=0), "edge -1")
    l("C14", "transpose-edge-length", T_EDGE, 0, Section(T_EDGE, I64, [0, 1, 2, 3], layer=0), "four of five edges")
    v.bad("C48", "transpose-rel-alone", batch(layers(drop=((T_INDPTR, 0), (T_INDICES, 0), (T_EDGE, 0)))), "layout", "transpose.rel without transpose.indptr")
    l("C48", "transpose-rel-negative", T_REL, 0, Section(T_REL, I32, [0, 1, 0, -1, 1], layer=0), "relation -1")
    l("C48", "transpose-rel-length", T_REL, 0, Section(T_REL, I32, [0, 1, 0, 1], layer=0), "four relations of five edges")
    t("C15", "label-below", S_LABEL, Section(S_LABEL, I32, [1, -2]), "class -2")
    t("C15", "label-rows", S_LABEL, Section(S_LABEL, I32, [1, -1, 0]), "three labels of two seeds")
    t("C15", "label-rank", S_LABEL, Section(S_LABEL, I32, [1, -1], shape=[2, 1]), "classes with two dimensions")
    t("C15", "label-bits-rank", S_LABEL, Section(S_LABEL, U8, [1, 0]), "bits with one dimension")
    t("C15", "label-bits-rank-three", S_LABEL, Section(S_LABEL, U8, [1, 0], shape=[2, 1, 1]), "bits with three dimensions")
    t("C15", "label-bits", S_LABEL, Section(S_LABEL, U8, [1, 2], shape=[2, 1]), "bit 2")
    t("C15", "label-values-rank", S_LABEL, Section(S_LABEL, F32, [1, 2]), "values with one dimension")
    t("C16", "mask-four", S_MASK, Section(S_MASK, U8, [1, 4], shape=[2, 1]), "part 4")
    t("C16", "mask-rows", S_MASK, Section(S_MASK, U8, [1, 1, 1], shape=[3, 1]), "masks of three seeds of two")
    x("C17", "seed-weight-length", "three weights of two seeds", Section(S_WEIGHT, F32, [1, 1, 1]))

    def p(name, kind, section, about):
        v.bad("C18", name, batch(link(replace={kind: section})), "layout", about)

    p("pairs-src-beyond", P_SRC, Section(P_SRC, I32, [0, 4]), "src 4 of four nodes")
    p("pairs-dst-negative", P_DST, Section(P_DST, I32, [-1, 0]), "dst -1")
    p("pairs-dst-length", P_DST, Section(P_DST, I32, [1]), "one dst of two pairs")
    p("pairs-rel-negative", P_REL, Section(P_REL, I32, [0, -1]), "relation -1")
    p("pairs-label-length", P_LABEL, Section(P_LABEL, F32, [1, 1, 1]), "three targets of two pairs")
    v.bad("C18", "pairs-weight-length", batch(tiny(extra=[Section(P_SRC, I32, [0]), Section(P_DST, I32, [1]), Section(P_WEIGHT, F32, [])], drop=(S_LABEL, S_MASK), task=LINK)), "layout", "no weight of one pair")
    v.bad("C18", "pairs-weight-alone", build(HELDOUT, [table_record(4, [Section(P_WEIGHT, F32, [1])], split=VALID)]), "layout", "a weight of no pair")

    def k(check, name, kind, section, about):
        v.bad(check, name, batch(kge(replace={kind: section})), "layout", about)

    k("C19", "positives-columns", K_POSITIVES, Section(K_POSITIVES, I32, [0] * 6, shape=[3, 2]), "positives of two columns")
    k("C19", "positives-negative", K_POSITIVES, Section(K_POSITIVES, I32, [0] * 8 + [-1], shape=[3, 3]), "tail -1")
    k("C19", "edges-columns", K_EDGES, Section(K_EDGES, I32, [0] * 4, shape=[1, 4]), "edges of four columns")
    k("C20", "chunkptr-end", K_CHUNKPTR, Section(K_CHUNKPTR, I64, [0, 2, 4]), "chunks end beyond the positives")
    k("C20", "chunkptr-falls", K_CHUNKPTR, Section(K_CHUNKPTR, I64, [0, 4, 2, 3]), "kge.chunkptr falls")
    k("C20", "chunkptr-empty", K_CHUNKPTR, Section(K_CHUNKPTR, I64, []), "kge.chunkptr of no elements")
    k("C21", "known-negative", K_KNOWN, Section(K_KNOWN, I32, [-1]), "known entity -1")
    k("C21", "guests-negative", K_GUESTS, Section(K_GUESTS, I32, [-5]), "guest -5")
    k("C21", "depth-length", K_DEPTH, Section(K_DEPTH, I32, [0]), "one depth of two nodes")
    k("C22", "range-turned", K_RANGE, Section(K_RANGE, I64, [9, 4]), "range 9 to 4")
    k("C22", "range-negative", K_RANGE, Section(K_RANGE, I64, [-1, 4]), "range from -1")
    k("C22", "range-length", K_RANGE, Section(K_RANGE, I64, [0, 1, 2]), "range of three numbers")
    v.bad("C23", "rows-few", build(FEATURES, [table_record(3, [Section(ROWS, F32, [1, 2, 3, 4], shape=[2, 2])])]), "layout", "two rows of three nodes")
    v.bad("C23", "rows-packed", batch(packed(None, None, 3)), "layout", "three own rows of four nodes")
    for name, scale, about in (("zero", [0.5, 0], "a scale of 0"), ("negative", [-1, 1], "a scale below 0"), ("nan", [1, NAN], "a scale that is no number"), ("infinite", [float("inf"), 1], "an infinite scale")):
        v.bad("C24", "scale-" + name, build(FEATURES, [table_record(2, [Section(ROWS, I8, [1, 1, 1, 1], shape=[2, 2]), Section(SCALE, F32, scale)])]), "layout", about)
    v.bad("C24", "scale-missing", build(FEATURES, [table_record(2, [Section(ROWS, I8, [1, 1, 1, 1], shape=[2, 2])])]), "layout", "i8 rows without a scale")
    v.bad("C24", "scale-length", build(FEATURES, [table_record(2, [Section(ROWS, I8, [1, 1, 1, 1], shape=[2, 2]), Section(SCALE, F32, [1])])]), "layout", "one scale of two columns")

    def g3(check, name, kind, section, about):
        v.bad(check, name, build(TOPOLOGY, [topology(replace={kind: section})]), "layout", about)

    g3("C25", "component-beyond", G_COMPONENT, Section(G_COMPONENT, I32, [0, 0, 1]), "component 1 of one")
    g3("C25", "component-length", G_COMPONENT, Section(G_COMPONENT, I32, [0, 0]), "components of two nodes of three")
    g3("C26", "size-sum", G_SIZE, Section(G_SIZE, I64, [2]), "sizes add up to two of three nodes")
    g3("C26", "size-zero", G_SIZE, Section(G_SIZE, I64, [3, 0]), "a component of no nodes")
    g3("C26", "size-huge", G_SIZE, Section(G_SIZE, I64, [2**63 - 1, 2**63 - 1, 5]), "sizes whose sum overflows to three")

    def i4(check, name, kind, section, about):
        v.bad(check, name, build(IDS, [ids_record(replace={kind: section})]), "layout", about)

    i4("C27", "ids-offsets-end", ID_OFFSETS, Section(ID_OFFSETS, I64, [0, 2, 3, 6, 10]), "ids end beyond the bytes")
    i4("C27", "ids-offsets-falls", ID_OFFSETS, Section(ID_OFFSETS, I64, [0, 3, 2, 6, 9]), "ids.offsets falls")
    i4("C27", "ids-offsets-length", ID_OFFSETS, Section(ID_OFFSETS, I64, [0, 2, 3, 9]), "three ids of four nodes")
    i4("C28", "ids-key-length", ID_KEY, Section(ID_KEY, U64, [1, 2, 3]), "three keys of four nodes")

    def n2(name, offsets, about):
        v.bad("C29", name, build(LABELS, [table_record(2, [Section(NAME_OFFSETS, I64, offsets), Section(NAME_BYTES, U8, b"abc")])]), "layout", about)

    n2("names-end", [0, 1, 4], "names end beyond the bytes")
    n2("names-falls", [0, 2, 1, 3], "names.offsets falls")
    n2("names-empty", [], "names.offsets of no elements")
    v.bad("C30", "layer-edges", batch(tiny(layer_edges=[2, 1])), "layout", "an edge counted for a dst of hop 1")
    v.bad("C30", "layer-edges-few", batch(tiny(layer_edges=[2, 0])), "layout", "two edges counted of three")
    v.bad("C30", "layer-edges-huge", batch(tiny(layer_edges=[(1 << 64) - 1, 0])), "layout", "2^64-1 edges counted")
    v.bad("C30", "layer-edges-hops", batch(layers(layer_edges=[3, 2, 0, 2, 0, 0])), "layout", "an edge counted for the wrong hop")
    v.bad("C30", "layer-without-block", batch(layers(drop=((INDPTR, 1), (INDICES, 1)), layer_edges=[2, 3, 0, 0, 0, 0])), "layout", "layer 1 has no block")


    def h(check, name, kind, section, about):
        v.bad(check, name, hops(replace={kind: section}), "layout", about)

    n, groups = HOP_NODES, (HOP_NODES + 31) // 32
    v.bad("C31", "hop1-part", hops(drop=(H_LARGE_LAST,)), "layout", "no hop1.large_last")
    v.bad("C31", "hop1-alone", build(HOPS, [table_record(2, [Section(H_CODE, U8, [0, 0])])]), "layout", "hop1.code alone")
    h("C32", "hop1-code-length", H_CODE, Section(H_CODE, U8, [0] * (n - 1)), "codes of one node too few")
    h("C32", "hop1-offset-length", H_OFFSET, Section(H_OFFSET, U16, [0] * (n + 1)), "offsets of one node too many")
    h("C33", "hop1-group-start-length", H_GROUP_START, Section(H_GROUP_START, I64, [0, 1]), "starts of one group")
    h("C33", "hop1-group-start-end", H_GROUP_START, Section(H_GROUP_START, I64, [0] * groups + [1 << 40]), "groups end beyond hop1.compact")
    h("C33", "hop1-group-start-falls", H_GROUP_START, Section(H_GROUP_START, I64, [0, 9, 8] + [9] * (groups - 3) + [13]), "hop1.group_start falls")
    h("C34", "hop1-group-large-length", H_GROUP_LARGE, Section(H_GROUP_LARGE, I32, [0, 3]), "large rows of one group")
    h("C34", "hop1-group-large-end", H_GROUP_LARGE, Section(H_GROUP_LARGE, I32, [0] * groups + [4]), "four large rows of three")
    h("C34", "hop1-group-large-negative", H_GROUP_LARGE, Section(H_GROUP_LARGE, I32, [0, -1] + [3] * (groups - 1)), "a group after -1 large rows")
    v.bad("C35", "hop1-compact-short", hops(n=0, rows={}, hop2=False, replace={H_COMPACT: Section(H_COMPACT, U8, [0] * 7)}), "layout", "hop1.compact of seven bytes")
    h("C35", "hop1-compact-slack", H_COMPACT, Section(H_COMPACT, U8, [0] * 20 + [1]), "a bit in the last byte of hop1.compact")
    h("C35", "hop1-large-slack", H_LARGE, Section(H_LARGE, U8, [0] * 400 + [1] + [0] * 7), "a bit in the last eight bytes of hop1.large")
    h("C36", "hop1-large-chunk-length", H_LARGE_CHUNK, Section(H_LARGE_CHUNK, I64, [0, 5]), "chunks of one large row of three")
    h("C36", "hop1-large-chunk-end", H_LARGE_CHUNK, Section(H_LARGE_CHUNK, I64, [0, 2, 3, 6]), "chunks end at six of five")
    h("C36", "hop1-large-chunk-falls", H_LARGE_CHUNK, Section(H_LARGE_CHUNK, I64, [0, 3, 2, 5]), "hop1.large_chunk falls")
    h("C37", "hop1-large-start-falls", H_LARGE_START, Section(H_LARGE_START, I64, [0, 60, 30]), "hop1.large_start falls")
    h("C37", "hop1-large-start-beyond", H_LARGE_START, Section(H_LARGE_START, I64, [0, 1, 1 << 40]), "a large row beyond hop1.large")
    h("C37", "hop1-large-start-negative", H_LARGE_START, Section(H_LARGE_START, I64, [-1, 1, 2]), "a large row from -1")
    h("C38", "hop1-large-last-beyond", H_LARGE_LAST, Section(H_LARGE_LAST, U8, [21, 99, 128]), "a last chunk of 129")
    h("C38", "hop1-large-last-length", H_LARGE_LAST, Section(H_LARGE_LAST, U8, [21, 99]), "two last chunks of three large rows")
    h("C38", "hop1-large-shift-beyond", H_LARGE_SHIFT, Section(H_LARGE_SHIFT, U8, [32, 255, 255]), "a shift of 32")
    h("C38", "hop1-large-shift-length", H_LARGE_SHIFT, Section(H_LARGE_SHIFT, U8, [255] * 4), "four shifts of three large rows")
    h("C39", "hop1-chunk-base-beyond", H_CHUNK_BASE, Section(H_CHUNK_BASE, I32, [1, 257, 0, 170, 300]), "a chunk from 300 of 300 nodes")
    h("C39", "hop1-chunk-base-negative", H_CHUNK_BASE, Section(H_CHUNK_BASE, I32, [-1, 257, 0, 170, 298]), "a chunk from -1")
    h("C39", "hop1-chunk-start-length", H_CHUNK_START, Section(H_CHUNK_START, U32, [0] * 4), "four starts of five chunks")
    v.bad("C40", "hop2-indptr-alone", hops(drop=(H2_INDICES,)), "layout", "hop2.indptr without hop2.indices")
    h("C40", "hop2-indptr-length", H2_INDPTR, Section(H2_INDPTR, I64, [0, 2]), "hop 2 of one node")
    h("C40", "hop2-indptr-end", H2_INDPTR, Section(H2_INDPTR, I64, [0] * n + [3]), "hop 2 ends at three of two entries")
    h("C40", "hop2-indptr-falls", H2_INDPTR, Section(H2_INDPTR, I64, [0, 2, 1] + [2] * (n - 2)), "hop2.indptr falls")
    v.bad("C41", "hop2-indices-alone", hops(drop=(H2_INDPTR,)), "layout", "hop2.indices without hop2.indptr")
    h("C41", "hop2-indices-beyond", H2_INDICES, Section(H2_INDICES, I32, [5, 300]), "node 300 of 300")
    h("C41", "hop2-indices-negative", H2_INDICES, Section(H2_INDICES, I32, [-5, 299]), "node -5")

    def r3(check, name, kind, section, about):
        v.bad(check, name, rank(replace={kind: section}), "layout", about)

    r3("C42", "pagerank-length", R_PAGERANK, Section(R_PAGERANK, F64, [0.5, 0.5]), "ranks of two nodes of three")
    r3("C42", "pagerank-zero", R_PAGERANK, Section(R_PAGERANK, F64, [1, 0, 0.5]), "a rank of 0")
    r3("C42", "pagerank-nan", R_PAGERANK, Section(R_PAGERANK, F64, [NAN, 0.5, 0.5]), "a rank that is no number")
    r3("C42", "weight-length", R_WEIGHT, Section(R_WEIGHT, F32, [1] * 4), "weights of four nodes of three")
    r3("C42", "weight-negative", R_WEIGHT, Section(R_WEIGHT, F32, [1, -0.5, 0.5]), "a weight of -0.5")
    r3("C42", "mass-infinite", R_MASS, Section(R_MASS, F64, [float("inf"), 0.5]), "an infinite mass")
    r3("C43", "order-length", R_ORDER, Section(R_ORDER, I32, [1, 0]), "an order of two nodes of three")
    r3("C43", "order-twice", R_ORDER, Section(R_ORDER, I32, [0, 1, 1]), "a node listed twice")
    r3("C43", "order-beyond", R_ORDER, Section(R_ORDER, I32, [0, 1, 3]), "node 3 of three")
    r3("C43", "order-negative", R_ORDER, Section(R_ORDER, I32, [-1, 1, 2]), "node -1")

    def l9(check, name, kind, section, about):
        v.bad(check, name, lines(replace={kind: section}), "layout", about)

    l9("C44", "lines-count-columns", L_COUNT, Section(L_COUNT, U8, [2, 1, 255], shape=[3, 1]), "counts of one column")
    l9("C44", "lines-count-zero", L_COUNT, Section(L_COUNT, U8, [3, 0, 0, 255, 0, 0], shape=[3, 2]), "an edge of no line")
    v.bad("C44", "lines-count-large", lines(replace={L_COUNT: Section(L_COUNT, U8, [255, 1, 2, 255], shape=[2, 2])}, drop=(L_WEIGHT,)), "layout", "two large counts, one given")
    v.bad("C44", "lines-count-large-gone", lines(drop=(L_LARGE, L_WEIGHT)), "layout", "a large count, none given")
    v.bad("C45", "lines-large-alone", lines(drop=(L_COUNT, L_WEIGHT)), "layout", "lines.large without lines.count")
    v.bad("C45", "lines-large-small", lines(replace={L_LARGE: Section(L_LARGE, U64, [254])}, drop=(L_WEIGHT,)), "layout", "a large count of 254")
    v.bad("C45", "lines-large-huge", lines(replace={L_COUNT: Section(L_COUNT, U8, [2, 1, 255, 255], shape=[2, 2]), L_LARGE: Section(L_LARGE, U64, [2**62, 2**62])}, drop=(L_WEIGHT,)), "layout", "2^63 lines")
    v.bad("C46", "lines-weight-alone", lines(drop=(L_COUNT, L_LARGE)), "layout", "lines.weight without lines.count")
    l9("C46", "lines-weight-length", L_WEIGHT, Section(L_WEIGHT, F32, [1] * 302), "weights of 302 lines of 303")
    l9("C47", "lines-named-length", L_NAMED, Section(L_NAMED, U8, [255]), "bits of eight nodes of nine")
    l9("C47", "lines-named-behind", L_NAMED, Section(L_NAMED, U8, [0, 2]), "a bit of a tenth node")

    def c49(check, name, kind, dtype, values, about, layer=ANY_LAYER, **how):
        v.bad(check, name, batch(tiny(replace={kind: coded(kind, dtype, values, layer=layer, data=how["data"] if "data" in how else bits_of(values, dtype, **how))})), "layout", about)

    nodes = [5, 9, 2, 7]
    c49("C49", "bits-width", NODES_NUMBER, I32, nodes, "numbers of 33 bits", width=[33])
    c49("C49", "bits-cut", NODES_NUMBER, I32, nodes, "a packed byte too few", data=bits_of(nodes, I32)[:-1])
    c49("C49", "bits-more", NODES_NUMBER, I32, nodes, "a packed byte too many", data=bits_of(nodes, I32) + b"\0")
    c49("C49", "bits-fill", NODES_NUMBER, I32, nodes, "a bit behind the last number", fill=1)
    v.bad("C49", "bits-block", batch(bits(replace={NODES_TYPE: coded(NODES_TYPE, I32, [1] * 300, data=bits_of([1] * 300, I32, width=[1, 0, 200]))})), "layout", "numbers of 200 bits in the third block")
    c49("C3", "bits-number-wraps", NODES_NUMBER, I32, [5, 9, -1, 7], "a base of 2^31-1 and so many bits beyond that it comes round to -1", base=[2**31 - 1], width=[32])
    c49("C6", "bits-indptr-falls", INDPTR, I64, [0, 4, 3], "a coded block.indptr falls", layer=0)
    c49("C6", "bits-indptr-end", INDPTR, I64, [0, 2, 2], "a coded block.indptr ends before the last edge", layer=0)
    c49("C7", "bits-indices-beyond", INDICES, I32, [2, 3, 4], "a coded src of four", layer=0)
    c49("C7", "bits-indices-length", INDICES, I32, [2, 3], "two coded indices of three", layer=0)
    v.bad("C6", "bits-indptr-late", batch(bits(replace={INDPTR: coded(INDPTR, I64, [x + (i == 150) for i, x in enumerate(offsets_of(BITS_EDGES))][:150] + [10**6] + offsets_of(BITS_EDGES)[151:], layer=0)})), "layout", "an offset in the second block that the next one is below")
    v.bad("C7", "bits-indices-late", batch(bits(replace={INDICES: coded(INDICES, I32, [s for row in BITS_EDGES for s in row][:-1] + [300], layer=0)})), "layout", "src 300 of 300 in the last block")
    v.bad("C11", "self-all-nodes", batch(layers(replace={(C_SELF, ANY_LAYER): Section(C_SELF, F32, [1] * 6, coef=GCN)})), "layout", "coef.self of all layers for all six nodes, not the four dst of layer 0")


def section_offset(b, k):
    """Where section k of the first record starts in the file."""
    (start,) = struct.unpack_from("<Q", b, 128)
    l, h, _ = struct.unpack_from("<HHI", b, start + 16)
    (offset,) = struct.unpack_from("<Q", b, start + 64 + 8 * h + 8 * l * h + 96 * k + 32)
    return start + offset


# ---- manifests ----


def canonical(v):
    """RFC 8785 for what these manifests hold: ASCII keys, strings and small integers."""
    return json.dumps(v, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


class Artefact:
    """A directory under vectors/manifests. data is its one file's content."""

    def __init__(self, data=b"data of a file"):
        self.files = {"part-00000.bin": data}
        self.manifest = dict(kind="vector", format_version=1, num_nodes="3", files=[self.info("part-00000.bin")])

    def info(self, file, **override):
        data = self.files[file]
        i = dict(name=file, size_bytes=str(len(data)), sha256="sha256:" + hashlib.sha256(data).hexdigest())
        i.update(override)
        return i

    def text(self):
        return canonical(self.manifest)

    def out(self, text=None, sum_of=None, drop=()):
        text = self.text() if text is None else text
        files = dict(self.files)
        files["manifest.json"] = text
        files["manifest.sha256"] = (hashlib.sha256(text if sum_of is None else sum_of).hexdigest() + "  manifest.json\n").encode()
        return {n: b for n, b in files.items() if n not in drop}


def manifests(v):
    out = []

    def add(name, files, cls, check=None, about="", extra=()):
        e = dict(dir="manifests/" + name, **{"class": cls}, about=about)
        if check:
            e["check"] = check
        if extra:
            e["extra"] = list(extra)
        if cls == "ok":
            e["id"] = "sha256:" + hashlib.sha256(files["manifest.json"]).hexdigest()
        out.append(e)
        for n, b in files.items():
            v.files["manifests/%s/%s" % (name, n)] = b

    def changed(**fields):
        a = Artefact()
        for k, x in fields.items():
            if x is None:
                del a.manifest[k]
            else:
                a.manifest[k] = x
        return a

    def listed(**override):
        a = Artefact()
        a.manifest["files"] = [a.info("part-00000.bin", **override)]
        return a

    add("good", Artefact().out(), "ok", about="one file")
    add("good-no-files", changed(files=[]).out(drop=("part-00000.bin",)), "ok", about="no files")
    extra = Artefact()
    extra.files["notes.txt"] = b"mine"
    add("good-extra", extra.out(), "ok", about="a file that the manifest doesn't list is no fault", extra=["notes.txt"])
    g = Artefact()
    add("d1-no-manifest", g.out(drop=("manifest.json",)), "missing", "D1", "no manifest.json")
    add("d2-no-sum", g.out(drop=("manifest.sha256",)), "missing", "D2", "no manifest.sha256: the job didn't finish")
    add("d3-altered", g.out(text=g.text().replace(b'"3"', b'"4"'), sum_of=g.text()), "checksum", "D3", "a number changed")
    add("d3-line-end", g.out(text=g.text() + b"\n", sum_of=g.text()), "checksum", "D3", "a line end added")
    bad_sum = g.out()
    bad_sum["manifest.sha256"] = bad_sum["manifest.sha256"].upper()
    add("d3-sum-upper", bad_sum, "checksum", "D3", "the sum in upper case")
    empty_sum = g.out()
    empty_sum["manifest.sha256"] = b""
    add("d3-sum-empty", empty_sum, "checksum", "D3", "an empty manifest.sha256")
    add("d4-empty", g.out(text=b""), "layout", "D4", "an empty manifest")
    add("d4-not-json", g.out(text=b"kind: vector"), "layout", "D4", "not JSON")
    add("d4-array", g.out(text=b"[]"), "layout", "D4", "an array")
    add("d4-deep", g.out(text=b'{"kind":' + b"[" * 20000), "layout", "D4", "20000 open brackets")
    add("d5-future", changed(format_version=2).out(), "version", "D5", "format version 2")
    add("d5-none", changed(format_version=None).out(), "version", "D5", "no format version")
    add("d6-kind", changed(kind="other").out(), "mismatch", "D6", "another kind")
    add("d7-unknown-field", changed(colour="red").out(), "layout", "D7", "an unknown field")
    add("d7-missing-field", changed(num_nodes=None).out(), "layout", "D7", "a missing field")
    add("d7-field-case", g.out(text=g.text().replace(b"num_nodes", b"Num_nodes")), "layout", "D7", "a field in another case")
    add("d7-number", changed(num_nodes=3).out(), "layout", "D7", "a 64-bit integer as a number")
    add("d7-plus", changed(num_nodes="+3").out(), "layout", "D7", "an integer with a plus")
    add("d7-zeros", changed(num_nodes="003").out(), "layout", "D7", "an integer with leading zeros")
    add("d7-range", changed(num_nodes="9223372036854775808").out(), "layout", "D7", "an integer of more than 64 bits")
    add("d7-digest", listed(sha256="sha256:12").out(), "layout", "D7", "a short digest")
    add("d7-digest-upper", listed(sha256="sha256:" + "AB" * 32).out(), "layout", "D7", "a digest in upper case")
    add("d8-spaces", g.out(text=json.dumps(g.manifest, sort_keys=True).encode()), "layout", "D8", "spaces after the separators")
    add("d8-order", g.out(text=json.dumps(g.manifest, separators=(",", ":"), sort_keys=False).encode()), "layout", "D8", "fields out of order")
    add("d8-twice", g.out(text=g.text()[:-1] + b',"num_nodes":"3"}'), "layout", "D8", "a field twice")
    add("d8-after", g.out(text=g.text() + b"{}"), "layout", "D8", "a second object")
    for n, name in [("escape", "../part-00000.bin"), ("absolute", "/etc/passwd"), ("directory", "a/b"), ("hidden", ".part"), ("dots", ".."), ("empty", ""), ("backslash", "a\\b"), ("control", "a\x1b[2J")]:
        add("d9-" + n, listed(name=name).out(), "layout", "D9", "file name %s" % json.dumps(name))
    twice = Artefact()
    twice.manifest["files"] *= 2
    add("d9-twice", twice.out(), "layout", "D9", "a file listed twice")
    add("d10-gone", g.out(drop=("part-00000.bin",)), "missing", "D10", "a listed file isn't there")
    add("d11-short", listed(size_bytes="15").out(), "truncated", "D11", "a file one byte shorter than listed")
    add("d12-long", listed(size_bytes="13").out(), "layout", "D12", "a file one byte longer than listed")
    add("d12-negative", listed(size_bytes="-1").out(), "layout", "D12", "a size of -1")
    add("d13-content", listed(sha256="sha256:" + hashlib.sha256(b"other").hexdigest()).out(), "checksum", "D13", "other content than listed")
    return out


def main(out):
    v = Vectors()
    good(v)
    faulty_files(v)
    faulty_heads(v)
    faulty_contents(v)
    index = dict(files=v.list, manifests=manifests(v))
    v.files["vectors.json"] = (json.dumps(index, indent=1, ensure_ascii=False) + "\n").encode()
    shutil.rmtree(out, ignore_errors=True)
    for name, data in sorted(v.files.items()):
        path = os.path.join(out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "vectors"))
