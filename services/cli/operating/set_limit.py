"""`deskbus config set`: a person changes a limit, after a look at what it would mean today."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from contracts.account import AccountLimits
from contracts.message import MAIN_ACCOUNT
from contracts.risk_use import LimitPreview, LimitQuery, LimitValue, RiskQuery, SetLimit
from contracts.subjects.accounts import LIMIT_PREVIEW, RISK, SET_LIMIT
from libs.bus.client import Client
from libs.report import risk_use
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.own_text import UnreadableFile
from libs.runtime.settings import (
    SETTINGS_FILE,
    Settings,
    WrongSetting,
    all_settings,
    limits_with,
    overridden_by,
)
from libs.runtime.settings_file import replacing, text_of, with_value
from services.cli.render.described import head, show
from services.cli.shell.invalid import typed, writing
from services.cli.shell.options import JsonOption
from services.cli.shell.problem import CliProblem, ExitCode, WrongUsage
from services.cli.shell.questions import answer_to, is_confirmed, is_terminal
from services.cli.shell.running import load_settings, with_desk
from services.cli.shell.terminal import aside, put

LIMITS = tuple(AccountLimits.model_fields)
UNCHANGED = "nothing was changed"


@dataclass(frozen=True)
class LimitSetting:
    """A limit in the settings: of one account, or (None) of all."""

    account: str | None
    limit: str

    @property
    def path(self) -> Sequence[str]:
        """Its place in the settings file."""
        return (*(("accounts", self.account) if self.account else ()), "limits", self.limit)

    def __str__(self) -> str:
        return risk_use.setting(self.limit, self.account)


@dataclass(frozen=True)
class LimitWish:
    """A change of a limit; `judged_by` are the values that accounts were judged by last, which the
    settings here need not say."""

    setting: LimitSetting
    before: LimitValue
    value: LimitValue
    judged_by: Sequence[LimitValue] = ()

    @property
    def loosens(self) -> bool:
        """Whether the rules allow more by it, to any account that it concerns."""
        known = (self.before, *self.judged_by)
        return any(risk_use.loosens(self.setting.limit, it, self.value) for it in known)

    def words(self, value: LimitValue) -> str:
        """A value with its unit."""
        return risk_use.amount_of(self.setting.limit, value)

    def __str__(self) -> str:
        way = "loosens" if self.loosens else "tightens"
        return f"{self.words(self.before)} to {self.words(self.value)}: {way} the limit"


def set_(
    setting: Annotated[
        str,
        typer.Argument(
            help="A limit: limits.NAME for all accounts, or accounts.ACCOUNT.limits.NAME."
        ),
    ],
    value: Annotated[str, typer.Argument(help="The new value: a number, true or false.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Set it without asking, unless it loosens the limit.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Set a risk limit in deskbus.toml: shows its effect on today's books first, and records the
    change.

    It asks once if you tighten the limit and twice if you loosen it. The second question needs a
    terminal; --yes does not answer it. The limit is in force at execution's next start.
    """
    at = named(setting)
    file = Path(SETTINGS_FILE).resolve()
    # Read before the settings: what is written has then not changed since they were.
    text = _text_in(file)
    settings = load_settings()
    before, then = _values(settings, at, value)
    if before == then:
        aside(f"{at} is {risk_use.amount_of(at.limit, then)} already; {UNCHANGED}")
        return
    if variable := overridden_by(at.path, os.environ):
        why = f"{variable} in the environment sets {at}, and overrides {SETTINGS_FILE}"
        raise CliProblem(why, f"change or remove {variable}", ExitCode.REJECTED)
    wish = LimitWish(at, before, then)
    body = with_value(text, at.path, then)
    query = typed("account", RiskQuery, account=at.account or MAIN_ACCOUNT)
    seen = with_desk(lambda client: _previews(client, query, settings, wish))
    wish = replace(wish, judged_by=[it.in_force for it in seen.values()])
    show([*seen.values()], (head(str(at), str(wish)),), json=json)
    if not json:
        _tell(wish, seen, settings)
    _confirm(wish, yes=yes)
    with writing(file, UNCHANGED), replacing(file, text, body):
        # First the record: what is set is never without one.
        with_desk(lambda client: client.ask(SET_LIMIT, _request(wish)))
    put(f"{at} is {wish.words(then)} in {file}")
    aside("in force when execution starts the next time: deskbus down, then deskbus up")


def named(setting: str) -> LimitSetting:
    """The limit that was typed. Raises `CliProblem` (usage), with the nearest one."""
    before, table, limit = setting.rpartition("limits.")
    account = before.removeprefix("accounts.").removesuffix(".") or None
    if table and (not before or before == f"accounts.{account}.") and limit in LIMITS:
        return LimitSetting(account, limit)
    if setting in dict(all_settings()):
        hint = f"change {setting} in {SETTINGS_FILE}; `deskbus config` shows it"
        raise WrongUsage(f"this command only sets limits, and {setting} is not one", hint)
    near = nearest(limit or setting, LIMITS)
    near = None if near is None else risk_use.setting(near, account if before else None)
    raise WrongUsage(f"{setting} is not a limit{did_you_mean(near)}", "deskbus risk lists them")


def _values(settings: Settings, at: LimitSetting, text: str) -> tuple[LimitValue, LimitValue]:
    """What the limit is by the settings, and what was typed. Raises `CliProblem` (usage)."""
    limits = settings.limits_of(at.account) if at.account else settings.limits
    try:
        others = limits_with(limits, at.limit, text.strip().removesuffix("%"))
    except WrongSetting as error:
        raise WrongUsage(error.message) from error
    before, then = (getattr(each, at.limit) for each in (limits, others))
    if isinstance(then, bool):
        return before, then
    return Decimal(str(before)), Decimal(str(then))


def _text_in(file: Path) -> str:
    try:
        return text_of(file)
    except (OSError, UnreadableFile) as error:
        raise CliProblem(f"{file} cannot be read: {error}") from error


async def _previews(
    client: Client, query: RiskQuery, settings: Settings, wish: LimitWish
) -> Mapping[str, LimitPreview]:
    """What the change means, by account."""
    at = wish.setting
    names = (await client.ask(RISK, query)).accounts
    concerned = [
        name
        for name in names
        if at.account in {None, name}
        and (at.account or at.limit not in _own_limits(settings, name))
    ]
    return {
        name: await client.ask(
            LIMIT_PREVIEW,
            LimitQuery(account=name, limit=at.limit, before=wish.before, value=wish.value),
        )
        for name in concerned
    }


def _own_limits(settings: Settings, account: str) -> Mapping[str, LimitValue]:
    own = settings.accounts.get(account)
    return {} if own is None else own.limits


def _tell(wish: LimitWish, seen: Mapping[str, LimitPreview], settings: Settings) -> None:
    """Show the change on today's books."""
    at = wish.setting
    if not seen:
        aside("no open account is affected")
        return
    show((), risk_use.preview(at.limit, wish.before, wish.value, seen), json=False)
    for name, each in seen.items():
        if each.in_force != wish.before:
            aside(f"{name} was last judged by {wish.words(each.in_force)}", "yellow")
    for name in settings.accounts:
        if at.account is None and at.limit in _own_limits(settings, name):
            aside(f"{name} keeps its own: {risk_use.setting(at.limit, name)}")


def _confirm(wish: LimitWish, *, yes: bool) -> None:
    """Ask once, and twice where it loosens. Raises `CliProblem` where it is not confirmed."""
    if wish.loosens and not is_terminal():
        raise CliProblem(
            f"{wish.setting} would be loosened; a person must confirm this in a terminal",
            f"{UNCHANGED}; run it in a terminal, or edit {SETTINGS_FILE} by hand",
            ExitCode.REJECTED,
        )
    if not yes and not is_confirmed(f"Set {wish.setting} to {wish.words(wish.value)}?"):
        raise CliProblem(UNCHANGED, "--yes sets it without asking", ExitCode.REJECTED)
    if not wish.loosens:
        return
    word = f"{wish.value}".lower()
    if answer_to(f"It loosens the limit. Type the new value, {word}, to confirm") != word:
        raise CliProblem(UNCHANGED, code=ExitCode.REJECTED)


def _request(wish: LimitWish) -> SetLimit:
    at = wish.setting
    return SetLimit(account=at.account, limit=at.limit, before=wish.before, value=wish.value)
