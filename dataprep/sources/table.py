"""Reads a metadata file into rows of cells, each with its line number."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import MachineError, SourceError, UsageError

QUOTING_DELIMITERS = ",;"
"""Between these, spreadsheets put quotes around texts that hold the delimiter; with others a quote is only a quote."""
DELIMITER_NAMES = {"|": "'|'", "\t": "a tab ('\\t')", ",": "','", ";": "';'"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows of a metadata file."""

    path: Path
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    """Line number, counted from 1, and cells without white space at their ends."""
    num_blank: int
    num_comments: int


def checked_delimiter(option: str) -> str:
    r"""One character from the option `--delimiter`; `\t` and `tab` mean a tab.

    Raises:
        UsageError: not one character, or one that cannot separate columns.
    """
    delimiter = "\t" if option in ("\\t", "tab") else option
    if len(delimiter) != 1 or delimiter.isalnum() or delimiter in "\r\n\"'#/\\.":
        raise UsageError(
            f"--delimiter {option!r} cannot separate columns; one character such as '|', '\\t', ',' or ';' can",
            hint="leave it out for '|', the separator of LJ Speech's metadata.csv",
        )
    return delimiter


def read_table(path: Path, delimiter: str) -> Table:
    """Reads a UTF-8 file, with or without byte order mark, whatever its line ends.

    Raises:
        SourceError: not UTF-8, or no line holds a delimiter.
        UsageError: no line holds `delimiter`, but most hold another.
        MachineError: the file may not be read.
    """
    lines = _decode(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    counts: Counter[str] = Counter()
    rows: list[tuple[int, tuple[str, ...]]] = []
    for number, line in enumerate(lines, start=1):
        bare = line.strip("\ufeff").strip()
        if not bare:
            counts["blank"] += 1
        elif bare.startswith("#") and delimiter not in bare:
            counts["comments"] += 1
        else:
            rows.append((number, _cells(line, delimiter)))
    if rows and all(len(cells) == 1 for _, cells in rows):
        raise _wrong_delimiter(path, delimiter, [cells[0] for _, cells in rows])
    return Table(path=path, rows=tuple(rows), num_blank=counts["blank"], num_comments=counts["comments"])


def _cells(line: str, delimiter: str) -> tuple[str, ...]:
    if delimiter in QUOTING_DELIMITERS and '"' in line:
        try:
            cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
        except csv.Error:  # a field over its limit of 131,072 characters
            cells = line.split(delimiter)
    else:
        cells = line.split(delimiter)
    return tuple(cell.strip("\ufeff").strip() for cell in cells)


def _decode(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MachineError(f"cannot be read: {error.strerror}", hint="check its permissions", path=path) from error
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _wrong_encoding(path, 1, "UTF-16", "utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{content[error.start]:02x}, which is not UTF-8"
        raise _wrong_encoding(path, line, found, "gb18030") from error


def _wrong_encoding(path: Path, line: int, found: str, encoding: str) -> SourceError:
    return SourceError(
        f"holds {found}; metadata must be UTF-8",
        hint=f"save it as UTF-8, for example: iconv -f {encoding} -t utf-8 {path.name} > utf8.csv (other encodings: "
        "gb18030, big5, shift-jis, cp1252), and pass --metadata utf8.csv",
        path=path,
        line=line,
    )


def _wrong_delimiter(path: Path, delimiter: str, lines: list[str]) -> SourceError | UsageError:
    sample = lines[:1000]
    others = [other for other in DELIMITER_NAMES if other != delimiter]
    shares = {other: sum(other in line for line in sample) / len(sample) for other in others}
    # A text may hold commas, too: the first of these that stands in nearly every line is the separator.
    likely = next((other for other in ("|", "\t", ";", ",") if shares.get(other, 0.0) >= 0.9), None)
    wanted = DELIMITER_NAMES.get(delimiter, repr(delimiter))
    if likely is None:
        return SourceError(
            f"no line holds the delimiter {wanted}; path|text or path|text|speaker is expected",
            hint="is this the metadata file? Name another with --metadata, or its separator with --delimiter",
            path=path,
        )
    option = "'\\t'" if likely == "\t" else f"'{likely}'"
    return UsageError(
        f"no line holds the delimiter {wanted}; the columns seem to be separated by {DELIMITER_NAMES[likely]}",
        hint=f"run again with --delimiter {option}",
        path=path,
    )
