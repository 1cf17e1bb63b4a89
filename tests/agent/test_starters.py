import os
import tomllib
from pathlib import Path

import pytest

from headway.agent.config.host_file import load
from headway.agent.config.library_presets import STARTERS, host_text


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs that the templates name, as far as a search for them goes."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for starter in STARTERS.values():
        program = folder / starter.argv[0]
        program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.usefixtures("programs")
def test_the_agent_reads_what_is_written_for_every_library(tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text(host_text(STARTERS))
    found = load(tmp_path / "host.toml").templates
    assert found.keys() == STARTERS.keys()
    for name, starter in STARTERS.items():
        assert found[name].argv == tuple(starter.argv)
        assert found[name].burst_arguments == tuple(starter.burst_arguments)
        assert found[name].slots == starter.slots
        assert found[name].ready.pattern == starter.ready_pattern
        assert found[name].reporter == (starter.reporter or "none")
    assert host_text(STARTERS).count('reporter = "celery"') == 1


@pytest.mark.usefixtures("programs")
def test_every_library_is_asked_to_stop_by_the_signal_that_lets_it_finish(tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text(host_text(STARTERS))
    signals = {name: template.stop.stop_signal for name, template in load(tmp_path / "host.toml").templates.items()}
    assert signals.pop("huey") == 2  # TERM would end it at once
    assert set(signals.values()) == {15}


@pytest.mark.parametrize("library", ["celery", "dramatiq", "sidekiq", "taskiq"])
def test_slots_are_what_the_command_line_says(library: str) -> None:
    starter = STARTERS[library]
    flag = {"dramatiq": "--threads", "taskiq": "--max-async-tasks"}.get(library, "--concurrency")
    assert int(starter.argv[starter.argv.index(flag) + 1]) == starter.slots


def test_what_a_key_means_is_said_once(tmp_path: Path) -> None:
    text = host_text({name: STARTERS[name] for name in ("procrastinate", "arq")})
    assert text.count("as you would type it, without a shell") == 1
    assert list(tomllib.loads(text)["templates"]) == ["procrastinate", "arq"]
    assert not any(len(line) > 200 for line in text.splitlines())
    assert os.linesep.join(text.splitlines()).startswith("# What this host can run")
