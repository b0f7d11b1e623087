"""The table of error codes in docs/errors.md, made from the classes that raise them."""

import importlib
import pkgutil
from collections.abc import Iterator

import libs
import services
from libs.runtime.errors import DeskError


def table() -> str:
    """One row a code, with the first sentence of what its error promises."""
    for package in (libs, services):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    codes: dict[str, set[str]] = {}
    for error in _family(DeskError):
        if error.__module__.partition(".")[0] in {"libs", "services"}:
            codes.setdefault(error.code, set()).add(_first_sentence(error.__doc__ or ""))
    head = ["| code | meaning |", "| --- | --- |"]
    return "\n".join(
        [*head, *(f"| `{code}` | {' / '.join(sorted(codes[code]))} |" for code in sorted(codes))]
    )


def _family(base: type[DeskError]) -> Iterator[type[DeskError]]:
    for error in base.__subclasses__():
        if "code" in vars(error):
            yield error
        yield from _family(error)


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".").replace("|", "/")
