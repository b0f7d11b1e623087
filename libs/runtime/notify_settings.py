"""Messages to people: the channels and rules of `[notify]`. Addresses are no settings.

[notify]
base_url = "https://desk.example.org"      # links lead there; without it there are none
time_zone = "Europe/Berlin"
quiet = "22:00-07:00"

[notify.channels.phone]                    # its address: DESKBUS_NOTIFY_PHONE, or a file

[notify.rules.trades]
events = ["decision", "fill", "stop"]
accounts = ["main"]
to = ["phone"]
digest = "30m"
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator
from pydantic import model_validator as checked

from contracts.audit import NOTABLE_EVENTS
from contracts.notice import CHANNELS_MAX, NoticeKind, Severity
from contracts.types import Name
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.plain_url import PlainUrl

RULES_MAX = 50
GIVE_UP_S_MAX = 7 * 86_400
"""As long as the stream keeps what was not heard."""
DIGEST_MAX = timedelta(hours=24)
DIGEST_PATTERN = r"^([1-9]\d{0,3}m|[1-9]\d?h|([01]\d|2[0-3]):[0-5]\d)$"
QUIET_PATTERN = r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$"
KINDS = tuple(kind.value for kind in NoticeKind if kind is not NoticeKind.TEST)
TYPES = tuple(event.value for event in NOTABLE_EVENTS)
DEFAULT_EVENTS = (
    "decision",
    "exit",
    "fill",
    "stop",
    "approval",
    "failure",
    "budget",
    "halt",
    "capital",
    "limit",
    "price",
    "outage",
    "dead_letter",
    "report",
    "undelivered",
    "broker",
)
"""What is told where there are channels and no rules."""

Digest = Annotated[str, StringConstraints(pattern=DIGEST_PATTERN)]
Quiet = Annotated[str, StringConstraints(pattern=QUIET_PATTERN)]


class ChannelSettings(BaseModel):
    """One channel. `apprise` takes any address that Apprise knows; `webhook` is signed JSON.

    A try may take `timeout_s`; what could not be sent `give_up_after_s` after its event is given
    up. A webhook's name may lead to a private address where `private` says so.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: Literal["apprise", "webhook"] = "apprise"
    timeout_s: float = Field(default=20.0, gt=0, le=120)
    give_up_after_s: float = Field(default=86_400.0, ge=1, le=GIVE_UP_S_MAX)
    private: bool = False


class RuleSettings(BaseModel):
    """One rule: `events` by what they are (`fill`) or by type (`order_*`), of these accounts (none
    named: of all) and what is the whole desk's, from `severity` on, go to the channels of `to`.

    `digest` gathers what comes until the next full `30m`, `2h`, or until `18:00`; without it each
    goes at once. `quiet` are the hours in which nothing goes, if not those of all rules.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: tuple[str, ...] = Field(min_length=1, max_length=40)
    accounts: tuple[Name, ...] = Field(default=(), max_length=50)
    severity: Severity = Severity.INFO
    to: tuple[Name, ...] = Field(min_length=1, max_length=CHANNELS_MAX)
    digest: Digest | None = None
    quiet: Quiet | Literal["none"] | None = None

    @field_validator("events")
    @classmethod
    def _events_exist(cls, events: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in events:
            if not any(fnmatchcase(name, pattern) for name in (*KINDS, *TYPES)):
                near = did_you_mean(nearest(pattern, (*KINDS, *TYPES)))
                raise ValueError(
                    f"unknown event {pattern!r}; there are {', '.join(KINDS)}, and by type "
                    f"{', '.join(TYPES)}{near}"
                )
        return events

    @field_validator("digest")
    @classmethod
    def _digest_is_of_a_day(cls, digest: str | None) -> str | None:
        if digest is not None and ":" not in digest and period(digest) > DIGEST_MAX:
            raise ValueError(f"{digest!r}: a digest gathers for 24 hours at most")
        return digest


class Notify(BaseModel):
    """Channels and rules by name. In quiet hours what is at least as serious as `rings` goes all
    the same. Without rules all channels are told DEFAULT_EVENTS."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: PlainUrl | None = None
    time_zone: str = "UTC"
    quiet: Quiet | None = None
    rings: Severity = Severity.ALARM
    channels: dict[Name, ChannelSettings] = Field(default={}, max_length=CHANNELS_MAX)
    rules: dict[Name, RuleSettings] = Field(default={}, max_length=RULES_MAX)
    kept_s: float = Field(default=2_592_000.0, ge=86_400, le=31_536_000)
    """How long it is remembered what people were told."""

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(
                f"unknown time zone {name!r}; use one such as Europe/Berlin"
            ) from error
        return name

    @checked(mode="after")
    def _rules_lead_somewhere(self) -> Self:
        for name, rule in self.rules.items():
            for channel in rule.to:
                if channel not in self.channels:
                    near = did_you_mean(nearest(channel, self.channels))
                    known = ", ".join(self.channels) or "none"
                    raise ValueError(
                        f"rules.{name}.to: channel {channel!r} does not exist; the channels are "
                        f"{known}{near}"
                    )
        return self

    @checked(mode="after")
    def _addresses_do_not_meet(self) -> Self:
        taken = {name.upper(): f"the setting notify.{name}" for name in type(self).model_fields}
        for name in self.channels:
            for variable in (variable_name(name), f"{variable_name(name)}_KEY"):
                if variable in taken:
                    raise ValueError(
                        f"channels.{name}: DESKBUS_NOTIFY_{variable} is that of {taken[variable]} "
                        "already; choose another name"
                    )
                taken[variable] = f"channel {name}"
        return self

    @property
    def zone(self) -> ZoneInfo:
        """The zone of quiet hours and daily digests."""
        return ZoneInfo(self.time_zone)

    @property
    def rules_in_force(self) -> Mapping[str, RuleSettings]:
        """The rules, or the one that there is without any."""
        if self.rules or not self.channels:
            return self.rules
        return {"default": RuleSettings(events=DEFAULT_EVENTS, to=tuple(self.channels))}

    def quiet_of(self, rule: RuleSettings) -> str | None:
        """The quiet hours of a rule; None where it has none."""
        quiet = self.quiet if rule.quiet is None else rule.quiet
        return None if quiet == "none" else quiet

    def __str__(self) -> str:
        channels = [f"{name} ({channel.service})" for name, channel in self.channels.items()]
        rules = [f"{name}: {words(rule)}" for name, rule in self.rules_in_force.items()]
        return f"channels {', '.join(channels) or 'none'}; rules {'; '.join(rules) or 'none'}"


def variable_name(channel: str) -> str:
    """The part behind DESKBUS_NOTIFY_ in the name of a channel's variable."""
    return channel.upper().replace("-", "_")


def words(rule: RuleSettings) -> str:
    """`decision, fill of main to phone every 30m`."""
    accounts = f" of {', '.join(rule.accounts)}" if rule.accounts else ""
    severity = "" if rule.severity is Severity.INFO else f" from {rule.severity.value} on"
    return f"{', '.join(rule.events)}{accounts}{severity} to {', '.join(rule.to)} {when(rule)}"


def when(rule: RuleSettings) -> str:
    """`at once`, `every 30m`, `daily at 18:00`."""
    if rule.digest is None:
        return "at once"
    return f"daily at {rule.digest}" if ":" in rule.digest else f"every {rule.digest}"


def period(digest: str) -> timedelta:
    """How long a digest such as `30m` or `2h` gathers."""
    number = int(digest[:-1])
    return timedelta(minutes=number) if digest.endswith("m") else timedelta(hours=number)


def next_digest(digest: str, after: datetime, zone: ZoneInfo) -> datetime:
    """When the digest that gathers at a moment goes out: the next full period, counted from the
    local midnight, or the next time of day."""
    local = after.astimezone(zone)
    if ":" in digest:
        at = _at(local.date(), digest, zone)
        return at if at > after else _at(local.date() + timedelta(days=1), digest, zone)
    midnight = datetime.combine(local.date(), time(), zone)
    step = period(digest)
    # In absolute time: a day with a change of the clock has 23 or 25 hours.
    gone = after - midnight.astimezone(after.tzinfo)
    until = midnight.astimezone(after.tzinfo) + step * (gone // step + 1)
    tomorrow = datetime.combine(local.date() + timedelta(days=1), time(), zone)
    return min(until, tomorrow.astimezone(after.tzinfo))


def quiet_until(quiet: str, at: datetime, zone: ZoneInfo) -> datetime | None:
    """The end of the quiet hours that hold the moment; None where it is in none."""
    start, _, end = quiet.partition("-")
    today = at.astimezone(zone).date()
    for day in _days_around(today):
        begins, ends = _at(day, start, zone), _at(day, end, zone)
        if ends <= begins:
            ends = _at(day + timedelta(days=1), end, zone)
        if begins <= at < ends:
            return ends
    return None


def _days_around(today: date) -> Sequence[date]:
    return (today - timedelta(days=1), today)


def _at(day: date, clock: str, zone: ZoneInfo) -> datetime:
    hours, _, minutes = clock.partition(":")
    return datetime.combine(day, time(int(hours), int(minutes)), zone).astimezone(ZoneInfo("UTC"))
