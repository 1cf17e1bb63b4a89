"""Every command of the documents that can run does, as it is printed; every other says why it cannot."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.__main__ import COMMANDS, main
from pages.blocks import Block, blocks_of, pages
from pages.scenes import LONG, SCENES, SERVED, Servers, type_all
from support.tree import ROOT

pytestmark = pytest.mark.timeout(2500)

BLOCKS = [block for page in pages(ROOT) for block in blocks_of(page.read_text(), str(page.relative_to(ROOT)))]
RUNS = [block for block in BLOCKS if block.scene is not None]
GROUPS = [
    pytest.param(
        page,
        scene,
        id=f"{page}, {scene}",
        marks=[pytest.mark.proof] * (scene in LONG) + [pytest.mark.e2e] * (scene in SERVED),
    )
    for page, scene in dict.fromkeys((block.page, block.scene) for block in RUNS)
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.where)
def test_a_block_runs_here_or_says_what_runs_it_or_why_nothing_can(block: Block) -> None:
    ways = [block.scene in SCENES, block.test is not None, len((block.reason or "").split()) > 2]
    assert sum(ways) == 1, f"{block.where}: 'docs-run: {block.mark}' is none of the ways of tests/pages/blocks.py"


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.test], ids=lambda block: block.where)
def test_a_test_that_is_said_to_run_a_block_reads_its_page(block: Block) -> None:
    test = ROOT / (block.test or "")
    assert test.is_file(), f"{block.where}: {block.test} does not exist"
    named = [word for word in block.text.split()[:2] if word not in {"make", "headway"} and not word.startswith("-")]
    is_read = Path(block.page).name in test.read_text() or all(word in test.read_text() for word in named)
    assert is_read, f"{block.where}: {block.test} has neither its page nor its command"


@pytest.mark.parametrize(("page", "scene"), GROUPS)
def test_the_commands_of_a_page_run_as_they_are_printed(
    page: str, scene: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    servers = Servers(
        folder=folder,
        valkey_url=lambda: request.getfixturevalue("valkey_url"),
        migrated_url=lambda: request.getfixturevalue("migrated_url"),
    )
    with SCENES[scene](servers) as built:
        type_all([block for block in RUNS if (block.page, block.scene) == (page, scene)], built, tmp_path)


def _calls(text: str) -> Iterator[list[str]]:
    """The words of each call of `headway` in a block."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["headway"]:
            yield words[1:]


def _explained(words: list[str]) -> object:
    """The exit status of a call with `--help` behind its words, which are read first."""
    try:
        return main([*words, "--help"])
    except SystemExit as ended:  # how argparse ends
        return ended.code


LONG_CALLS = [(block.where, words) for block in RUNS if block.scene in LONG for words in _calls(block.text)]


@pytest.mark.parametrize("words", [words for _, words in LONG_CALLS], ids=[where for where, _ in LONG_CALLS])
def test_a_command_that_takes_long_has_the_options_that_it_is_printed_with(words: list[str]) -> None:
    """`make docs-run` runs it; this only reads its words, so that a renamed option fails at once."""
    assert _explained(words) == 0


RUN_BY_TESTS = {
    "conformance": "tests/peers/test_conformance.py",
    "demo": "tests/support/demos.py",
    "kill": "tests/cli/test_hosts.py",
    "pipeline": "tests/spark/test_process.py",
    "queue": "tests/cli/test_hosts.py",
    "report": "tests/cli/test_savings.py",
}
"""Commands that no page runs, and what does."""


def test_every_command_is_run_by_a_page_or_by_a_test() -> None:
    printed = "\n".join(block.text for block in BLOCKS if block.scene or block.test)
    on_pages = set(re.findall(r"\bheadway ([a-z]+)", printed))
    assert COMMANDS.keys() - on_pages == RUN_BY_TESTS.keys()
    for name, test in RUN_BY_TESTS.items():
        assert f'"{name}"' in (ROOT / test).read_text(), test


def test_an_option_that_does_not_exist_is_found() -> None:
    assert _explained(["seasons", "train", "--event-logs", "folder"]) == 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```bash\nmake all\n```\n", [("bash", "make all\n", "")]),
        ("```text\nmake all\n```\n", []),
        (
            "<!-- docs-run: with hosts -->\n\n```sh\na\n```\n\n```sh\nb\n```\n",
            [("bash", "a\n", "with hosts"), ("bash", "b\n", "")],
        ),
        (
            "<!-- docs-run: no, it is of the page -->\n\n# T\n\n```sh\na\n```\n",
            [("bash", "a\n", "no, it is of the page")],
        ),
        ("1. It\n\n   ```bash\n   a\n   b\n   ```\n", [("bash", "a\nb\n", "")]),
        ("Type\n\n    make all  # all\n    make it\n", [("bash", "make all  # all\nmake it\n", "")]),
        ("```python\nif a:\n    b()\n```\n", [("python", "if a:\n    b()\n", "")]),
    ],
)
def test_a_block_is_found_with_its_mark(text: str, found: list[tuple[str, str, str]]) -> None:
    assert [(block.language, block.text, block.mark) for block in blocks_of(text, "p.md")] == found


def test_a_command_that_fails_is_named(tmp_path: Path) -> None:
    (block,) = blocks_of("# T\n\n```bash\ntrue\nls nowhere | cat\n```\n", "docs/p.md")
    servers = Servers(folder=tmp_path, valkey_url=str, migrated_url=str)
    with (
        SCENES["nothing"](servers) as built,
        pytest.raises(AssertionError, match=re.escape("docs/p.md:4 ended with 2")),
    ):
        type_all([block], built, tmp_path)
