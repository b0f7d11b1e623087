"""Channels to people and their messages, as every screen describes them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from contracts.notice import (
    ChannelShown,
    ChannelState,
    ChannelsView,
    Notification,
    RuleShown,
)
from libs.facts import amounts
from libs.report import view
from libs.report.tones import Tone, tone
from libs.report.view import Column, NoRows, Table
from libs.runtime.notify_settings import Notify, RuleSettings, when

HOW_TO = "docs/notifications.md says how"
RESTART = "then start the desk (or its notifier) anew"
IS_WRONG = f"check it ({HOW_TO}), {RESTART}"
TODOS: Mapping[str, str] = {
    "http_400": f"the service knows no such chat or topic, or refuses the text: {IS_WRONG}",
    "http_401": f"the service refuses the address: {IS_WRONG}",
    "http_403": f"the service refuses the address, or its owner has blocked you: {IS_WRONG}",
    "http_404": f"the service knows no such address: {IS_WRONG}",
    "http_410": f"the service knows no such address any more: {IS_WRONG}",
    "http_429": "the service asks for fewer messages: a rule with a digest sends them in one",
    "tls": "its certificate cannot be verified: check the address and who signed it",
    "unreachable": "no server answers there: check the address and this machine's network",
    "proxy": "it did not get through the proxy that is set here: `deskbus doctor` names that",
    "timeout": "it takes longer than `timeout_s`: check the service, or raise that",
    "private_address": "its name leads into a private network: set `private` if that is meant",
    "not_set": f"set its address, and a webhook's key ({HOW_TO}), {RESTART}",
    "smtp_no_tls": "the mail server does not encrypt on this port: check host, port and `mode`",
    "smtp_no_login": "the mail server takes no login here: check host, port and `mode`",
    "smtp_535": f"the mail server refuses user or password: {IS_WRONG}; many want one for apps",
    "smtp_550": f"the mail server refuses the sender or the recipient: {IS_WRONG}",
}
"""What to do, by the code of a failure."""
NOT_TAKEN = "check the channel's service; `deskbus notify test` tries it again"
LOST = "NATS lost its store {}: messages that waited then are lost{}"
LOST_TODO = "check its disk; `deskbus notify history --status given_up` lists those on record"
LOST_SHOWN = timedelta(days=7)
"""How long a lost store is shown."""


class ChannelHealth(StrEnum):
    """How a channel fares, in a word."""

    OK = "ok"
    NEW = "new"
    FAILING = "failing"
    UNUSABLE = "unusable"
    REMOVED = "removed"


TONES: Mapping[ChannelHealth, Tone] = {
    ChannelHealth.OK: Tone.GOOD,
    ChannelHealth.NEW: Tone.QUIET,
    ChannelHealth.FAILING: Tone.BAD,
    ChannelHealth.UNUSABLE: Tone.BAD,
    ChannelHealth.REMOVED: Tone.QUIET,
}


@dataclass(frozen=True)
class ChannelStanding:
    """One channel: `finding` is a sentence about it, `todo` what to do where something is wrong,
    `lost` says that NATS lost its store."""

    name: str
    service: str
    standing: ChannelHealth
    finding: str
    todo: str
    lost: str
    state: ChannelState


def standings(
    shown: ChannelsView, states: Iterable[ChannelState], now: datetime
) -> Sequence[ChannelStanding]:
    """The channels of the settings in their order, then removed ones that still have messages that
    wait."""
    known = {state.channel: state for state in states}
    set_now = [
        _standing(channel, known.get(channel.name, ChannelState(channel=channel.name)), now)
        for channel in shown.channels
    ]
    names = {channel.name for channel in shown.channels}
    gone = "not in the settings any more; {}"
    removed = [
        ChannelStanding(
            name=name,
            service=amounts.UNKNOWN,
            standing=ChannelHealth.REMOVED,
            finding=gone.format(_waiting(state, now)),
            todo="",
            lost="",
            state=state,
        )
        for name, state in known.items()
        if name not in names and state.waiting
    ]
    return [*set_now, *removed]


def _standing(channel: ChannelShown, state: ChannelState, now: datetime) -> ChannelStanding:
    standing, finding, todo = _found(channel, state, now)
    waits = f"; {_waiting(state, now)}" if state.waiting else ""
    lost = _lost(channel, state, now)
    return ChannelStanding(
        channel.name, channel.service, standing, f"{finding}{waits}", todo, lost, state
    )


def _found(
    channel: ChannelShown, state: ChannelState, now: datetime
) -> tuple[ChannelHealth, str, str]:
    if channel.problem:
        return ChannelHealth.UNUSABLE, channel.problem, TODOS["not_set"]
    last = f"last sent {_ago(state.sent_at, now)}" if state.sent_at else "nothing was sent yet"
    if state.failures:
        since = amounts.roughly(now - (state.failing_since or now))
        tries = amounts.count(state.failures, "try", "tries")
        why = code_in_words(state.code)
        finding = f"failing for {since}: {tries} failed ({why}); {last}"
        return ChannelHealth.FAILING, finding, todo_of(state.code)
    if not channel.rules:
        return (
            ChannelHealth.NEW,
            "no rule sends anything to it",
            f"name it in `to` of a rule; {HOW_TO}",
        )
    return ChannelHealth.OK if state.sent_at else ChannelHealth.NEW, last, ""


def _lost(channel: ChannelShown, state: ChannelState, now: datetime) -> str:
    """That NATS holds the channel's messages since later than the record begins."""
    if channel.since is None or state.first_at is None or now - channel.since > LOST_SHOWN:
        return ""
    if state.first_at > channel.since:
        return ""
    count = f" ({state.lost:,} of them on record)" if state.lost else ""
    return LOST.format(_ago(channel.since, now), count)


def _waiting(state: ChannelState, now: datetime) -> str:
    oldest = f", the oldest for {amounts.roughly(now - state.oldest_at)}" if state.oldest_at else ""
    return f"{amounts.count(state.waiting, 'message')} waiting{oldest}"


def _ago(at: datetime, now: datetime) -> str:
    return f"{amounts.roughly(now - at)} ago"


def code_in_words(code: str) -> str:
    """`HTTP 503`, `smtp 535`, `timeout`."""
    return code.replace("http_", "HTTP ").replace("_", " ")


def todo_of(code: str) -> str:
    """The remedy for a failure with this code."""
    return TODOS.get(code, NOT_TAKEN)


def of_settings(
    notify: Notify, problems: Mapping[str, str], since: Mapping[str, datetime]
) -> ChannelsView:
    """The channels and rules in force, with the problem of each channel, and since when NATS holds
    its notices."""
    rules = tuple(
        RuleShown(
            name=name,
            events=rule.events,
            accounts=rule.accounts,
            severity=rule.severity,
            to=rule.to,
            when=_when(rule, notify),
        )
        for name, rule in notify.rules_in_force.items()
    )
    channels = tuple(
        ChannelShown(
            name=name,
            service=channel.service,
            rules=tuple(rule.name for rule in rules if name in rule.to),
            problem=problems.get(name, ""),
            since=since.get(name),
        )
        for name, channel in notify.channels.items()
    )
    return ChannelsView(channels=channels, rules=rules)


def _when(rule: RuleSettings, notify: Notify) -> str:
    quiet = notify.quiet_of(rule)
    return f"{when(rule)}, but for {quiet} {notify.time_zone}" if quiet else when(rule)


# --- tables ---------------------------------------------------------------------------------------

NO_CHANNEL = NoRows(
    "No channels are configured: no messages are sent. docs/notifications.md shows how to get one "
    "on your phone.",
    todo="deskbus notify test phone",
)


def channel_table(lines: Sequence[ChannelStanding]) -> Table:
    """Each channel with its counts; the notes say how it fares and what to do."""
    columns = (
        Column("Channel", wraps=True),
        Column("Service", spare=1),
        "Status",
        "Waiting",
        "Sent",
        "Given up",
        "Failures",
    )
    rows = (
        view.row(
            it.name,
            it.service,
            view.say(it.standing, TONES[it.standing], about=it.finding),
            view.count(it.state.waiting),
            view.count(it.state.sent),
            view.count(it.state.given_up),
            view.count(it.state.failures),
            key="" if it.standing is ChannelHealth.REMOVED else it.name,
        )
        for it in lines
    )
    notes = tuple(note for it in lines for note in _notes(it))
    return view.table(columns, rows, empty=NO_CHANNEL, notes=notes)


def _notes(line: ChannelStanding) -> Sequence[view.Text]:
    return [
        view.Text(f"{line.name}: {line.finding}", None),
        *view.notes(line.todo and f"→ {line.todo}", tone=Tone.WARN),
        *view.notes(line.lost and f"{line.lost}. {LOST_TODO}", tone=Tone.BAD),
    ]


def rule_table(rules: Sequence[RuleShown]) -> Table:
    """The rules in force."""
    columns = (
        Column("Rule", wraps=True),
        Column("Events", wraps=True),
        Column("Accounts", spare=1),
        Column("From severity", spare=2),
        Column("Channels", wraps=True),
        Column("When", wraps=True),
    )
    rows = (
        (
            rule.name,
            ", ".join(rule.events).replace("_", " "),
            ", ".join(rule.accounts) or "all",
            rule.severity,
            ", ".join(rule.to),
            rule.when,
        )
        for rule in rules
    )
    return view.table(columns, rows)


def message_table(messages: Sequence[Notification], unreadable: int, filtered: bool) -> Table:
    """Messages, the newest first, and what became of each."""
    columns = (
        Column("Event (UTC)", spare=2),
        Column("Channel", wraps=True),
        Column("Status", wraps=True),
        Column("Kind", spare=1),
        Column("Message", wraps=True),
    )
    rows = (
        (
            f"{it.notice.at:%m-%d %H:%M}",
            it.channel,
            view.say(_status(it), tone(it.status)),
            view.say(it.notice.kind.replace("_", " "), tone(it.notice.severity)),
            view.say(it.notice.title, link=it.notice.page, about="; ".join(it.notice.lines)),
        )
        for it in messages
    )
    newer = f"{amounts.count(unreadable, 'message')} of a later version cannot be read here."
    none = "No message is like that." if filtered else "No message was due yet."
    return view.table(
        columns, rows, empty=NoRows(none), notes=view.notes(newer if unreadable else "")
    )


STATUS_WORDS: Mapping[str, str] = {"due": "waiting", "sent": "sent", "given_up": "given up"}


def _status(message: Notification) -> str:
    return ": ".join(filter(None, (STATUS_WORDS[message.status], result_of(message))))


def result_of(notification: Notification) -> str:
    """What became of a message, as far as its status does not say it."""
    code = f" ({code_in_words(notification.code)})" if notification.code else ""
    tries = amounts.count(notification.tries, "try", "tries")
    match notification.status:
        case "sent" if notification.tries > 1:
            return f"after {tries}"
        case "given_up":
            return f"after {tries}{code}"
        case "due" if notification.tries:
            return f"{tries} failed{code}"
        case "due" if notification.due_at > notification.notice.at + timedelta(minutes=1):
            return f"until {notification.due_at:%m-%d %H:%M}"
        case _:
            return ""
