"""The certificate of HTTP, looked at when it is first shown and once a day from then on."""

import asyncio
import ssl
from datetime import timedelta

import structlog

from libs.keys.validity import RENEW, certificate_in, now_utc, problem_of
from libs.runtime.http_address import Certificate

EVERY_S = timedelta(days=1).total_seconds()

log = structlog.get_logger()


def context_of(certificate: Certificate) -> ssl.SSLContext:
    """The server's side of TLS. A certificate that no client will take is logged as an error, and
    shown all the same: the desk can be halted by whoever looks past it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, certificate)
    return context


async def kept_fresh(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Once a day take what the files then hold for new connections, and look at it, for ever."""
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            _load(context, certificate)
        except OSError as error:  # ssl.SSLError among them
            why = f"{certificate.file} cannot be read ({error}); the one before is shown"
            log.error("http.certificate", why=why, todo=RENEW)  # noqa: TRY400 - `why` says all


def _load(context: ssl.SSLContext, certificate: Certificate) -> None:
    context.load_cert_chain(certificate.file, certificate.key_file)
    why = problem_of(certificate_in(certificate.file), None, now_utc())
    if why:
        log.error("http.certificate", file=str(certificate.file), why=why, todo=RENEW)
