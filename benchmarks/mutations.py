"""Changes of one expression or statement, for benchmarks/mutants.py.

Comparisons, arithmetic and `and`/`or` swapped, `not` dropped, a number one more, True for False,
min for max, and None returned where a value was. Texts, docstrings and f-strings stay as they are.
"""

import ast
import itertools
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PRODUCT: Final = ("contracts", "libs", "services")

SWAPS: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
ENDS: Final = {"min": "max", "max": "min"}


@dataclass(frozen=True)
class Mutant:
    """One change of one expression or statement."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    before: str
    after: str
    at_import: bool

    @property
    def name(self) -> str:
        """As it is listed, and known again after an interruption."""
        return f"{self.path}:{self.line}:{self.column}: {self.before} -> {self.after}"

    def applied(self, source: str) -> str:
        """The module with the change. Columns are bytes, as the parser counts them."""
        lines = source.encode().split(b"\n")
        head = lines[self.line - 1][: self.column]
        tail = lines[self.end_line - 1][self.end_column :]
        pad = [b""] * (self.end_line - self.line)
        lines[self.line - 1 : self.end_line] = [head + self.after.encode() + tail, *pad]
        return b"\n".join(lines).decode()

    def compiles(self, root: Path) -> bool:
        """Whether the change is Python; one of a text over several lines is not."""
        with suppress(SyntaxError):
            source = (root / self.path).read_text(encoding="utf-8")
            return bool(compile(self.applied(source), self.path, "exec", dont_inherit=True))
        return False


def _changed(node: ast.AST, returns_nothing: bool) -> Iterator[ast.AST]:
    """Each single change of a node; what it holds is changed elsewhere."""
    match node:
        case ast.Compare(ops=ops):
            for index, operator in enumerate(ops):
                ops_now = [*ops[:index], SWAPS[type(operator)](), *ops[index + 1 :]]
                yield _with_fields(node, ops=ops_now)
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            yield _with_fields(node, op=SWAPS[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Return(value=value) if value is not None and not returns_nothing:
            if not (isinstance(value, ast.Constant) and value.value is None):
                yield ast.Return(ast.Constant(None))
        case ast.Call(func=ast.Name(id=name)) if name in ENDS:
            yield _with_fields(node, func=ast.Name(ENDS[name]))


def _with_fields(node: ast.AST, **fields: Any) -> ast.AST:
    """A copy with some fields replaced."""
    new = copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """Every change that a module allows."""

    def visit(node: ast.AST, inside: ast.AST | None) -> Iterator[Mutant]:
        if isinstance(node, ast.JoinedStr):
            return
        returns = getattr(inside, "returns", None)
        nothing = isinstance(returns, ast.Constant) and returns.value is None
        for new in _changed(node, nothing):
            assert isinstance(node, (ast.expr, ast.stmt))
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            before = " ".join(ast.unparse(node).split())
            where = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
            yield Mutant(path, *where, before, ast.unparse(new), inside is None)
        function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        body = getattr(node, "body", None)
        within = body if isinstance(body, list) else [body]
        for child in ast.iter_child_nodes(node):
            yield from visit(child, node if function and child in within else inside)

    yield from visit(ast.parse(source), None)


def drawn(root: Path, count: int, seed: int) -> Sequence[Mutant]:
    """`count` of all changes, the same ones for the same sources and seed."""
    files = sorted(file for package in PRODUCT for file in (root / package).rglob("*.py"))
    places = [
        mutant
        for file in files
        for mutant in mutants(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))
    ]
    print(f"{len(places)} places in {len(files)} files", flush=True)
    random.Random(seed).shuffle(places)
    return list(itertools.islice((m for m in places if m.compiles(root)), count))
