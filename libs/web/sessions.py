"""How a browser is let in: the token is given once, and a cookie that does not hold it remembers.

A cookie is a random value, and the console that gave it out keeps its digest. So a session ends
when it is ended, when its time is over, and when that console ends: nothing that a restart forgets
lets anybody in. Another token needs a restart, and ends all sessions.
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie

from libs.runtime.http_address import HttpRefused
from libs.web.problem import HttpProblem

COOKIE = "deskbus_session"
VALUE_BYTES = 32
TRIES_MAX = 10
"""Wrong tokens of one caller within `TRIES_S`; after that he is told to wait. The right one is let
in at any time: others may come from the same address, and no number of tries finds it."""
TRIES_S = 60.0
CALLERS_MAX = 1_000
"""Callers whose tries are remembered; the one that was heard of longest ago is forgotten."""
SESSIONS_MAX = 10_000
"""Of one console; where one more begins, the oldest ends."""


class LoginSessions:
    """Who has given the token, which may come later. `port` keeps apart two desks of one host name,
    for cookies do not.

    `now` is the time in seconds since the epoch.
    """

    def __init__(
        self,
        token: Callable[[], str | None],
        port: int,
        lifetime_s: float,
        now: Callable[[], float],
    ) -> None:
        self._token = token
        self._now = now
        self._ends: OrderedDict[bytes, float] = OrderedDict()
        self._tries: OrderedDict[str, deque[float]] = OrderedDict()
        self.lifetime_s = lifetime_s
        self.cookie = f"{COOKIE}_{port}"

    @property
    def are_needed(self) -> bool:
        """True where there is a token to give, or has to be one that cannot be read."""
        try:
            return self._token() is not None
        except HttpRefused:
            return True

    def begin(self, token: str, caller: str) -> str:
        """A new session's cookie for whoever gives the token. Raises `HttpProblem` (401, 429).

        `caller` is where the request came from: whoever is wrong there too often is told so.
        """
        right = self._token()
        if right is not None and hmac.compare_digest(token.strip().encode(), right.encode()):
            value = secrets.token_urlsafe(VALUE_BYTES)
            self._ends[_digest(value)] = self._now() + self.lifetime_s
            while len(self._ends) > SESSIONS_MAX:
                self._ends.popitem(last=False)
            return value
        wrong = self._wrong_of(caller)
        if len(wrong) >= TRIES_MAX:
            seconds = max(int(wrong[0] + TRIES_S - self._now()) + 1, 1)
            text = f"{TRIES_MAX} wrong tokens within {TRIES_S:g} s; try again in {seconds} s"
            headers = {"Retry-After": str(seconds)}
            raise HttpProblem(HTTPStatus.TOO_MANY_REQUESTS, "too_many_tries", text, headers=headers)
        wrong.append(self._now())
        text = "this is not the token that was set for this desk (DESKBUS_HTTP_TOKEN)"
        raise HttpProblem(HTTPStatus.UNAUTHORIZED, "unauthorized", text, field="token")

    def holds(self, cookies: str) -> bool:
        """True where a Cookie header bears a session that goes on."""
        return self._now() < self._ends.get(self._session(cookies), 0)

    def end(self, cookies: str) -> None:
        """End the session that the header bears, if there is one."""
        self._ends.pop(self._session(cookies), None)

    def _session(self, cookies: str) -> bytes:
        """The digest of the cookie's value; of nothing, where there is no such cookie."""
        try:
            morsel = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            morsel = None
        return _digest(morsel.value if morsel else "")

    def _wrong_of(self, caller: str) -> deque[float]:
        """The caller's wrong tokens of late."""
        wrong = self._tries.setdefault(caller, deque())
        self._tries.move_to_end(caller)
        while len(self._tries) > CALLERS_MAX:
            self._tries.popitem(last=False)
        while wrong and wrong[0] <= self._now() - TRIES_S:
            wrong.popleft()
        return wrong


def _digest(value: str) -> bytes:
    # Looked up by this, a value cannot be guessed bit by bit from the time that it takes.
    return hashlib.sha256(value.encode(errors="replace")).digest()
