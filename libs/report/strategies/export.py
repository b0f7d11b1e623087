"""The report as a file, written by each step that has found something new."""

from pydantic import JsonValue

from contracts.operation import CallKind
from contracts.strategy_cycle import StrategyDesign
from contracts.strategy_result import BacktestResult, TrainingResult
from libs.report.strategies.files import StrategyFiles
from libs.report.strategies.page import page
from libs.runtime.journal import Call, Reply


def report_call(
    files: StrategyFiles,
    design: StrategyDesign,
    training: TrainingResult,
    backtest: BacktestResult | None = None,
) -> Call:
    """The export, to be journalled: an operation that starts again does not write again."""
    request: JsonValue = {"name": design.spec.name, "spec_sha256": design.spec_sha256}

    async def write() -> Reply:
        written = files.keep_report(design.spec.name, page(design, training, backtest))
        return Reply({"path": str(written)})

    return Call(CallKind.READ, "export of the report", request, write)
