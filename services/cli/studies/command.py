"""`deskbus study`: the table of its commands."""

from services.cli.shell.options import group
from services.cli.studies.plan import plan
from services.cli.studies.report import report
from services.cli.studies.run import list_studies, run, status, stop
from services.cli.studies.score import cells, score
from services.cli.studies.score_decisions import score_decisions

app = group()


@app.callback()
def study() -> None:
    """Plan, run and score studies: compare arms, skill and luck.

    `deskbus init` writes a study.yaml to start from; docs/studies.md explains each field.
    """


app.command()(plan)
app.command()(run)
app.command()(status)
app.command()(stop)
app.command("list")(list_studies)
app.command()(score)
app.command()(cells)
app.command()(report)
app.command("score-decisions")(score_decisions)
