"""`headway logs`: output is read where it is, by the record of who printed it."""

import json
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.scaling.profile import Profile
from support.seed import Seed
from support.served import Served


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of this host's agent, and of a worker that has ended: nothing in Postgres knows it."""
    folder = tmp_path / "state"
    (folder / "workers").mkdir(parents=True)
    monkeypatch.setenv("HEADWAY_STATE_DIR", str(folder))
    printed(folder, "mail", "ended", "first\nsecond\nTraceback: \x1b[2Jno module app\n")
    printed(folder, "video", "other", "of another pool\n")
    with (folder / "starts.jsonl").open("a") as starts:
        starts.write('{"worker": {"pool": "ma\n')  # the agent was killed
    return folder


def printed(folder: Path, pool: str, worker_id: str, text: str) -> None:
    (folder / f"workers/{worker_id}.log").write_text(text)
    with (folder / "starts.jsonl").open("a") as starts:
        worker = {"worker_id": worker_id, "pool": pool, "pid": 4711}
        starts.write(json.dumps({"boot_id": "b", "worker": worker}) + "\n")


def test_it_prints_the_last_lines_here_and_names_who_else_has_workers(
    served: Served, seed: Seed, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.host("web-3")
    for number in (1, 2):
        seed.worker("web-3", "mail", number)
    assert main(["logs", "mail", "-n", "2"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("worker ended pid 4711, not running, or not known to the control plane; printed ")
    assert head.endswith(f" ago: {state}/workers/ended.log")
    assert lines == [
        "  second",
        "  Traceback: \\x1b[2Jno module app",
        "2 workers on host web-3: run `headway logs mail` there, as its agent's user",
    ]


def test_what_is_here_is_shown_without_a_control_plane(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWAY_URL", "http://127.0.0.1:1")
    assert main(["logs", "mail", "-n", "1"]) == 0
    said = capsys.readouterr()
    assert "no module app" in said.out
    assert said.err.startswith("workers of other hosts are not known: no control plane answers")
    assert main(["logs", "nothing"]) == 2


def test_the_workers_that_printed_last_are_shown_and_the_others_counted(
    served: Served, seed: Seed, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    printed(state, "mail", "a-mail-1", "")
    seed.host("a")
    seed.worker("a", "mail", 1, state="backing_off")
    assert main(["logs", "mail", "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert "worker a-mail-1 pid 4711, backing off; printed " in said
    assert "(nothing yet)" in said
    assert "worker ended" not in said
    assert "1 more of this host printed earlier: --workers 2 shows them" in said


def test_no_link_is_followed(served: Served, seed: Seed, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    secret = state / "secret"
    secret.write_text("a secret")
    (state / "workers/ended.log").unlink()
    (state / "workers/ended.log").symlink_to(secret)
    assert main(["logs", "mail"]) == 0
    said = capsys.readouterr().out
    assert "cannot be read" in said
    assert "a secret" not in said


def test_a_pool_that_there_is_not_is_named(served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "mial", "--state-dir", str(tmp_path / "none")]) == 2
    assert capsys.readouterr() == ("", "headway: no profile 'mial': `headway get profiles` lists them\n")


def test_a_folder_that_cannot_be_read_says_whose_it_is(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "mail", "--state-dir", str(state / "starts.jsonl")]) == 2
    assert "only the agent's user may, for workers may print secrets" in capsys.readouterr().err
