"""Names and docstrings use the field's words, and none of the private ones: docs/glossary.md."""

import pytest

from vocabulary import FOLDERS, PRIVATE, uses, uses_in


@pytest.fixture(scope="module")
def found():
    return list(uses())


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("word", PRIVATE)
def test_no_private_word_is_used(found, folder: str, word: str) -> None:
    places = [f"{use.where}  {use.text}" for use in found if use.word == word and use.where.startswith(f"{folder}/")]
    assert not places, f"'{word}' is private; write one of: {PRIVATE[word][1]}\n" + "\n".join(places)


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
        ("is_being_told = True", []),  # a key of a file
        ("lookup = outdoors = 1", []),
        ("print('the door')", []),  # a text for people is judged as such
    ],
)
def test_a_use_is_found(source: str, words: list[str]) -> None:
    assert [use.word for use in uses_in(source, "module.py")] == words


def test_a_use_has_its_line() -> None:
    (use,) = uses_in('def f():\n    """Nothing.\n\n    It is told.\n    """\n', "module.py")
    assert use.where == "module.py:4"
