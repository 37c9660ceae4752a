"""Manifests of SPEC 2: canonical JSON (RFC 8785), ids, the files they list (SPEC 9.5)."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from .errors import ChecksumError, LayoutError, MismatchError, MissingError, TruncatedError, VersionError
from .layout import VERSION

NAME, SUM_NAME = "manifest.json", "manifest.sha256"
ZERO_DIGEST = "sha256:" + 64 * "0"
_MAX_BYTES = 1 << 30  # a manifest lists files, some 150 bytes each

# A Check says what is wrong with a value, None where nothing is.
Check = Callable[[Any], "str | None"]


@dataclass(frozen=True)
class FileInfo:
    """A file that a manifest lists."""

    name: str
    size: int
    sha256: str  # sha256: and 64 hexadecimal digits


@dataclass(frozen=True)
class Manifest:
    """A manifest that passed D1 to D9. ``id`` is the artefact's: the SHA-256 of the manifest's bytes."""

    dir: str
    id: str
    fields: dict[str, Any]
    files: tuple[FileInfo, ...]

    @property
    def place(self) -> str:
        return os.path.join(self.dir, NAME)

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def int(self, name: str) -> int:
        """A 64-bit integer, which a manifest has as a string; 0 where it is absent."""
        return int(self.fields.get(name, "0"))

    def file(self, name: str) -> FileInfo | None:
        return next((f for f in self.files if f.name == name), None)


# What types of fields there are, SPEC 2.

def is_int(v: Any) -> str | None:
    if not isinstance(v, str) or not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", v) or not -(1 << 63) <= int(v) < 1 << 63:
        return "must be a 64-bit integer as a string of decimal digits"
    return None


def is_count(v: Any) -> str | None:
    return is_int(v) or ("must not be negative" if v.startswith("-") else None)


def is_number(v: Any) -> str | None:
    return None if isinstance(v, (int, float)) and not isinstance(v, bool) else "must be a number"


def is_small(v: Any) -> str | None:
    return None if isinstance(v, int) and not isinstance(v, bool) else "must be a whole number"


def is_positive(v: Any) -> str | None:
    return is_small(v) or (None if v > 0 else "must be over 0")


def is_string(v: Any) -> str | None:
    return None if isinstance(v, str) else "must be a string"


def is_bool(v: Any) -> str | None:
    return None if isinstance(v, bool) else "must be true or false"


def is_digest(v: Any) -> str | None:
    return None if isinstance(v, str) and re.fullmatch(r"sha256:[0-9a-f]{64}", v) else "must be sha256: and 64 lower-case hexadecimal digits"


def one_of(*words: Any) -> Check:
    return lambda v: None if any(v == w and type(v) is type(w) for w in words) else f"must be one of {', '.join(map(str, words))}"


def array(check: Check) -> Check:
    def each(v: Any) -> str | None:
        if not isinstance(v, list):
            return "must be an array"
        return next((f"element {i} {text}" for i, e in enumerate(v) if (text := check(e))), None)
    return each


class Optional:
    """Marks a field that may be absent."""

    def __init__(self, check: Check) -> None:
        self.check = check


Fields = Mapping[str, "Check | Optional"]


def obj(fields: Fields) -> Check:
    """An object with these fields and no others."""
    def check(v: Any) -> str | None:
        if not isinstance(v, dict):
            return "must be an object"
        for name, want in fields.items():
            if name not in v:
                if not isinstance(want, Optional):
                    return f"has no field {name!r}"
                continue
            if text := (want.check if isinstance(want, Optional) else want)(v[name]):
                return f"field {name!r} {text}" if not text.startswith(("has no field", "field ", "has the unknown")) else f"{name!r} {text}"
        for name in v:
            if name not in fields:
                return f"has the unknown field {name!r}"
        return None
    return check


FILE_FIELDS: Fields = {"name": is_string, "size_bytes": is_int, "sha256": is_digest}
COMMON_FIELDS: Fields = {"kind": is_string, "format_version": is_small, "set_key": is_digest, "files": array(obj(FILE_FIELDS))}


def canonical(value: Any) -> bytes:
    """value as RFC 8785 writes it. Numbers are taken as 64-bit floats, as it says."""
    out: list[str] = []
    _write(value, out)
    return "".join(out).encode("utf-8")


def _write(v: Any, out: list[str]) -> None:
    if v is None or isinstance(v, bool):
        out.append({None: "null", True: "true", False: "false"}[v])
    elif isinstance(v, (int, float)):
        out.append(_number(float(v)))
    elif isinstance(v, str):
        out.append(_string(v))
    elif isinstance(v, (list, tuple)):
        out.append("[")
        for i, e in enumerate(v):
            if i:
                out.append(",")
            _write(e, out)
        out.append("]")
    elif isinstance(v, Mapping):
        out.append("{")
        for i, name in enumerate(sorted(v, key=lambda s: s.encode("utf-16-be", "surrogatepass"))):  # by UTF-16 code units
            out.append(("," if i else "") + _string(name) + ":")
            _write(v[name], out)
        out.append("}")
    else:
        raise TypeError(f"canonical JSON has no {type(v).__name__}")


_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def _string(s: str) -> str:
    return '"' + re.sub(r'[\x00-\x1f"\\]', lambda m: _ESCAPES.get(m.group(), f"\\u{ord(m.group()):04x}"), s) + '"'


def _number(x: float) -> str:
    """ECMAScript's Number::toString: the shortest digits that give x again (repr has them), in its layout."""
    if not math.isfinite(x):
        raise ValueError("JSON has no infinite numbers")
    if x == 0:
        return "0"
    sign, digits, exponent = "-" if x < 0 else "", *_decimal(repr(abs(x)))
    n, k = exponent, len(digits)  # x = 0.digits * 10^n
    if k <= n <= 21:
        return sign + digits + "0" * (n - k)
    if 0 < n <= 21:
        return sign + digits[:n] + "." + digits[n:]
    if -6 < n <= 0:
        return sign + "0." + "0" * -n + digits
    mantissa = digits[0] + ("." + digits[1:] if k > 1 else "")
    return f"{sign}{mantissa}e{'+' if n > 0 else '-'}{abs(n - 1)}"


def _decimal(text: str) -> tuple[str, int]:
    """Significant digits of repr's text and the n of 0.digits * 10^n."""
    mantissa, _, e = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    all_digits = whole + fraction
    n = len(whole) + int(e or 0) - (len(all_digits) - len(all_digits.lstrip("0")))
    return all_digits.strip("0"), n


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _object_of(place: str, data: bytes) -> dict[str, Any]:
    """D4: one JSON object. What isn't canonical is left to D8."""
    def no_constant(text: str) -> None:
        raise ValueError(f"{text} is no JSON")
    try:
        v = json.loads(data.decode("utf-8"), parse_constant=no_constant)
    except json.JSONDecodeError as e:
        if e.msg == "Extra data":  # something behind the first value: not canonical, whatever else it is
            raise LayoutError(place, "not in canonical form: something follows the object") from None
        raise LayoutError(place, f"not JSON: {e.msg} at byte {e.pos}") from None
    except (ValueError, RecursionError) as e:
        raise LayoutError(place, f"not JSON: {'nested too deeply' if isinstance(e, RecursionError) else e}") from None
    if not isinstance(v, dict):
        raise LayoutError(place, "not a JSON object")
    return v


def kind_of(dir: str | os.PathLike[str]) -> str:
    """The kind that the manifest of a directory states. Checks D1 to D5."""
    return _read(os.fspath(dir))[2]["kind"]


def _read(dir: str) -> tuple[str, bytes, dict[str, Any]]:
    place = os.path.join(dir, NAME)
    data = _contents(dir, NAME, "no snapshot or batch set")  # D1
    listed = _contents(dir, SUM_NAME, "the artefact is unfinished")  # D2
    got = hashlib.sha256(data).hexdigest()
    if listed != f"{got}  {NAME}\n".encode():
        raise ChecksumError(place, f"its SHA-256 is {got}, {SUM_NAME} has {listed[:80]!r}")  # D3
    v = _object_of(place, data)
    if (version := v.get("format_version")) != VERSION or isinstance(version, bool):
        raise VersionError(place, f"format version {version!r}, this reader knows {VERSION}")  # D5
    if not isinstance(v.get("kind"), str):
        raise MismatchError(place, f"artefact of kind {v.get('kind')!r}")
    return "sha256:" + got, data, v


def _contents(dir: str, name: str, hint: str) -> bytes:
    path = os.path.join(dir, name)
    try:
        with open(path, "rb") as f:
            data = f.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingError(dir, f"{name} isn't there: {hint}") from None
    if len(data) > _MAX_BYTES:
        raise LayoutError(path, f"over {_MAX_BYTES} bytes")
    return data


def read(dir: str | os.PathLike[str], kind: str, fields: Fields) -> Manifest:
    """Reads a manifest and checks D1 to D9. fields are those of the kind beside FILE and COMMON ones that it names itself."""
    dir = os.fspath(dir)
    place = os.path.join(dir, NAME)
    id, data, v = _read(dir)
    if v["kind"] != kind:
        raise MismatchError(place, f"artefact of kind {v['kind']!r}, asked for is {kind!r}")  # D6
    if text := obj(fields)(v):
        raise LayoutError(place, text)  # D7
    try:
        form = canonical(v)
    except ValueError as e:
        raise LayoutError(place, str(e)) from None
    if form != data:
        raise LayoutError(place, "not in canonical form (RFC 8785)")  # D8
    names = [f["name"] for f in v["files"]]
    for i, name in enumerate(names):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", name):
            raise LayoutError(place, f"file name {name!r}")  # D9
        if i and names[i - 1] >= name:
            raise LayoutError(place, f"file {name!r} is listed twice, or out of order")
    for f in v["files"]:
        if int(f["size_bytes"]) < 0:
            raise LayoutError(place, f"file {f['name']!r} has {f['size_bytes']} bytes")  # D12
    return Manifest(dir, id, v, tuple(FileInfo(f["name"], int(f["size_bytes"]), f["sha256"]) for f in v["files"]))


def check_files(m: Manifest) -> list[str]:
    """D10 to D12: the listed files are there, of the listed sizes. Returns, sorted, what else lies there."""
    for f in m.files:
        path = os.path.join(m.dir, f.name)
        try:
            info = os.stat(path)
        except FileNotFoundError:
            raise MissingError(path, "the manifest lists it, it isn't there") from None  # D10
        if not stat.S_ISREG(info.st_mode):
            raise LayoutError(path, "no regular file")
        if info.st_size < f.size:
            raise TruncatedError(path, f"{info.st_size} bytes, the manifest lists {f.size}")  # D11
        if info.st_size > f.size:
            raise LayoutError(path, f"{info.st_size} bytes, the manifest lists {f.size}")  # D12
    known = {f.name for f in m.files} | {NAME, SUM_NAME}
    return sorted(name for name in os.listdir(m.dir) if name not in known)


def verify_files(m: Manifest) -> None:
    """D13: the SHA-256 of each file. Cost: one look at each byte."""
    for f in m.files:
        path = os.path.join(m.dir, f.name)
        if (got := file_digest(path)) != f.sha256:
            raise ChecksumError(path, f"its SHA-256 is {got[7:]}, the manifest lists {f.sha256[7:]}")


def file_digest(path: str | os.PathLike[str]) -> str:
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while piece := f.read(1 << 20):
            h.update(piece)
    return "sha256:" + h.hexdigest()
