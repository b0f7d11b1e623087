"""The subject table: its modules are read one by one, and together they are all of it."""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from contracts import subjects
from contracts.audit import EXECUTION, EventType
from contracts.subjects.approvals import APPROVAL
from contracts.subjects.commands import COMMANDS
from contracts.subjects.events import EVENTS, NOTICES
from contracts.subjects.operations import CLAIM, RECORD, RESULT, STOP
from contracts.subjects.subject import AnySubject, Subject
from contracts.subjects.table import OF_SERVICES, QUERIES, REQUESTS

LISTED: set[AnySubject] = {*REQUESTS, *COMMANDS, *QUERIES, *OF_SERVICES, *EVENTS, *NOTICES}
OF_OPERATIONS: set[AnySubject] = {CLAIM, RECORD, RESULT, STOP, APPROVAL}
"""What the machinery of operations speaks; no list of anybody's rights has them."""


def test_every_row_stands_in_a_list_from_which_rights_and_documents_are_derived() -> None:
    modules = [
        import_module(f"{subjects.__name__}.{m.name}") for m in iter_modules(subjects.__path__)
    ]
    rows = {row for module in modules for row in vars(module).values() if isinstance(row, Subject)}

    assert len(rows) > 50
    assert rows - LISTED == OF_OPERATIONS


def test_no_two_rows_have_one_address() -> None:
    addresses = [row.address for row in LISTED | OF_OPERATIONS]

    assert len(addresses) == len(set(addresses))


def test_execution_writes_events_of_its_own_alone(root: Path) -> None:
    """Its rows say so in SQL, which nobody holds against the table."""
    modules = root.glob("services/execution/**/*.py")
    named = re.findall(r"EventType\.(\w+)", "".join(module.read_text() for module in modules))

    assert {EventType[name].owner for name in named} == {EXECUTION}
