"""A folder whose files change: when a change counts, and who reads which version."""

import asyncio
import errno
import os
import shutil
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from libs.market.calendar import exchange_calendar
from libs.market.errors import BadReplayData, ContentGone, NoHistory, UnknownTicker
from libs.market.rates import VersionedRates
from libs.market.replay import kept as kept_module
from libs.market.replay import versions as versions_module
from libs.market.replay.kept import KeptVersions
from libs.market.replay.layout import LABEL_FILE
from libs.market.replay.versioned import VersionedFills, VersionedMarket
from libs.market.replay.versions import Version, Versions
from libs.runtime.data_version import reading

HEADER = "date,open,high,low,close,volume\n"
FIRST, SECOND, THIRD = date(2024, 1, 2), date(2024, 1, 3), date(2024, 1, 4)
ROWS = {
    FIRST: "2024-01-02,10,11,9,10.5,1000\n",
    SECOND: "2024-01-03,10.5,12,10,11.5,2000\n",
    THIRD: "2024-01-04,11.5,12,11,11.75,3000\n",
}
CORRECTED = "2024-01-03,10.5,12,10,11.25,2000\n"
AAA, BBB = "AAA.csv", "BBB.csv"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    for name in (AAA, BBB):
        (data / name).write_text(HEADER + ROWS[FIRST] + ROWS[SECOND])
    return data


@pytest.fixture
def opened(folder: Path, tmp_path: Path) -> Callable[[], Versions]:
    """The folder as another process of the same desk opens it."""
    return lambda: Versions(folder, KeptVersions(tmp_path / "desk"))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change counts at once, and is looked for at each question."""
    monkeypatch.setattr(versions_module, "SETTLED_S", 0.0)
    monkeypatch.setattr(versions_module, "CHECK_EVERY_S", 0.0)
    monkeypatch.setattr(versions_module, "VERSION_EVERY_S", 0.0)
    monkeypatch.setattr(versions_module, "WAIT_S", 0.0)
    monkeypatch.setattr(kept_module, "TIDY_EVERY_S", 0.0)


async def close(versions: Versions, day: date, ticker: str = "AAA") -> float:
    bars = await VersionedMarket(versions, 40.0).bars(ticker, day, 1)
    return float(bars["close"][-1])


async def fixed(versions: Versions) -> str:
    newest = await versions.newest()
    assert newest.id is not None
    return newest.id


async def test_a_row_that_is_appended_is_seen_and_earlier_work_does_not_see_it(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    versions = opened()
    before = await fixed(versions)
    (folder / AAA).open("a").write(ROWS[THIRD])
    after = await fixed(versions)
    assert after != before
    assert await close(versions, THIRD) == 11.75
    fills = VersionedFills(versions)
    with reading(before), pytest.raises(NoHistory):
        await close(versions, THIRD)
    with reading(before), pytest.raises(NoHistory):
        await fills.next_open("AAA", SECOND)
    with reading(after):
        assert (await fills.next_open("AAA", SECOND)).session == THIRD


async def test_another_process_reads_the_version_that_a_cycle_was_accepted_with(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    before = await fixed(opened())
    (folder / AAA).write_text(HEADER + ROWS[FIRST] + CORRECTED)
    other = opened()
    assert await close(other, SECOND) == 11.25
    with reading(before):
        assert await close(other, SECOND) == 11.5
        assert await close(opened(), SECOND) == 11.5


READER = """
import asyncio, sys
from datetime import date
from pathlib import Path
from libs.market.replay.kept import KeptVersions
from libs.market.replay.versioned import VersionedMarket
from libs.market.replay.versions import Versions
from libs.runtime.data_version import reading

async def main() -> None:
    market = VersionedMarket(Versions(Path(sys.argv[1]), KeptVersions(Path(sys.argv[2]))), 40.0)
    with reading(sys.argv[3]):
        print(*(await market.bars("AAA", date(2024, 1, 3), 9))["close"].to_list())

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_process_of_its_own_reads_the_version_while_files_are_cut_off_and_replaced(
    folder: Path, tmp_path: Path, opened: Callable[[], Versions]
) -> None:
    versions = opened()
    before = await fixed(versions)
    for text in (HEADER + "2024-01-0", HEADER + ROWS[FIRST] + CORRECTED, ""):
        (folder / AAA).write_text(text)
        await fixed(versions)
        arguments = (str(folder), str(tmp_path / "desk"), before)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", READER, *arguments, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert out.decode().split() == ["10.5", "11.5"]


async def test_the_same_contents_are_the_same_version_in_every_process(
    folder: Path, tmp_path: Path, opened: Callable[[], Versions]
) -> None:
    elsewhere = Versions(folder, KeptVersions(tmp_path / "another desk"))
    before = await fixed(opened())
    assert await fixed(elsewhere) == before
    text = (folder / AAA).read_text()
    (folder / AAA).write_text(HEADER + ROWS[FIRST])
    assert await fixed(opened()) != before
    (folder / AAA).write_text(text)
    assert await fixed(opened()) == before


@pytest.mark.parametrize(
    "text",
    ["", HEADER, HEADER + ROWS[FIRST] + "2024-01-03,10.5,12,1", "date,open\n2024-01-02,1\n"],
    ids=["empty", "no rows", "half a row", "no columns"],
)
async def test_a_file_that_goes_bad_leaves_what_it_was(
    folder: Path, opened: Callable[[], Versions], text: str
) -> None:
    versions = opened()
    before = await fixed(versions)
    (folder / AAA).write_text(text)
    assert await fixed(versions) == before
    assert await close(versions, SECOND) == 11.5
    again = opened()
    assert await close(again, SECOND) == 11.5
    assert "AAA.csv" in str(versions.refused["AAA"])
    (folder / AAA).write_text(HEADER + ROWS[FIRST] + CORRECTED)
    assert await close(versions, SECOND) == 11.25
    assert versions.refused == {}


async def test_a_file_that_was_never_good_costs_its_ticker_and_no_other(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    versions = opened()
    before = await fixed(versions)
    (folder / "CCC.csv").write_text("nonsense\n")
    assert await fixed(versions) != before
    with pytest.raises(BadReplayData, match=r"CCC\.csv"):
        await close(versions, SECOND, "CCC")
    assert await close(versions, SECOND, "BBB") == 11.5


async def test_a_file_that_is_bad_when_a_desk_starts_is_bad(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    await fixed(opened())
    (folder / AAA).write_text("nonsense\n")
    assert await close(opened(), SECOND) == 11.5
    versions = opened()
    await versions.begin()
    with pytest.raises(BadReplayData, match=r"AAA\.csv"):
        await close(versions, SECOND)
    assert await close(versions, SECOND, "BBB") == 11.5


async def test_new_and_removed_files_are_seen(folder: Path, opened: Callable[[], Versions]) -> None:
    versions = opened()
    before = await fixed(versions)
    (folder / "CCC.csv").write_text(HEADER + ROWS[FIRST] + ROWS[SECOND])
    (folder / AAA).unlink()
    assert await close(versions, SECOND, "CCC") == 11.5
    with pytest.raises(UnknownTicker):
        await close(versions, SECOND)
    with reading(before):
        assert await close(versions, SECOND) == 11.5


async def test_a_second_file_of_a_ticker_leaves_what_it_was(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    versions = opened()
    before = await fixed(versions)
    (folder / "aaa.CSV").write_text(HEADER + ROWS[FIRST] + CORRECTED)
    assert await fixed(versions) == before
    assert "AAA is also in" in str(versions.refused["AAA"])
    (folder / "aaa.CSV").unlink()
    assert await fixed(versions) == before
    assert versions.refused == {}


async def test_a_change_counts_once_the_file_has_rested(
    folder: Path, opened: Callable[[], Versions], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = opened()
    before = await fixed(versions)
    monkeypatch.setattr(versions_module, "SETTLED_S", 1e9)
    (folder / AAA).open("a").write(ROWS[THIRD])
    (folder / BBB).unlink()
    assert await fixed(versions) == before
    monkeypatch.setattr(versions_module, "SETTLED_S", 0.0)
    assert await fixed(versions) != before


async def test_an_unchanged_file_is_neither_read_nor_parsed_again(
    folder: Path, opened: Callable[[], Versions], monkeypatch: pytest.MonkeyPatch
) -> None:
    await fixed(opened())
    (folder / BBB).open("a").write(ROWS[THIRD])
    kept = []
    keep = KeptVersions.keep

    def counted(self: KeptVersions, name: str, body: bytes) -> str:
        kept.append(name)
        return keep(self, name, body)

    monkeypatch.setattr(KeptVersions, "keep", counted)
    versions = opened()
    await fixed(versions)
    await fixed(versions)
    assert kept == [BBB]


async def test_the_folder_may_vanish(folder: Path, opened: Callable[[], Versions]) -> None:
    versions = opened()
    before = await fixed(versions)
    shutil.move(folder, folder.with_name("away"))
    assert await fixed(versions) == before
    assert await close(versions, SECOND) == 11.5
    assert versions.refused


async def test_settings_of_the_folder_wait_for_a_restart(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    versions = opened()
    before = await fixed(versions)
    (folder / LABEL_FILE).write_text('name = "other"\n')
    (folder / AAA).open("a").write(ROWS[THIRD])
    assert await close(versions, THIRD) == 11.75
    assert "restart the desk" in str(versions.refused[LABEL_FILE])
    assert VersionedMarket(versions, 40.0).label.name == "data"
    restarted = opened()
    await restarted.begin()
    assert await fixed(restarted) != before
    assert VersionedMarket(restarted, 40.0).label.name == "other"
    assert restarted.refused == {}


async def test_another_process_does_not_apply_settings_to_a_running_desk(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    (folder / LABEL_FILE).write_text('currency = "USD"\n')
    (folder / AAA).open("a").write(ROWS[THIRD])
    desk = opened()
    before = (await desk.begin()).id
    (folder / LABEL_FILE).write_text('currency = "GBP"\n')
    for versions in (opened(), desk, opened()):
        assert await fixed(versions) == before
        assert (await VersionedFills(versions).next_open("AAA", SECOND)).currency == "USD"
        assert "restart the desk" in str(versions.refused[LABEL_FILE])
    (folder / LABEL_FILE).write_text('currency = "USD"\n')
    assert await fixed(desk) == before
    assert desk.refused == {}


async def test_a_version_that_is_gone_is_an_error_and_no_other_data(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "CONTENTS_BYTES_MAX", 0)
    versions = Versions(folder, KeptVersions(tmp_path / "desk"))
    before = await fixed(versions)
    (folder / AAA).write_text(HEADER + ROWS[FIRST] + CORRECTED)
    await fixed(versions)
    other = Versions(folder, KeptVersions(tmp_path / "desk"))
    with reading(before):
        assert await close(other, SECOND, "BBB") == 11.5
        with pytest.raises(ContentGone, match="request the cycle again"):
            await close(other, SECOND)
    with reading("0123456789abcdef"), pytest.raises(ContentGone):
        await close(other, SECOND, "BBB")


async def test_a_desk_that_can_keep_nothing_reads_the_folder_itself(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    versions = Versions(folder, KeptVersions(tmp_path / "file" / "desk"))
    before = await fixed(versions)
    with reading(before):
        assert await close(versions, SECOND) == 11.5
    (folder / AAA).open("a").write(ROWS[THIRD])
    assert await close(versions, THIRD) == 11.75


async def test_a_correction_of_a_past_bar_is_noted(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    versions = opened()
    before = await fixed(versions)
    (folder / AAA).write_text(HEADER + ROWS[FIRST] + CORRECTED + ROWS[THIRD])
    (folder / BBB).open("a").write(ROWS[THIRD])
    after = await fixed(versions)
    (correction,) = versions.corrections
    assert (correction.ticker, correction.first, correction.last) == ("AAA", SECOND, SECOND)
    assert (correction.was, correction.now, correction.bars) == (11.5, 11.25, 1)
    assert (correction.before, correction.after) == (before, after)


async def test_old_versions_go(
    folder: Path, tmp_path: Path, opened: Callable[[], Versions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "VERSIONS_KEPT_MIN", 2)
    monkeypatch.setattr(kept_module, "YOUNG_VERSION_S", -1.0)
    monkeypatch.setattr(kept_module, "YOUNG_S", -1.0)
    versions = opened()
    for rows in (ROWS[FIRST], ROWS[FIRST] + CORRECTED, ROWS[FIRST] + ROWS[SECOND] + ROWS[THIRD]):
        (folder / AAA).write_text(HEADER + rows)
        await fixed(versions)
    assert len(list((tmp_path / "desk" / "versions").iterdir())) == 2
    assert len(list((tmp_path / "desk" / "contents").iterdir())) == 3  # BBB, and AAA twice


async def test_the_version_of_a_cycle_outlasts_a_script_that_writes_many_files(
    folder: Path, tmp_path: Path, opened: Callable[[], Versions]
) -> None:
    versions = opened()
    before = await fixed(versions)
    week_ago = time.time() - 7 * 86_400
    os.utime(tmp_path / "desk" / "versions" / f"{before}.json", (week_ago, week_ago))
    for volume in range(2000, 2040):
        (folder / AAA).write_text(HEADER + ROWS[FIRST] + f"2024-01-03,10,12,10,11.25,{volume}\n")
        await fixed(versions)
    with reading(before):
        assert await close(opened(), SECOND) == 11.5


async def test_old_versions_go_where_there_is_no_room(
    folder: Path, tmp_path: Path, opened: Callable[[], Versions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "YOUNG_S", -1.0)
    monkeypatch.setattr(kept_module, "CONTENTS_BYTES_MAX", 600)
    versions = opened()
    for volume in range(2000, 2020):
        (folder / AAA).write_text(HEADER + ROWS[FIRST] + f"2024-01-03,10,12,10,11.25,{volume}\n")
        newest = await fixed(versions)
    kept = tmp_path / "desk"
    assert sum(path.stat().st_size for path in kept.glob("contents/*/*")) <= 600
    assert 1 < len(list(kept.glob("versions/*.json"))) < 10
    with reading(newest):
        assert await close(opened(), SECOND) == 11.25


async def test_where_there_is_little_room_no_copies_are_kept(
    folder: Path, tmp_path: Path, opened: Callable[[], Versions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=200))
    versions = opened()
    before = await fixed(versions)
    assert not list((tmp_path / "desk" / "contents").glob(f"*/{AAA}"))
    with reading(before):
        assert await close(versions, SECOND) == 11.5
    (folder / AAA).open("a").write(ROWS[THIRD])
    assert await close(versions, THIRD) == 11.75


@pytest.mark.parametrize("body", [b"", None], ids=["empty", "gone"])
async def test_a_damaged_copy_gives_way_to_the_file(
    folder: Path, tmp_path: Path, opened: Callable[[], Versions], body: bytes | None
) -> None:
    before = await fixed(opened())
    (copy,) = (tmp_path / "desk" / "contents").glob(f"*/{AAA}")
    versions = opened()
    assert await close(versions, SECOND, "BBB") == 11.5
    copy.unlink() if body is None else copy.write_bytes(body)
    assert await close(versions, SECOND) == 11.5
    assert not copy.exists()
    with reading(before):
        assert await close(opened(), SECOND) == 11.5


async def test_a_service_starts_while_the_settings_are_bad(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    before = await fixed(opened())
    (folder / LABEL_FILE).write_text("currency = [")
    service = opened()
    assert VersionedMarket(service, 40.0).label.name == "data"
    assert await close(service, SECOND) == 11.5
    assert await fixed(service) == before
    assert LABEL_FILE in service.refused
    with pytest.raises(BadReplayData, match=LABEL_FILE):
        await opened().begin()


async def test_a_version_is_made_for_a_cycle_or_after_a_while(
    folder: Path, opened: Callable[[], Versions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions_module, "VERSION_EVERY_S", 1e9)
    before = await fixed(opened())
    versions = opened()
    (folder / AAA).open("a").write(ROWS[THIRD])
    assert (await versions.read()).id == before
    monkeypatch.setattr(versions_module, "CHECK_EVERY_S", 1e9)
    assert await fixed(versions) != before
    (folder / BBB).open("a").write(ROWS[THIRD])
    monkeypatch.setattr(versions_module, "CHECK_EVERY_S", 0.0)
    monkeypatch.setattr(versions_module, "VERSION_EVERY_S", 0.0)
    assert await close(versions, THIRD, "BBB") == 11.75


async def test_a_file_that_goes_bad_and_is_not_kept_costs_its_ticker(
    folder: Path, opened: Callable[[], Versions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "CONTENTS_BYTES_MAX", 0)
    versions = opened()
    await fixed(versions)
    (folder / AAA).write_text("nonsense\n")
    await fixed(versions)
    listed = await VersionedMarket(versions, 40.0).universe(SECOND)
    assert [listing.ticker for listing in listed] == ["BBB"]


async def test_a_version_that_could_not_be_written_is_the_newest(
    folder: Path, opened: Callable[[], Versions], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = opened()
    before = await fixed(versions)

    def fails(path: Path, body: bytes) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(kept_module, "_write", fails)
    (folder / AAA).write_text(HEADER + ROWS[FIRST] + CORRECTED)
    assert await fixed(versions) != before
    (folder / AAA).write_text(HEADER + ROWS[FIRST] + ROWS[SECOND])
    assert await fixed(versions) == before
    assert [correction.now for correction in versions.corrections] == [11.25, 11.5]


async def test_a_link_to_another_folder_is_a_change(
    folder: Path, tmp_path: Path, opened: Callable[[], Versions]
) -> None:
    link, other = tmp_path / "link", tmp_path / "other"
    link.symlink_to(folder)
    versions = Versions(link, KeptVersions(tmp_path / "desk"))
    before = await fixed(versions)
    shutil.copytree(folder, other)
    (other / AAA).write_text("nonsense\n")
    (tmp_path / "new").symlink_to(other)
    (tmp_path / "new").replace(link)
    assert await fixed(versions) == before
    assert await close(versions, SECOND) == 11.5
    assert AAA in str(versions.refused["AAA"])


async def test_without_a_desk_the_files_are_read_as_they_are(
    tmp_path: Path, opened: Callable[[], Versions]
) -> None:
    assert await close(opened(), SECOND) == 11.5
    assert not (tmp_path / "desk").exists()


async def test_a_new_exchange_of_a_ticker_is_seen(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    versions = opened()
    before = await fixed(versions)
    (folder / "sectors.csv").write_text("ticker,sector,currency\nAAA,Energy,EUR\n")
    market = VersionedMarket(versions, 40.0)
    (listing,) = await market.universe(SECOND, ("AAA",))
    assert (listing.sector, listing.currency) == ("Energy", "EUR")
    (folder / "sectors.csv").write_text("nothing\n")
    (listing,) = await market.universe(SECOND, ("AAA",))
    assert listing.sector == "Energy"
    with reading(before):
        (listing,) = await market.universe(SECOND, ("AAA",))
    assert listing.currency == "USD"


def test_a_version_makes_a_thing_once(opened: Callable[[], Versions]) -> None:
    version = opened().known
    assert isinstance(version, Version)
    assert version.of(id) == version.of(id)


async def test_a_bad_row_of_sectors_costs_its_ticker_until_it_is_corrected(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    sectors = folder / "sectors.csv"
    sectors.write_text("ticker,sector\nAAA,Energy\nBBB,\n")
    versions = opened()
    await versions.begin()
    market = VersionedMarket(versions, 40.0)
    assert [one.ticker for one in await market.universe(SECOND)] == ["AAA"]
    assert set(market.faults) == {"BBB", "sectors"}
    sectors.write_text("ticker,sector\nAAA,Energy\nBBB,Utilities\n")
    assert [one.sector for one in await market.universe(SECOND)] == ["Energy", "Utilities"]
    # A row that goes bad while the desk runs costs its ticker; the others are those of now.
    sectors.write_text("ticker,sector\nAAA,\nBBB,Banks\n")
    assert [one.sector for one in await market.universe(SECOND)] == ["Banks"]
    assert set(market.faults) == {"AAA", "sectors"}
    assert versions.refused == {}
    (folder / AAA).open("a").write(ROWS[THIRD])
    await versions.newest()
    sectors.write_text("ticker,sector\nAAA,Energy\nBBB,Banks\n")
    assert await close(versions, THIRD) == 11.75, "what came while its row was bad"


FX = "date,pair,rate,known_at\n"
RATES = {
    FIRST: "2024-01-02,EURUSD,1.1,2024-01-02\n2024-01-02,GBPUSD,1.2,2024-01-02\n",
    SECOND: "2024-01-03,EURUSD,1.11,2024-01-03\n2024-01-03,GBPUSD,abc,2024-01-03\n",
    THIRD: "2024-01-04,EURUSD,1.12,2024-01-04\n2024-01-04,GBPUSD,1.22,2024-01-04\n",
}


async def known(versions: Versions, day: date) -> dict[str, str]:
    at = exchange_calendar().close(day)
    return {
        name: f"{rate.rate.normalize()} of {rate.on}"
        for name, rate in (await VersionedRates(versions).into("USD", at)).items()
    }


async def test_a_bad_rate_costs_its_pair_until_a_newer_one_while_the_desk_runs(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    fx = folder / "fx.csv"
    fx.write_text(FX + RATES[FIRST])
    versions = opened()
    await versions.begin()
    fx.write_text(FX + RATES[FIRST] + RATES[SECOND])
    assert await known(versions, SECOND) == {"EUR": "1.11 of 2024-01-03"}
    store = (await versions.read()).store
    assert "fx.csv, line 5: rate is 'abc'" in str(store.faults["fx"])
    assert versions.refused == {}
    fx.write_text(FX + RATES[FIRST] + RATES[SECOND] + RATES[THIRD])
    both = {"EUR": "1.12 of 2024-01-04", "GBP": "1.22 of 2024-01-04"}
    assert await known(versions, THIRD) == both


@pytest.mark.parametrize("began", [FIRST, SECOND], ids=["good", "a bad row"])
@pytest.mark.parametrize(
    "end", ["2024-01-0", "2024-01-04,EUR", "2024-01-04,EURUSD,", "2024-01-04,EURUSD,1.12,2024-0"]
)
async def test_a_file_of_rates_that_ends_within_a_row_leaves_what_it_was(
    folder: Path, opened: Callable[[], Versions], end: str, began: date
) -> None:
    fx = folder / "fx.csv"
    fx.write_text(FX + RATES[FIRST] + RATES[began])
    versions = opened()
    await versions.begin()
    before = await fixed(versions)
    fx.write_text(FX + RATES[SECOND] + end)  # written anew, and not yet whole
    assert await fixed(versions) == before
    assert "fx.csv, line 4" in str(versions.refused["fx"])
    fx.write_text(FX + RATES[SECOND] + RATES[THIRD])
    assert (await known(versions, THIRD))["EUR"] == "1.12 of 2024-01-04"
    assert versions.refused == {}


async def test_a_bad_last_row_without_a_line_end_is_no_cut_off_file(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    fx = folder / "fx.csv"
    fx.write_text(FX + RATES[FIRST])
    versions = opened()
    await versions.begin()
    fx.write_text(FX + RATES[FIRST] + RATES[SECOND].rstrip())
    assert await known(versions, SECOND) == {"EUR": "1.11 of 2024-01-03"}


async def test_sectors_that_go_bad_cost_no_ticker_of_another_exchange(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    sectors = folder / "sectors.csv"
    sectors.write_text("ticker,sector,exchange\nCCC,Energy,XETR\n")
    (folder / "CCC.csv").write_text(HEADER + "2024-07-04,10,11,9,10,1000\n")
    versions = opened()
    await versions.begin()
    assert list(await (await versions.read()).store.dates("CCC")) == [date(2024, 7, 4)]
    sectors.write_text("nothing\n")
    assert list(await (await versions.read()).store.dates("CCC")) == [date(2024, 7, 4)]
    assert list(versions.refused) == ["sectors"]


async def test_a_file_that_began_with_a_bad_row_goes_on_by_its_good_ones(
    folder: Path, opened: Callable[[], Versions]
) -> None:
    sectors = folder / "sectors.csv"
    sectors.write_text("ticker,sector\nAAA,Energy\nBBB,\n")
    versions = opened()
    await versions.begin()
    market = VersionedMarket(versions, 40.0)
    (folder / "CCC.csv").write_text(HEADER + ROWS[FIRST] + ROWS[SECOND])
    sectors.write_text("ticker,sector\nAAA,Energy\nBBB,\nCCC,Banks\n")
    listed = {one.ticker: one.sector for one in await market.universe(SECOND)}
    assert listed == {"AAA": "Energy", "CCC": "Banks"}
