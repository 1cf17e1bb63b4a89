"""A call that is not understood is refused in one sentence, whichever parser read it."""

import os
import subprocess
import sys

import pytest

from headway.__main__ import main


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["get", "queues", "--nope"], "get: no such option: --nope; `headway get --help` lists its options"),
        (["apply"], "no file is named: `headway apply profiles.yaml`, or -f profiles.yaml"),
        (["validate"], "no file is named, and this folder has no profiles.yaml: `headway validate FILE`"),
        (["diff"], "no file is named, and this folder has no profiles.yaml: `headway diff FILE`"),
        (
            ["describe", "cat", "tom"],
            (
                "describe: invalid value for 'kind': 'cat' is not one of 'pool', 'queue', 'host', 'group'; "
                "`headway describe --help` lists its options"
            ),
        ),
        (
            ["describe", "pol", "mail"],
            (
                "describe: invalid value for 'kind': 'pol' is not one of 'pool', 'queue', 'host', 'group'; "
                "did you mean 'pool'? "
                "`headway describe --help` lists its options"
            ),
        ),
        (
            ["host", "drain", "web-1"],
            "host drain: missing option '--reason'; `headway host drain --help` lists its options",
        ),
        (["scale", "quick", "-1", "--reason", "x"], "'-1' is no number of workers: expected 0 or more, or auto"),
        (["scale", "quick", "2", "--for", "10", "--reason", "x"], "--for='10' has no unit: 10s, 10m or 10h"),
        (
            ["apply", "/dev/null"],
            "/dev/null: no pool is named under `pools`, nothing was applied; `headway delete` takes pools away",
        ),
        (["apply", "/"], "/ is a folder: name a file in it"),
        (["simulate", "--synthetic", "flash", "--strategy", ""], "--strategy: it names none"),
        (["simulate", "--synthetic", "flash", "--target", "10"], "--target='10' has no unit: 10s, 10m or 10h"),
        (["plan", "--jobs-per-day", "1M", "--service", "2"], "--service='2' has no unit: 2s, 2m or 2h"),
        (["top", "--every", "3"], "--every='3' has no unit: 3s, 3m or 3h"),
        (["simulate", "--scenario", "/"], "/ is a folder: name a file in it"),
        (["up", "--zzz", "3"], "up: unrecognized arguments: --zzz 3; `headway up --help` lists its options"),
        (
            ["up", "--profile", "mine.yaml"],  # no part of --profiles
            (
                "up: unrecognized arguments: --profile mine.yaml; did you mean '--profiles'? "
                "`headway up --help` lists its options"
            ),
        ),
        (
            ["agent", "check", "--host-fil=x"],
            (
                "agent: unrecognized arguments: --host-fil=x; did you mean '--host-file'? "
                "`headway agent --help` lists its options"
            ),
        ),
        (
            ["init", "--brokr", "x"],
            "init: unrecognized arguments: --brokr x; did you mean '--broker'? `headway init --help` lists its options",
        ),
        (
            ["agent", "unit", "--nope"],
            "agent: unrecognized arguments: --nope; `headway agent --help` lists its options",
        ),
    ],
)
def test_a_wrong_call_is_one_line_with_the_word_and_where_to_find_help(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr() == ("", f"headway: {sentence}\n")


@pytest.mark.parametrize("words", [["token"], ["host"]])
def test_a_command_with_several_verbs_lists_them_where_none_is_given(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "revoke" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["plan", "--jobs-per-day", "1M", "--service", "200ms"], ["get", "--help"]])
def test_a_reader_who_has_read_enough_sees_no_complaint(words: list[str]) -> None:
    """As `| head -0` would: nobody reads from the first byte on."""
    reading, writing = os.pipe()
    os.close(reading)
    asked = [sys.executable, "-m", "headway", *words]
    answer = subprocess.run(asked, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=200)
    os.close(writing)
    assert (answer.returncode != 0, answer.stderr) == (True, "")
