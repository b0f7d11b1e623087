"""Mail through Apprise's own plugin, over SMTP with STARTTLS, to a server of the test's own."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from libs.channels.apprise import AppriseChannel
from libs.channels.channel import Failed, Message, Outcome, Sent
from libs.report.notify import channels
from libs.runtime.ports import choose_port
from tests.fakes.internet import Authority, authority, names_lead_to
from tests.fakes.mail_server import PASSWORD, MailServer, mail_server

ADDRESS = f"mailtos://desk:{PASSWORD}@example.org?smtp=smtp.example.org&to=you@example.org"
MESSAGE = Message("Alarm: A <b>title</b> — שלום", "first *line*\n.\nfrom a 🚀\n" + "x" * 1_200, ())


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def server(ours: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with mail_server(ours.certificate) as running:
        names_lead_to(monkeypatch, mail=running.port)
        ours.is_trusted(monkeypatch)
        yield running


async def sent(address: str = ADDRESS, message: Message = MESSAGE) -> Outcome:
    channel = AppriseChannel("mail", SecretStr(address), 20.0)
    try:
        return await channel.send(message)
    finally:
        await channel.close()


async def test_a_mail_reaches_its_reader_as_plain_text(server: MailServer) -> None:
    assert await sent() == Sent()
    (mail,) = server.taken
    assert mail["Subject"] == MESSAGE.title
    assert mail["To"] == "you@example.org"
    assert mail.get_content_type() == "text/plain"
    assert mail.get_content().replace("\r\n", "\n").rstrip("\n") == MESSAGE.body
    assert [line.split()[0].upper() for line in server.lines[:3]] == ["EHLO", "STARTTLS", "EHLO"]


@pytest.mark.parametrize(
    ("part", "reply", "code", "says"),
    [
        ("login", "535 5.7.8 Username and Password not accepted", "smtp_login_535", "password"),
        ("login", "454 4.7.0 Temporary authentication failure", "smtp_login_454", "tried again"),
        ("sender", "553 5.7.1 Sender address rejected", "smtp_sender_553", "`from`"),
        ("sender", "451 4.3.0 try again", "smtp_sender_451", "tried again"),
        ("recipient", "550 5.1.1 User unknown", "smtp_recipient_550", "`to`"),
        ("recipient", "450 4.2.0 Greylisted", "smtp_recipient_450", "tried again"),
        ("recipient", "451 4.7.1 Greylisting in action", "smtp_recipient_451", "tried again"),
        ("data", "451 4.3.0 try again", "smtp_message_451", "tried again"),
        ("greeting", "421 4.3.2 too busy", "smtp_server_421", "everybody"),
        ("greeting", "554 5.3.2 no service here", "smtp_server_554", "everybody"),
    ],
)
async def test_a_person_sees_whether_password_sender_recipient_or_server_is_at_fault(
    part: str, reply: str, code: str, says: str, server: MailServer
) -> None:
    setattr(server, part, reply)
    assert await sent() == Failed(code, refused=False)
    assert says in channels.todo(code)
    assert server.taken == []
    setattr(server, part, "" if part != "greeting" else "220 here again")
    assert await sent() == Sent(), "once that is put right"


async def test_a_wrong_password_is_told_as_that(server: MailServer) -> None:
    assert await sent(ADDRESS.replace(PASSWORD, "another")) == Failed("smtp_login_535")


@pytest.mark.parametrize("reply", ["552 5.3.4 Message too big", "554 5.7.1 rejected as spam"])
async def test_a_mail_that_the_server_does_not_take_for_what_it_is_is_refused(
    reply: str, server: MailServer
) -> None:
    server.message = reply
    assert await sent() == Failed(f"smtp_message_{reply[:3]}", refused=True)
    assert channels.todo("smtp_message_552").startswith("the mail server refuses the mail")


async def test_a_server_without_encryption_gets_neither_password_nor_mail(
    server: MailServer,
) -> None:
    server.is_encrypted = False
    assert await sent() == Failed("smtp_no_tls")
    assert not any(line.startswith("MAIL") for line in server.lines)


async def test_a_server_without_a_login_is_told_as_that(server: MailServer) -> None:
    server.has_login = False
    assert await sent() == Failed("smtp_no_login")


async def test_a_certificate_that_nobody_vouches_for_gets_neither_password_nor_mail(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    assert await sent() == Failed("tls")
    assert server.taken == []


async def test_a_certificate_of_another_name_is_refused(
    ours: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = authority(tmp_path)
    with mail_server(other.certificate) as running:
        ours.is_trusted(monkeypatch)
        names_lead_to(monkeypatch, mail=running.port)
        assert await sent() == Failed("tls")


async def test_a_server_that_is_gone_is_unreachable(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names_lead_to(monkeypatch, mail=choose_port(None, set()))
    assert await sent() == Failed("unreachable")


async def test_a_connection_that_breaks_off_behind_the_mail_counts_as_not_sent(
    server: MailServer,
) -> None:
    server.breaks_off = True
    assert await sent() == Failed("unreachable")


async def test_no_log_line_holds_the_password_or_who_is_written_to(
    server: MailServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    for reply in ("", "550 5.1.1 you@example.org unknown"):
        server.recipient = reply
        said = repr(await sent())
        shown = [said, caplog.text, *capfd.readouterr()]
        assert not any(PASSWORD in text or "you@example" in text for text in shown)


async def test_a_mail_does_not_hold_up_the_desk(server: MailServer) -> None:
    """It is sent by a thread of its channel."""
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(beat())
    assert await sent() == Sent()
    beating.cancel()
    assert beats > 10
