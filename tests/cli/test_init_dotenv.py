"""`.env`, as `headway init` reads it: text, of which nothing runs."""

import os
from pathlib import Path

import pytest

from headway.cli.setup import dotenv_file


def of(tmp_path: Path, text: str) -> dotenv_file.Dotenv:
    (tmp_path / ".env").write_text(text)
    return dotenv_file.read(tmp_path / ".env")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=redis://h/0", "redis://h/0"),
        ("export A = redis://h/0  # the broker", "redis://h/0"),
        ("A='p#$w \\n' # no more", "p#$w \\n"),
        ('A="a \\"b\\" \\$c#d"', 'a "b" $c#d'),
        ("A=redis://:p$w@h/0", "redis://:p$w@h/0"),  # a shell alone would put a variable in
        ("A=x\nA=y", "y"),
        ("A=", ""),
        ("A=#", ""),
    ],
)
def test_values_are_read_as_they_stand(tmp_path: Path, line: str, value: str) -> None:
    assert of(tmp_path, f"# comment\n{line}\nno variable\n").variables == {"A": value}


@pytest.mark.parametrize("value", ["redis://${HOST}/0", "$(cat secret)", '"redis://${HOST}"', "`id`"])
def test_what_only_a_shell_knows_has_no_value_and_nothing_is_run(tmp_path: Path, value: str) -> None:
    found = of(tmp_path, f"A={value}\nB=1")
    assert (found.variables, found.expanding) == ({"B": "1"}, {"A"})


def test_a_file_that_cannot_be_read_is_said_and_no_file_is_nothing(tmp_path: Path) -> None:
    assert dotenv_file.read(tmp_path / ".env") == dotenv_file.Dotenv()
    (tmp_path / "a").write_bytes(b"A=\xff")
    assert dotenv_file.read(tmp_path / "a").problem == "it is no text"
    (tmp_path / "b").write_text("A=1\n" * dotenv_file.DOTENV_BYTES_MAX)
    assert "more than" in (dotenv_file.read(tmp_path / "b").problem or "")
    (tmp_path / "c").mkdir()
    assert dotenv_file.read(tmp_path / "c") == dotenv_file.Dotenv()


@pytest.mark.timeout(30)
def test_a_line_of_spaces_is_read_once(tmp_path: Path) -> None:
    """Each space was tried as the end of the value: half a minute for 100 kB, an hour for 1 MB."""
    spaces = " " * (dotenv_file.DOTENV_BYTES_MAX - 10)
    assert of(tmp_path, f"A=a{spaces}b").variables == {"A": f"a{spaces}b"}


def test_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")
    assert dotenv_file.read(tmp_path / ".env").problem == "it is no regular file"


def test_no_value_is_shown(tmp_path: Path) -> None:
    assert "s3cret" not in repr(of(tmp_path, "A=s3cret"))
