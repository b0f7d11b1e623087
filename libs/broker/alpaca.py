"""Alpaca's paper accounts over HTTP. Only this module knows the host, and only execution imports
it.

The key goes to one address: Alpaca's paper host over https, or a stand-in on this machine. No
redirect is followed, no proxy of the environment is used, and every answer is bounded. Built from
Alpaca's public description; the real service was never met.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx2
import orjson

from contracts.account import Side
from libs.broker.venue import (
    Activities,
    CancelNoted,
    MoveCause,
    NoSuchOrder,
    Ticket,
    UnclearAnswer,
    VenueAccount,
    VenueFill,
    VenueMove,
    VenueOrder,
    VenueRefusal,
)
from libs.runtime.key_pair import KeyPair, only_to
from libs.runtime.outgoing import BoundedClient, client_tls

NAME: Final = "alpaca-paper"
HOST: Final = "paper-api.alpaca.markets"
URL_SETTING: Final = "DESKBUS_ALPACA_TRADING_URL"
ANSWER_BYTES_MAX = 4_000_000
ANSWER_S_MAX = 15.0
"""The whole of one answer. A row's lease is longer."""
PAGE = 100
"""Activities a page: the most that Alpaca gives."""
PAGES_MAX = 200
ORDERS_PAGE = 500
KEY_BYTES_MAX = 4_000
WORDS_MAX = 500
WAIT_S_MAX = 60.0
DUPLICATE: Final = 40010001
REFUSALS: Final = frozenset({400, 401, 403, 422})
"""With a body in JSON they say no; anything else says nothing."""
_ENDS: Final = frozenset({"filled", "canceled", "expired", "rejected", "replaced"})
"""Statuses of an order that is over."""
_CAUSES: Final[Mapping[str, MoveCause]] = {
    **dict.fromkeys(("FEE", "CFEE", "PTC", "PTR", "DIVFEE"), MoveCause.FEE),
    **dict.fromkeys(("INT", "INTNRA", "INTTW"), MoveCause.INTEREST),
    **dict.fromkeys(("CSD", "CSW", "JNL", "JNLC", "ACATC", "TRANS"), MoveCause.TRANSFER),
    **dict.fromkeys(("SPLIT", "FSPLIT", "RSPLIT"), MoveCause.SPLIT),
    "CGD": MoveCause.DIVIDEND,
}

T = TypeVar("T")


class _Unreadable(Exception):
    """An answer is not what Alpaca documents."""


class AlpacaPaper:
    """A paper account at Alpaca, by the key of that account. `url` is a stand-in's on this machine.
    Raises KeyPairUnusable for another address."""

    def __init__(
        self, key: KeyPair, url: str | None = None, answer_s_max: float = ANSWER_S_MAX
    ) -> None:
        self._url = only_to(HOST, url, URL_SETTING)
        self._answer_s_max = answer_s_max
        self._key = key
        tls = client_tls()
        self._http = BoundedClient(
            ANSWER_BYTES_MAX,
            tls=tls,
            transport=httpx2.AsyncHTTPTransport(verify=tls, trust_env=False),
            trust_env=False,
            timeout=answer_s_max,
        )
        self._rate_left = ""

    @property
    def name(self) -> str:
        """Its name in terms and bindings."""
        return NAME

    @property
    def masked_key(self) -> str:
        """The key's id as people may see it."""
        return self._key.masked

    @property
    def host(self) -> str:
        """Where requests go."""
        return self._url

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def submit(self, ticket: Ticket) -> VenueOrder | VenueRefusal | UnclearAnswer:
        """Send an order."""
        found = await self._ask("POST", "/v2/orders", body=body_of(ticket))
        if isinstance(found, UnclearAnswer):
            return found
        status, answer = found
        if status == 200:
            order = _read(_order, answer)
            if isinstance(order, UnclearAnswer) or order.client_id == ticket.client_id:
                return order
            return UnclearAnswer("the answer is about an order of another id")
        return _refusal(status, answer)

    async def find(self, client_id: str) -> VenueOrder | NoSuchOrder | UnclearAnswer:
        """The order of a client id."""
        path = f"/v2/orders:by_client_order_id?client_order_id={quote(client_id, safe='')}"
        order = await self._one(path)
        if isinstance(order, VenueOrder) and order.client_id != client_id:
            return UnclearAnswer("the answer is about an order of another id")
        return order

    async def order(self, broker_id: str) -> VenueOrder | NoSuchOrder | UnclearAnswer:
        """The order of the broker's own id."""
        order = await self._one(f"/v2/orders/{quote(broker_id, safe='')}")
        if isinstance(order, VenueOrder) and order.broker_id != broker_id:
            return UnclearAnswer("the answer is about an order of another id")
        return order

    async def _one(self, path: str) -> VenueOrder | NoSuchOrder | UnclearAnswer:
        found = await self._ask("GET", path)
        if isinstance(found, UnclearAnswer):
            return found
        status, answer = found
        if status == 200:
            return _read(_order, answer)
        if status == 404 and isinstance(answer, Mapping) and "message" in answer:
            return NoSuchOrder()
        return UnclearAnswer(f"HTTP {status}: {_words(answer)}")

    async def cancel(self, broker_id: str) -> CancelNoted | VenueRefusal | UnclearAnswer:
        """Ask for a cancel. The order counts as cancelled only once it is seen so."""
        found = await self._ask("DELETE", f"/v2/orders/{quote(broker_id, safe='')}")
        if isinstance(found, UnclearAnswer):
            return found
        status, answer = found
        return CancelNoted() if status == 204 else _refusal(status, answer)

    async def open_orders(self) -> tuple[VenueOrder, ...] | UnclearAnswer:
        """All orders that are not over, whoever sent them, with their legs; complete."""
        found: dict[str, VenueOrder] = {}
        last = ""
        for _ in range(PAGES_MAX):
            path = f"/v2/orders?status=open&limit={ORDERS_PAGE}&direction=asc&nested=true"
            page = await self._list(path + (f"&after_order_id={last}" if last else ""))
            if isinstance(page, UnclearAnswer):
                return page
            orders = _read(_orders, page)
            if isinstance(orders, UnclearAnswer):
                return orders
            new = {order.broker_id: order for order in orders if order.broker_id not in found}
            found |= new
            if len(page) < ORDERS_PAGE:
                return tuple(found.values())
            if not new:
                return UnclearAnswer("the pages of open orders repeat")
            last = quote(str(page[-1].get("id", "")), safe="")
        return UnclearAnswer(f"more than {PAGES_MAX} pages of open orders")

    async def activities(self, since: datetime | None) -> Activities | UnclearAnswer:
        """What was recorded after `since`, to the last page."""
        fills: dict[str, VenueFill] = {}
        moves: dict[str, VenueMove] = {}
        seen: set[str] = set()
        token = ""
        for _ in range(PAGES_MAX):
            path = f"/v2/account/activities?direction=asc&page_size={PAGE}"
            if since is not None:
                path += f"&after={quote(_instant(since), safe='')}"
            page = await self._list(path + (f"&page_token={token}" if token else ""))
            if isinstance(page, UnclearAnswer):
                return page
            read = _read(_activities, page)
            if isinstance(read, UnclearAnswer):
                return read
            ids = [str(row.get("id", "")) for row in page]
            fills |= {fill.fill_id: fill for fill in read.fills}
            moves |= {move.move_id: move for move in read.moves}
            if len(page) < PAGE:
                return Activities(tuple(fills.values()), tuple(moves.values()))
            if seen.issuperset(ids):
                return UnclearAnswer("the pages of activities repeat")
            seen |= set(ids)
            token = quote(ids[-1], safe="")
        return UnclearAnswer(f"more than {PAGES_MAX} pages of activities")

    async def account(self) -> VenueAccount | UnclearAnswer:
        """The account, its settings and positions, and the broker's clock."""
        parts: list[Any] = []
        for path in ("account", "account/configurations", "positions", "clock"):
            found = await self._ask("GET", f"/v2/{path}")
            if isinstance(found, UnclearAnswer):
                return found
            status, answer = found
            if status != 200:
                return UnclearAnswer(f"{path}: HTTP {status}: {_words(answer)}")
            parts.append(answer)
        return _read(_account, parts, self._rate_left)

    async def restrict(self) -> VenueRefusal | UnclearAnswer | None:
        """Set long only and cash only. None once the broker has answered with both."""
        body = {"no_shorting": True, "max_margin_multiplier": "1"}
        found = await self._ask("PATCH", "/v2/account/configurations", body=body)
        if isinstance(found, UnclearAnswer):
            return found
        status, answer = found
        if status != 200:
            return _refusal(status, answer)
        left = _read(_unsafe, answer)
        if isinstance(left, UnclearAnswer):
            return left
        return VenueRefusal(f"it took the settings and still {', '.join(left)}") if left else None

    async def _list(self, path: str) -> list[Mapping[str, Any]] | UnclearAnswer:
        found = await self._ask("GET", path)
        if isinstance(found, UnclearAnswer):
            return found
        status, answer = found
        if status != 200:
            return UnclearAnswer(f"HTTP {status}: {_words(answer)}")
        if not isinstance(answer, list) or not all(isinstance(row, Mapping) for row in answer):
            return UnclearAnswer("the answer is not a list")
        return answer

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, Any] | UnclearAnswer:
        """Status and JSON of an answer (None for 204), or why there is none."""
        headers = {
            "APCA-API-KEY-ID": self._key.key_id.get_secret_value(),
            "APCA-API-SECRET-KEY": self._key.secret.get_secret_value(),
            "Accept": "application/json",
        }
        try:
            async with asyncio.timeout(self._answer_s_max):
                answer = await self._http.request(
                    method, self._url + path, headers=headers, json=body
                )
        except TimeoutError:
            return UnclearAnswer(f"no answer within {self._answer_s_max:g} s")
        except httpx2.HTTPError as error:
            return UnclearAnswer(f"{type(error).__name__}: {error}"[:WORDS_MAX])
        left = answer.headers.get("X-RateLimit-Remaining", "")
        if left:
            self._rate_left = f"{left} of {answer.headers.get('X-RateLimit-Limit', '?')}"[:40]
        return _understood(answer)


def _understood(answer: httpx2.Response) -> tuple[int, Any] | UnclearAnswer:
    status = answer.status_code
    if status == 429:
        return UnclearAnswer("HTTP 429: too many requests", _wait_s(answer.headers))
    if status >= 500:
        return UnclearAnswer(f"HTTP {status}")
    if status == 204:
        return status, None
    try:
        return status, orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return UnclearAnswer(f"HTTP {status}, and no JSON")


def body_of(ticket: Ticket) -> dict[str, str]:
    """An order as Alpaca is sent it."""
    limit = {} if ticket.limit_price is None else {"limit_price": f"{ticket.limit_price:f}"}
    return {
        "client_order_id": ticket.client_id,
        "symbol": ticket.ticker,
        "side": ticket.side.value,
        "type": "market" if ticket.limit_price is None else "limit",
        "time_in_force": "day",
        "qty": f"{ticket.quantity:f}",
        **limit,
    }


def _refusal(status: int, answer: Any) -> VenueRefusal | UnclearAnswer:
    """A refusal in the broker's words; UnclearAnswer where the answer does not prove one."""
    if status not in REFUSALS or not isinstance(answer, Mapping) or "message" not in answer:
        return UnclearAnswer(f"HTTP {status}: {_words(answer)}")
    code = answer.get("code")
    return VenueRefusal(f"HTTP {status}: {_words(answer)}", is_duplicate=code == DUPLICATE)


def _words(answer: Any) -> str:
    if isinstance(answer, Mapping) and "message" in answer:
        code = f" ({answer['code']})" if "code" in answer else ""
        text = f"{answer['message']}{code}"
    else:
        text = "an answer that Alpaca does not document"
    return re.sub(r"[^\x20-\x7e]+", " ", text)[:WORDS_MAX]


def _wait_s(headers: Mapping[str, str]) -> float:
    """How long a 429 asks to wait, from `Retry-After` or `X-RateLimit-Reset`; within a minute."""
    after, reset = headers.get("Retry-After", ""), headers.get("X-RateLimit-Reset", "")
    wait_s = 1.0
    if after.isdigit():
        wait_s = float(after)
    elif reset.isdigit():
        wait_s = float(reset) - datetime.now(UTC).timestamp()
    return min(WAIT_S_MAX, max(1.0, wait_s))


def _read(read: Callable[..., T], *answer: Any) -> T | UnclearAnswer:
    """What `read` makes of an answer; UnclearAnswer where it is not what Alpaca documents."""
    try:
        return read(*answer)
    except (_Unreadable, KeyError, TypeError, ValueError, AttributeError) as error:
        return UnclearAnswer(
            f"the answer cannot be read: {type(error).__name__}: {error}"[:WORDS_MAX]
        )


def _number(value: Any, name: str) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise _Unreadable(f"{name} must be a number") from None
    if not number.is_finite() or abs(number) > Decimal(10) ** 14:
        raise _Unreadable(f"{name} is out of range")
    return number


def _token(value: Any) -> str:
    """A name or a word, as they may stand in sentences; empty for none."""
    text = "" if value is None else str(value)
    if not re.fullmatch(r"[A-Za-z0-9_./-]{0,40}", text):
        raise _Unreadable("a name that Alpaca does not document")
    return text


def _moment(value: Any) -> datetime:
    # Up to nanoseconds come; Python reads six digits of them.
    text = re.sub(r"(\.\d{6})\d+", r"\1", str(value))
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise _Unreadable("a time without a zone")
    return moment.astimezone(UTC)


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _order(row: Mapping[str, Any]) -> VenueOrder:
    quantity, limit = row.get("qty"), row.get("limit_price")
    return VenueOrder(
        broker_id=_id(row),
        client_id=_id(row, "client_order_id"),
        ticker=_token(row.get("symbol")),
        side=_token(row.get("side")),
        quantity=None if quantity is None else _number(quantity, "qty"),
        filled=_number(row.get("filled_qty") or 0, "filled_qty"),
        status=_token(_id(row, "status")),
        is_over=row["status"] in _ENDS,
        type=_token(row.get("type") or row.get("order_type")),
        limit_price=None if limit is None else _number(limit, "limit_price"),
    )


def _orders(page: Sequence[Mapping[str, Any]]) -> list[VenueOrder]:
    legs = [leg for row in page for leg in row.get("legs") or ()]
    return [_order(row) for row in (*page, *legs)]


def _activities(page: Sequence[Mapping[str, Any]]) -> Activities:
    fills = tuple(_fill(row) for row in page if row["activity_type"] == "FILL")
    moves = (_move(row) for row in page if row["activity_type"] != "FILL")
    return Activities(fills, tuple(move for move in moves if move is not None))


def _fill(row: Mapping[str, Any]) -> VenueFill:
    side = str(row["side"])
    return VenueFill(
        fill_id=_id(row),
        broker_id=_id(row, "order_id"),
        ticker=_token(row["symbol"]),
        # Where it was short already Alpaca says `sell_short`.
        side=Side.SELL if side.startswith("sell") else Side(side),
        price=_positive(row["price"], "price"),
        quantity=_positive(row["qty"], "qty"),
        at=_moment(row["transaction_time"]),
    )


def _move(row: Mapping[str, Any]) -> VenueMove | None:
    if row.get("status") == "canceled":
        return None
    word = _token(row["activity_type"])
    quantity, at = row.get("qty"), row.get("created_at") or row.get("date")
    cause = MoveCause.DIVIDEND if word.startswith("DIV") else MoveCause.OTHER
    return VenueMove(
        move_id=_id(row),
        cause=_CAUSES.get(word, cause),
        amount=_number(row.get("net_amount") or 0, "net_amount"),
        ticker=_token(row.get("symbol")),
        quantity=None if quantity is None else _number(quantity, "qty"),
        at=None if at is None else _day_or_moment(str(at)),
        word=word,
    )


def _day_or_moment(text: str) -> datetime:
    return _moment(f"{text}T12:00:00Z" if len(text) == len("2026-11-30") else text)


def _id(row: Mapping[str, Any], name: str = "id") -> str:
    text = row[name]
    if not isinstance(text, str) or not 0 < len(text) <= 200:
        raise _Unreadable(f"{name} is no text")
    return text


def _positive(value: Any, name: str) -> Decimal:
    number = _number(value, name)
    if number <= 0:
        raise _Unreadable(f"{name} is not above zero")
    return number


def _account(parts: Sequence[Any], rate_left: str) -> VenueAccount:
    account, configurations, positions, clock = parts
    blocked = [name for name in BLOCKS if account.get(name) is True]
    if configurations.get("suspend_trade") is True:
        blocked.append("suspend_trade")
    shares: dict[str, Decimal] = {}
    if not isinstance(positions, list):  # an empty object would say that nothing is held
        raise _Unreadable("positions are no list")
    for row in positions:
        quantity = _number(row["qty"], "qty")
        if row.get("side") == "short":
            quantity = -abs(quantity)
        symbol = _token(row["symbol"])
        shares[symbol] = shares.get(symbol, Decimal(0)) + quantity
    return VenueAccount(
        number=_token(_id(account, "account_number")),
        status=_token(_id(account, "status")),
        cash=_number(account["cash"], "cash"),
        currency=_token(account.get("currency") or "USD"),
        positions=shares,
        blocked=tuple(blocked),
        unsafe=tuple(_unsafe(configurations)),
        now=_moment(clock["timestamp"]),
        is_open=bool(clock["is_open"]),
        next_open=_moment(clock["next_open"]),
        rate_left=rate_left,
    )


BLOCKS: Final = ("trading_blocked", "account_blocked", "trade_suspended_by_user")


def _unsafe(configurations: Mapping[str, Any]) -> list[str]:
    """What would let the account borrow or sell short."""
    left = []
    if configurations["no_shorting"] is not True:
        left.append("may sell short (no_shorting is off)")
    multiplier = _token(configurations["max_margin_multiplier"])
    if multiplier != "1":
        left.append(f"may borrow (max_margin_multiplier is {multiplier}, not 1)")
    return left
