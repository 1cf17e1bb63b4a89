"""Real agents as processes, real workers, and a control plane that says what the test wants."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import psutil
import pytest

from headway.agent.loop import stop_left
from headway.agent.state.state_dir import StateFolder
from headway.agent.system.wake_pipe import WakePipe
from headway.errors import Refused
from headway.local import procfs
from headway.wire.v1 import agent_pb2
from support.agent_host import Host, ended, one_host
from support.credential_files import token_file
from support.fake_control import FakeControl, row, serving
from support.processes import runs
from support.waiting import eventually

pytestmark = pytest.mark.e2e

FINISHES = """
import signal, time
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
print("ready", flush=True)
while not told:
    time.sleep(0.01)
time.sleep(1.0)
print("told", len(told), flush=True)
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with one_host(tmp_path) as host:
        yield host


# --- orders become processes -----------------------------------------------------------------------------------------


def test_an_assignment_becomes_processes_and_a_smaller_one_ends_them(host: Host) -> None:
    host.agent()
    host.control.assign(row(3))
    three = host.control.running(3)
    assert all(runs(pid) for pid in three)
    host.control.assign(row(1))
    one = host.control.running(1)
    assert one < three
    eventually(lambda: [runs(pid) for pid in three].count(True) == 1)
    host.control.assign()
    assert host.control.running(0)
    assert not any(runs(pid) for pid in three)


CHANGED = """
import sys
from headway.__main__ import main
from headway.agent import loop
loop.{name} = {value}
sys.exit(main(sys.argv[1:]))
"""
DREAMY = ("-c", CHANGED.format(name="POLL_S", value=3600.0))
"""An agent that polls once an hour, and else only when something wakes it."""
PATIENT = ("-c", CHANGED.format(name="LAST_REPORT_S", value=60.0))
"""One whose last report may take a slow machine longer."""


def test_an_assignment_is_a_process_at_once(host: Host) -> None:
    """It wakes the agent, whatever that waits for: 5 ms on a quiet machine."""
    host.agent(program=DREAMY)
    eventually(lambda: host.control.polls)
    for workers in range(1, 6):
        host.control.assign(row(workers))
        host.control.running(workers)


def test_what_the_control_plane_learns_of_a_host(host: Host) -> None:
    host.agent("--host-name", "here")
    host.control.assign(row(1, restart_generation=4, burst_workers=0), epoch=6)
    (pid,) = host.control.running(1)
    (enrolment,) = host.control.enrolments
    assert (enrolment.host_name, enrolment.boot_id, enrolment.host_id) == ("here", procfs.boot_id(), "")
    last = eventually(lambda: host.control.reports[-1].epoch_seen == 6 and host.control.reports[-1])
    assert (last.cluster_id, last.host_id, last.host_name) == ("cluster-1", "host-1", "here")
    assert last.labels == {"zone": "a"}
    assert last.capacity.cpu_cores > 0
    assert last.capacity.memory_bytes > 0
    assert [template.name for template in last.templates] == ["sleep", "crash", "burst", "stubborn"]
    (worker,) = last.workers
    assert (worker.pool, worker.template, worker.pid, worker.restart_generation) == ("mail", "sleep", pid, 4)
    assert 0 <= worker.age_s < 100
    start_ups = [start_up for report in host.control.reports for start_up in report.start_ups]
    assert [(each.template, each.start_up_s < 100) for each in start_ups] == [("sleep", True)]
    sequences = [report.sequence for report in host.control.reports]
    assert sequences == sorted(set(sequences))


def test_a_crash_loop_backs_off_where_the_control_plane_can_see_it(host: Host) -> None:
    host.agent()
    host.control.assign(row(2, template="crash"), row(1, pool="web"))
    backing_off = agent_pb2.WORKER_STATE_BACKING_OFF
    eventually(lambda: [worker.state for worker in host.control.workers()].count(backing_off) == 2)
    assert host.control.pids(pool="web") or eventually(lambda: host.control.pids(pool="web"))
    assert "again_in_s=10" in host.logged()
    assert "said='no broker'" in host.logged()


def test_what_a_killed_worker_left_is_reported_as_a_worker_that_drains(host: Host) -> None:
    """Of a pool of which no two may run, none is started elsewhere meanwhile."""
    host.host_file.write_text('[templates.two]\nargv = ["sh", "-c", "sleep 600 & wait"]\nready_after_s = 0.0\n')
    host.agent()
    host.control.assign(row(1, template="two"))
    (pid,) = host.control.running(1)
    (child,) = eventually(lambda: procfs.descendants(pid))
    os.kill(pid, signal.SIGKILL)
    draining = agent_pb2.WORKER_STATE_DRAINING
    eventually(lambda: [each.pid for each in host.control.workers() if each.state == draining] == [child.pid])
    os.kill(child.pid, signal.SIGKILL)
    eventually(lambda: not any(each.state == draining for each in host.control.workers()))


def test_a_spent_burst_place_is_not_refilled_and_a_new_revision_fills_it_again(host: Host) -> None:
    host.agent()
    host.control.assign(row(0, template="burst", burst_workers=2))

    def starts() -> int:
        return host.logged().count("started pool=mail template=burst")

    eventually(lambda: host.logged().count("ended pool=mail template=burst") == 2)
    eventually(lambda: host.control.reports and not host.control.workers())
    assert starts() == 2
    host.control.assign(row(0, template="burst", burst_workers=1))
    eventually(lambda: starts() == 3)


def test_idle_workers_go_first_by_the_brokers_word(host: Host) -> None:
    host.agent()
    host.control.assign(row(3))
    pids = sorted(host.control.running(3))
    hints = [
        agent_pb2.WorkerHint(pid=pid, is_busy=pid != pids[1], since_age_s=1.0 if pid != pids[1] else None, age_s=0.0)
        for pid in pids
    ]
    host.control.assign(row(2), hints=hints)
    assert host.control.running(2) == {pids[0], pids[2]}


# --- cut off, refused, elsewhere -------------------------------------------------------------------------------------


def test_partitioned_it_keeps_what_runs_replaces_what_dies_and_reports_it_afterwards(host: Host) -> None:
    control = FakeControl()
    with serving(control) as port:
        host.port = port
        host.agent()
        control.assign(row(2))
        before = control.running(2)
    eventually(lambda: "does not answer" in host.logged())
    assert all(runs(pid) for pid in before)
    victim = min(before)
    eventually(lambda: procfs.since_boot_s() - procfs.stat(victim).started_at_s > 10.0)
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: host.logged().count("started pool=mail") == 3)
    with serving(control, port=port):
        after = eventually(lambda: victim not in control.pids() and control.running(2))
        assert len(after & before) == 1
        gone = [each for report in control.reports for each in report.workers if each.pid == victim][-1]
        assert (gone.state, gone.exit_code) == (agent_pb2.WORKER_STATE_GONE, -signal.SIGKILL)
        control.assign(row(1))
        assert control.running(1) <= after
        assert host.logged().count("poll: the control plane") == 2  # lost, found: told once each


def test_an_older_epoch_or_revision_is_refused(host: Host) -> None:
    host.agent()
    host.control.assign(row(2), epoch=5, revision=8)
    before = host.control.running(2)
    polls = len(host.control.polls)
    host.control.assign(row(0), epoch=4, revision=9)
    eventually(lambda: len(host.control.polls) >= polls + 2)  # it has had the answer and asked again
    eventually(lambda: len(host.control.polls) >= polls + 3)
    second_s, third_s = host.control.polled_at_s[polls + 1 : polls + 3]
    assert third_s - second_s > 0.5  # answers that bring nothing are not asked for without a pause
    assert all((poll.epoch, poll.revision) == (5, 8) for poll in host.control.polls[polls:])
    assert all(runs(pid) for pid in before)
    host.control.assign(row(1), epoch=6, revision=1)
    assert host.control.running(1) < before


def test_another_cluster_gets_reports_of_what_runs_and_is_obeyed_once_it_decides(host: Host) -> None:
    host.agent()
    host.control.assign(row(2), epoch=7)
    before = host.control.running(2)
    host.control.become("cluster-2", "host-9")
    last = eventually(lambda: (last := host.control.reports[-1]).cluster_id == "cluster-2" and last)
    assert (last.host_id, {worker.pid for worker in last.workers}) == ("host-9", before)
    assert all(runs(pid) for pid in before)
    host.control.assign(row(1))
    assert host.control.running(1) < before


def test_a_host_that_was_forgotten_enrols_again_and_keeps_what_runs(host: Host) -> None:
    host.agent()
    host.control.assign(row(1))
    before = host.control.running(1)
    host.control.forget_host("host-2")
    eventually(lambda: len(host.control.enrolments) == 2)
    host.control.assign(row(2), revision=1)  # counted anew for the new host
    after = host.control.running(2)
    assert before < after
    assert host.control.reports[-1].host_id == "host-2"


def test_without_the_token_it_says_so_and_keeps_its_workers(host: Host) -> None:
    host.agent()
    host.control.assign(row(1))
    (pid,) = host.control.running(1)
    host.control.token = "s3cret"
    host.control.assign(row(0))  # ends the held poll; the next is refused
    eventually(lambda: "UNAUTHENTICATED" in host.logged())
    host.clear()
    assert "refuses: no token (UNAUTHENTICATED); workers run on as they are" in host.logged()
    host.agent(HEADWAY_TOKEN_FILE=token_file(host.state_dir.parent, "s3cret"))
    eventually(lambda: host.control.reports and not host.control.workers())
    assert not runs(pid)


@pytest.mark.parametrize("status", [grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL])
def test_what_a_repetition_may_cure_is_repeated(host: Host, status: grpc.StatusCode) -> None:
    host.control.fails_with = status
    host.agent()
    eventually(lambda: "does not answer" in host.logged())
    host.control.fails_with = None
    host.control.assign(row(1))
    assert host.control.running(1)


# --- ends and successors ---------------------------------------------------------------------------------------------


def test_orders_and_states_are_written_down_also_where_nothing_is_to_be_done(host: Host) -> None:
    """Else an agent that is killed leaves the next one with orders from before, and with workers that seem to start."""
    host.control.assign(row(1))
    host.agent()
    host.control.running(1)
    host.control.assign(row(1))
    folder = StateFolder(host.state_dir)

    def written() -> tuple[int, list[str]]:
        kept = folder.read("workers.json") or {}
        return kept["orders"]["revision"], [each["life"]["state"] for each in kept["workers"]]

    eventually(lambda: written() == (host.control.answer.revision, ["running"]))
    assert host.control.answer.revision == 2


def test_workers_outlive_kill_9_of_the_agent_and_the_next_one_takes_them_over(host: Host) -> None:
    first = host.agent()
    host.control.assign(row(3))
    before = host.control.running(3)
    first.kill()
    first.wait()
    assert all(runs(pid) for pid in before)
    host.control.reports.clear()
    host.agent()
    assert host.control.running(3) == before
    eventually(lambda: "took over workers=3" in host.logged())
    assert host.logged().count("started pool=") == 3
    host.control.assign(row(4))  # and goes on with them
    assert host.control.running(4) > before


def test_an_agent_that_hangs_is_taken_over_from_and_none_of_its_workers_is_restarted_or_doubled(host: Host) -> None:
    """Also one whose workers would end with it, if it were asked to stop."""
    first = host.agent("--stop-workers")
    host.control.assign(row(3))
    before = host.control.running(3)
    first.send_signal(signal.SIGSTOP)
    assert host.agent().wait(60) == 2
    assert f"an agent (process {first.pid}) works in the state folder" in host.logged()
    host.control.reports.clear()
    host.agent("--take-over")
    assert first.wait(60) == -signal.SIGKILL
    assert host.control.running(3) == before
    assert host.logged().count("started pool=") == 3


def test_a_second_agent_in_another_folder_is_not_the_same_host(host: Host) -> None:
    first = host.agent()
    host.control.assign(row(1))
    host.control.running(1)
    assert host.agent("--state-dir", str(host.state_dir.with_name("other"))).wait(60) == 2
    assert f"an agent (process {first.pid}) is host" in host.logged()


def test_kill_9_in_the_middle_of_starting_makes_no_doubles(host: Host) -> None:
    """Killed after some were started and before that was written down: each start is recorded by itself."""
    first = host.agent()
    eventually(lambda: host.control.polls)
    host.control.assign(row(40))
    logs = host.state_dir / "workers"
    eventually(lambda: len(list(logs.glob("*.log"))) >= 5)
    first.kill()
    first.wait()
    host.control.reports.clear()
    host.agent()
    after = host.control.running(40)
    folder = f"{host.state_dir.resolve()}/workers/"
    printing = {pid for pid in psutil.pids() if any(folder in path for path in procfs.output_files(pid).values())}
    assert printing == after


def test_its_workers_run_on_when_it_is_ended_and_it_says_which(host: Host) -> None:
    agent = host.agent()
    host.control.assign(row(2))
    pids = host.control.running(2)
    assert ended(agent) == 0
    assert all(runs(pid) for pid in pids)
    last_line = host.logged().splitlines()[-1]
    assert "its workers run on and the next agent takes them over (pool mail: " in last_line
    assert all(str(pid) in last_line for pid in pids)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_asked_to_it_ends_its_workers_first_the_stubborn_ones_by_force(host: Host, number: int, status: int) -> None:
    agent = host.agent("--stop-workers", program=PATIENT)
    host.control.assign(row(2), row(1, pool="web", template="stubborn"))
    pids = eventually(
        lambda: (found := host.control.pids() | host.control.pids(pool="web")) and len(found) == 3 and found
    )
    assert ended(agent, number) == status
    assert not any(runs(pid) for pid in pids)
    assert host.control.workers() == []  # the control plane knows
    assert "forcing pool=web" in host.logged()
    assert host.logged().splitlines()[-1].endswith("agent ended; no worker runs any more")


def test_when_its_parent_is_gone_it_ends_and_its_workers_with_it(host: Host) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    with host.log.open("ab") as output:
        agent = subprocess.Popen(
            [
                *(sys.executable, "-m", "headway", "agent", "--stop-workers", "--state-dir", str(host.state_dir)),
                *("--host-file", str(host.host_file), "--control", f"127.0.0.1:{host.port}"),
            ],
            stderr=output,
            pass_fds=(reader,),
            env={**os.environ, "HEADWAY_PARENT_FD": str(reader)},
        )
    os.close(reader)
    host.control.assign(row(2))
    pids = host.control.running(2)
    os.close(writer)  # what the kernel does for a parent that is killed
    assert agent.wait(60) == 0
    assert not any(runs(pid) for pid in pids)


@pytest.mark.parametrize("is_agents_own", [True, False])
def test_whoever_ends_workers_waits_for_what_they_leave(host: Host, is_agents_own: bool) -> None:
    """Behind a shell, which ends at once, the worker that finishes its job would be nobody's."""
    host.host_file.with_name("finishes.py").write_text(FINISHES)
    argv = f'["sh", "-c", "{sys.executable} finishes.py; true"]'
    host.host_file.write_text(f'[templates.behind]\nargv = {argv}\nready_pattern = "ready"\ndrain_timeout_s = 30\n')
    words = ("--stop-workers",) if is_agents_own else ()
    agent = host.agent(*words)
    host.control.assign(row(1, template="behind"))
    (shell,) = host.control.running(1)
    eventually(lambda: host.control.workers()[0].state == agent_pb2.WORKER_STATE_RUNNING)
    (worker,) = procfs.descendants(shell)
    if is_agents_own:
        assert ended(agent) == 0
    else:
        agent.kill()
        agent.wait()
        assert stop_left(StateFolder(host.state_dir), wakes=WakePipe()) == 0
    assert not runs(worker.pid)
    (log,) = (host.state_dir / "workers").glob("*.log")
    assert log.read_text() == "ready\ntold 1\n"


def test_stop_workers_ends_what_a_dead_agent_left_and_refuses_while_one_lives(host: Host) -> None:
    agent = host.agent()
    host.control.assign(row(2), row(1, pool="web", template="stubborn"))
    pids = eventually(
        lambda: (found := host.control.pids() | host.control.pids(pool="web")) and len(found) == 3 and found
    )

    with pytest.raises(Refused, match=rf"an agent \(process {agent.pid}\) works in the state folder"):
        stop_left(StateFolder(host.state_dir), wakes=WakePipe())
    agent.kill()
    agent.wait()
    asked = [sys.executable, "-m", "headway", "agent", "stop-workers", "--state-dir", str(host.state_dir)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, any(runs(pid) for pid in pids)) == (0, False)
    assert "no worker runs any more" in done.stderr
    with pytest.raises(Refused, match="no agent has worked in the state folder"):
        stop_left(StateFolder(host.state_dir / "nowhere"), wakes=WakePipe())


def test_without_a_control_plane_it_waits_and_starts_nothing(host: Host) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host.port = taken.getsockname()[1]
        agent = host.agent()
        eventually(lambda: "does not answer" in host.logged())
        assert psutil.Process(agent.pid).children() == []
        assert ended(agent) == 0


def test_mistakes_of_its_host_file_are_one_line(host: Host) -> None:
    host.host_file.write_text('[templates.mail]\nargv = ["rqq"]\nslotz = 1\n')
    assert host.agent().wait(60) == 2
    assert host.logged() == (
        f"headway: {host.host_file}: template 'mail': unknown key 'slotz'; did you mean 'slots'?; "
        "template 'mail': program 'rqq' is not on PATH: install it, or give its whole path in argv\n"
    )


# --- what it costs ---------------------------------------------------------------------------------------------------


def test_with_many_workers_it_takes_next_to_no_cpu(host: Host) -> None:
    agent = psutil.Process(host.agent().pid)
    host.control.assign(row(60))
    host.control.running(60)

    def used_s() -> float:
        before = agent.cpu_times()
        threading.Event().wait(3.0)  # time has to pass for CPU to be taken
        after = agent.cpu_times()
        return after.user + after.system - before.user - before.system

    eventually(lambda: used_s() / 3.0 < 0.05)  # 0.2 % on a quiet machine, once what it takes to begin is over


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run programs as another user")
def test_workers_of_another_user_survive_their_start(host: Host) -> None:
    """What gRPC does in a child before that becomes its program ended one in four."""
    how = 'argv = ["/bin/sleep", "600"]\nworking_directory = "/"\nuser = "nobody"\nready_after_s = 0.0\n'
    host.host_file.write_text(f"[templates.sleep]\n{how}")
    host.agent()
    host.control.assign(row(30))
    host.control.running(30)
    assert "exit=-11" not in host.logged()
