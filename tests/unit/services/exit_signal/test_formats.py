"""Formats, and results as files (test cases 16 to 21)."""

from pathlib import Path

import orjson
import pytest

from contracts.exit_signal import ExitFormat
from services.exit_signal import files as saving
from services.exit_signal.files import ResultFiles, safe_name
from services.exit_signal.report import error_of, shaped, snapshot_of
from tests.unit.services.exit_signal.conftest import CRASHING, FALLING, NAMED, result

SUMMARY, FULL, AGENT = ExitFormat.SUMMARY, ExitFormat.FULL, ExitFormat.AGENT


def test_an_agents_answer_has_status_format_snapshot_flags_and_path() -> None:  # 16
    full = result(FALLING)
    answer = shaped(full, AGENT)

    assert list(answer) == ["status", "format", "snapshot", "flags", "file_path"]
    assert (answer["status"], answer["format"]) == ("success", "agent")
    assert answer["snapshot"] == snapshot_of(full)
    assert [each["flag"] for each in answer["flags"]] == ["exit_signal", "trade_recommended"]


def test_a_result_for_an_agent_is_saved_whole_and_its_path_told(files: ResultFiles) -> None:  # 17
    full = result(FALLING)
    path = Path(shaped(full, AGENT, files.save(full))["file_path"])

    assert path.is_absolute()
    assert path.name == "exit_signals_AAPL_20120629_200000.json"
    assert orjson.loads(path.read_bytes()) == full


def test_without_a_file_there_is_no_path() -> None:  # 18
    assert shaped(result(FALLING), AGENT)["file_path"] is None
    assert "file_path" not in shaped(result(FALLING), SUMMARY)
    assert "file_path" not in shaped(result(FALLING), FULL)


def test_a_summary_tells_the_path_of_its_file(files: ResultFiles) -> None:  # 19
    full = result(FALLING)
    answer = shaped(full, SUMMARY, files.save(full))

    assert Path(answer["file_path"]).is_file()
    assert answer["verdict"] == snapshot_of(full)["verdict"]
    assert answer["format"] == "summary"
    assert "signals" not in answer


def test_a_summary_says_why_nothing_is_sold_where_something_would_be() -> None:
    full = {**result(FALLING), "not_sold": "26 are being sold"}

    assert shaped(full, SUMMARY)["not_sold"] == full["not_sold"]
    assert "not_sold" not in shaped(result(FALLING), SUMMARY)


def test_a_full_answer_tells_the_path_of_its_file(files: ResultFiles) -> None:  # 20
    full = result(FALLING)
    answer = shaped(full, FULL, files.save(full))

    assert Path(answer["file_path"]).is_file()
    assert {**full, "format": "full"}.items() <= answer.items()


def test_a_failed_check_is_an_error_to_an_agent_with_its_flag() -> None:  # 21
    answer = shaped(error_of(NAMED, "not_held", "nothing of it is held"), AGENT)

    assert answer["status"] == "error"
    assert [each["flag"] for each in answer["flags"]] == ["signal_error"]
    assert answer["error_code"] == "not_held"
    assert answer["snapshot"]["signals"] == []


@pytest.mark.parametrize("shape", ExitFormat)
def test_an_error_has_its_code_and_sentence_in_the_same_place_in_every_format(
    shape: ExitFormat,
) -> None:
    answer = shaped(error_of(NAMED, "not_held", "nothing of it is held"), shape)

    assert (answer["status"], answer["error_code"]) == ("error", "not_held")
    assert answer["error"] == "nothing of it is held"


@pytest.mark.parametrize("shape", ExitFormat)
def test_the_price_of_a_stop_is_told_in_every_format(shape: ExitFormat) -> None:
    answer = shaped(result(CRASHING, stop_pct=8), shape)

    found = answer.get("snapshot") or answer.get("sizing") or answer
    assert found["stop_price"] == "92.00"


# --- files ------------------------------------------------------------------------------------


def test_two_results_of_one_second_have_files_of_their_own(files: ResultFiles) -> None:
    first, second = files.save(result(FALLING)), files.save(result())

    assert first["file_path"] != second["file_path"]
    found = [orjson.loads(Path(str(each["file_path"])).read_bytes()) for each in (first, second)]
    assert [each["overall_assessment"] for each in found] == ["EXIT (momentum)", "HOLD"]


def test_nothing_half_written_is_left_beside_the_results(files: ResultFiles) -> None:
    path = Path(str(files.save(result())["file_path"]))
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_that_cannot_be_made_is_told_and_the_answer_stands(tmp_path: Path) -> None:
    (tmp_path / "in_the_way").write_text("")
    refused = ResultFiles(tmp_path / "in_the_way", lambda: pytest.fail("nothing to name"))

    answer = shaped(result(FALLING), AGENT, refused.save(result(FALLING)))

    assert answer["file_path"] is None
    assert answer["file_error"].startswith("the result was not saved in /")
    assert answer["status"] == "success"


def test_a_full_directory_takes_no_more_and_says_so(
    files: ResultFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "FILES_MAX", 1)
    files.save(result())

    assert "holds 1 files already" in str(files.save(result())["file_error"])


@pytest.mark.parametrize(
    ("ticker", "name"),
    [
        ("AAPL", "AAPL"),
        ("BRK.B", "BRK.B"),
        ("BTC/USD", "BTC-USD"),
        ("A/../../../etc", "A-.-.-.-etc"),
        ("..", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
        ("A" * 300, "A" * 32),
        ("^GSPC", "GSPC"),
        ("C:\\x\x00y", "C-x-y"),
    ],
)
def test_a_ticker_in_a_files_name_leads_nowhere_else(ticker: object, name: str) -> None:
    assert safe_name(ticker) == name


def test_a_hostile_tickers_file_stays_in_its_directory(files: ResultFiles) -> None:
    path = Path(str(files.save({**result(), "ticker": "A/../../B"})["file_path"]))
    assert path.parent.name == "exit_signals"
    assert path.is_file()
