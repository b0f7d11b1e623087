"""The answers of servers to one call, whichever of Apprise's plugins made it.

Apprise says whether a message was taken, and no more. So the answer is read off the two
classes through which its plugins speak: requests' adapter for HTTP, and its own connection to a
mail server. Both are as they were for every other thread.
"""

import contextvars
import smtplib
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests
import requests.adapters
import urllib3
from apprise.plugins.email import base as mail
from apprise.plugins.email.smtp import SMTP_EXCEPTIONS, AppriseSMTPController

from libs.runtime.proxies import ProxyUnusable, proxy_for

ANSWER_BYTES_MAX = 64 * 1024
"""Of an answer; what is behind that is not read."""
ANSWER_S = 30.0
"""How long a body is read, also byte by byte; what came by then is the answer."""
TOO_MANY_REQUESTS = 429
PROXY = "proxy"
"""The code of a request that did not get through the proxy."""
SMTP_FOR_GOOD = 500
"""From this reply code on a mail server says no for good; below it, not now."""


@dataclass
class Heard:
    """The last answer to one call: an HTTP server's status, wait and body, or the code of what went
    wrong instead; `refused` where a mail server refused the message as such."""

    status: int | None = None
    retry_after: str | None = None
    body: bytes = b""
    error: str = ""
    refused: bool = False


_heard: contextvars.ContextVar[Heard | None] = contextvars.ContextVar("heard", default=None)


@contextmanager
def listening() -> Iterator[Heard]:
    """Hear what is answered to this thread while the block runs."""
    # Each of requests' sessions, and each of Apprise's mails, takes the class by this name.
    requests.sessions.HTTPAdapter = ObservedAdapter  # type: ignore[attr-defined]
    mail.AppriseSMTPController = ObservedMail  # type: ignore[attr-defined]
    heard = Heard()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


class ObservedAdapter(requests.adapters.HTTPAdapter):
    """requests' adapter, but that a call of ours sees what was answered, and that proxies are used
    as libs.runtime.proxies says."""

    def send(
        self, request: requests.PreparedRequest, *args: Any, **kwargs: Any
    ) -> requests.Response:
        """Send a request."""
        heard = _heard.get()
        try:
            kwargs["proxies"] = _proxies(str(request.url))
        except ProxyUnusable as error:
            if heard is not None:
                heard.error = PROXY
            raise requests.exceptions.ProxyError(error.message) from error
        if heard is None:
            return super().send(request, *args, **kwargs)
        if heard.status == TOO_MANY_REQUESTS:
            # Discord's plugin tries again at once. The server has just asked for the contrary.
            raise requests.exceptions.ConnectionError("the server asked for a wait")
        try:
            response = super().send(request, *args, **kwargs)
            body = _beginning(response)
        except requests.exceptions.SSLError:
            heard.error = "tls"
            raise
        except requests.exceptions.Timeout:
            heard.error = "timeout"
            raise
        except requests.exceptions.RequestException:
            heard.error = PROXY if kwargs["proxies"] else "unreachable"
            raise
        except OSError as error:  # the certificates of REQUESTS_CA_BUNDLE cannot be read
            heard.error = "tls"
            raise requests.exceptions.SSLError("no authorities") from error
        heard.status, heard.body, heard.error = response.status_code, body, ""
        heard.retry_after = response.headers.get("Retry-After")
        return response


def _proxies(url: str) -> dict[str, str]:
    proxy = proxy_for(url)
    return {} if proxy is None else {"all": proxy.url}


def _beginning(response: requests.Response) -> bytes:
    """The beginning of an answer's body, which is then all that there is of it."""
    body, ends = b"", time.monotonic() + ANSWER_S
    try:
        while len(body) < ANSWER_BYTES_MAX and time.monotonic() < ends:
            piece = response.raw.read1(ANSWER_BYTES_MAX - len(body), decode_content=True)
            if not piece:
                break
            body += piece
    except urllib3.exceptions.HTTPError:
        raise requests.exceptions.ConnectionError("its answer broke off") from None
    response._content = body  # noqa: SLF001 - or requests would read on
    return body


class ObservedMail(AppriseSMTPController):
    """Apprise's connection to a mail server, but that a call of ours sees why it failed."""

    def __enter__(self) -> AppriseSMTPController:
        """Connect, secure the connection, log in."""
        try:
            return super().__enter__()
        except SMTP_EXCEPTIONS as error:
            _hear(error)
            raise

    def sendmail(self, from_addr: str, to_addrs: list[str], message: str) -> bool:
        """Send one mail; whether it was taken."""
        try:
            refused = self._socket.sendmail(from_addr, to_addrs, message)  # type: ignore[attr-defined]
        except SMTP_EXCEPTIONS as error:
            _hear(error)
            return False
        return not refused


def _hear(error: Exception) -> None:
    heard = _heard.get()
    if heard is not None:
        heard.error = mail_code(error)
        heard.refused = isinstance(error, smtplib.SMTPDataError) and _is_for_good(error)


def _is_for_good(error: smtplib.SMTPResponseException) -> bool:
    return error.smtp_code >= SMTP_FOR_GOOD


def mail_code(error: Exception) -> str:  # noqa: PLR0911 - a table of errors, the special ones first
    """The code of what went wrong with a mail: whose fault it was, and the server's reply code."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return _with_reply("login", error.smtp_code)
        case smtplib.SMTPSenderRefused():
            return _with_reply("sender", error.smtp_code)
        case smtplib.SMTPDataError():
            return _with_reply("message", error.smtp_code)
        case smtplib.SMTPRecipientsRefused():
            return _with_reply("recipient", next(iter(error.recipients.values()))[0])
        case smtplib.SMTPResponseException():
            return _with_reply("server", error.smtp_code)
        case smtplib.SMTPNotSupportedError() if "STARTTLS" in str(error):
            return "smtp_no_tls"
        case smtplib.SMTPServerDisconnected():
            return "unreachable"
        case smtplib.SMTPException():
            return "smtp_no_login"
        case ssl.SSLError():
            return "tls"
        case TimeoutError():
            return "timeout"
        case _:
            return "unreachable"


def _with_reply(part: str, code: int) -> str:
    """`smtp_recipient_550`; a code of -1 is smtplib's for a connection that broke off."""
    return f"smtp_{part}_{code}" if code > 0 else "unreachable"
