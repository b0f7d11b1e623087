"""`deskbus resume`: end a halt."""

from contracts.halt import ResumeTrading
from contracts.subjects import RESUME
from services.cli.commands import JsonOption, group
from services.cli.halt import AccountOption, ReasonOption, show, switch
from services.cli.terminal import emit, err

app = group()


@app.command()
def resume(
    account: AccountOption = None, reason: ReasonOption = "", json: JsonOption = False
) -> None:
    """End the halt of all accounts, or with --account that of one; shows what still stands.

    Each halt ends by itself: resuming all accounts leaves the halts of single ones standing.
    """
    answer = switch(RESUME, ResumeTrading, account, reason)
    if json:
        emit([answer])
        return
    if not answer.changed:
        whose = account or "all accounts"
        err().print(f"there was no halt of {whose}: nothing changed", style="dim")
    show(answer.halts)
