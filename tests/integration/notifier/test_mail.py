"""Mail through Apprise's own plugin, over SMTP with STARTTLS, to a server of the test's own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from libs.channels import apprise_child
from libs.channels.apprise import AppriseChannel
from libs.channels.channel import REFUSALS, ChannelMessage, SendOutcome
from libs.runtime.ports import choose_port
from tests.fakes.internet import Authority, authority, names_lead_to
from tests.fakes.mail_server import PASSWORD, MailServer, mail_server

ADDRESS = f"mailtos://desk:{PASSWORD}@example.org?smtp=smtp.example.org&to=you@example.org"
MESSAGE = ChannelMessage(
    "Alarm: A <b>title</b> — שלום", "first *line*\n.\nfrom a 🚀\n" + "x" * 1_200, ()
)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def server(ours: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with mail_server(ours.certificate) as running:
        names_lead_to(monkeypatch, mail=running.port)
        ours.is_trusted(monkeypatch)
        yield running


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apprise is called in a thread: a child process would not see the names of these tests."""

    async def call(request: dict[str, str], _: float) -> dict[str, Any]:
        return await asyncio.to_thread(apprise_child.answer, request)

    monkeypatch.setattr("libs.channels.apprise._call", call)


async def sent(address: str = ADDRESS, message: ChannelMessage = MESSAGE) -> SendOutcome:
    channel = await AppriseChannel.opened("mail", SecretStr(address), 20.0)
    return await channel.send(message)


async def test_a_mail_reaches_its_reader_as_plain_text(server: MailServer) -> None:
    assert await sent() == SendOutcome()
    (mail,) = server.taken
    assert mail["Subject"] == MESSAGE.title
    assert mail["To"] == "you@example.org"
    assert mail.get_content_type() == "text/plain"
    assert mail.get_content().replace("\r\n", "\n").rstrip("\n") == MESSAGE.body
    assert [line.split()[0].upper() for line in server.lines[:3]] == ["EHLO", "STARTTLS", "EHLO"]


@pytest.mark.parametrize(
    ("part", "reply", "code"),
    [
        ("login", "535 5.7.8 Username and Password not accepted", "smtp_535"),
        ("login", "454 4.7.0 Temporary authentication failure", "smtp_454"),
        ("sender", "553 5.7.1 Sender address rejected", "smtp_553"),
        ("recipient", "550 5.1.1 User unknown", "smtp_550"),
        ("recipient", "451 4.7.1 Greylisting in action", "smtp_451"),
        ("data", "451 4.3.0 try again", "smtp_451"),
        ("greeting", "421 4.3.2 too busy", "smtp_421"),
    ],
)
async def test_the_reply_of_the_mail_server_is_the_code(
    part: str, reply: str, code: str, server: MailServer
) -> None:
    setattr(server, part, reply)
    assert await sent() == SendOutcome(code)
    assert server.taken == []
    setattr(server, part, "" if part != "greeting" else "220 here again")
    assert await sent() == SendOutcome(), "once that is put right"


async def test_a_wrong_password_is_told_as_that(server: MailServer) -> None:
    assert await sent(ADDRESS.replace(PASSWORD, "another")) == SendOutcome("smtp_535")


@pytest.mark.parametrize("reply", ["552 5.3.4 Message too big", "554 5.7.1 rejected as spam"])
async def test_a_mail_that_the_server_does_not_take_for_what_it_is_is_refused(
    reply: str, server: MailServer
) -> None:
    server.message = reply
    assert await sent() == SendOutcome(f"smtp_{reply[:3]}")
    assert f"smtp_{reply[:3]}" in REFUSALS


async def test_a_server_without_encryption_gets_neither_password_nor_mail(
    server: MailServer,
) -> None:
    server.is_encrypted = False
    assert await sent() == SendOutcome("smtp_no_tls")
    assert not any(line.startswith("MAIL") for line in server.lines)


async def test_a_server_without_a_login_is_told_as_that(server: MailServer) -> None:
    server.has_login = False
    assert await sent() == SendOutcome("smtp_no_login")


async def test_a_certificate_that_nobody_vouches_for_gets_neither_password_nor_mail(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    assert await sent() == SendOutcome("tls")
    assert server.taken == []


async def test_a_certificate_of_another_name_is_refused(
    ours: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = authority(tmp_path)
    with mail_server(other.certificate) as running:
        ours.is_trusted(monkeypatch)
        names_lead_to(monkeypatch, mail=running.port)
        assert await sent() == SendOutcome("tls")


async def test_a_server_that_is_gone_is_unreachable(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names_lead_to(monkeypatch, mail=choose_port(None, set()))
    assert await sent() == SendOutcome("unreachable")


async def test_a_connection_that_breaks_off_behind_the_mail_counts_as_not_sent(
    server: MailServer,
) -> None:
    server.breaks_off = True
    assert await sent() == SendOutcome("unreachable")
