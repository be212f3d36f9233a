"""The lines and words of an annotated file, plain or compressed, and errors and warnings that name a line."""

import contextlib
import itertools
import logging
import os
import pathlib
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple, TypeVar

from elmo_tf.errors import InputError, not_utf8, unreadable
from elmo_tf.files import compressed, content

_MAX_QUOTED = 60  # characters of a wrong line in a message
_MAX_REPORTED = 3  # odd lines in a warning
_MARK = "\ufeff"  # the byte order mark that some editors put first; concatenated files have it inside
_UNREADABLE = (*compressed.DAMAGED, zipfile.BadZipFile, RuntimeError)
_Items = TypeVar("_Items", list, dict)
_RUN = re.compile(r"[^ \t\n\v\f\r]+")  # ASCII white space only, like `bytes.split`; a no-break space does not split
# Placeholders for the words of a treebank that may not be published with them.
_WITHHELD = re.compile(r"_+|\[WORD\]")
# Treebank escapes of brackets.
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}

_log = logging.getLogger("elmo_tf")


class Line(NamedTuple):
    """A line of a file, without its line break."""

    path: str
    number: int  # from 1
    text: str

    @property
    def location(self) -> str:
        """The file and the number of the line, as errors name it."""
        return f"{self.path}, line {self.number}"

    def error(self, expected: str, value: str | None = None) -> InputError:
        """Returns the error about this line. It quotes `value`, by default the line, shortened if it is long."""
        value = self.text if value is None else value
        quoted = repr(value if len(value) <= _MAX_QUOTED else f"{value[:_MAX_QUOTED]}...")
        return InputError(self.location, expected, quoted)


class OddLines:
    """Collects the irregular lines of a file and logs them as one warning; if `strict`, they are errors."""

    def __init__(self, path: str | os.PathLike, strict: bool = False):
        self._path, self._strict = str(path), strict
        self._count = self._num_withheld = 0
        self._first: list[str] = []

    def add(self, number: int, problem: str, action: str = "left out") -> None:
        """Records an odd line: its number, the problem, and what the reader does about it."""
        if self._strict:
            raise InputError(f"{self._path}, line {number}", f"{problem}; without --strict it is {action}")
        self._count += 1
        if self._count <= _MAX_REPORTED:
            self._first.append(f"line {number} ({problem}: {action})")

    def has_words(self, number: int, forms: Sequence[str]) -> bool:
        """Whether a sentence's words are present; if they are withheld, records its line as left out."""
        if len(forms) < 2 or not all(map(_WITHHELD.fullmatch, forms)):
            return True
        self._num_withheld += 1
        self.add(number, f"words are withheld, {forms[0]} stands for each")
        return False

    def finish(self, items: _Items, kind: str) -> _Items:
        """Reports the lines, and returns `items`, the file's contents; raises `InputError` if there are none."""
        self.report()
        if not items and self._num_withheld:
            raise InputError(self._path, f"it has no {kind}, because its words are withheld: add them to it first")
        return require_nonempty(items, self._path, kind)

    def report(self) -> None:
        """Logs the number of odd lines and the first few, if any."""
        if self._count:
            more = ", ..." if self._count > _MAX_REPORTED else ""
            what = "odd line" if self._count == 1 else "odd lines"
            _log.warning("warning: %s: %d %s: %s%s", self._path, self._count, what, ", ".join(self._first), more)


def lines(path: str | os.PathLike, odd: OddLines | None = None) -> Iterator[Line]:
    """Yields the lines of a file; a byte order mark at the beginning of a line is dropped, and recorded in `odd`.

    A pipe is refused, because formats are recognized by reading a file twice.
    """
    name = str(path)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise InputError(name, "this input is read twice, so it must be a file, not a pipe")
    for number, line in encoded_lines(path):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise not_utf8(f"{name}, line {number}", error.reason) from None
        if text.startswith(_MARK):
            text = text.lstrip(_MARK)
            if odd is not None and number > 1:
                odd.add(number, "a byte order mark", "ignored")
        yield Line(name, number, text)


def encoded_lines(path: str | os.PathLike) -> Iterator[tuple[int, bytes]]:
    """Returns the number and the bytes of each line, without its line break; raises if the file cannot be read."""
    return ((number, line.rstrip(b"\r\n")) for number, line in lines_with_breaks(path))


def lines_with_breaks(path: str | os.PathLike) -> Iterator[tuple[int, bytes]]:
    """Like `encoded_lines`, with the line breaks as they are."""
    try:
        with _opened(path) as file:
            if file.seekable():
                content.check_text(str(path), content.read_header(file))
                file.seek(0)
            yield from enumerate(file, 1)
    except Exception as error:
        if isinstance(error, _UNREADABLE) or type(error).__module__ == "backports.zstd":
            raise unreadable(path, error) from None
        raise


def nonblank_lines(path: str | os.PathLike) -> Iterator[Line]:
    """Yields the lines that are not blank."""
    return (line for line in lines(path) if line.text.strip())


def first_line(path: str | os.PathLike) -> str:
    """Returns the first nonblank line of a file, which identifies its format; "" if there is none."""
    return next((line.text for line in nonblank_lines(path)), "")


def blocks(path: str | os.PathLike, odd: OddLines | None = None) -> Iterator[list[Line]]:
    """Yields the lines between blank lines, a block at a time."""
    for is_filled, block in itertools.groupby(lines(path, odd), lambda line: bool(line.text.strip())):
        if is_filled:
            yield list(block)


def require_nonempty(items: _Items, path: str | os.PathLike, kind: str) -> _Items:
    """Returns `items`, the contents of `path`; raises `InputError` if there are none. `kind` names an item."""
    if not items:
        raise InputError(str(path), f"it has no {kind}")
    return items


def split(text: str) -> list[str]:
    """Returns the columns or words of a line between runs of ASCII white space."""
    return _RUN.findall(text)


def normalize_form(form: str) -> str:
    """Undoes treebank escapes (`-LRB-` -> `(`), and strips white space around a form."""
    form = form.strip()
    return _BRACKETS.get(form, form)


@contextlib.contextmanager
def _opened(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """Yields the text of a file, decompressed."""
    name, suffix = str(path), pathlib.Path(path).suffix
    if re.search(r"\.(tar(\.\w+)?|tgz|tbz2|txz|tzst)$", name):
        raise InputError(name, f"an archive of files: unpack it (tar -xf {name}) and give the file to read")
    with _open_zip(path) if suffix == ".zip" else open(path, "rb") as file:
        yield compressed.OPEN[suffix](file) if suffix in compressed.OPEN else file


def _open_zip(path: str | os.PathLike) -> IO[bytes]:
    """Opens the only file in a zip archive."""
    with zipfile.ZipFile(path) as archive:
        members = [member.filename for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            names = ", ".join(members[:5])
            raise InputError(str(path), f"a zip archive of {len(members)} files: unpack it and give one ({names})")
        return archive.open(members[0])  # stays readable after the archive object is closed
