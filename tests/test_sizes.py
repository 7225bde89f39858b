"""What is read at once stays small enough to be."""

import ast

import pytest
from helpers.imported import PACKAGE

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 60
MOST_LINES_OF_THE_METHOD = 100  # on one screen

MOST_MODULES = 15  # side by side in a package

FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_are_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= MOST_LINES_OF_A_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno + 1 <= MOST_LINES_OF_A_FUNCTION, node.name


def test_packages_can_be_taken_in_at_a_glance():
    folders = {path.parent for path in FILES}
    assert len(folders) > 20
    for folder in folders:
        assert len([*folder.glob("*.py")]) - 1 <= MOST_MODULES, folder


def test_the_method_is_on_one_screen():
    text = (PACKAGE / "replay/priority.py").read_text()
    assert len(text.splitlines()) < MOST_LINES_OF_THE_METHOD
