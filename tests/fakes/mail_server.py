"""A mail server over loopback: SMTP with STARTTLS and a login, and the refusals of real ones."""

import base64
import email
import email.policy
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path

from tests.fakes.served import served

USER, PASSWORD = "desk", "a-password"
WAIT_S = 60.0


@dataclass
class MailServer:
    """The server: each reply may be another than the good one, as long as it is set."""

    port: int = 0
    greeting: str = "220 smtp.example.org ESMTP"
    is_encrypted: bool = True
    has_login: bool = True
    login: str = ""
    sender: str = ""
    recipient: str = ""
    data: str = ""
    message: str = ""
    breaks_off: bool = False
    """Whether the connection is gone once the message is there, before an answer."""
    taken: list[EmailMessage] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """All that was said to it but messages and logins."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def took(self, message: EmailMessage) -> None:
        with self.changed:
            self.taken.append(message)
            self.changed.notify_all()

    def wait(self, count: int) -> None:
        """Wait until it has taken so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.taken) >= count, WAIT_S), self.lines


@contextmanager
def mail_server(certificate: tuple[Path, Path]) -> Iterator[MailServer]:
    """A server of its own while the block runs."""
    state = MailServer()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    class Handler(socketserver.StreamRequestHandler):
        timeout = WAIT_S

        def handle(self) -> None:
            # The client has gone, as it does where it does not trust the certificate.
            with suppress(OSError):
                _Talk(state, self, context).run()

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.port = server.server_address[1]
    with served(server):
        yield state


class _Talk:
    """One connection."""

    def __init__(
        self,
        state: MailServer,
        handler: socketserver.StreamRequestHandler,
        context: ssl.SSLContext,
    ) -> None:
        self._state = state
        self._context = context
        self._socket = handler.request
        self._file = self._socket.makefile("rb")
        self._is_secure = self._is_known = False

    def run(self) -> None:
        state = self._state
        self._say(state.greeting)
        if not state.greeting.startswith("220"):
            return
        while line := self._hear():
            verb = line.split(maxsplit=1)[0].upper() if line.strip() else ""
            if verb != "AUTH":
                state.lines.append(line)
            if verb == "QUIT":
                self._say("221 2.0.0 bye")
                return
            if verb == "STARTTLS":
                self._secure()
            elif verb == "DATA":
                if not self._take():
                    return
            else:
                self._say(self._reply(verb, line))

    def _reply(self, verb: str, line: str) -> str:
        state = self._state
        match verb:
            case "EHLO":
                offers = ["smtp.example.org", "SMTPUTF8"]
                offers += [] if self._is_secure or not state.is_encrypted else ["STARTTLS"]
                offers += ["AUTH PLAIN"] if self._is_secure and state.has_login else []
                return "\r\n".join(
                    [*(f"250-{offer}" for offer in offers), "250 ENHANCEDSTATUSCODES"]
                )
            case "AUTH":
                known = base64.b64encode(f"\0{USER}\0{PASSWORD}".encode()).decode()
                self._is_known = line.rsplit(maxsplit=1)[-1] == known and not state.login
                wrong = state.login or "535 5.7.8 Username and Password not accepted"
                return "235 2.7.0 welcome" if self._is_known else wrong
            case "MAIL":
                return state.sender or (
                    "250 2.1.0 ok" if self._is_known else "530 5.7.0 Authentication Required"
                )
            case "RCPT":
                return state.recipient or "250 2.1.5 ok"
            case "RSET" | "NOOP":
                return "250 2.0.0 ok"
            case _:
                return "502 5.5.2 command not recognized"

    def _secure(self) -> None:
        self._say("220 2.0.0 ready to start TLS")
        self._socket = self._context.wrap_socket(self._socket, server_side=True)
        self._file = self._socket.makefile("rb")
        self._is_secure = True

    def _take(self) -> bool:
        """Take a message; whether the talk goes on."""
        state = self._state
        if state.data:
            self._say(state.data)
            return True
        self._say("354 go on")
        lines: list[bytes] = []
        while (line := self._file.readline()) not in {b".\r\n", b""}:
            lines.append(line[1:] if line.startswith(b".") else line)
        if state.breaks_off:
            return False
        if state.message:
            self._say(state.message)
            return True
        text = b"".join(lines)
        message = email.message_from_bytes(text, EmailMessage, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        state.took(message)
        self._say("250 2.0.0 queued")
        return True

    def _hear(self) -> str:
        return str(self._file.readline().decode())

    def _say(self, reply: str) -> None:
        self._socket.sendall(f"{reply}\r\n".encode())
