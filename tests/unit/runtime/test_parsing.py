"""Source as a tree, in any thread."""

import ast
import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from libs.runtime.parsing import parsed

SOURCE = "def f(x):\n    return [1, {'b': (3, x['a'] == 4)}]\n" * 100


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that take turns often, also within the making of a tree."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(5)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)


class Litter:
    """Garbage that runs code of Python when it is collected, where another thread may go on."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        sum(range(50))


def tree_of(source: str) -> ast.Module:
    Litter()
    return parsed(source)


@pytest.mark.usefixtures("restless")
def test_threads_that_parse_at_once_all_have_their_tree() -> None:
    with ThreadPoolExecutor(4) as threads:
        trees = list(threads.map(tree_of, [SOURCE] * 60))
    assert {len(tree.body) for tree in trees} == {100}


@pytest.mark.parametrize("source", ["def f(:", b"\xff", "a\0b"])
def test_what_is_no_source_is_refused_and_others_are_parsed_after(source: str | bytes) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        parsed(source)
    assert len(parsed("x = 1").body) == 1
