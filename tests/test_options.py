"""Every command takes its options in full: a shortened one could mean another option of the next version."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for folder in ("numcolbert", "hub", "examples", "benchmarks", ".")
    for path in (ROOT / folder).glob("*.py" if folder == "." else "**/*.py")
)


def parsers(path: Path) -> list[ast.Call]:
    """Calls that make a parser of command lines."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func).split(".")[-1] == "ArgumentParser"]


PARSERS = [(path, call) for path in SOURCES for call in parsers(path)]


def test_parsers_are_found():
    assert {path.relative_to(ROOT).as_posix() for path, _ in PARSERS} >= {"train.py", "hub/publish.py"}


@pytest.mark.parametrize(("path", "call"), PARSERS, ids=[f"{path.name}:{call.lineno}" for path, call in PARSERS])
def test_abbreviations_are_off(path, call):
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    assert given.get("allow_abbrev") == "False", f"{path} line {call.lineno}"
