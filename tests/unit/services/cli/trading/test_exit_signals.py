"""What `deskbus exit-signals check` prints of an answer."""

import pytest

from contracts.exit_signal import ExitFormat
from services.cli.shell.problem import ExitCode
from services.cli.trading.exit_signals import refused, screen
from services.exit_signal.report import shaped
from tests.unit.services.cli.screens import lines
from tests.unit.services.exit_signal.conftest import CRASHING, result


def printed(shape: ExitFormat) -> str:
    return " ".join(lines(screen(shaped(result(CRASHING, stop_pct=8), shape))))


@pytest.mark.parametrize("shape", ExitFormat)
def test_the_price_of_the_stop_is_told_in_every_format(shape: ExitFormat) -> None:
    assert "92.00" in printed(shape)


@pytest.mark.parametrize("shape", [ExitFormat.FULL, ExitFormat.AGENT])
def test_only_the_sale_is_at_the_open(shape: ExitFormat) -> None:
    words = printed(shape)
    assert words.count("the open") == 1
    assert "sell 39 AAPL the open" in words
    assert "stop 14 AAPL 92.00" in words


@pytest.mark.parametrize("shape", ExitFormat)
def test_a_check_that_cannot_be_made_says_why_and_which_command_helps(shape: ExitFormat) -> None:
    answer = shaped(
        {
            "status": "error",
            "ticker": "AAPL",
            "account": "test",
            "error": "account test holds no share of AAPL",
            "error_code": "not_held",
        },
        shape,
    )

    problem = refused(answer, "test")

    assert problem.code == ExitCode.NOT_FOUND
    assert "AAPL" in problem.message
    assert problem.hint == "`deskbus portfolio test` lists the positions"
