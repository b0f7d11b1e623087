"""The text of a file that a person brought, as UTF-8 with one kind of line end."""

import codecs
import gzip
import io
import zlib
from pathlib import Path

from libs.files.bounds import COMPRESSED, FILE_BYTES_MAX, HEADER_BYTES_MAX
from libs.files.finding import BadFile, bad

GZIP = b"\x1f\x8b"
MARK = "\ufeff"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PIECE_BYTES = 1_000_000
SEPARATORS = (b",", b";", b"\t", b"|")


AS_CSV = "open it and save the sheet as CSV (UTF-8)"
OTHER_FILES = (
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", AS_CSV),
    (b"PAR1", "a Parquet file", "let its name end in .parquet"),
    (b"%PDF", "a PDF", "export it as CSV"),
)
"""Beginnings of files that are no text: what each is, and what to do."""
PAGES = (b"<!doctype html", b"<html", b"<table", b"<?xml")


def text_of(
    path: Path,
    bytes_max: int = FILE_BYTES_MAX,
    *,
    is_windows_allowed: bool = False,
    is_table: bool = True,
) -> bytes:
    """The whole text, in UTF-8 without a mark and with LF at the ends of lines.

    UTF-8, and UTF-16 with its mark, are read; with `is_windows_allowed` any other text is taken for
    Windows-1252, in which old programs write. Line ends may be LF, CRLF or CR. A gzip file is
    unpacked within the same bound. Raises BadFile for a file that cannot be opened, is too large,
    compressed otherwise, or no text; where it `is_table`, for one that begins as JSON does too.
    """
    try:
        with path.open("rb") as file:
            body = file.read(bytes_max + 1)
    except OSError as error:
        raise unopened(path, error) from error
    if body.startswith(GZIP):
        body = _unpacked(path, body, bytes_max)
    if len(body) > bytes_max:
        size = f"{bytes_max // 1024**2} MB" if bytes_max >= 1024**2 else f"{bytes_max:,} bytes"
        raise bad(path, None, f"larger than {size}", "split it")
    _require_text(path, body, is_table=is_table)
    body = _utf_8(path, body, is_windows_allowed=is_windows_allowed)
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return body


def _unpacked(path: Path, body: bytes, bytes_max: int) -> bytes:
    """The content of a gzip file, up to one byte more than the bound. Raises BadFile."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            return file.read(bytes_max + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise bad(path, None, f"no whole gzip file ({error})", "write it again") from error


def unopened(path: Path, error: OSError) -> BadFile:
    """The fault of a file that could not be opened or read."""
    why = error.strerror or type(error).__name__
    return bad(path, None, f"it cannot be read ({why})", "make it readable, or move it away")


def separator_of(text: bytes) -> bytes:
    """The mark between the columns: the one that the first line with any text has most often
    outside quotes; a comma where it has none."""
    line = text[:HEADER_BYTES_MAX].lstrip(b"\n").partition(b"\n")[0]
    unquoted = b"".join(line.split(b'"')[::2])
    return max(SEPARATORS, key=unquoted.count)


def _require_text(path: Path, body: bytes, *, is_table: bool) -> None:
    for beginning, what, remedy in OTHER_FILES:
        if body.startswith(beginning):
            raise bad(path, None, what, remedy)
    if body.startswith(b"PK\x03\x04") and b"[Content_Types].xml" in body:
        raise bad(path, None, "an Excel workbook", AS_CSV)
    if body.startswith(COMPRESSED):
        raise bad(path, None, "the file is compressed", "unpack it, or use Parquet")
    if is_table and body.lstrip()[:1] in (b"{", b"["):
        raise bad(path, None, "JSON, not CSV", "ask its source for CSV")
    if body[:HEADER_BYTES_MAX].lstrip(codecs.BOM_UTF8).lstrip().lower().startswith(PAGES):
        raise bad(path, None, "a web page or XML, not CSV", "open it in a spreadsheet, save as CSV")


def _utf_8(path: Path, body: bytes, *, is_windows_allowed: bool) -> bytes:
    if body.startswith(UTF_16):
        try:
            return body.decode("utf-16").lstrip(MARK).encode()
        except UnicodeError:
            raise bad(path, None, "damaged UTF-16", "save it as UTF-8") from None
    while body.startswith(codecs.BOM_UTF8):  # some programs write a second mark
        body = body.removeprefix(codecs.BOM_UTF8)
    if b"\0" in body:
        line = body.count(b"\n", 0, body.index(b"\0")) + 1
        raise bad(path, line, "no text: it holds bytes of zero", "save the file as UTF-8 text")
    try:
        _require_utf_8(path, body)
    except BadFile:
        if not is_windows_allowed:
            raise
        # Bytes that Windows-1252 leaves open are kept, so that no text fails here.
        return body.decode("cp1252", errors="replace").encode()
    return body


def _require_utf_8(path: Path, body: bytes) -> None:
    # In pieces: a whole text beside its bytes would take their memory twice more.
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body), PIECE_BYTES):
        try:
            decoder.decode(body[start : start + PIECE_BYTES])
        except UnicodeDecodeError as error:
            line = body.count(b"\n", 0, start + error.start) + 1
            raise bad(path, line, "not UTF-8", "save the file as UTF-8") from None
    if decoder.getstate()[0]:
        raise bad(path, body.count(b"\n") + 1, "not UTF-8", "save the file as UTF-8")
