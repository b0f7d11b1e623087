"""Alpaca's paper trading host over loopback, as strict as its public description, with its own
clock and every fault that is told of it.

It lives in a thread of its own, so it outlives whatever is killed. All data are made up.
"""

import json
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

from libs.market.calendar import exchange_calendar
from tests.fakes.served import KeptConnections, served

D = Decimal
KEY_ID, SECRET = "PKMADEUP0123456789AB", "madeUpSecretmadeUpSecretmadeUpSecret0123"
ENDED = {"filled", "canceled", "expired", "rejected"}
FIELDS = {
    "client_order_id",
    "symbol",
    "side",
    "type",
    "time_in_force",
    "qty",
    "limit_price",
    "stop_price",
    "notional",
    "extended_hours",
    "order_class",
    "legs",
    "take_profit",
    "stop_loss",
    "trail_price",
    "trail_percent",
    "position_intent",
    "advanced_instructions",
}
HTML = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


class Fault(StrEnum):
    """What goes wrong with one request."""

    LOST = "done, and the answer is lost"
    LATE = "an error, and done some time later"
    RESET = "reset before it is read"
    HANG = "done, and no answer for a long time"
    HTML = "HTML in an answer's place"
    BUSY = "429 with its headers"
    BROKEN = "500 before it is done"
    CUT = "half an answer"


WRITES = tuple(Fault)
READS = (Fault.RESET, Fault.HANG, Fault.HTML, Fault.BUSY, Fault.BROKEN, Fault.CUT)


class ApiError(Exception):
    """A refusal with Alpaca's status, code and words."""

    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"code": code, "message": message, **more}


def drop(connection: socket.socket) -> None:
    """Reset a connection instead of ending it."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@dataclass
class Activity:
    """One activity as it is listed, from the moment `listed_at` of the host's real time on."""

    row: dict[str, Any]
    created_at: datetime
    listed_at: float = 0.0


@dataclass
class PaperHost:
    """One paper account. `seed` rules chance; `now` is the host's clock, which stands unless it is
    moved or `runs`."""

    number: str = "PA3MADEUP001"
    keys: tuple[str, str] = (KEY_ID, SECRET)
    cash: Decimal = D(100_000)
    seed: int = 0
    now: datetime = datetime(2026, 11, 27, 22, 0, tzinfo=UTC)
    runs: bool = False
    hang_s: float = 2.0
    late_s: float = 0.2
    multiplier: str = "4"
    no_shorting: bool = False
    settable: bool = True
    status: str = "ACTIVE"
    blocked: bool = False
    deleted: bool = False
    partly: float = 0.1
    prices: dict[str, Decimal] = field(default_factory=dict)
    orders: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_client: dict[str, str] = field(default_factory=dict)
    positions: dict[str, Decimal] = field(default_factory=dict)
    listed: list[Activity] = field(default_factory=list)
    planned: list[tuple[str, Fault]] = field(default_factory=list)
    # Of writes; a tenth of it of questions, as there are many more.
    fault_rate: float = 0.0
    faults_left: int = 0
    faults_made: dict[Fault, int] = field(default_factory=dict)
    stuck_cancels: bool = False
    repeat_activities: bool = False
    # How often a fill is listed some real time after it was made, and how far off the clock is.
    late_fills: float = 0.0
    skew: timedelta = timedelta()
    # By path: what is answered instead, with status 200.
    instead: dict[str, Any] = field(default_factory=dict)
    # By method and path, or how these begin: status, kind and body that are answered instead.
    says: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    posts: dict[str, int] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    url: str = ""
    # The clock that who asks goes by, of which a 429 names a time.
    wall: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.calendar = exchange_calendar()
        self._real = time.monotonic()
        self._late: list[tuple[float, dict[str, Any]]] = []
        self._serial = 0

    # --- the clock and the market --------------------------------------------------------------

    def time(self) -> datetime:
        """The host's clock."""
        if self.runs:
            return self.now + timedelta(seconds=time.monotonic() - self._real)
        return self.now

    def move(self, to: datetime) -> None:
        """Move the clock on, past opens and closes, each with what happens there."""
        with self.lock:
            for session in self.calendar.sessions(self.now.date(), to.date()):
                for at, happens in (
                    (self.calendar.open(session), self.fill_open),
                    (self.calendar.close(session), self.expire),
                ):
                    if self.now < at <= to:
                        self._set(at)
                        self._accept_late(all_of_them=True)
                        happens()
            self._set(to)

    def _set(self, moment: datetime) -> None:
        self.now, self._real = moment, time.monotonic()

    @property
    def is_open(self) -> bool:
        """Whether the exchange is open by the host's clock."""
        day = self._day()
        if not self.calendar.is_session(day):
            return False
        return self.calendar.open(day) <= self.time() < self.calendar.close(day)

    def _day(self) -> date:
        return self.time().astimezone(self.calendar.zone).date()

    def next_open(self) -> datetime:
        """The next open by the host's clock."""
        day = self._day()
        if self.calendar.is_session(day) and self.time() < self.calendar.open(day):
            return self.calendar.open(day)
        return self.calendar.open(self.calendar.next_session(day))

    def next_close(self) -> datetime:
        """The next close by the host's clock."""
        day = self._day()
        if self.calendar.is_session(day) and self.time() < self.calendar.close(day):
            return self.calendar.close(day)
        return self.calendar.close(self.calendar.next_session(day))

    def fill_open(self) -> None:
        """Fill what waits, one in ten in parts first."""
        with self.lock:
            for order in [o for o in self.orders.values() if o["status"] not in ENDED]:
                self.fill(order)

    def fill(self, order: dict[str, Any], quantity: Decimal | None = None) -> None:
        """Fill an order at the ticker's price, all of it or `quantity`."""
        price = self.prices.get(order["symbol"], D(10))
        limit = order["limit_price"]
        if order["side"] == "buy" and limit is not None and D(limit) < price:
            order["status"] = "new"
            return
        left = D(order["qty"]) - D(order["filled_qty"])
        if quantity is None and left > 1 and self.chance.random() < self.partly:
            self._trade(order, D(self.chance.randrange(1, int(left))), price)
            left = D(order["qty"]) - D(order["filled_qty"])
        self._trade(order, min(left, quantity or left), price)

    def _trade(self, order: dict[str, Any], quantity: Decimal, price: Decimal) -> None:
        signed = quantity if order["side"] == "buy" else -quantity
        done = D(order["filled_qty"]) + quantity
        paid = D(order["filled_avg_price"] or 0) * D(order["filled_qty"]) + price * quantity
        order["filled_qty"], order["filled_avg_price"] = str(done), str(paid / done)
        order["status"] = "filled" if done == D(order["qty"]) else "partially_filled"
        self.cash -= signed * price
        held = self.positions.get(order["symbol"], D(0)) + signed
        self.positions[order["symbol"]] = held
        is_late = self.late_fills and self.chance.random() < self.late_fills
        self.list_activity(
            "FILL",
            2 * self.late_s if is_late else 0.0,
            order_id=order["id"],
            symbol=order["symbol"],
            side=order["side"],
            qty=str(quantity),
            cum_qty=str(done),
            leaves_qty=str(D(order["qty"]) - done),
            price=str(price),
            transaction_time=_text(self.time()),
            type="fill" if order["status"] == "filled" else "partial_fill",
            order_status=order["status"],
        )

    def expire(self) -> None:
        """The close: what is left of the day's orders ends."""
        with self.lock:
            for order in self.orders.values():
                if order["status"] not in ENDED:
                    was_cancelled = order["status"] == "pending_cancel"
                    order["status"] = "canceled" if was_cancelled else "expired"

    def list_activity(self, kind: str, late_s: float = 0.0, **row: Any) -> Activity:
        """List an activity, maybe some real seconds later."""
        with self.lock:
            self._serial += 1
            local = self.time().astimezone(self.calendar.zone)
            name = f"{local:%Y%m%d%H%M%S}{self._serial:03}::{uuid4()}"
            activity = Activity(
                {"id": name, "activity_type": kind, **row},
                self.time(),
                time.monotonic() + late_s,
            )
            self.listed.append(activity)
            return activity

    # --- what people and others do at the broker -----------------------------------------------

    def manual_order(self, symbol: str, side: str, quantity: int) -> dict[str, Any]:
        """An order from the broker's own pages."""
        with self.lock:
            return self._accept(
                {"symbol": symbol, "side": side, "qty": str(quantity), "type": "market"}, None
            )

    def manual_trade(self, symbol: str, quantity: int) -> None:
        """Shares bought (or sold, below zero) by hand, at once."""
        with self.lock:
            order = self.manual_order(symbol, "buy" if quantity > 0 else "sell", abs(quantity))
            self._trade(order, D(abs(quantity)), self.prices.get(symbol, D(10)))

    def transfer(self, amount: Decimal) -> None:
        """Cash paid in or taken out at the broker."""
        with self.lock:
            self.cash += amount
            kind = "CSD" if amount > 0 else "CSW"
            self.list_activity(kind, net_amount=str(amount), date=str(self._day()))

    def dividend(self, symbol: str, amount: Decimal) -> None:
        """A dividend that is paid."""
        with self.lock:
            self.cash += amount
            self.list_activity("DIV", net_amount=str(amount), symbol=symbol, date=str(self._day()))

    def split(self, symbol: str, ratio: int) -> None:
        """A split of what is held."""
        with self.lock:
            self.positions[symbol] = self.positions.get(symbol, D(0)) * ratio

    # --- the interface ----------------------------------------------------------------------------

    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        """Status and JSON. Raises ApiError."""
        routes: dict[tuple[str, str], Callable[[], tuple[int, Any]]] = {
            ("GET", "/v2/account"): lambda: (200, self._account()),
            ("GET", "/v2/account/configurations"): lambda: (200, self._configurations()),
            ("PATCH", "/v2/account/configurations"): lambda: (200, self._configure(body)),
            ("GET", "/v2/positions"): lambda: (200, self._positions()),
            ("GET", "/v2/clock"): lambda: (200, self._clock()),
            ("GET", "/v2/calendar"): lambda: (200, self._days(query)),
            ("GET", "/v2/orders"): lambda: (200, self._listed_orders(query)),
            ("POST", "/v2/orders"): lambda: (200, self._submit(body)),
            ("GET", "/v2/account/activities"): lambda: (200, self._activities(query)),
            ("GET", "/v2/orders:by_client_order_id"): lambda: (200, self._by_client(query)),
        }
        with self.lock:
            route = routes.get((method, path))
            if route is not None:
                return route()
            if path.startswith("/v2/orders/") and method in {"GET", "DELETE"}:
                order = self.orders.get(path.removeprefix("/v2/orders/"))
                if order is None:
                    raise ApiError(404, 40410000, "order not found")
                return (200, order) if method == "GET" else self._cancel(order)
        raise ApiError(404, 40410000, "endpoint not found")

    def _account(self) -> dict[str, Any]:
        return {
            "id": str(UUID(int=1)),
            "account_number": self.number,
            "status": self.status,
            "currency": "USD",
            "cash": str(self.cash),
            "multiplier": self.multiplier,
            "shorting_enabled": not self.no_shorting,
            "buying_power": str(self.cash * int(self.multiplier)),
            "account_blocked": False,
            "trading_blocked": self.blocked,
            "trade_suspended_by_user": False,
            "transfers_blocked": False,
        }

    def _configurations(self) -> dict[str, Any]:
        return {
            "no_shorting": self.no_shorting,
            "max_margin_multiplier": self.multiplier,
            "suspend_trade": False,
            "fractional_trading": True,
            "trade_confirm_email": "all",
            "dtbp_check": "entry",
            "pdt_check": "entry",
        }

    def _configure(self, body: bytes) -> dict[str, Any]:
        wanted = json.loads(body)
        if unknown := wanted.keys() - self._configurations().keys():
            raise ApiError(422, 42210000, f"unknown field {min(unknown)}")
        if not self.settable:
            raise ApiError(403, 40310000, "account configuration cannot be changed")
        self.no_shorting = wanted.get("no_shorting", self.no_shorting)
        self.multiplier = wanted.get("max_margin_multiplier", self.multiplier)
        return self._configurations()

    def _positions(self) -> list[dict[str, Any]]:
        return [
            {
                "symbol": symbol,
                "qty": str(quantity),
                "qty_available": str(quantity),
                "side": "long" if quantity > 0 else "short",
                "avg_entry_price": "1",
                "asset_class": "us_equity",
            }
            for symbol, quantity in sorted(self.positions.items())
            if quantity
        ]

    def _clock(self) -> dict[str, Any]:
        return {
            "timestamp": _text(self.time() + self.skew),
            "is_open": self.is_open,
            "next_open": _text(self.next_open()),
            "next_close": _text(self.next_close()),
        }

    def _days(self, query: dict[str, str]) -> list[dict[str, Any]]:
        first = date.fromisoformat(query.get("start", str(self._day())))
        last = date.fromisoformat(query.get("end", str(self._day() + timedelta(days=30))))
        zone = self.calendar.zone
        return [
            {
                "date": str(day),
                "open": f"{self.calendar.open(day).astimezone(zone):%H:%M}",
                "close": f"{self.calendar.close(day).astimezone(zone):%H:%M}",
                "session_open": "0400",
                "session_close": "2000",
            }
            for day in self.calendar.sessions(first, last)
        ]

    def _listed_orders(self, query: dict[str, str]) -> list[dict[str, Any]]:
        wanted, limit = query.get("status", "open"), int(query.get("limit", "50"))
        if limit > 500:
            raise ApiError(422, 42210000, "limit is too large")
        found = [
            order
            for order in self.orders.values()
            if wanted == "all" or (order["status"] in ENDED) == (wanted == "closed")
        ]
        after = query.get("after_order_id")
        if after is not None:
            ids = [order["id"] for order in self.orders.values()]
            if after not in ids:
                raise ApiError(422, 42210000, "after_order_id not found")
            later = set(ids[ids.index(after) + 1 :])
            found = [order for order in found if order["id"] in later]
        if query.get("direction", "desc") == "desc":
            found.reverse()
        return found[:limit]

    def _by_client(self, query: dict[str, str]) -> dict[str, Any]:
        name = self.by_client.get(query.get("client_order_id", ""))
        if name is None:
            raise ApiError(404, 40410000, "order not found")
        return self.orders[name]

    def _activities(self, query: dict[str, str]) -> list[dict[str, Any]]:
        size = int(query.get("page_size", "100"))
        if size > 100:
            raise ApiError(422, 42210000, "page_size must be at most 100")
        rows = [a for a in self.listed if a.listed_at <= time.monotonic()]
        if "after" in query:
            after = datetime.fromisoformat(query["after"])
            rows = [a for a in rows if a.created_at > after]
        if "activity_types" in query:
            kinds = query["activity_types"].split(",")
            rows = [a for a in rows if a.row["activity_type"] in kinds]
        rows.sort(key=lambda a: a.row["id"])
        if query.get("direction", "desc") == "desc":
            rows.reverse()
        ids = [a.row["id"] for a in rows]
        token = query.get("page_token")
        if token is not None:
            if token not in ids:
                raise ApiError(422, 42210000, "invalid page_token")
            at = ids.index(token) + 1
            # The service repeats an execution now and then.
            rows = rows[max(0, at - self.repeat_activities) :]
        page = [a.row for a in rows[:size]]
        if self.repeat_activities and 0 < len(page) < size:
            page.append(page[-1])
        return page

    def _submit(self, body: bytes) -> dict[str, Any]:
        wanted = json.loads(body)
        client = wanted.get("client_order_id") or str(uuid4())
        self._require(wanted, client)
        return self._accept(wanted, client)

    def _require(self, wanted: dict[str, Any], client: str) -> None:
        if unknown := wanted.keys() - FIELDS:
            raise ApiError(422, 42210000, f"unknown field {min(unknown)}")
        if len(client) > 128:
            raise ApiError(422, 42210000, "client_order_id must be no more than 128 characters")
        if client in self.by_client:
            raise ApiError(422, 40010001, "client_order_id must be unique")
        if self.blocked:
            raise ApiError(403, 40310000, "account is restricted to liquidation only")
        kind, side, symbol = wanted["type"], wanted["side"], wanted["symbol"]
        if wanted["time_in_force"] not in {"day", "gtc", "opg", "cls", "ioc", "fok"}:
            raise ApiError(422, 42210000, "invalid time_in_force")
        if kind not in {"market", "limit"} or side not in {"buy", "sell"}:
            raise ApiError(422, 42210000, "invalid type or side")
        quantity = D(wanted["qty"])
        if quantity <= 0:
            raise ApiError(422, 42210000, "qty must be > 0")
        limit = wanted.get("limit_price")
        if (kind == "limit") != (limit is not None):
            raise ApiError(422, 42210000, "limit orders require a limit price")
        if limit is not None:
            places = -int(D(limit).normalize().as_tuple().exponent)
            if places > (2 if D(limit) >= 1 else 4):
                words = "sub-penny increment does not fulfill minimum pricing criteria"
                raise ApiError(422, 42210000, f"invalid limit_price {limit}. {words}")
        working = [o for o in self.orders.values() if o["status"] not in ENDED]
        opposite = [o for o in working if o["symbol"] == symbol and o["side"] != side]
        if opposite:
            raise ApiError(
                403,
                40310000,
                "potential wash trade detected. use complex orders",
                existing_order_id=opposite[0]["id"],
                reject_reason="opposite side market/stop order exists",
            )
        self._require_means(side, symbol, quantity, limit, working)

    def _require_means(
        self, side: str, symbol: str, quantity: Decimal, limit: str | None, working: list[Any]
    ) -> None:
        if side == "sell":
            promised = sum(
                (
                    D(o["qty"]) - D(o["filled_qty"])
                    for o in working
                    if o["symbol"] == symbol and o["side"] == "sell"
                ),
                D(0),
            )
            free = self.positions.get(symbol, D(0)) - promised
            if quantity > free and self.no_shorting:
                words = "insufficient qty available for order"
                words += f" (requested: {quantity}, available: {free})"
                raise ApiError(403, 40310000, words)
            return
        price = D(limit) if limit is not None else self.prices.get(symbol, D(10))
        held = sum(
            (
                (D(o["qty"]) - D(o["filled_qty"])) * D(o["limit_price"] or 0)
                for o in working
                if o["side"] == "buy"
            ),
            D(0),
        )
        if quantity * price > self.cash * int(self.multiplier) - held:
            raise ApiError(403, 40310000, "insufficient buying power")

    def _accept(self, wanted: dict[str, Any], client: str | None) -> dict[str, Any]:
        name = str(uuid4())
        client = client or str(uuid4())
        order = {
            "id": name,
            "client_order_id": client,
            "created_at": _text(self.time()),
            "submitted_at": _text(self.time()),
            "symbol": wanted["symbol"],
            "qty": wanted["qty"],
            "filled_qty": "0",
            "filled_avg_price": None,
            "side": wanted["side"],
            "type": wanted["type"],
            "order_type": wanted["type"],
            "time_in_force": wanted.get("time_in_force", "day"),
            "limit_price": wanted.get("limit_price"),
            "status": "accepted",
            "legs": None,
        }
        self.orders[name] = order
        self.by_client[client] = name
        return order

    def _cancel(self, order: dict[str, Any]) -> tuple[int, Any]:
        status = order["status"]
        if status == "filled":
            raise ApiError(422, 42210000, 'order is already in "filled" state')
        if status == "pending_cancel":
            raise ApiError(422, 42210000, "order pending cancel")
        if status not in ENDED:
            order["status"] = "pending_cancel" if self.stuck_cancels else "canceled"
        return 204, None

    # --- faults -----------------------------------------------------------------------------------

    def plan(self, fault: Fault, what: str = "POST /v2/orders") -> None:
        """Let the next request whose method and path begin with `what` meet a fault."""
        self.planned.append((what, fault))

    def fault_for(self, method: str, path: str) -> Fault | None:
        """The fault of this request; None: it is answered."""
        with self.lock:
            for at, (what, fault) in enumerate(self.planned):
                if f"{method} {path}".startswith(what):
                    del self.planned[at]
                    self.faults_made[fault] = self.faults_made.get(fault, 0) + 1
                    return fault
            rate = self.fault_rate if method != "GET" else self.fault_rate / 10
            if self.faults_left <= 0 or self.chance.random() >= rate:
                return None
            self.faults_left -= 1
            fault = self.chance.choice(READS if method == "GET" else WRITES)
            if fault is Fault.LATE and method != "POST":
                fault = Fault.LOST
            self.faults_made[fault] = self.faults_made.get(fault, 0) + 1
            return fault

    def accept_later(self, body: bytes) -> None:
        """Take an order some time after its sender heard of an error."""
        with self.lock:
            self._late.append((time.monotonic() + self.late_s, json.loads(body)))

    def _accept_late(self, *, all_of_them: bool = False) -> None:
        due = [it for it in self._late if all_of_them or it[0] <= time.monotonic()]
        self._late = [it for it in self._late if it not in due]
        for _, wanted in due:
            client = wanted["client_order_id"]
            try:
                self._require(wanted, client)
            except ApiError:
                continue  # the sender was faster
            self._accept(wanted, client)

    def requested(self, method: str, path: str, body: bytes) -> None:
        """Note a request, and take what was late."""
        with self.lock:
            self.calls.append(f"{method} {path}")
            if (method, path) == ("POST", "/v2/orders") and body.startswith(b"{"):
                client = json.loads(body).get("client_order_id", "")
                self.posts[client] = self.posts.get(client, 0) + 1
            self._accept_late()


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def cents(amount: Decimal) -> Decimal:
    """An amount in whole cents, halves to even."""
    return amount.quantize(D("0.01"), ROUND_HALF_EVEN)


class _Requests(KeptConnections, BaseHTTPRequestHandler):
    host: PaperHost

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_PATCH(self) -> None:
        self._serve("PATCH")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def _serve(self, method: str) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.host.requested(method, parts.path, body)
        for what, (status, kind, text) in self.host.says.items():
            if f"{method} {parts.path}".startswith(what):
                to = f"{self.host.url}/elsewhere"
                self._write(status, text.encode(), {"Content-Type": kind, "Location": to})
                return
        fault = self.host.fault_for(method, parts.path)
        if fault is Fault.RESET:
            drop(self.connection)
            self.close_connection = True
            return
        if fault is Fault.LATE:
            self.host.accept_later(body)
        if fault in {Fault.LATE, Fault.BROKEN}:
            self._write(500, b'{"code":50010000,"message":"internal server error occurred"}')
            return
        if fault is Fault.BUSY:
            reset = str(int(self.host.wall()) + 1)
            self._write(429, b'{"message":"too many requests."}', {"X-RateLimit-Reset": reset})
            return
        status, answer = self._answered(method, parts.path, query, body)
        text = b"" if status == 204 else json.dumps(answer).encode()
        match fault:
            case Fault.LOST:
                drop(self.connection)
                self.close_connection = True
            case Fault.HANG:
                time.sleep(self.host.hang_s)
                self.close_connection = True
            case Fault.HTML:
                self._write(200, HTML, {"Content-Type": "text/html"})
            case Fault.CUT:
                self._write(status, text[: len(text) // 2], length=len(text))
                self.close_connection = True
            case _:
                self._write(status, text)

    def _answered(
        self, method: str, path: str, query: dict[str, str], body: bytes
    ) -> tuple[int, Any]:
        keys = self.headers.get("APCA-API-KEY-ID"), self.headers.get("APCA-API-SECRET-KEY")
        if keys != self.host.keys or self.host.deleted:
            return 401, {"code": 40110000, "message": "request is not authorized"}
        if path in self.host.instead:
            return 200, self.host.instead[path]
        try:
            return self.host.answer(method, path, query, body)
        except ApiError as error:
            return error.status, error.body

    def _write(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        told = {"Content-Type": "application/json", **(headers or {})}
        told |= {"X-RateLimit-Limit": "200", "X-RateLimit-Remaining": "199"}
        try:
            self.send_response(status)
            for name, value in told.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # who asked has gone


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        """Who asked may go away at any time."""


@contextmanager
def paper_host(host: PaperHost) -> Iterator[PaperHost]:
    """The host on a port of loopback, while the block lasts."""
    handler = type("Requests", (_Requests,), {"host": host})
    server = _Server(("127.0.0.1", 0), handler)
    host.url = f"http://127.0.0.1:{server.server_port}"
    with served(server):
        yield host
