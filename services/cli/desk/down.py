"""`deskbus down`: stop the desk that runs here."""

from pydantic import BaseModel

from services.cli.desk import background
from services.cli.shell.options import JsonOption, group
from services.cli.shell.progress import CycleProgress
from services.cli.shell.running import load_settings
from services.cli.shell.terminal import aside, emit, err

app = group()


class StoppedDesk(BaseModel):
    """`stopped`, or `off` where no desk was running."""

    status: str
    pid: int | None = None


@app.command()
def down(json: JsonOption = False) -> None:
    """Stop the desk of this data directory cleanly, and wait until it has stopped.

    Nothing is lost: running cycles continue at the next `deskbus up`. If no desk runs, it does
    nothing. Your own servers (DESKBUS_NATS_URL) keep running.
    """
    settings = load_settings()
    desk = background.recorded(settings)
    if desk is None:
        if json:
            emit([StoppedDesk(status="off")])
        else:
            where = settings.data_dir.absolute()
            aside(f"no desk is running in {where}")
        return
    with CycleProgress(err()) as progress:
        progress.says(f"stopping the desk (process {desk.pid})")
        background.stop(desk)
    if json:
        emit([StoppedDesk(status="stopped", pid=desk.pid)])
    else:
        aside("the desk is stopped; `deskbus up` continues where it stopped", "")
