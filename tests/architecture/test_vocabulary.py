"""Names and docstrings use the field's words. The private ones become fewer until none is left: docs/glossary.md."""

import pytest

from vocabulary import FOLDERS, PRIVATE, counted, uses, uses_in

# Folder -> word -> how many are left. A number may only fall: lower it when it has.
LEFT = {
    "service": {"tell": 0, "hear": 0, "door": 0, "harm": 0, "look": 0},
    "sparkjobs": {"tell": 0, "hear": 0, "door": 0, "harm": 0, "look": 0},
    "tests": {"tell": 515, "hear": 55, "door": 97, "harm": 19, "look": 210},
    "benchmarks": {"tell": 18, "hear": 6, "door": 1, "harm": 0, "look": 24},
}


@pytest.fixture(scope="module")
def counts():
    return counted(uses())


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("word", PRIVATE)
def test_private_words_become_fewer(counts, folder: str, word: str) -> None:
    found, left = counts[folder][word], LEFT[folder][word]
    assert found <= left, (
        f"{folder} says '{word}' {found} times, {found - left} more than before; write one of: {PRIVATE[word][1]}. "
        f"Each place: .venv/bin/python tools/vocabulary.py {word}"
    )


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def told_once(): ...", ["tell"]),
        ("class HttpDoor: ...", ["door"]),
        ("def f(untold): ...", ["tell"]),
        ("harms = 1", ["harm"]),
        ('"""Look at it.\n\nIt is heard."""', ["look", "hear"]),
        ("door.close()", []),  # counted where the name is made
        ('"""Look up a name; it looks like one, and is harmless."""', []),
        ("lookup = outdoors = 1", []),
        ("print('the door')", []),  # a text for people is judged as such
    ],
)
def test_a_use_is_found(source: str, words: list[str]) -> None:
    assert [use.word for use in uses_in(source, "module.py")] == words


def test_a_use_has_its_line() -> None:
    (use,) = uses_in('def f():\n    """Nothing.\n\n    It is told.\n    """\n', "module.py")
    assert use.where == "module.py:4"
