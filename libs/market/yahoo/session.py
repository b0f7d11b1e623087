"""The one HTTP session with Yahoo: what it answers is bounded, in bytes and in time, and no request
goes to anybody else.

It is curl_cffi's, because Yahoo answers browsers only; yfinance is handed this one. libcurl unpacks
an answer piece by piece, and each piece is counted here before it is kept.
"""

import threading
import time
from typing import Any
from urllib.parse import urljoin, urlsplit

from curl_cffi import requests
from curl_cffi.curl import CURL_WRITEFUNC_ERROR

from libs.runtime.proxies import ProxyUnusable, proxy_for

PAGE_BYTES_MAX = 4_000_000
"""Of one page, unpacked: 60 years of daily prices have about 1.5 MB."""
TAGS_MAX = 60_000
"""Of a page of HTML: each takes a kilobyte once it is read."""
REQUEST_S = 30.0
"""How long one request may take, from the look-up of the name to the last byte."""
QUESTION_S = 45.0
"""How long all requests of one question may take."""
REDIRECTS_MAX = 8
"""Consent to cookies takes five, all within Yahoo."""
HOST = "yahoo.com"
MOVED = frozenset({301, 302, 303, 307, 308})
BY_GET = frozenset({301, 302, 303})
"""Redirects after which a POST goes on as a GET, without its body."""


class YahooSentElsewhere(requests.exceptions.RequestException):
    """A request would leave Yahoo. The message names the host."""


class PageTooLarge(requests.exceptions.RequestException):
    """A page is larger than any of Yahoo's."""


class YahooSession(requests.Session[Any]):
    """A browser's session. Safe to share between threads; each has its own time limit."""

    def __init__(self) -> None:
        super().__init__(impersonate="chrome")
        self._own = threading.local()

    def begin(self) -> None:
        """Start the time limit of this thread's next question."""
        self._own.until = time.monotonic() + QUESTION_S

    def request(self, method: Any, url: str, *args: Any, **named: Any) -> Any:
        """One request, with the redirects within Yahoo. Raises RequestException."""
        for _ in range(REDIRECTS_MAX + 1):
            answer = self._one(method, url, *args, **named)
            location = answer.headers.get("Location")
            if answer.status_code not in MOVED or not location:
                return answer
            url = urljoin(url, location)
            named.pop("params", None)
            if answer.status_code in BY_GET:
                method = "GET"
                named = {name: named[name] for name in named.keys() - {"data", "json"}}
        raise YahooSentElsewhere(f"more than {REDIRECTS_MAX} redirects")

    def _one(self, method: Any, url: str, *args: Any, **named: Any) -> Any:
        host = urlsplit(url).hostname or ""
        if host != HOST and not host.endswith(f".{HOST}"):
            raise YahooSentElsewhere(f"a redirect to {host[:100]} is not followed")
        try:
            proxy = proxy_for(url)
        except ProxyUnusable as error:
            raise requests.exceptions.ProxyError(error.message) from error
        body = bytearray()

        def keep(piece: bytes) -> int:
            if len(body) + len(piece) > PAGE_BYTES_MAX:
                return int(CURL_WRITEFUNC_ERROR)
            body.extend(piece)
            return len(piece)

        limited = {
            **named,
            "timeout": self._left_s(),
            "allow_redirects": False,
            "content_callback": keep,
            # Empty: none, whatever libcurl reads in the environment.
            "proxies": {"all": proxy.url if proxy else ""},
        }
        try:
            answer = super().request(method, url, *args, **limited)
        except requests.exceptions.RequestException as error:
            if "write" in str(error).lower() and body:
                limit = f"{PAGE_BYTES_MAX:,} bytes, the limit"
                raise PageTooLarge(f"the page has more than {limit}") from error
            raise
        if body.count(b"<") > TAGS_MAX:
            raise PageTooLarge(f"the page has more than {TAGS_MAX:,} tags, the limit")
        answer.content = bytes(body)
        return answer

    def _left_s(self) -> float:
        left_s = getattr(self._own, "until", time.monotonic() + QUESTION_S) - time.monotonic()
        if left_s <= 0:
            raise requests.exceptions.Timeout(f"no answer within {QUESTION_S:g} s")
        return min(left_s, REQUEST_S)
