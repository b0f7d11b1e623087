"""Addresses in the settings: http or https, and nothing secret in them."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator


def plain_url(url: str) -> str:
    """The address without a slash at its end. Raises ValueError where it is none, or holds more
    than a scheme, a host and a path."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must begin with https:// or http:// and name a host")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must hold no login, no ? and no #: it is shown; keys are read from files")
    return url.rstrip("/")


PlainUrl = Annotated[str, AfterValidator(plain_url)]
