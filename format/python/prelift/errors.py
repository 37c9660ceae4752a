"""What can be wrong with an artefact: one exception for each error class of SPEC 9."""

from __future__ import annotations


class PreliftError(Exception):
    """Something is wrong with a file or an artefact. The message is one line: place, class, values.

    ``label`` is the word of SPEC 9 for the class, ``exit_code`` what a command ends with.
    """

    label = ""
    exit_code = 4
    meaning = ""

    def __init__(self, place: object, text: str) -> None:
        self.place = plain(str(place))
        super().__init__(plain(f"{self.place}: {self.meaning}: {text}"))

    def __reduce__(self):  # the message is made of two arguments, pickle would give one
        return _again, (type(self), self.place, str(self))


def _again(cls: type[PreliftError], place: str, message: str) -> PreliftError:
    e = cls.__new__(cls)
    Exception.__init__(e, message)
    e.place = place
    return e


class MagicError(PreliftError):
    label, meaning = "magic", "not a Prelift file"


class VersionError(PreliftError):
    label, meaning = "version", "made by a newer version, or needs what this reader lacks"


class TruncatedError(PreliftError):
    label, meaning = "truncated", "truncated"


class ChecksumError(PreliftError):
    label, meaning = "checksum", "checksum mismatch"


class LayoutError(PreliftError):
    label, meaning = "layout", "invalid layout"


class LimitError(PreliftError):
    label, meaning = "limit", "over a limit"


class MissingError(PreliftError):
    label, meaning = "missing", "missing"


class MismatchError(PreliftError):
    label, exit_code, meaning = "mismatch", 5, "doesn't belong together"


def plain(text: str) -> str:
    """text on one line: what comes from a file and isn't printable is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") if ord(c) < 0xD800 or ord(c) > 0xDFFF else f"\\u{ord(c):04x}" for c in text)
