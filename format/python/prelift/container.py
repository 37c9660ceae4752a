"""Files of SPEC 3 and 4: header, record table, records, sections.

A file is mapped, never read whole, and never opened for writing. Counts are bounded by
the size of the file before anything is allocated, heads are checked whenever a record is
opened, and contents (checks.py) the first time in a process that it is used.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
import sys
import zlib
from dataclasses import dataclass
from typing import Iterator

import numpy as np

from . import bits, checks
from .errors import ChecksumError, LayoutError, LimitError, MagicError, TruncatedError, VersionError
from .layout import (ANY_LAYER, BYTE_ORDER_MARK, CODED_DTYPES, CODED_GROUPS, GROUP_BLOCK, GROUP_TRANSPOSE, HEADER_SIZE, KINDS, LAYERED_GROUPS, MAGIC, MAX_COLUMNS, MAX_HOPS,
                     MAX_LAYERS, MAX_NODES, MAX_RECORDS, MAX_SECTIONS, NUMPY, RECORD_ALIGN, RECORD_HEADER_SIZE, RECORD_MARK, SECTION_ALIGN,
                     SECTION_ENTRY_SIZE, TABLE_ENTRY_SIZE, VERSION, WITH_COEF, Codec, Coef, DType, FileKind, Kind, Part, Space, Task, align)

_HEADER = struct.Struct("<8sHHIQQ32s32sQIII8sI")
_TABLE = struct.Struct("<QQIII4s")
_HEAD = struct.Struct("<IHBBIIHHIQQQI12s")
_ENTRY = struct.Struct("<HHHBBQQQQQQII12s16s4s")


def crc32(data) -> int:
    """SPEC 3's CRC of a buffer: zlib's, taken in pieces since it counts in 32 bits on some machines."""
    view = memoryview(data).cast("B")
    c = 0
    for i in range(0, len(view), 1 << 30):
        c = zlib.crc32(view[i:i + (1 << 30)], c)
    return c


def is_zero(data) -> bool:
    """Whether every byte is 0."""
    return not np.frombuffer(data, np.uint8).any() if len(data) else True


@dataclass(frozen=True)
class Header:
    """The header of a file, SPEC 3.1."""

    version: int
    kind: FileKind
    required: int
    optional: int
    snapshot_id: bytes
    set_key: bytes
    size: int
    shard: int
    num_records: int


@dataclass(frozen=True)
class RecordEntry:
    """An entry of the record table, SPEC 3.2."""

    offset: int
    size: int
    number: int
    variant: int
    head_crc: int


@dataclass(frozen=True)
class Section:
    """A section entry, SPEC 4.3. ``kind`` is None where an optional feature of a newer writer is skipped."""

    number: int
    kind: Kind | None
    layer: int
    coef: int
    dtype: DType
    codec: Codec
    shape: tuple[int, ...]
    offset: int  # in the record
    size: int  # bytes in the file
    crc: int

    @property
    def name(self) -> str:
        return self.kind.name if self.kind else f"0x{self.number:04x}"

    def __str__(self) -> str:
        coef = f" {Coef(self.coef).name.lower() if self.coef in Coef._value2member_map_ else self.coef}" if self.coef else ""
        return f"section {self.name}{coef}" + ("" if self.layer == ANY_LAYER else f" of layer {self.layer}")


class File:
    """One file, mapped. ``File.open(path)`` or, for bytes in memory, ``File(name, buffer)``.

    Arrays are views of the mapping: read-only, and they keep it alive. What a writer does to a published file is
    nothing (SPEC 2), but a file that is cut short while it is mapped ends the process with SIGBUS.
    """

    def __init__(self, name: str, data) -> None:
        self.name = name
        self._data = memoryview(data)
        self._bytes = np.frombuffer(data, np.uint8) if len(self._data) else np.empty(0, np.uint8)
        self.header = self._read_header()
        self.entries = _Entries(self)
        self._verified = bytearray(len(self.entries))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "File":
        """Maps and checks header and record table (SPEC 9.1). OSError where the file can't be opened."""
        name = os.path.basename(os.fspath(path))
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            size = os.fstat(fd).st_size
            if size == 0:
                return cls(name, b"")
            return cls(name, _map(fd, size))
        finally:
            os.close(fd)

    @property
    def size(self) -> int:
        return len(self._data)

    def _read_header(self) -> Header:
        place, size = self.name, self.size
        if size < HEADER_SIZE:
            raise TruncatedError(place, f"{size} bytes, a header has {HEADER_SIZE}")  # F1
        (magic, version, kind, bom, required, optional, snapshot_id, set_key, stated, shard, num_records, table_crc, reserved,
         header_crc) = _HEADER.unpack_from(self._data)
        if magic != MAGIC:
            raise MagicError(place, f"it begins with {magic.hex(' ')}")  # F2
        if version != VERSION:
            raise VersionError(place, f"format version {version}, this reader knows {VERSION}")  # F3
        if crc32(self._data[:HEADER_SIZE - 4]) != header_crc:
            raise ChecksumError(place, f"header CRC is {crc32(self._data[:HEADER_SIZE - 4]):08x}, stated is {header_crc:08x}")  # F4
        if bom != BYTE_ORDER_MARK:
            raise LayoutError(place, f"byte-order mark 0x{bom:08x}")  # F5
        if kind not in FileKind._value2member_map_:
            raise VersionError(place, f"file kind {kind}")  # F6
        if required:
            raise VersionError(place, f"required features 0x{required:x}, this reader knows none")  # F7
        if stated > size:
            raise TruncatedError(place, f"{size} bytes, the header says {stated}")  # F8
        if stated < size:
            raise LayoutError(place, f"{size} bytes, the header says {stated}")  # F9
        if any(reserved):
            raise LayoutError(place, "reserved bytes of the header aren't zero")  # F10
        if not 1 <= num_records <= MAX_RECORDS:
            raise LimitError(place, f"{num_records} records, 1 to {MAX_RECORDS} are allowed")  # F11
        end = HEADER_SIZE + num_records * TABLE_ENTRY_SIZE
        if end > size:
            raise TruncatedError(place, f"a table of {num_records} records ends at {end}, the file at {size}")  # F12
        if crc32(self._data[HEADER_SIZE:end]) != table_crc:
            raise ChecksumError(place, "CRC of the record table")  # F13
        return Header(version, FileKind(kind), required, optional, snapshot_id, set_key, stated, shard, num_records)

    def __len__(self) -> int:
        return len(self.entries)

    def record(self, i: int) -> "Record":
        """Record i with its head checked (SPEC 9.2). Its contents are checked by Record.verify, or its first array."""
        return Record(self, i)

    def records(self) -> Iterator["Record"]:
        return (self.record(i) for i in range(len(self)))

    def table(self, num_nodes: int | None = None) -> "Record":
        """The one global record of a table (SPEC 6), verified. num_nodes: what hop_nodes[0] must be."""
        if len(self) != 1:
            raise LayoutError(self.name, f"{len(self)} records, a table has one")
        r = self.record(0).verify()
        if r.space != Space.GLOBAL or r.task != Task.NONE:
            raise LayoutError(r.place, f"task {r.task} and index space {r.space}; a table is a global record of none")
        if num_nodes is not None and r.num_nodes != num_nodes:
            raise LayoutError(r.place, f"{r.num_nodes} nodes, the manifest says {num_nodes}")
        return r

    def verify(self) -> "File":
        """Every check of SPEC 9.1 to 9.3. Cost: one look at each byte, and more at indices."""
        self.verify_padding()
        for r in self.records():
            r.verify()
        return self

    def verify_padding(self) -> None:
        """F19: the bytes between table and records are zero."""
        end = HEADER_SIZE + len(self) * TABLE_ENTRY_SIZE
        for i, e in enumerate(self.entries):
            if not is_zero(self._data[end:e.offset]):
                raise LayoutError(self.name, f"bytes before record {i}, {end} to {e.offset - 1}, aren't zero")
            end = e.offset + e.size


def _map(fd: int, size: int) -> mmap.mmap:
    """Maps a file copy-on-write. Nothing can reach the file through it, and frameworks without read-only arrays (torch) may still
    have views: a write of theirs is seen in this process alone. NumPy's views of it are made read-only."""
    if os.name == "posix":
        # Without MAP_NORESERVE Linux refuses private mappings that are larger than memory and swap.
        no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
        return mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE | no_reserve, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return mmap.mmap(fd, size, access=mmap.ACCESS_COPY)


class _Entries:
    """The record table, checked; entries are made when they are asked for."""

    def __init__(self, f: File) -> None:
        n, size = f.header.num_records, f.size
        self._table = np.frombuffer(f._data, np.dtype([("offset", "<u8"), ("size", "<u8"), ("number", "<u4"), ("variant", "<u4"), ("head_crc", "<u4"), ("reserved", "<u4")]),
                                    n, HEADER_SIZE)
        bad = np.flatnonzero(self._table["reserved"])
        if len(bad):
            raise LayoutError(f.name, f"reserved bytes of table entry {bad[0]} aren't zero")  # F14
        end = HEADER_SIZE + n * TABLE_ENTRY_SIZE
        for i, (offset, length) in enumerate(zip(self._table["offset"].tolist(), self._table["size"].tolist())):
            if offset != align(end, RECORD_ALIGN):
                raise LayoutError(f.name, f"record {i} starts at {offset}, not at {align(end, RECORD_ALIGN)}")  # F15
            end = offset + length
            if end > size:
                raise TruncatedError(f.name, f"record {i} ends at {end}, the file at {size}")  # F16
            if length < RECORD_HEADER_SIZE:
                raise LayoutError(f.name, f"record {i} has {length} bytes, a head has {RECORD_HEADER_SIZE}")  # F17
        if end != size:
            raise LayoutError(f.name, f"the last record ends at {end}, the file at {size}")  # F18

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, i: int) -> RecordEntry:
        if not 0 <= i < len(self._table):
            raise IndexError(f"record {i} of {len(self._table)}")
        return RecordEntry(*self._table[i].tolist()[:5])

    def __iter__(self) -> Iterator[RecordEntry]:
        return (self[i] for i in range(len(self)))


class Record:
    """One record with its head parsed and checked (R, S and N of SPEC 9.2).

    ``array(name, layer, coef)`` gives a section as a read-only NumPy view without a copy (of a coded one, decoded), None where it is absent.
    """

    def __init__(self, file: File, index: int) -> None:
        self.file, self.index = file, index
        entry = self.entry = file.entries[index]
        place = self.place
        self._data = file._data[entry.offset:entry.offset + entry.size]
        (mark, task, split, space, self.number, self.variant, self.num_layers, num_hops, num_sections, self.dst_start, self.dst_end,
         self.num_seeds, self.split_column, reserved) = _HEAD.unpack_from(self._data)
        if mark != RECORD_MARK:
            raise LayoutError(place, f"mark 0x{mark:08x}")  # R1
        for what, n, most in (("layers", self.num_layers, MAX_LAYERS), ("hops", num_hops, MAX_HOPS), ("sections", num_sections, MAX_SECTIONS)):
            if n > most:
                raise LimitError(place, f"{n} {what}, at most {most} are allowed")  # R2
        counts_end = RECORD_HEADER_SIZE + 8 * num_hops + 8 * self.num_layers * num_hops
        head_end = self.head_size = counts_end + SECTION_ENTRY_SIZE * num_sections
        if head_end > entry.size:
            raise TruncatedError(place, f"the head ends at {head_end}, the record at {entry.size}")  # R3
        if crc32(self._data[:head_end]) != entry.head_crc:
            raise ChecksumError(place, "CRC of the head")  # R4
        if any(reserved):
            raise LayoutError(place, "reserved bytes of the head aren't zero")  # R5
        if (self.number, self.variant) != (entry.number, entry.variant):
            raise LayoutError(place, f"number {self.number} and variant {self.variant}, the table has {entry.number} and {entry.variant}")  # R6
        for what, value, known in (("task", task, Task), ("split", split, Part), ("index space", space, Space)):
            if value not in known._value2member_map_:
                raise LayoutError(place, f"{what} {value}")  # R7
        self.task, self.split, self.space = Task(task), Part(split), Space(space)
        counts = np.frombuffer(self._data, "<u8", (counts_end - RECORD_HEADER_SIZE) // 8, RECORD_HEADER_SIZE).tolist()
        self.hop_nodes: list[int] = counts[:num_hops]
        self.layer_edges: list[list[int]] = [counts[num_hops * (1 + l):num_hops * (2 + l)] for l in range(self.num_layers)]
        self.sections = self._read_sections(counts_end, num_sections)
        self._check_counts()
        self._find = {(s.number, s.layer, s.coef): s for s in self.sections}

    @property
    def place(self) -> str:
        return f"{self.file.name}: record {self.index}"

    def _read_sections(self, at: int, n: int) -> list[Section]:
        place, end, seen = self.place, self.head_size, set()
        sections: list[Section] = []
        for i in range(n):
            number, layer, coef, dtype, codec, d0, d1, d2, offset, stored, plain, crc, rank, nonce, tag, reserved = _ENTRY.unpack_from(self._data, at + i * SECTION_ENTRY_SIZE)
            kind = KINDS.get(number)
            where = f"{place}: section {i} ({kind.name if kind else f'0x{number:04x}'})"
            if dtype not in DType._value2member_map_:
                raise LayoutError(where, f"element type {dtype}")  # S1
            if codec not in Codec._value2member_map_:
                raise VersionError(where, f"codec {codec}, this reader knows 0 and 1")  # S2
            if any(nonce) or any(tag) or any(reserved):
                raise LayoutError(where, "nonce, tag and reserved bytes aren't zero")  # S3
            dims = (d0, d1, d2)
            if not 1 <= rank <= 3 or any(dims[rank:]):
                raise LayoutError(where, f"rank {rank} with shape {list(dims)}")  # S4
            shape, itemsize = dims[:rank], NUMPY[DType(dtype)].itemsize
            size = itemsize
            for k, d in enumerate(shape):
                size *= d
                if size >= 1 << 64 or k > 0 and d > MAX_COLUMNS:
                    raise LimitError(where, f"shape {list(shape)}")  # S5
            # A product may pass 2^64 and come back to 0 with a later dimension of 0: the loop has looked at every step.
            if plain != size or codec == Codec.RAW and stored != size or codec == Codec.BITS and stored < bits.directory_bytes(size // itemsize, itemsize):
                raise LayoutError(where, f"{stored} bytes stored under codec {codec} and {plain} plain, its shape gives {size}")  # S6
            if kind is None:
                if not self.file.header.optional:
                    raise LayoutError(where, "unknown section kind")  # S7
            else:
                if rank not in kind.ranks:
                    raise LayoutError(where, f"rank {rank}")  # S8
                if DType(dtype) not in kind.dtypes:
                    raise LayoutError(where, f"element type {DType(dtype).name.lower()}")  # S9
                if not (1 <= coef <= 4 if kind.name in WITH_COEF else coef == 0):
                    raise LayoutError(where, f"coefficient kind {coef}")  # S10
            if offset != align(end, SECTION_ALIGN):
                raise LayoutError(where, f"starts at {offset}, not at {align(end, SECTION_ALIGN)}")  # S11
            end = offset + stored
            if end > self.entry.size:
                raise TruncatedError(where, f"ends at {end}, the record at {self.entry.size}")  # S12
            if (number, layer, coef) in seen:
                raise LayoutError(where, "there are two of this kind, layer and coefficient kind")  # S14
            seen.add((number, layer, coef))
            sections.append(Section(number, kind, layer, coef, DType(dtype), Codec(codec), shape, offset, stored, crc))
        if end != self.entry.size:
            raise LayoutError(place, f"the last section ends at {end}, the record at {self.entry.size}")  # S13
        return sections

    def _check_counts(self) -> None:
        place, hops = self.place, self.hop_nodes
        last = 0
        for h, n in enumerate(hops):
            if n < last or n > MAX_NODES:
                raise LayoutError(place, f"{n} nodes to hop {h}, {last} before it")  # N1
            last = n
        if self.space == Space.GLOBAL:
            if self.num_layers or len(hops) != 1:
                raise LayoutError(place, f"{self.num_layers} layers and {len(hops)} hops in a global record")  # N2
            if not self.dst_start <= self.dst_end <= hops[0]:
                raise LayoutError(place, f"rows {self.dst_start} to {self.dst_end} of {hops[0]} nodes")  # N3
            if self.num_seeds > self.dst_end - self.dst_start:
                raise LayoutError(place, f"{self.num_seeds} seeds of {self.dst_end - self.dst_start} rows")  # N4
        else:
            if self.dst_start or self.dst_end:
                raise LayoutError(place, f"rows {self.dst_start} to {self.dst_end} in a local record")  # N5
            if len(hops) != self.num_layers + 1:
                raise LayoutError(place, f"{len(hops)} hops for {self.num_layers} layers")  # N6
            if self.num_seeds > hops[0] or self.num_layers and self.num_seeds != hops[0]:
                raise LayoutError(place, f"{self.num_seeds} seeds, {hops[0]} nodes of hop 0")  # N7
        for s in self.sections:
            if s.codec != Codec.RAW and (self.space != Space.LOCAL or s.number >> 8 not in CODED_GROUPS or s.dtype not in CODED_DTYPES):
                raise LayoutError(f"{place}: {s}", f"codec {s.codec.name.lower()} in a section of this kind, element type or index space")  # N12
            if s.layer != ANY_LAYER and s.layer >= self.num_layers:
                raise LayoutError(f"{place}: {s}", f"layer {s.layer} of {self.num_layers}")  # N8
            if s.kind is None:
                continue
            if s.kind.group not in LAYERED_GROUPS and s.layer != ANY_LAYER:
                raise LayoutError(f"{place}: {s}", "its kind serves the whole record")  # N9
            if self.num_layers and s.layer == ANY_LAYER and (s.kind.group in (GROUP_BLOCK, GROUP_TRANSPOSE) or s.kind.name == "coef.edge"):
                raise LayoutError(f"{place}: {s}", "its kind belongs to a layer")  # N10
        if self.space == Space.LOCAL and self.task in (Task.NODE, Task.LINK) and not any(s.name == "nodes.number" for s in self.sections):
            raise LayoutError(place, "no nodes.number")  # N11

    @property
    def num_nodes(self) -> int:
        return self.hop_nodes[-1] if self.hop_nodes else 0

    def block_size(self, layer: int) -> tuple[int, int]:
        """(num_dst, num_src) of the block of a layer, or of the one block of a record without layers (SPEC 4.2)."""
        if self.space == Space.GLOBAL:
            return self.dst_end - self.dst_start, self.num_nodes
        if self.num_layers == 0:
            return self.hop_nodes[0], self.hop_nodes[0]
        return self.hop_nodes[self.num_layers - 1 - layer], self.hop_nodes[self.num_layers - layer]

    def find(self, name: str, layer: int = ANY_LAYER, coef: int = 0) -> Section | None:
        return self._find.get((checks.number_of(name), layer, coef))

    def view(self, s: Section) -> np.ndarray:
        """The elements of a section, [s.shape], read-only: as they lie in the file, without a copy, or of a coded one decoded anew. bf16 comes as u16."""
        if s.codec == Codec.BITS:
            a = self.coded(s)[:].reshape(s.shape)
            a.flags.writeable = False
            return a
        a = np.frombuffer(self._data, NUMPY[s.dtype], s.size // NUMPY[s.dtype].itemsize, s.offset) if s.size else np.empty(0, NUMPY[s.dtype])
        a = a.reshape(s.shape)
        a.flags.writeable = False
        return a

    def coded(self, s: Section) -> bits.Coded:
        """The elements of a section of codec bits. LayoutError where it isn't coded as SPEC 10.2 has it."""
        stored = np.frombuffer(self._data, np.uint8, s.size, s.offset) if s.size else np.empty(0, np.uint8)
        try:
            return bits.Coded(stored, NUMPY[s.dtype], math.prod(s.shape))
        except ValueError as e:
            raise LayoutError(f"{self.place}: {s}", str(e)) from None  # C49

    def array(self, name: str, layer: int = ANY_LAYER, coef: int = 0) -> np.ndarray | None:
        """view of the section of that kind, layer and coefficient kind; None where there is none. Verifies the record first."""
        self.verify()
        s = self.find(name, layer, coef)
        return None if s is None else self.view(s)

    def verify(self) -> "Record":
        """Checks CRCs and contents (SPEC 9.3), the first time in this process only. Returns itself."""
        if not self.file._verified[self.index]:
            self._check_bytes()
            checks.contents(self)
            self.file._verified[self.index] = 1
        return self

    def _check_bytes(self) -> None:
        end = self.head_size
        for s in self.sections:
            if not is_zero(self._data[end:s.offset]):
                raise LayoutError(f"{self.place}: {s}", "bytes before it aren't zero")  # C1
            end = s.offset + s.size
        for s in self.sections:
            got = crc32(self._data[s.offset:s.offset + s.size])
            if got != s.crc:
                raise ChecksumError(f"{self.place}: {s}", f"CRC is {got:08x}, stated is {s.crc:08x}")  # C2
