"""What is imported is declared: an environment that other packages happen to fill must not hide a missing one."""

import ast
import importlib.metadata
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom) and node.module and not node.level
            else []
        )
        yield from (name.partition(".")[0] for name in names)


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def declared():
    return {canonical(Requirement(text).name) for text in importlib.metadata.requires("numcolbert")}


@pytest.mark.parametrize("where", ["numcolbert", "benchmarks", "tests", "hub", "examples"])
def test_every_import_is_declared(where):
    files = [*(ROOT / where).rglob("*.py")]
    ours = {"numcolbert", "tests", "hub", "conftest", *(path.stem for path in files if where == "benchmarks")}
    known = declared()
    distributions = importlib.metadata.packages_distributions()
    missing = {}
    for path in files:
        for name in {*imported(path)} - ours - sys.stdlib_module_names:
            if not known & {canonical(owner) for owner in distributions.get(name, [name])}:
                missing.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    assert missing == {}
