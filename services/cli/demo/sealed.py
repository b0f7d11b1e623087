"""A process and settings that know nothing of another desk, of keys or of servers of anybody's."""

import os
from collections.abc import MutableMapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic_settings import PydanticBaseSettingsSource

from libs.runtime.notify_settings import GIVE_UP_S_MAX, Notify
from libs.runtime.schedule_settings import Schedule
from libs.runtime.settings import Settings

KEPT = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TEMP",
    "TMP",
    "TZ",
    "TERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "COLORTERM",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_*",
    "BROWSER",
    "PYTHON*",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "DYLD_*",
    "COVERAGE_*",
    "PYTEST_*",
)
"""Variables that say how a terminal, a browser and Python work; all others are left out, whoever
reads them: addresses, keys, proxies, exporters, another desk's settings."""

MAIN, RULES, THRIFTY = "main", "rules", "thrifty"
"""Accounts: the scripted pipeline's, the rules', and one whose budget is too small."""
DECIDE = "decide"
DAY_COST_USD_MAX = 25
APPROVAL_TIMEOUT_S = 604_800
PIPELINES = (
    {"name": "scripted", "provider": "scripted", "account": MAIN},
    {"name": "rules", "provider": "rules", "account": RULES},
)
JOBS = {
    "sell-check": {"kind": "exit", "when": "close+30m", "pipelines": PIPELINES},
    DECIDE: {
        "kind": "decision",
        "when": "45 16 * * wed",
        "pipelines": PIPELINES,
        "budgets": {"cost_usd": "1.00", "tokens": 400_000},
    },
    "report": {"kind": "report", "when": "55 16 * * wed", "account": MAIN},
}
"""Sell checks each session, decisions and the report on Wednesdays."""
INBOX, PAGER = "demo-inbox", "demo-pager"
"""Channels: what the demo itself receives, and one that is out of order on purpose."""
NOTIFY = {
    "channels": {
        INBOX: {"service": "webhook"},
        # As long as any message may wait: its backlog is what is to be seen.
        PAGER: {"service": "webhook", "give_up_after_s": GIVE_UP_S_MAX},
    },
    "rules": {
        "trades": {"events": ["fill", "stop", "approval"], "accounts": [MAIN], "to": [INBOX]},
        "trouble": {
            "events": ["failure", "budget", "halt", "dead_letter", "approval"],
            "severity": "warning",
            "to": [INBOX, PAGER],
        },
    },
}
EXIT_RULES = """\
# The demo's exit rules; docs/exit-signals.md explains each.
[default]
stop_pct = 8

[default.stop_loss]
pct = 12

[default.take_profit]
pct = 25
"""


def seal(environment: MutableMapping[str, str] = os.environ) -> None:
    """Take all variables but KEPT out of the environment, of this process and its children."""
    for name in list(environment):
        if not any(fnmatchcase(name, pattern) for pattern in KEPT):
            del environment[name]


class SealedSettings(Settings):
    """Settings that only arguments set: neither the environment nor a deskbus.toml does."""

    @classmethod
    def settings_customise_sources(
        cls, *_: Any, **sources: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The arguments, and nothing else."""
        return (sources["init_settings"],)


def settings_in(folder: Path, port: int | None = None) -> Settings:
    """The demo's settings: everything below its folder, servers and keys of its own. Without a
    port the console takes the usual one, or the next that is free."""
    chosen: dict[str, Any] = {} if port is None else {"port": port}
    return SealedSettings(
        demo=True,
        data_dir=folder,
        market={"replay_dir": folder / "market"},
        strategies_dir=folder / "strategies",
        exit_rules_file=folder / "exit_signals.toml",
        http={"enabled": True, **chosen},
        log={"level": "error"},
        candidates={"sources": "screener,news"},
        budget={"day_cost_usd_max": DAY_COST_USD_MAX},
        approval={"timeout_s": APPROVAL_TIMEOUT_S, "valid_s": 86_400},
        schedule=Schedule.model_validate({"clock": "replay", "jobs": JOBS}),
        notify=Notify.model_validate(NOTIFY),
    )
