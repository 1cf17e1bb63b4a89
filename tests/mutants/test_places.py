"""A place is found by what the code says, whatever its lines and format; one that is not found once is an error."""

import ast
from dataclasses import dataclass
from difflib import ndiff

import pytest

from mutants.places import NotOnce, changed

SOURCE = """
LIMIT_S = 5.0

class Pool:
    @property
    def size(self):
        return min(self.wanted, self.most)

    @size.setter
    def size(self, value):
        self.wanted = value

    def start(self, now_s):
        self.save()  # first
        for worker in self.workers:
            worker.begin(now_s, slots=1)
        if self.is_late or not self.workers:
            return None
        return min(self.wanted, self.most)

def sql():
    return "select name, '', 0 from pools " "where size > 0"
"""


@dataclass(frozen=True, slots=True)
class Change:
    within: str
    right: str
    wrong: str


def differences(change: Change, source: str = SOURCE) -> list[str]:
    """The lines that go and come."""
    lines = ndiff(ast.unparse(ast.parse(source)).splitlines(), changed(source, change).splitlines())
    return [f"{line[0]} {line[2:].strip()}" for line in lines if line[0] in "+-"]


@pytest.mark.parametrize(
    ("within", "right", "wrong", "lines"),
    [
        ("", "LIMIT_S = 5.0", "LIMIT_S = 4.0", ["- LIMIT_S = 5.0", "+ LIMIT_S = 4.0"]),
        ("Pool.start", "now_s", "0.0", ["- worker.begin(now_s, slots=1)", "+ worker.begin(0.0, slots=1)"]),
        ("Pool.start", "self.save()", "", ["- self.save()"]),
        ("Pool.start", "self.save()", "pass", ["- self.save()", "+ pass"]),
        # a property and its setter have one name
        ("Pool.size", "self.wanted = value", "self.wanted = 0", ["- self.wanted = value", "+ self.wanted = 0"]),
    ],
)
def test_an_expression_or_statements_are_replaced(within: str, right: str, wrong: str, lines: list[str]) -> None:
    assert differences(Change(within, right, wrong)) == lines


@pytest.mark.parametrize(
    ("right", "wrong", "lines"),
    [
        (
            "for worker in self.workers: ...",
            "for worker in (): ...",
            ["- for worker in self.workers:", "+ for worker in ():"],
        ),
        (
            "self.save()\nfor worker in ...: ...",
            "for worker in ...: ...\nself.save()",
            ["- self.save()", "+ self.save()"],
        ),
        (
            "worker.begin(..., slots=1)",
            "worker.begin(..., slots=2)",
            ["- worker.begin(now_s, slots=1)", "+ worker.begin(now_s, slots=2)"],
        ),
        (
            "... or not self.workers",
            "... and not self.workers",
            ["- if self.is_late or not self.workers:", "+ if self.is_late and (not self.workers):"],
        ),
        ("if ...: return None", "", ["- if self.is_late or not self.workers:", "- return None"]),
    ],
)
def test_dots_stand_for_what_stays_as_it_is(right: str, wrong: str, lines: list[str]) -> None:
    assert [line for line in differences(Change("Pool.start", right, wrong)) if line.strip("+-? ^")] == lines


def test_a_part_of_a_string_is_found_by_its_words() -> None:
    lines = differences(Change("sql", "'from pools where size > 0'", "'from pools'"))
    assert lines[-1] == "+ return \"select name, '', 0 from pools\""


def test_format_lines_and_comments_do_not_matter() -> None:
    change = Change("Pool.start", "worker.begin(now_s, slots=1)", "pass")
    moved = SOURCE.replace("LIMIT_S = 5.0\n", "").replace(
        "begin(now_s, slots=1)", "begin(  # soon\n  now_s,\n slots = 1,)"
    )
    assert changed(moved, change) == changed(SOURCE.replace("LIMIT_S = 5.0\n", ""), change)


@pytest.mark.parametrize(
    ("within", "right", "places"),
    [
        ("Pool.start", "self.gone()", 0),
        ("Pool.stop", "self.save()", 0),
        ("Pool.size", "self.save()", 0),
        ("Pool", "min(self.wanted, self.most)", 2),
        ("sql", "'0'", 2),
    ],
)
def test_a_place_that_is_not_found_once_is_an_error(within: str, right: str, places: int) -> None:
    with pytest.raises(NotOnce, match=f"^{within} has {places} places of: "):
        changed(SOURCE, Change(within, right, "'x'"))
