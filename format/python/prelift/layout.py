"""The numbers of SPEC.md: sizes, limits, kinds. A test compares them with SPEC's tables."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

MAGIC = b"\x89PLF\r\n\x1a\n"
VERSION = 1
BYTE_ORDER_MARK = 0x0A0B0C0D
HEADER_SIZE = 128
TABLE_ENTRY_SIZE = 32
RECORD_HEADER_SIZE = 64
SECTION_ENTRY_SIZE = 96
SECTION_ALIGN = 64
RECORD_ALIGN = 4096
RECORD_MARK = 0x42464C50
MAX_RECORDS = 1 << 24
MAX_SECTIONS = 4096
MAX_LAYERS = 64
MAX_HOPS = 65
MAX_COLUMNS = 1 << 24
MAX_NODES = (1 << 31) - 1

ANY_LAYER = 0xFFFF  # a section that serves the whole record
ANY_SPLIT = 0xFFFFFFFF  # a record that serves every split column


class FileKind(enum.IntEnum):
    BATCHES = 1
    EVAL = 2
    FEATURES = 3
    IDS = 4
    LABELS = 5
    TOPOLOGY = 6
    HOPS = 7
    RANK = 8
    KG = 9
    COEFS = 10
    HELDOUT = 11
    LINES = 12
    ROWS = 13


class Task(enum.IntEnum):
    NONE = 0
    NODE = 1
    LINK = 2
    KGE = 3


class Part(enum.IntEnum):
    """What a split gives a node."""

    NONE = 0
    TRAIN = 1
    VALID = 2
    TEST = 3


class Space(enum.IntEnum):
    LOCAL = 0
    GLOBAL = 1


class Coef(enum.IntEnum):
    NONE = 0
    GCN = 1
    MEAN = 2
    SUM = 3
    RELMEAN = 4


class Codec(enum.IntEnum):
    """How the bytes of a section give its array."""

    RAW = 0
    BITS = 1


class DType(enum.IntEnum):
    U8 = 1
    I8 = 2
    I16 = 3
    U16 = 4
    I32 = 5
    U32 = 6
    I64 = 7
    U64 = 8
    F16 = 9
    BF16 = 10
    F32 = 11
    F64 = 12


# NUMPY is the NumPy type of each dtype. NumPy has no bf16: its 16 bits come as u16 (rows.to_float32 widens them).
NUMPY: dict[DType, np.dtype] = {
    DType.U8: np.dtype("<u1"),
    DType.I8: np.dtype("<i1"),
    DType.I16: np.dtype("<i2"),
    DType.U16: np.dtype("<u2"),
    DType.I32: np.dtype("<i4"),
    DType.U32: np.dtype("<u4"),
    DType.I64: np.dtype("<i8"),
    DType.U64: np.dtype("<u8"),
    DType.F16: np.dtype("<f2"),
    DType.BF16: np.dtype("<u2"),
    DType.F32: np.dtype("<f4"),
    DType.F64: np.dtype("<f8"),
}


@dataclass(frozen=True)
class Kind:
    """A section kind of SPEC 5.1."""

    number: int
    name: str
    dtypes: tuple[DType, ...]
    ranks: tuple[int, ...]

    @property
    def group(self) -> int:
        return self.number >> 8


def _kinds() -> dict[int, Kind]:
    u8, i8, u16, i32, u32, i64, u64 = DType.U8, DType.I8, DType.U16, DType.I32, DType.U32, DType.I64, DType.U64
    f16, bf16, f32, f64 = DType.F16, DType.BF16, DType.F32, DType.F64
    groups: dict[int, list[tuple]] = {
        0x01: [("nodes.number", i32), ("nodes.type", i32), ("nodes.row", i32), ("nodes.table", u8)],
        0x02: [("block.indptr", i64), ("block.indices", i32), ("block.rel", i32), ("block.relptr", i64), ("block.weight", f32),
               ("block.edge_id", i64), ("block.time", i64)],
        0x03: [("coef.src", f32), ("coef.dst", f32), ("coef.self", f32), ("coef.edge", f32), ("coef.importance", f32)],
        0x04: [("transpose.indptr", i64), ("transpose.indices", i32), ("transpose.edge", i64), ("transpose.rel", i32)],
        0x05: [("seeds.label", (i32, u8, f32), (1, 2)), ("seeds.mask", u8, 2), ("seeds.weight", f32)],
        0x06: [("pairs.src", i32), ("pairs.dst", i32), ("pairs.rel", i32), ("pairs.label", f32), ("pairs.weight", f32)],
        0x07: [("kge.positives", i32, 2), ("kge.chunkptr", i64), ("kge.known", i32), ("kge.range", i64), ("kge.guests", i32),
               ("kge.depth", i32), ("kge.edges", i32, 2)],
        0x08: [("table.rows", (f32, f16, bf16, i8), 2), ("table.scale", f32)],
        0x09: [("graph.component", i32), ("graph.component_size", i64)],
        0x0A: [("ids.offsets", i64), ("ids.bytes", u8), ("ids.key", u64)],
        0x0B: [("names.offsets", i64), ("names.bytes", u8)],
        0x0C: [("hop1.code", u8), ("hop1.offset", u16), ("hop1.group_start", i64), ("hop1.group_large", i32), ("hop1.compact", u8),
               ("hop1.large_chunk", i64), ("hop1.large_start", i64), ("hop1.large_last", u8), ("hop1.large_shift", u8),
               ("hop1.chunk_base", i32), ("hop1.chunk_start", u32), ("hop1.large", u8)],
        0x0D: [("hop2.indptr", i64), ("hop2.indices", i32)],
        0x0E: [("rank.pagerank", f64), ("rank.weight", f32), ("rank.mass", f64), ("rank.order", i32)],
        0x0F: [("lines.code", u8), ("lines.count", u8, 2), ("lines.large", u64), ("lines.weight", f32), ("lines.named", u8)],
    }
    kinds = {}
    for group, rows in groups.items():
        for i, (name, dtypes, *ranks) in enumerate(rows, 1):
            r = ranks[0] if ranks else 1
            number = group << 8 | i
            kinds[number] = Kind(number, name, dtypes if isinstance(dtypes, tuple) else (dtypes,), r if isinstance(r, tuple) else (r,))
    return kinds


KINDS: dict[int, Kind] = _kinds()
BY_NAME: dict[str, Kind] = {k.name: k for k in KINDS.values()}

# WITH_COEF are the kinds whose sections are of a coefficient kind.
WITH_COEF = frozenset({"coef.src", "coef.dst", "coef.self", "coef.edge"})

GROUP_NODES, GROUP_BLOCK, GROUP_COEF, GROUP_TRANSPOSE = 0x01, 0x02, 0x03, 0x04
LAYERED_GROUPS = frozenset({GROUP_BLOCK, GROUP_COEF, GROUP_TRANSPOSE})

# What may be of codec bits, in local records.
CODED_GROUPS = frozenset({GROUP_NODES, GROUP_BLOCK, GROUP_TRANSPOSE})
CODED_DTYPES = frozenset({DType.I32, DType.I64})


def align(n: int, to: int) -> int:
    """n rounded up to a multiple of to."""
    return -(-n // to) * to
