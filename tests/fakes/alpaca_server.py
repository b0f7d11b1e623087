"""Alpaca's data host over loopback: its three addresses, its refusals, and its faults.

Only the network's edge is replaced: the desk's own HTTP client asks this. It is strict: a parameter
that the real host does not know, a limit beyond its own, or a question of the last 15 minutes is
refused as there. All data is made up; what it serves depends on `now`, as the real answers do: only
the newest wording of a headline exists, the bar of the running session moves, and last night's bar
is another one next morning.
"""

import base64
import gzip
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

from libs.market.calendar import exchange_calendar
from tests.fakes.served import KeptConnections, served
from tests.fakes.slow_answers import SLOW, answer_slowly

KEY_ID = "PKMADEUP0000000000A1"
SECRET = "madeUpSecretOfNobodyAtAll0123456789abcdef"
NEW_YORK = ZoneInfo("America/New_York")
CALENDAR = exchange_calendar()
DELAY = timedelta(minutes=15)
HTML, JSON = "text/html", "application/json"
BARS, NEWS, ACTIONS = "/v2/stocks/bars", "/v1beta1/news", "/v1/corporate-actions"
LIMIT = 200

UNAUTHORIZED = (
    "<html>\r\n<head><title>401 Authorization Required</title></head>\r\n<body>\r\n<center><h1>401 "
    "Authorization Required</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
)
GATEWAY = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
RECENT = "subscription does not permit querying recent SIP data"

REFUSALS: dict[str, tuple[int, str, str]] = {
    "401 page": (401, HTML, UNAUTHORIZED),
    "401 JSON": (401, JSON, '{"message": "unauthorized."}'),
    "403 page": (403, HTML, "<html><head><title>403 Forbidden</title></head></html>"),
    "403 JSON": (403, JSON, '{"message": "forbidden."}'),
    "403 recent SIP": (403, JSON, json.dumps({"message": RECENT})),
    "404 JSON": (404, JSON, '{"message": "endpoint not found."}'),
    "429 JSON": (429, JSON, '{"message": "too many requests."}'),
    "429 page": (429, HTML, "<html><head><title>429 Too Many Requests</title></head></html>"),
    "500 JSON": (500, JSON, '{"message": "internal server error occurred"}'),
    "502 page": (502, HTML, GATEWAY),
    "503 empty": (503, HTML, ""),
    "504 page": (504, HTML, "<html><head><title>504 Gateway Time-out</title></head></html>"),
    "301": (301, HTML, ""),
    "200 page": (200, HTML, "<html><head><title>We will be right back</title></head></html>"),
    "200 half a JSON": (200, JSON, '{"bars": {"ALFA": [{"t": "2024-03-15T04:00:00Z", "o": 1'),
    "200 JSON without content": (200, JSON, "{}"),
    "200 null": (200, JSON, "null"),
    "200 null inside": (
        200,
        JSON,
        '{"bars": null, "news": null, "corporate_actions": null, "next_page_token": null}',
    ),
    "200 error inside": (200, JSON, '{"code": 50010000, "message": "internal error"}'),
    "200 text": (200, "text/plain", '{"bars": {}, "news": [], "next_page_token": null}'),
}
"""What Alpaca, or what stands before it, says instead of an answer: status, kind and body."""
MISTAKES: dict[str, tuple[int, str, str]] = {
    "400 JSON": (400, JSON, '{"message": "invalid start: not a time"}'),
    "422 JSON": (422, JSON, '{"message": "limit is out of range"}'),
}
"""What it says of a question that it does not take: to ask again is no use."""


def moment(text: str) -> datetime:
    """A time as the addresses take it: RFC 3339, or a date, which is midnight in UTC."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Bar:
    """A session as it is told from `since` on; a later one of the same day replaces it."""

    day: date
    open: float
    high: float
    low: float
    close: float
    volume: int
    since: datetime

    def told(self) -> dict[str, Any]:
        midnight = datetime.combine(self.day, time(), tzinfo=NEW_YORK)
        return {
            "c": self.close,
            "h": self.high,
            "l": self.low,
            "n": max(1, self.volume // 100),
            "o": self.open,
            "t": stamp(midnight),
            "v": self.volume,
            "vw": round((self.open + self.close) / 2, 4),
        }


@dataclass
class Story:
    """One article; `wordings` are its headlines by the time of each edit, oldest first."""

    id: int
    symbols: tuple[str, ...]
    created: datetime
    wordings: list[tuple[datetime, str]]
    summary: str = "Made up."
    source: str = "madeupwire"

    def newest(self, now: datetime) -> tuple[datetime, str] | None:
        known = [each for each in self.wordings if each[0] <= now]
        return known[-1] if known else None


@dataclass(repr=False)
class World:
    """What Alpaca has: companies by an own name, the symbols that each had, and what happened."""

    now: datetime
    bars: dict[str, list[Bar]] = field(default_factory=dict)
    """By company."""
    symbols: list[tuple[str, str, date]] = field(default_factory=list)
    """Symbol, company, and the day from which the company has it."""
    actions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    stories: list[Story] = field(default_factory=list)
    sip: bool = True
    """False: a paper-only account, which is entitled to IEX alone."""

    def company(self, symbol: str, asof: date) -> str | None:
        """Whose symbol it is on a day: the newest that had taken it by then."""
        had = [(since, name) for own, name, since in self.symbols if own == symbol]
        known = [name for since, name in sorted(had) if since <= asof]
        return known[-1] if known else None

    def told_bars(self, symbol: str, asof: date, feed: str) -> list[dict[str, Any]]:
        company = self.company(symbol, asof)
        if company is None or self._left(symbol, company, asof):
            return []
        days: dict[date, Bar] = {}
        for bar in self.bars.get(company, ()):
            if bar.since <= self.now:
                days[bar.day] = bar
        told = [days[day].told() for day in sorted(days)]
        if feed == "iex":
            told = [{**bar, "v": bar["v"] // 40, "n": max(1, bar["n"] // 40)} for bar in told]
        return told

    def _left(self, symbol: str, company: str, asof: date) -> bool:
        """Whether the company had another symbol by then."""
        own = [(since, name) for name, whose, since in self.symbols if whose == company]
        return [name for since, name in sorted(own) if since <= asof][-1] != symbol

    def trades(
        self,
        company: str,
        days: list[date],
        close: float = 50.0,
        step: float = 0.1,
        volume: int = 1_000_000,
    ) -> None:
        """Give a company a bar a session, each told from 15 minutes after its close."""
        for number, day in enumerate(days):
            at = round(close + step * number, 4)
            known = CALENDAR.close(day) + DELAY
            bar = Bar(day, at - 0.2, at + 0.5, at - 0.5, at, volume + number, known)
            self.bars.setdefault(company, []).append(bar)

    def lists(self, symbol: str, company: str = "", since: date = date(2000, 1, 3)) -> None:
        self.symbols.append((symbol, company or symbol, since))

    def happens(self, group: str, **row: Any) -> None:
        """Add a corporate action, as `forward_splits` with its fields."""
        number = sum(map(len, self.actions.values())) + 1
        self.actions.setdefault(group, []).append({"id": f"made-up-{number}", **row})


@dataclass
class Fault:
    """The next `times` requests whose path holds `part` are answered so (or held up)."""

    part: str
    answer: tuple[int, str, str]
    times: int = 1_000
    headers: dict[str, str] = field(default_factory=dict)
    wait: threading.Event | None = None


@dataclass(repr=False)
class StandIn:
    """The server's other end, for the test: what it tells, how it fails, what it was asked."""

    world: World
    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    slow: dict[str, str] = field(default_factory=dict)
    """By part of the path: one of the ways of slow_answers, or `resets`."""
    repeats: bool = False
    """Whether each page names itself as the next one."""
    endless: bool = False
    """Whether there is always another page."""
    page_rows_max: int = 10_000
    over: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)
    heard: list[dict[str, str]] = field(default_factory=list)
    remaining: int = LIMIT
    clock_offset: timedelta = timedelta()

    def fails(self, part: str, refusal: str, **how: Any) -> Fault:
        fault = Fault(part, (REFUSALS | MISTAKES)[refusal], **how)
        self.faults.append(fault)
        return fault

    def count(self, part: str) -> int:
        return sum(part in path for path in self.asked)

    def parameters(self, part: str) -> list[dict[str, str]]:
        """The parameters of each request whose path held `part`."""
        return [dict(parse_qsl(urlsplit(path).query)) for path in self.asked if part in path]

    def answer(self, path: str, headers: dict[str, str]) -> tuple[int, str, str, dict[str, str]]:
        if (headers.get("apca-api-key-id"), headers.get("apca-api-secret-key")) != (KEY_ID, SECRET):
            return *REFUSALS["401 page"], {}
        reset = str(int(self.world.now.timestamp()) // 60 * 60 + 60)
        is_over = self.remaining == 0
        self.remaining = max(0, self.remaining - 1)
        limits = {
            "X-RateLimit-Limit": str(LIMIT),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": reset,
        }
        for fault in self.faults:
            if fault.part in path and fault.times > 0:
                fault.times -= 1
                if fault.wait is not None:
                    fault.wait.wait(20)
                return *fault.answer, {**limits, **fault.headers}
        if is_over:
            return *REFUSALS["429 JSON"], limits
        parts = urlsplit(path)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        status, page = self._page(parts.path, dict(pairs), len(pairs))
        return status, JSON, json.dumps(page), {} if parts.path == NEWS else limits

    def _page(self, path: str, query: dict[str, str], given: int) -> tuple[int, Any]:
        known = {BARS: _BARS, NEWS: _NEWS, ACTIONS: _ACTIONS}.get(path)
        if known is None:
            return 404, {"message": "endpoint not found."}
        if given != len(query) or set(query) - known:
            return 400, {"message": f"unexpected parameter: {sorted(set(query) - known)}"}
        try:
            match path:
                case "/v2/stocks/bars":
                    return self._bars(query)
                case "/v1beta1/news":
                    return self._news(query)
            return self._actions(query)
        except (KeyError, ValueError) as error:
            return 400, {"message": f"invalid parameter: {error}"}

    def _bars(self, query: dict[str, str]) -> tuple[int, Any]:
        symbols = sorted(set(query["symbols"].split(",")))
        for symbol in symbols:
            if not symbol or not symbol.replace(".", "").isalpha() or symbol != symbol.upper():
                return 400, {"message": f"invalid symbol: {symbol}"}
        if query["timeframe"] != "1Day":
            return 400, {"message": f"invalid timeframe: {query['timeframe']}"}
        limit = int(query.get("limit", "1000"))
        if not 1 <= limit <= 10_000:
            return 422, {"message": "limit is out of range"}
        if query.get("adjustment", "raw") != "raw":
            return 422, {"message": "the stand-in serves adjustment=raw alone"}
        feed = query.get("feed", "sip")
        now = self.world.now
        newest = now - DELAY
        end = moment(query["end"]) if "end" in query else newest
        if feed == "sip" and not self.world.sip:
            return 403, {"message": "your plan does not include the SIP feed"}
        if feed == "sip" and end > newest:
            return 403, {"message": RECENT}
        start = moment(query["start"]) if "start" in query else newest.replace(hour=0, minute=0)
        asof = date.fromisoformat(query.get("asof") or now.astimezone(NEW_YORK).date().isoformat())
        rows = [
            (symbol, bar)
            for symbol in symbols
            for bar in self.world.told_bars(symbol, asof, feed)
            if start <= moment(bar["t"]) <= end
        ]
        page, token = self._cut(rows, min(limit, self.page_rows_max), query.get("page_token"))
        bars: dict[str, list[Any]] = {}
        for symbol, bar in page:
            bars.setdefault(symbol, []).append(bar)
        return 200, {"bars": bars, "next_page_token": token}

    def _news(self, query: dict[str, str]) -> tuple[int, Any]:
        limit = int(query.get("limit", "10"))
        if not 1 <= limit <= 50:
            return 422, {"message": "limit is out of range"}
        now = self.world.now
        end = moment(query["end"]) if "end" in query else now - DELAY
        start = moment(query["start"]) if "start" in query else now.replace(hour=0, minute=0)
        symbols = set(filter(None, query.get("symbols", "").split(",")))
        rows = []
        for story in self.world.stories:
            newest = story.newest(now)
            if newest is None or not start <= newest[0] <= end:
                continue
            if not symbols or symbols & set(story.symbols):
                rows.append((newest[0], self._told(story, *newest, query)))
        is_newest_first = query.get("sort", "desc") == "desc"
        rows.sort(key=lambda row: (row[0], row[1]["id"]), reverse=is_newest_first)
        page, token = self._cut(rows, min(limit, self.page_rows_max), query.get("page_token"))
        return 200, {"news": [row for _, row in page], "next_page_token": token}

    @staticmethod
    def _told(story: Story, at: datetime, title: str, query: dict[str, str]) -> dict[str, Any]:
        with_content = query.get("include_content") == "true"
        return {
            "author": "Nobody Real",
            "content": "<p>Made up.</p>" if with_content else "",
            "created_at": stamp(story.created),
            "headline": title,
            "id": story.id,
            "images": [],
            "source": story.source,
            "summary": story.summary,
            "symbols": list(story.symbols),
            "updated_at": stamp(at),
            "url": f"https://news.example.org/{story.id}",
        }

    def _actions(self, query: dict[str, str]) -> tuple[int, Any]:
        limit = int(query.get("limit", "100"))
        if not 1 <= limit <= 1_000:
            return 422, {"message": "limit is out of range"}
        today = self.world.now.date().isoformat()
        start, end = (date.fromisoformat(query.get(name, today)) for name in ("start", "end"))
        if start > end:
            return 422, {"message": "start must not be after end"}
        symbols = set(filter(None, query.get("symbols", "").split(",")))
        types = set(filter(None, query.get("types", "").split(",")))
        rows = [
            (group, row)
            for group, each in self.world.actions.items()
            for row in each
            if not types or group.removesuffix("s") in types
            if start <= date.fromisoformat(row["process_date"]) <= end
            if not symbols or symbols & {row.get(name) for name in _SYMBOLS}
            if date.fromisoformat(row.get("told_from", "2000-01-01")) <= self.world.now.date()
        ]
        rows.sort(key=lambda row: (row[1]["process_date"], row[1]["id"]))
        page, token = self._cut(rows, min(limit, self.page_rows_max), query.get("page_token"))
        groups: dict[str, list[Any]] = {}
        for group, row in page:
            told = {name: value for name, value in row.items() if name != "told_from"}
            groups.setdefault(group, []).append(told)
        return 200, {"corporate_actions": groups, "next_page_token": token}

    def _cut(self, rows: list[Any], limit: int, token: str | None) -> tuple[list[Any], str | None]:
        at = int(base64.urlsafe_b64decode(token).decode().partition("|")[2]) if token else 0
        if self.endless:
            return rows[:limit], base64.urlsafe_b64encode(f"page|{at + 1}".encode()).decode()
        if self.repeats:
            return rows[:limit], base64.urlsafe_b64encode(b"page|1").decode()
        end = at + limit
        more = base64.urlsafe_b64encode(f"page|{end}".encode()).decode()
        return rows[at:end], more if end < len(rows) else None


_PAGES = {"page_token", "sort", "limit", "start", "end"}
_BARS = _PAGES | {"symbols", "timeframe", "adjustment", "asof", "feed", "currency"}
_NEWS = _PAGES | {"symbols", "include_content", "exclude_contentless"}
_ACTIONS = _PAGES | {"symbols", "cusips", "types", "region", "ids"}
_SYMBOLS = ("symbol", "old_symbol", "new_symbol", "source_symbol")


class _StandInServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Who asked may be killed at any time."""


@contextmanager
def serving(world: World) -> Iterator[StandIn]:
    """The server on a free port, for as long as the block runs."""
    stand_in = StandIn(world)

    class Handler(KeptConnections, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stand_in.asked.append(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            stand_in.heard.append(headers)
            how = next((way for part, way in stand_in.slow.items() if part in self.path), None)
            if how == "resets":
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                self.close_connection = True
                return
            if how is not None:
                answer_slowly(self, how, stand_in.over)
                return
            status, kind, text, more = stand_in.answer(self.path, headers)
            body = text.encode()
            self.send_response_only(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("Content-Type", kind)
            now = stand_in.world.now + stand_in.clock_offset
            self.send_header("Date", format_datetime(now.astimezone(UTC), usegmt=True))
            if "gzip" in headers.get("accept-encoding", ""):
                body = gzip.compress(body)
                self.send_header("Content-Encoding", "gzip")
            if status == 301:
                self.send_header("Location", f"{stand_in.url}/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()

    server = _StandInServer(("127.0.0.1", 0), Handler)
    stand_in.url = f"http://127.0.0.1:{server.server_address[1]}"
    with served(server):
        try:
            yield stand_in
        finally:
            stand_in.over.set()


WAYS = (*SLOW, "resets")
"""What it does instead of an answer."""
