"""How a browser is let in: the token is given once, and a cookie that does not hold it remembers.

A cookie is `expires.nonce.mac`, signed with a key that is made from the token. So every console of
a desk knows it, also after a restart, and another token ends all sessions. One that was ended by
its owner is refused until it would have expired, by the process that ended it.
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie

from libs.web.problem import Refused

COOKIE = "deskbus_session"
KEY_FOR = b"deskbus console session 1"
NONCE_BYTES = 16
TRIES_MAX = 10
"""Wrong tokens of one caller within `TRIES_S`; after that he is told to wait. The right one is let
in at any time: others may come from the same address, and no number of tries finds it."""
TRIES_S = 60.0
CALLERS_MAX = 1_000
"""Callers whose tries are remembered; the one that was heard of longest ago is forgotten."""
ENDED_MAX = 10_000
"""Ended sessions that are remembered."""


class Sessions:
    """Who has given the token. `port` keeps apart two desks of one host name, for cookies do not.

    `now` is the time in seconds since the epoch.
    """

    def __init__(self, token: str, port: int, lifetime_s: float, now: Callable[[], float]) -> None:
        self._token = token.encode()
        self._key = hmac.digest(self._token, KEY_FOR, hashlib.sha256)
        self._now = now
        self._ended: OrderedDict[str, float] = OrderedDict()
        self._tries: OrderedDict[str, deque[float]] = OrderedDict()
        self.lifetime_s = lifetime_s
        self.cookie = f"{COOKIE}_{port}"

    def begin(self, token: str, caller: str) -> str:
        """A new session's cookie for whoever gives the token. Raises `Refused` (401, 429).

        `caller` is where the request came from: whoever is wrong there too often is told so.
        """
        if hmac.compare_digest(token.strip().encode(), self._token):
            signed = f"{int(self._now() + self.lifetime_s)}.{secrets.token_hex(NONCE_BYTES)}"
            return f"{signed}.{self._mac(signed)}"
        wrong = self._wrong_of(caller)
        if len(wrong) >= TRIES_MAX:
            seconds = max(int(wrong[0] + TRIES_S - self._now()) + 1, 1)
            text = f"{TRIES_MAX} wrong tokens within {TRIES_S:g} s; try again in {seconds} s"
            headers = {"Retry-After": str(seconds)}
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "too_many_tries", text, headers=headers)
        wrong.append(self._now())
        text = "this is not the token that was set for this desk (DESKBUS_HTTP_TOKEN)"
        raise Refused(HTTPStatus.UNAUTHORIZED, "unauthorized", text, field="token")

    def holds(self, cookies: str) -> bool:
        """True where a Cookie header bears a session that goes on."""
        return self._session(cookies) is not None

    def end(self, cookies: str) -> None:
        """End the session that the header bears, if there is one."""
        session = self._session(cookies)
        if session is None:
            return
        self._ended[session] = self._now()
        while len(self._ended) > ENDED_MAX:
            self._ended.popitem(last=False)

    def _session(self, cookies: str) -> str | None:
        """The signed part of the cookie, where that is right and in time."""
        try:
            morsel = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return None
        signed, _, mac = (morsel.value if morsel else "").rpartition(".")
        if not hmac.compare_digest(self._mac(signed).encode(), mac.encode()):
            return None
        expires = int(signed.partition(".")[0])
        return signed if self._now() < expires and signed not in self._ended else None

    def _mac(self, signed: str) -> str:
        return hmac.new(self._key, signed.encode(), hashlib.sha256).hexdigest()

    def _wrong_of(self, caller: str) -> deque[float]:
        """The caller's wrong tokens of late."""
        wrong = self._tries.setdefault(caller, deque())
        self._tries.move_to_end(caller)
        while len(self._tries) > CALLERS_MAX:
            self._tries.popitem(last=False)
        while wrong and wrong[0] <= self._now() - TRIES_S:
            wrong.popleft()
        return wrong
