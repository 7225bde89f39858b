"""One word for one thing, the words of the field, and docstrings that begin with a verb."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest
from helpers.imported import PACKAGE

ROOT = Path(__file__).parents[1]
FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in FILES}
GLOSSARY = (ROOT / "docs/glossary.md").read_text()

# Words of before; docs/glossary.md has those of now.
GONE = (
    r"study|studies|practise|[Ll]esson|Study",
    r"goes_on|\breach\(|\bexact\(",
    r"Shown\b|\bTally\b|\btally\b|look_at",
    r"own_env|OwnConfig|is_own\b",
    r"sampleable|study_ahead",
    r"\bfilms?\b|_film\b|\bFilm\b",
)
NO_VERB = re.compile(
    r"(?:A|All|An|As|At|Both|By|Each|Every|For|From|How|In|Its|Most|Nothing|Of|On|One|Per|The|"
    r"That|This|Two|What|Whatever|Where|Whether|Which|Who|Whose|Why|Returns|Yields|Names|Steps|"
    r"Frames|Mean|Pictures|Numbers|Values|Shares?|Chances?|Settings)\b|[^A-Z]"
)
SAME_ROLE = {"ActorCritic", "Size", "WorldModel"}
"""Classes that several agents have, each in its own file."""


@pytest.mark.parametrize("words", GONE)
def test_words_of_before_are_gone(words):
    renamed = ("commands/demo.py", "record/checkpoint_files.py")  # read what has the old names
    for path in FILES:
        if not str(path).endswith(renamed):
            found = re.search(words, path.read_text())
            assert found is None, f"{path.relative_to(ROOT)}: {found[0]}"


def functions():
    """Functions with a docstring, but properties, which are read like attributes."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            names = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
            if not names & {"property", "cached_property"} and ast.get_docstring(node):
                yield path.relative_to(ROOT), node


def test_docstrings_of_functions_begin_with_a_verb():
    found = [
        f"{path}:{node.lineno}: {ast.get_docstring(node).splitlines()[0]}"
        for path, node in functions()
        if NO_VERB.match(ast.get_docstring(node))
    ]
    assert not found, "\n".join(found)
    assert len(list(functions())) > 1_000


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert twice.keys() == SAME_ROLE, twice


def test_the_glossary_names_what_there_is():
    """Names of classes and functions in its first column, and packages it says there are."""
    defined = {node.name for tree in TREES.values() for node in ast.walk(tree)
               if isinstance(node, ast.FunctionDef | ast.ClassDef)}  # fmt: skip
    words = {*re.findall(r"\w+", "".join(path.read_text() for path in FILES))}
    rows = re.findall(r"^\| ([^|]+) \|", GLOSSARY.partition("## Names that changed")[0], re.M)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(named) > 20
    assert not named - words
    assert {"Transition", "EpisodeStats", "train_world_model", "to_float32"} <= named & defined
    for module in re.findall(r"`curious_replay\.([\w.]+)`", GLOSSARY.rpartition("| Before |")[2]):
        assert module.split(".")[0] in {"run", "envs"}
