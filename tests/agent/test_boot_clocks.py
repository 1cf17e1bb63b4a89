"""Workers stay in their agents' hands whatever boot clock each agent counts by."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agent.config.templates import Stop
from headway.agent.desired_state import DesiredState
from headway.agent.workers import worker_record
from headway.agent.workers.crash_backoff import Pause
from headway.agent.workers.worker_record import Ledger, OrphanRecord, Unrecorded
from headway.local import procfs
from headway.scaling.model import Worker, WorkerState
from lab.clocks import ahead, can_skew_boot
from support.processes import runs
from support.waiting import eventually
from support.workers import PRINTS_READY, SLEEP, Stage, reconcile_until, record, start, template

with_namespaces = pytest.mark.skipif(not can_skew_boot(), reason="this machine has no time namespaces")
NS_PER_TICK = 10**9 // procfs.TICKS_PER_S
STARTS = "starts.jsonl"
READY = f"print('ready', flush=True); {SLEEP}"


# --- what the kernel prints ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed_ticks", "ticks"),
    [
        (0, 0),
        (300_568, 300_568),
        (1_844_674_407_039, -332),  # 300568 outside of a namespace that was booted 3009 s later
        (1_844_674_357_395, -49_976),  # 24 outside of one that was booted 500 s later
        (1_844_674_407_370, -1),  # the last tick before 2^64 ns
    ],
)
def test_a_start_before_the_boot_of_the_namespace_is_below_zero(
    printed_ticks: int, ticks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(f"7 (a (b) c) S 1 7 7 {' '.join('0' * 15)} {printed_ticks} 0 0\n")
    monkeypatch.setattr(procfs, "_PROC", str(tmp_path))
    assert procfs.stat(7).started_ticks == ticks
    assert procfs.stat(7).started_at_s == ticks / procfs.TICKS_PER_S


@given(
    started_ns=st.integers(0, 10**18),
    ahead_s=st.integers(-(10**9), 10**9),
)
def test_the_starts_of_one_process_by_two_clocks_are_a_tick_apart_at_most(started_ns: int, ahead_s: int) -> None:
    """As the kernel computes what it prints: modulo 2^64 ns, cut off to ticks."""
    outside, inside = ((ns % 2**64) // NS_PER_TICK for ns in (started_ns, started_ns + ahead_s * 10**9))
    expected = outside + ahead_s * procfs.TICKS_PER_S
    assert expected - procfs.TICKS_APART_MAX <= procfs.signed_ticks(inside) <= expected


@with_namespaces
def test_a_process_is_known_again_inside_of_a_namespace_that_was_booted_after_its_start() -> None:
    """By the kernel itself."""
    here, back_s = procfs.stat(os.getpid()), int(procfs.since_boot_s())
    code = f"from headway.local import procfs; print(procfs.stat({os.getpid()}).started_ticks)"
    done = subprocess.run([*ahead(-back_s), sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = here.started_ticks - back_s * procfs.TICKS_PER_S
    assert expected - procfs.TICKS_APART_MAX <= int(done.stdout) <= expected


# --- agents of one host, one after the other -------------------------------------------------------------------------

NEXT_AGENT = """
import json, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from headway.local import procfs
from support.workers import Stage, start, template
with Stage(Path({root!r})).fleet(template()) as fleet:
    fleet.act([start()])
    fleet.scan()
    now_s = procfs.since_boot_s()
    found = [[each.worker_id, each.pid, each.state, now_s - each.started_at_s] for each in fleet.all_workers()]
    print(json.dumps([found, now_s]))
"""


def next_agent(stage: Stage, *, under: list[str]) -> tuple[list[tuple[str, int, str, float]], float]:
    """What an agent under another boot clock takes over and starts, one worker more; and the time by its clock.

    A worker is its id, its pid, its state and its age.
    """
    code = NEXT_AGENT.format(paths=sys.path, root=str(stage.folder.root))
    done = subprocess.run([*under, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, now_s = json.loads(done.stdout)
    return [tuple(each) for each in found], now_s


@with_namespaces
@pytest.mark.parametrize("is_readable", [True, False])
def test_an_agent_whose_boot_is_after_its_workers_start_takes_them_over_and_so_does_the_next_one(
    stage: Stage, is_readable: bool
) -> None:
    """Without the ledger by the record of starts."""
    with stage.fleet(template()) as fleet:
        fleet.act([start() for _ in range(4)])
        reconcile_until(fleet, lambda: {each.state for each in fleet.workers()} == {WorkerState.RUNNING})
        before = {each.worker_id: each.pid for each in fleet.workers()}
        began_s = max(each.started_at_s for each in fleet.workers())
    eventually(lambda: procfs.since_boot_s() > began_s + 2.0)
    if not is_readable:
        (stage.folder.root / "workers.json").unlink()
    back_s = int(procfs.since_boot_s())

    found, now_s = next_agent(stage, under=ahead(-back_s))
    assert {key: pid for key, pid, _, _ in found}.items() > before.items()
    assert all(age_s > now_s for key, _, _, age_s in found if key in before), "their start was before this boot"
    assert {state for key, _, state, _ in found if key in before} == {WorkerState.RUNNING}

    if not is_readable:
        (stage.folder.root / "workers.json").unlink()
    with stage.fleet(template()) as fleet:
        fleet.scan()
        assert {each.worker_id: each.pid for each in fleet.all_workers()} == {key: pid for key, pid, _, _ in found}
        assert {each.state for each in fleet.all_workers()} == {WorkerState.RUNNING}
        known = [procfs.stat(each.pid).started_ticks for each in fleet.running()]
        assert [each.started_ticks for each in fleet.running()] == known
        started_at_s = [each.life.started_at_s for each in fleet.running()]
        # The start is noted before the process begins: seconds, on a busy machine. Another clock would be minutes off.
        assert started_at_s == pytest.approx([ticks / procfs.TICKS_PER_S for ticks in known], abs=5.0)
    for _, pid, _, _ in found:
        _end(pid)


@contextmanager
def changed(stage: Stage, change: Callable[[dict[str, Any]], None]) -> Iterator[Worker]:
    """A worker that runs, and whose records are changed before the next agent reads them."""
    with stage.fleet(template(READY, ready=PRINTS_READY)) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: [each.state for each in fleet.workers()] == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
    for path in (stage.folder.root / "workers.json", stage.folder.root / STARTS):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for body in lines:
            for row in body["workers"] if "workers" in body else [body["worker"]]:
                change(row)
        path.write_text("".join(f"{json.dumps(body)}\n" for body in lines))
    yield worker
    if runs(worker.pid):
        _end(worker.pid)


def by(ticks: int) -> Callable[[dict[str, Any]], None]:
    """Records by a clock that is so far from this one, though the names of their boots are the same."""

    def change(row: dict[str, Any]) -> None:
        row["started_ticks"] += ticks
        for name in ("started_at_s", "since_s"):
            row["life"][name] += ticks / procfs.TICKS_PER_S

    return change


@pytest.mark.parametrize("ticks", [-1, 1])
def test_a_start_that_was_cut_off_otherwise_is_the_same(
    stage: Stage, ticks: int, caplog: pytest.LogCaptureFixture
) -> None:
    with changed(stage, by(ticks)) as worker, stage.fleet(template()) as fleet:
        (taken,) = fleet.running()
        assert (taken.pid, taken.started_ticks) == (worker.pid, procfs.stat(worker.pid).started_ticks)
        assert "by its user and its log" not in caplog.text


@pytest.mark.parametrize("is_readable", [True, False])
@pytest.mark.parametrize("ticks", [-100_000, -2, 2, 77_777])
def test_a_worker_whose_start_fits_no_clock_is_known_by_its_pid_its_user_and_its_log(
    stage: Stage, ticks: int, is_readable: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with changed(stage, by(ticks)) as worker:
        if not is_readable:
            (stage.folder.root / "workers.json").unlink()
        with stage.fleet(template()) as fleet:
            fleet.scan()
            (taken,) = fleet.workers()
            assert (taken.worker_id, taken.pid, taken.state) == (worker.worker_id, worker.pid, worker.state)
            assert taken.started_at_s == pytest.approx(worker.started_at_s, abs=0.02), "its age is as it was"
            assert f"took over pool=mail pid={worker.pid} by its user and its log" in caplog.text
            assert fleet.ends.take() == []
        with stage.fleet(template()) as fleet:
            caplog.clear()
            assert [each.pid for each in fleet.running()] == [worker.pid]
            assert "by its user and its log" not in caplog.text, "its record fits again"


def _as_another_user(row: dict[str, Any]) -> None:
    by(77_777)(row)
    row["uid"] = 0 if os.geteuid() else 65_534


def _as_nobody_knows_who(row: dict[str, Any]) -> None:
    by(77_777)(row)
    row["uid"] = None


def _left_alone(stage: Stage, worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    """The worker is counted and shown, by this agent and the next one, and nothing is done about it."""
    for _ in range(2):
        caplog.clear()
        with stage.fleet(template()) as fleet:
            (found,) = fleet.all_workers()
            assert (found.worker_id, found.pid, found.state) == (worker.worker_id, worker.pid, WorkerState.UNKNOWN)
            assert f"no record of worker={worker.worker_id} pid={worker.pid} pool=mail: it takes a place" in caplog.text
            fleet.drain_all()
            stage.clock.ahead_s += 10_000.0
            fleet.scan()
            assert [each.pid for each in fleet.all_workers()] == [worker.pid]
            assert runs(worker.pid)


def test_a_worker_whose_start_and_user_are_not_known_is_counted_and_left_alone(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """As of a record of an earlier version."""
    with changed(stage, _as_nobody_knows_who) as worker:
        _left_alone(stage, worker, caplog)


def test_a_worker_whose_start_fits_no_clock_and_whose_log_was_removed_is_counted_and_left_alone(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with changed(stage, by(77_777)) as worker:
        (stage.folder.root / "workers" / f"{worker.worker_id}.log").unlink()
        _left_alone(stage, worker, caplog)


def test_a_process_of_another_user_is_not_taken_over_by_what_it_prints_to(stage: Stage) -> None:
    with changed(stage, _as_another_user), stage.fleet(template()) as fleet:
        assert fleet.running() == ()


@pytest.mark.parametrize("prints", ["elsewhere", "to another worker's log", "to a copy of that name"])
def test_a_stranger_that_has_the_pid_of_a_worker_is_not_taken_for_it(stage: Stage, prints: str, tmp_path: Path) -> None:
    """It leads a session as a worker does, and is of the same user."""
    with stage.fleet(template(READY)) as fleet:
        fleet.act([start(), start(pool="bills")])
        reconcile_until(fleet, lambda: {each.state for each in fleet.workers()} == {WorkerState.RUNNING})
        worker, other = fleet.workers()
    # A start within a tick or two is read as the same one, and no pid returns so soon.
    eventually(lambda: procfs.since_boot_s() > worker.started_at_s + 0.1)
    copy = tmp_path / f"{worker.worker_id}.log"
    copy.touch()
    path = stage.folder.root / "workers" / f"{other.worker_id}.log" if prints == "to another worker's log" else copy
    with (Path(os.devnull) if prints == "elsewhere" else path).open("ab") as output:
        stranger = subprocess.Popen(["/bin/sleep", "600"], stdout=output, stderr=output, start_new_session=True)
    try:
        _end(worker.pid)
        for name in (stage.folder.root / "workers.json", stage.folder.root / STARTS):
            name.write_text(name.read_text().replace(f'"pid":{worker.pid},', f'"pid":{stranger.pid},'))
        stage.clock.ahead_s += 60.0  # so that its worker is not taken for one that crashed
        with stage.fleet(template()) as fleet:
            fleet.scan()
            assert [each.pid for each in fleet.all_workers()] == [other.pid]
            stage.clock.ahead_s += 10_000.0
            fleet.scan()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_what_a_worker_has_left_is_not_ended_by_its_marks_alone(stage: Stage) -> None:
    """Its start fits no clock: it is counted."""
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True);"
    with stage.fleet(template(child + SLEEP, stop=Stop(drain_timeout_s=40.0))) as fleet:
        fleet.act([start()])
        (worker,) = fleet.workers()
        (left,) = eventually(lambda: procfs.descendants(worker.pid))
        eventually(lambda: "HEADWAY_POOL" in procfs.environment(left.pid))
        stage.clock.ahead_s += 11.0
        os.kill(worker.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.remains.left)
    body = stage.folder.read("workers.json")
    (row,) = body["remains"]
    stage.folder.write("workers.json", {**body, "remains": [{**row, "started_ticks": row["started_ticks"] + 777}]})
    with stage.fleet(template()) as fleet:
        there = [each for each in fleet.all_workers() if each.pid]  # beside the place that waits for another start
        assert [(each.pid, each.state) for each in there] == [(left.pid, WorkerState.UNKNOWN)]
        stage.clock.ahead_s += 10_000.0
        fleet.scan()
        assert runs(left.pid)
    os.kill(left.pid, signal.SIGKILL)


@pytest.mark.parametrize("ahead_s", [-86_400, -50, 50])
def test_a_record_that_another_clock_has_read_and_written_is_as_it_was(ahead_s: int) -> None:
    """Also times before its boot."""
    kernel, worker_id = "6b1a5d4e-0c5b-4f57-9d3a-6a2f0c7e8f10", 32 * "a"
    ledger = Ledger(
        orders=DesiredState(),
        spent={},
        pauses={("mail", "py"): Pause(failures=2, until_s=9.0)},
        records=(record(worker_id, pid=7, started_ticks=2_000),),
        remains=(OrphanRecord(worker_id=worker_id, pid=8, started_ticks=2_100, ends_by_s=30.0),),
        unrecorded=(Unrecorded(worker_id=worker_id, pid=9, started_ticks=2_200),),
    )
    here, there = kernel, f"{kernel}{ahead_s:+d}"
    moved = worker_record.from_json(_written(ledger, boot_id=here), boot_id=there)
    assert moved.records[0].life.started_at_s == 20.0 + ahead_s
    back = worker_record.from_json(_written(moved, boot_id=there), boot_id=here)
    assert (back.pauses, back.records, back.remains, back.unrecorded) == (
        ledger.pauses,
        ledger.records,
        ledger.remains,
        ledger.unrecorded,
    )


def _written(ledger: Ledger, *, boot_id: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(json.dumps(worker_record.to_json(ledger, boot_id=boot_id)))
    return body


def test_starts_that_an_earlier_version_has_written_as_the_kernel_prints_them_are_read_as_signed() -> None:
    worker_id = 32 * "a"
    ledger = Ledger(
        orders=DesiredState(),
        spent={},
        pauses={},
        records=(record(worker_id, pid=7, started_ticks=1_844_674_407_039),),
    )
    (moved,) = worker_record.from_json(
        _written(ledger, boot_id="6b1a5d4e-0c5b-4f57-9d3a-6a2f0c7e8f10-3009"),
        boot_id="6b1a5d4e-0c5b-4f57-9d3a-6a2f0c7e8f10",
    ).records
    assert moved.started_ticks == 300_568


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: procfs.stat(pid) is None or procfs.stat(pid).is_over)
    with suppress(ChildProcessError):  # the child of an agent that has ended
        os.waitpid(pid, 0)
