"""A table in a page of the docs that is made from code, between two marks."""


def put(text: str, begin: str, end: str, table: str) -> str:
    """`text` with `table` between the lines `begin` and `end`. Raises ValueError without them."""
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"the page needs the two lines {begin!r} and {end!r}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"
