"""Each command is there, and the first word loads it and no other."""

import importlib
import re
import subprocess
import sys

import pytest

from headway.__main__ import COMMANDS, main
from support.tree import ROOT


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_names_a_module_with_a_main(name: str) -> None:
    module = importlib.import_module(COMMANDS[name].module)
    assert callable(module.main)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In this process, which has loaded them all: thirty of their own would take a minute for it."""
    try:
        status = main([name, "--help"])
    except SystemExit as ended:
        status = ended.code
    assert not status
    assert f"headway {name}" in re.sub(r"\s+", " ", capsys.readouterr().out)


def test_a_process_explains_a_command() -> None:
    asked = [sys.executable, "-m", "headway", "agent", "--help"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "usage: headway agent" in answer.stdout


def test_an_unknown_command_is_one_line_that_says_where_to_find_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fly"]) == 2
    assert capsys.readouterr().err == "headway: no command 'fly'; `headway --help` lists them\n"


def test_a_misspelt_command_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["contrl"]) == 2
    assert "no command 'contrl'; did you mean `control`? " in capsys.readouterr().err


def test_help_lists_every_command_with_its_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert [
        name for name, command in COMMANDS.items() if f"{name} " not in printed or command.summary not in printed
    ] == []
    assert max(len(line) for line in printed.splitlines()) <= 80


def test_make_help_lists_every_recipe() -> None:
    """A recipe that a person may call has its line; the others are files."""
    text = (ROOT / "Makefile").read_text()
    recipes = set(re.findall(r"^([a-z][a-z-]*):(?!=)", text, flags=re.MULTILINE))
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30).stdout
    assert set(re.findall(r"^  make (\S+)", listed, flags=re.MULTILINE)) == recipes
