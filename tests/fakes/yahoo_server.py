"""Yahoo's addresses over loopback: the real yfinance talks to this, through its real HTTP client.

Only the network's edge is replaced: `redirected` sends each address of Yahoo to this server, where
the first part of the path is the host that was meant. What it answers is in yahoo_market.py; faults
are put in front of it by the test.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.fakes.served import KeptConnections, served
from tests.fakes.slow_answers import SlowAnswer, answer_slowly
from tests.fakes.yahoo_market import MadeUpMarket

CRUMB = "made.up.crumb"
NEEDS_CRUMB = ("/v10/finance/quoteSummary", "/v7/finance/quote")
NOT_FOUND = {"code": "Not Found", "description": "No data found, symbol may be delisted"}
HTML = "<html><body>Sorry, Yahoo is busy</body></html>"
CONSENT = (
    "<html><head><title>Yahoo is part of the Yahoo family of brands</title></head><body>"
    '<form method="post" action="/v2/collectConsent"><input name="csrfToken" value="x">'
    '<input name="originalDoneUrl" value="https://finance.yahoo.com/calendar/earnings?symbol=X">'
    "</form></body></html>"
)
EARNINGS_PAGE = "<html><head><title>Company Earnings Calendar - Yahoo Finance</title></head><body>"


def envelope(name: str, code: str, description: str) -> dict[str, Any]:
    """An error as Yahoo wraps it, under the name of the address or under `finance`."""
    return {name: {"result": None, "error": {"code": code, "description": description}}}


REFUSALS: dict[str, tuple[int, Any]] = {
    "401 Invalid Crumb": (401, envelope("finance", "Unauthorized", "Invalid Crumb")),
    "401 Invalid Cookie": (401, envelope("chart", "Unauthorized", "Invalid Cookie")),
    "403 JSON": (403, envelope("finance", "Forbidden", "Access denied")),
    "404 of the address": (404, envelope("finance", "Not Found", "HTTP 404 Not Found")),
    "404 page": (404, "<html><head><title>Yahoo</title></head><body>Not found</body></html>"),
    "429 page": (429, "Too Many Requests\r\n"),
    "429 JSON": (429, envelope("finance", "Too Many Requests", "Rate limited")),
    "500 JSON": (500, envelope("quoteSummary", "internal-error", "Internal server error")),
    "502 page": (502, "<html><head><title>502 Bad Gateway</title></head><body></body></html>"),
    "503 empty": (503, ""),
    "999 page": (999, "<html><body>Unable to process request at this time -- error 999</body>"),
    "200 consent": (200, CONSENT),
    "200 will be right back": (200, "<html><body>Will be right back...</body></html>"),
    "200 error inside": (200, envelope("finance", "internal-error", "try again")),
    "200 JSON without content": (200, {}),
    "200 null": (200, None),
}
"""What Yahoo answers instead of an answer: status and body, by a name for people."""


@dataclass
class Fault:
    """The next `times` requests whose address holds `part` are answered so (or held up)."""

    part: str
    status: int = 200
    body: Any = HTML
    times: int = 1_000
    wait: threading.Event | None = None


@dataclass
class StandIn:
    """The server's other end, for the test: what it tells, how it fails, what it was asked."""

    market: MadeUpMarket
    port: int = 0
    faults: list[Fault] = field(default_factory=list)
    slow: list[SlowAnswer] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)
    crumb: str = CRUMB

    def fails(self, part: str, **how: Any) -> Fault:
        fault = Fault(part, **how)
        self.faults.append(fault)
        return fault

    def count(self, part: str) -> int:
        """Requests whose address held `part`, without those for cookies and crumbs."""
        return sum(part in address for address in self.asked)

    def answer(self, host: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if host == "fc.yahoo.com":
            return 404, ""
        if path.endswith("/getcrumb"):
            return 200, self.crumb
        if path.startswith(NEEDS_CRUMB) and query.get("crumb") != CRUMB:
            return REFUSALS["401 Invalid Crumb"]
        name = path.rpartition("/")[2]
        told = self.market
        if path.startswith("/v8/finance/chart/"):
            return self._chart(name, query)
        if path == "/v1/finance/search":
            return 200, {"quotes": told.search(query["q"]), "news": []}
        if path == "/xhr/ncp":
            config = body["serviceConfig"]
            stream = told.stories(config["s"][0], config["snippetCount"])
            return 200, {"data": {"tickerStream": {"stream": stream}}}
        if path == "/calendar/earnings":
            page = told.reports_page(query["symbol"])
            return 200, f"{EARNINGS_PAGE}{page or 'No results'}</body></html>"
        if path == "/v1/finance/visualization":
            between = [part["operands"] for part in body["query"]["operands"]]
            days = [each[1] for each in between if each[0] == "startdatetime"]
            return 200, {"finance": {"result": [told.calendar(*days)], "error": None}}
        if path == "/v1/finance/screener/predefined/saved":
            quotes = [
                {"symbol": each, "quoteType": "EQUITY", "regularMarketPrice": {"raw": 1.0}}
                for each in told.screens[query["scrIds"]]
            ]
            return 200, {"finance": {"result": [{"quotes": quotes}], "error": None}}
        if path.startswith("/ws/fundamentals-timeseries"):
            return 200, {"timeseries": {"result": [{"meta": {}}], "error": None}}
        return self._figures(path, name, query)

    def _figures(self, path: str, name: str, query: dict[str, str]) -> tuple[int, Any]:
        symbol = query.get("symbols", name)
        company = self.market.companies.get(symbol)
        if path.startswith("/v10/finance/quoteSummary"):
            if company is None:
                return 404, {"quoteSummary": {"result": None, "error": NOT_FOUND}}
            summary = {
                "financialData": self.market.figures(company),
                "quoteType": {"symbol": symbol},
            }
            return 200, {"quoteSummary": {"result": [summary], "error": None}}
        if path.startswith("/v7/finance/quote"):
            told = {"symbol": symbol, "market": "us_market", "marketState": "POST"}
            rows = [told] if company else []
            return 200, {"quoteResponse": {"result": rows, "error": None}}
        return 404, HTML

    def _chart(self, symbol: str, query: dict[str, str]) -> tuple[int, Any]:
        last = int(self.market.now.timestamp())
        first = int(query["period1"]) if "period1" in query else None
        found = self.market.chart(symbol, first, int(query.get("period2", last + 1)))
        if found is None:
            return 404, {"chart": {"result": None, "error": NOT_FOUND}}
        if isinstance(found, str):
            why = {"code": "Bad Request", "description": found}
            return 400, {"chart": {"result": None, "error": why}}
        return 200, {"chart": {"result": [found], "error": None}}


@contextmanager
def serving(market: MadeUpMarket) -> Iterator[StandIn]:
    """The server on a free port, for as long as the block runs."""
    stand_in = StandIn(market)

    class Handler(KeptConnections, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                self._answer(json.loads(raw or b"null"))
            except json.JSONDecodeError:
                self._answer(None)

        def _answer(self, body: Any) -> None:
            parts = urlsplit(self.path)
            host, _, path = parts.path.removeprefix("/").partition("/")
            stand_in.asked.append(self.path)
            slow = next((each for each in stand_in.slow if each.part in self.path), None)
            if slow is not None:
                answer_slowly(self, slow.how, stand_in.over)
                return
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            status, said = self._faulty() or stand_in.answer(host, f"/{path}", query, body)
            raw = (said if isinstance(said, str) else json.dumps(said)).encode()
            self.send_response(status)
            if status // 100 == 3:
                self.send_header("Location", said)
            kind = "text/html" if isinstance(said, str) else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def _faulty(self) -> tuple[int, Any] | None:
            for fault in stand_in.faults:
                if fault.part in self.path and fault.times > 0:
                    fault.times -= 1
                    if fault.wait is not None:
                        fault.wait.wait(20)
                    return fault.status, fault.body
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stand_in.port = server.server_address[1]
    with served(server):
        try:
            yield stand_in
        finally:
            stand_in.over.set()


def redirected(patch: pytest.MonkeyPatch, port: int) -> None:
    """Send yfinance's requests to the stand-in, and have it forget what it knew of another."""
    import yfinance  # noqa: PLC0415 - seconds, and only for tests of live data
    from curl_cffi import requests  # noqa: PLC0415
    from yfinance import base, cache  # noqa: PLC0415

    through = requests.Session.request

    def request(self: Any, method: Any, url: str, *args: Any, **named: Any) -> Any:
        meant = url.removeprefix("https://")
        assert meant.split("/")[0].endswith("yahoo.com"), f"a request to {url}"
        return through(self, method, f"http://127.0.0.1:{port}/{meant}", *args, **named)

    patch.setattr(requests.Session, "request", request)
    data = yfinance.data.YfData()
    patch.setattr(data, "_crumb", None)
    patch.setattr(data, "_cookie", None)
    patch.setattr(data, "_cookie_strategy", "basic")
    patch.setattr(base, "_tz_info_fetch_ctr", 0)
    patch.setattr(cache._TzCacheManager, "_tz_cache", None)
    patch.setattr(cache._CookieCacheManager, "_Cookie_cache", None)
    data.cache_get.cache_clear()
    data._session.cookies.clear()
