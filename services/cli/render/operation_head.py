"""What a screen of one operation begins with."""

from collections.abc import Iterable

from rich.text import Text

from contracts.operation import OperationView
from libs.facts import amounts
from libs.report.operations import took
from libs.report.tones import MARKS
from services.cli.shell.terminal import STATUS_STYLES


def head_of(node: OperationView) -> Iterable[Text]:
    """The step with its status, time and cost, its ids, its tokens by sort, and its failure."""
    yield Text.assemble(
        (f"{node.state}/{node.name}", "bold"),
        f"  {node.service}  ",
        (f"{MARKS[node.status]} {node.status.value}", STATUS_STYLES[node.status]),
        f"  {took(node)}  {amounts.cost(node.tokens, node.cost_usd)}",
    )
    under = (
        f"operation {node.op_id} · cycle {node.cycle_id} · pipeline {node.pipeline} · "
        f"attempt {node.attempt} · epoch {node.epoch}"
    )
    yield Text(under, "dim")
    if node.tokens:
        yield Text(f"tokens: {amounts.sorts(node.usage)}", "dim")
    if node.error_message:
        code = f" ({node.metadata['code']})" if node.metadata.get("code") else ""
        yield Text(f"{amounts.plain(node.error_message)}{code}", "red")
