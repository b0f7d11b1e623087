"""The results of operations on one line, as pages and the command line show them."""

from libs.report.calls import results

MADE = {
    "strategy_name": "calm",
    "strategy_path": "/data/strategies/calm.yaml",
    "accuracy": 0.49653279785,
    "total_trades": 1620,
    "passed": True,
    "cash": "102875.415000",
    "buys": ["AAPL", "MSFT"],
    "sells": [],
    "version": "1.2.3",
}


def test_a_summary_is_one_line_with_what_is_on_record() -> None:
    assert results.flat({"buys": ["AAPL", "MSFT"], "sells": [], "cash": "1.50"}) == (
        "buys AAPL MSFT, cash 1.50"
    )
    assert results.flat(None) == ""


def test_in_a_list_figures_are_rounded_and_files_left_out() -> None:
    assert results.brief(MADE) == (
        "strategy name calm, accuracy 0.497, total trades 1620, passed yes, cash 102,875.42, "
        "buys AAPL MSFT, version 1.2.3"
    )
    assert (
        results.brief({"return": -0.5, "loss": 2.0, "none": None}) == "return -0.5, loss 2, none "
    )
