"""`headway completion`: a real bash completes, with the script as docs/reference/commands.md loads it."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headway.__main__ import COMPLETION_VARIABLE, main
from headway.cli.operator.completion import names, shells
from headway.scaling.profile import Profile
from support.seed import Seed
from support.tree import ROOT

LOADED = 'eval "$(headway completion bash)"'


def completed(*lines: str) -> list[list[str]]:
    """What bash offers for the last word of each line, as it fills it in when the tab key is pressed."""
    asked = "".join(
        f"COMP_WORDS=({line}{chr(39) * 2 if line.endswith(' ') else ''})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        '_headway_completion headway; echo "${COMPREPLY[*]}"; echo .\n'
        for line in lines
    )
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = f"set -e\n{LOADED}\ncomplete -p headway\n{asked}"
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    how, _, offered = done.stdout.partition("\n")
    assert how == "complete -o default -F _headway_completion headway"
    return [part.split() for part in offered.split("\n.\n")[:-1]]


@pytest.fixture
def pools(served: object, seed: Seed) -> None:
    for pool in ("mail", "media", "news", "m; rm"):
        seed.profile(Profile(pool=pool, queues=(f"redis/{pool}",), template="rq"))
    seed.host("web-1")


def test_bash_completes_commands_options_and_values() -> None:
    assert LOADED in (ROOT / "docs/reference/commands.md").read_text()
    commands, what, subcommand, role = completed("headway exp", "headway get al", "headway host unc", "headway agent ")
    assert commands == ["export", "explain"]
    assert what == ["alerts"]
    assert subcommand == ["uncordon"]
    assert role == []


@pytest.mark.usefixtures("pools")
def test_bash_completes_the_names_that_a_control_plane_gives() -> None:
    """A busy machine may not answer within the time: then nothing is offered, and the key is pressed again."""
    for _ in range(20):
        pool, host = completed("headway explain m", "headway describe host w")
        if pool and host:
            break
    assert pool == ["mail", "media"]  # a name that a shell would read as more than a word is not offered
    assert host == ["web-1"]


def test_names_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that takes the call and never answers, and a setting that is none."""
    with socket.create_server(("127.0.0.1", 0)) as hung:
        monkeypatch.setenv("HEADWAY_URL", f"http://127.0.0.1:{hung.getsockname()[1]}")
        began_s = time.monotonic()
        assert names.pools("") == []
        assert time.monotonic() - began_s < 5
    monkeypatch.setenv("HEADWAY_URL", "nonsense")
    assert names.hosts("") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_their_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert f"{COMPLETION_VARIABLE}=complete_{shell}" in capsys.readouterr().out


def test_an_unknown_shell_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err


def test_the_entry_point_and_the_scripts_name_one_variable() -> None:
    assert shells.COMPLETION_VARIABLE == COMPLETION_VARIABLE
