"""Postgres addresses (`postgresql://...`) taken apart and put together."""

from urllib.parse import SplitResult


def dsn_of(parts: SplitResult) -> str:
    """The address of the parts, by the scheme `postgresql://`.

    urllib leaves out the empty place of `postgresql:///name?host=/socket`, and without its two
    slashes libpq takes an address for the name of a database.
    """
    address = f"{parts.scheme}://{parts.netloc}{parts.path}"
    query = f"?{parts.query}" if parts.query else ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return f"{address}{query}{fragment}"
