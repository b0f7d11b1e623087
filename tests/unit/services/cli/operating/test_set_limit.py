"""Which limits can be set, and which way a change goes."""

from decimal import Decimal

import pytest

from contracts.account import AccountLimits
from libs.report.risk_use import LIMITS, loosens
from services.cli.operating.set_limit import LimitWish, named
from services.cli.shell.problem import WrongUsage


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("limits.order_pct_max", ("limits", "order_pct_max")),
        ("accounts.growth.limits.order_pct_max", ("accounts", "growth", "limits", "order_pct_max")),
    ],
)
def test_a_limit_is_of_all_accounts_or_of_one(typed: str, path: tuple[str, ...]) -> None:
    assert tuple(named(typed).path) == path
    assert str(named(typed)) == typed


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("limits.positon_pct_max", "did you mean limits.position_pct_max?"),
        ("position_pct_max", "did you mean limits.position_pct_max?"),
        ("accounts.growth.limits.order_pct", "did you mean accounts.growth.limits.order_pct_max?"),
        ("limitsposition_pct_max", "is not a limit"),
        ("nats.limits.order_pct_max", "is not a limit"),
        ("http.port", "only sets limits"),
        ("limits", "only sets limits"),
    ],
)
def test_anything_else_is_refused_with_the_nearest_limit(typed: str, said: str) -> None:
    with pytest.raises(WrongUsage) as refused:
        named(typed)
    assert said in refused.value.message


def test_less_is_tighter_of_a_most_and_looser_of_all_others() -> None:
    for name, value in AccountLimits():
        if isinstance(value, bool):
            continue
        more = Decimal(str(value)) + 1
        assert loosens(name, Decimal(str(value)), more) is (name in LIMITS and "_max" in name)
    assert loosens("exits_veto_buys", True, False)
    assert not loosens("exits_veto_buys", False, True)


def test_what_is_tighter_than_the_settings_here_is_looser_to_who_was_judged_by_less() -> None:
    setting = named("limits.position_pct_max")
    wish = LimitWish(setting, Decimal(40), Decimal(20))
    assert not wish.loosens
    assert LimitWish(setting, Decimal(40), Decimal(20), (Decimal(40), Decimal(10))).loosens
    assert not LimitWish(setting, Decimal(40), Decimal(5), (Decimal(40), Decimal(10))).loosens
