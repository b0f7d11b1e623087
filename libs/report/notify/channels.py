"""Channels to people, as they are set and as they fare, in words for every edge. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from contracts.notice import (
    ChannelShown,
    ChannelState,
    ChannelsView,
    Notification,
    RuleShown,
    Severity,
)
from libs.facts import amounts
from libs.report.tones import Tone
from libs.runtime.notify_settings import Notify, RuleSettings, when

HOW_TO = "docs/notifications.md says how"
RESTART = "then restart the notifier"
IS_WRONG = f"set it anew ({HOW_TO}), {RESTART}"
NOT_TAKEN = "look at the channel's own service; `deskbus notify test` tries it again"
TODOS: Mapping[str, str] = {
    "http_401": f"the service refuses the address: {IS_WRONG}",
    "http_403": f"the service refuses the address, or who is there has blocked you: {IS_WRONG}",
    "http_404": f"the service knows no such address: {IS_WRONG}",
    "http_410": f"the service knows no such address any more: {IS_WRONG}",
    "http_429": "the service asks for fewer messages: a rule with a digest sends them in one",
    "wrong_address": f"the service knows no such chat, channel or topic: {IS_WRONG}",
    "login_refused": f"the service refuses the token in the address: {IS_WRONG}",
    "tls": "its certificate cannot be verified: check the address and who signed it",
    "unreachable": "nobody answers there: check the address and this machine's way to it",
    "proxy": "it did not get through the proxy that is set here: `deskbus doctor` names that",
    "timeout": "it takes longer than `timeout_s`: check the service, or raise that",
    "busy": "an earlier message is still being sent: check the service",
    "private_address": "its name leads into a private network: set `private` if that is meant",
    "not_set": f"set its address ({HOW_TO}), {RESTART}",
    "smtp_no_tls": "the mail server does not encrypt on this port: check host, port and `mode`",
    "smtp_no_login": "the mail server takes no login here: check host, port and `mode`",
}
"""What to do, by the code of a failure."""
TODOS_BY_START: Mapping[str, str] = {
    "smtp_login_4": "the mail server cannot check the password now; it is tried again",
    "smtp_login_": f"the mail server refuses user or password: {IS_WRONG}; many want one for apps",
    "smtp_sender_4": "the mail server takes no mail of this sender now; it is tried again",
    "smtp_sender_": f"the mail server refuses the sender, `from` in the address: {IS_WRONG}",
    "smtp_recipient_4": "the mail server takes no mail for this recipient yet; it is tried again",
    "smtp_recipient_": f"the mail server refuses the recipient, `to` in the address: {IS_WRONG}",
    "smtp_message_4": "the mail server cannot take the mail now; it is tried again",
    "smtp_message_": "the mail server refuses the mail for what it holds or for its size",
    "smtp_server_": "the mail server turns everybody away; it is tried again",
}
"""The same, of codes that end with a mail server's reply."""


class Standing(StrEnum):
    """How a channel fares, in a word."""

    OK = "ok"
    NEW = "new"
    FAILING = "failing"
    UNUSABLE = "unusable"
    REMOVED = "removed"


TONES: Mapping[Standing, Tone] = {
    Standing.OK: Tone.GOOD,
    Standing.NEW: Tone.QUIET,
    Standing.FAILING: Tone.BAD,
    Standing.UNUSABLE: Tone.BAD,
    Standing.REMOVED: Tone.QUIET,
}


@dataclass(frozen=True)
class Line:
    """One channel: `finding` is a sentence about it, `todo` what to do where something is wrong.

    `state` is what is on record of it; None where the desk has not seen it yet.
    """

    name: str
    service: str
    rules: Sequence[str]
    standing: Standing
    finding: str
    todo: str = ""
    state: ChannelState | None = None

    @property
    def tone(self) -> Tone:
        """Whether that is good."""
        return TONES[self.standing]


def lines(view: ChannelsView, states: Iterable[ChannelState], now: datetime) -> Sequence[Line]:
    """The channels of the settings in their order, then those that were in them once and still have
    messages that wait."""
    known = {state.channel: state for state in states}
    set_now = [_line(channel, known.get(channel.name), now) for channel in view.channels]
    names = {channel.name for channel in view.channels}
    removed = [
        Line(
            state.channel,
            amounts.UNKNOWN,
            (),
            Standing.REMOVED,
            f"not in the settings any more; {_waiting(state, now)}",
            state=state,
        )
        for state in known.values()
        if state.channel not in names and state.waiting
    ]
    return [*set_now, *removed]


def _line(channel: ChannelShown, state: ChannelState | None, now: datetime) -> Line:
    standing, finding, todo = _standing(channel, state, now)
    return Line(channel.name, channel.service, channel.rules, standing, finding, todo, state)


def _standing(
    channel: ChannelShown, state: ChannelState | None, now: datetime
) -> tuple[Standing, str, str]:
    waits = f"; {_waiting(state, now)}" if state and state.waiting else ""
    if channel.problem:
        return Standing.UNUSABLE, f"{channel.problem}{waits}", TODOS["not_set"]
    if state is not None and state.failures:
        return Standing.FAILING, f"{_failing(state, now)}{waits}", todo(state.code)
    if not channel.rules:
        text = "no rule sends anything to it"
        return Standing.NEW, f"{text}{waits}", f"name it in `to` of a rule; {HOW_TO}"
    if state is None or state.sent_at is None:
        return Standing.NEW, f"nothing was sent yet{waits}", ""
    return Standing.OK, f"last sent {_ago(state.sent_at, now)}{waits}", ""


def _failing(state: ChannelState, now: datetime) -> str:
    since = ""
    if state.failing_since is not None:
        since = f"failing for {amounts.roughly(now - state.failing_since)}: "
    tries = amounts.count(state.failures, "try", "tries")
    last = f", the last {_ago(state.failed_at, now)}" if state.failed_at else ""
    sent = f"last sent {_ago(state.sent_at, now)}" if state.sent_at else "nothing was sent yet"
    coming = ""
    if state.next_try_at is not None and state.next_try_at > now:
        coming = f"; next try in {amounts.roughly(state.next_try_at - now)}"
    return f"{since}{tries} in a row failed ({code_in_words(state.code)}){last}; {sent}{coming}"


def _waiting(state: ChannelState, now: datetime) -> str:
    oldest = f", the oldest for {amounts.roughly(now - state.oldest_at)}" if state.oldest_at else ""
    return f"{amounts.count(state.waiting, 'message')} waiting{oldest}"


def _ago(at: datetime, now: datetime) -> str:
    return f"{amounts.roughly(now - at)} ago"


def code_in_words(code: str) -> str:
    """`HTTP 503`, `smtp login 535`, `timeout`."""
    return code.replace("http_", "HTTP ").replace("_", " ")


def todo(code: str) -> str:
    """The remedy for a failure with this code."""
    starts = (text for start, text in TODOS_BY_START.items() if code.startswith(start))
    return TODOS.get(code) or next(starts, NOT_TAKEN)


def of_settings(notify: Notify, problems: Mapping[str, str], *, working: bool) -> ChannelsView:
    """The channels and rules in force; `problems` by channel."""
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
        )
        for name, channel in notify.channels.items()
    )
    return ChannelsView(channels=channels, rules=rules, working=working)


def _when(rule: RuleSettings, notify: Notify) -> str:
    quiet = notify.quiet_of(rule)
    return f"{when(rule)}, but for {quiet} {notify.time_zone}" if quiet else when(rule)


def rule_in_words(rule: RuleShown) -> str:
    """`decision, fill of main from warning on, to phone: at once`."""
    of = f" of {', '.join(rule.accounts)}" if rule.accounts else ""
    least = "" if rule.severity is Severity.INFO else f" from {rule.severity.value} on"
    return f"{', '.join(rule.events)}{of}{least}, to {', '.join(rule.to)}: {rule.when}"


STATUS_WORDS: Mapping[str, str] = {"due": "waiting", "given_up": "given up"}


def status_word(status: str) -> str:
    """A message's status as people read it."""
    return STATUS_WORDS.get(status, status)


def outcome(notification: Notification) -> str:
    """The end of a message, as far as its status does not say it."""
    code = f" ({code_in_words(notification.code)})" if notification.code else ""
    match notification.status:
        case "sent":
            failed = notification.tries - 1
            return (
                f"after {amounts.count(failed, 'failed try', 'failed tries')}" if failed > 0 else ""
            )
        case "given_up":
            return f"after {amounts.count(notification.tries, 'try', 'tries')}{code}"
        case "due" if notification.tries:
            return f"{amounts.count(notification.tries, 'try', 'tries')} failed{code}"
        case "due":
            return "in a digest" if notification.gathered else ""
