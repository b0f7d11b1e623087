"""Cells of text for files that people open in a spreadsheet. Pure.

A spreadsheet runs a cell that begins with =, +, -, @, a tab or a carriage return as a formula
(OWASP, "CSV Injection"), and what stands in an exported text may be anybody's. Such a text gets an
apostrophe in front, which makes it text to a spreadsheet; `read_back` takes it away again. Numbers
are no text: a negative one stays as it is.
"""

RUN = "=+-@\t\r"
"""What a formula begins with."""
MARK = "'"
READ_BACK = rf"^{MARK}({MARK}*[=+\-@\t\r])"
"""A regular expression of a marked text; its first group is what the text begins with."""


def as_text(text: str) -> str:
    """The text as a cell that no spreadsheet runs."""
    return MARK + text if _begins_like_a_formula(text) else text


def read_back(cell: str) -> str:
    """The text that `as_text` was given."""
    marked = cell.startswith(MARK) and _begins_like_a_formula(cell)
    return cell[1:] if marked else cell


def _begins_like_a_formula(text: str) -> bool:
    return text.lstrip(MARK)[:1] in set(RUN)
