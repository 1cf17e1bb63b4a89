"""The watch over real processes; only its clock is not real."""

import subprocess
import sys
import time

import psutil
import pytest

from headway.cli.demo.process_watch import WorkerWatch

AGENT = """
import subprocess, sys
children = []
for line in sys.stdin:
    if line == "start\\n":
        children.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        print(children[-1].pid, flush=True)
    else:
        children[-1].kill()
        if line == "end\\n":
            children.pop().wait()
        print(0, flush=True)
for child in children:
    child.kill()
"""


class Agent:
    """A process that starts and ends workers as commanded."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def command(self, word: str) -> int:
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


class Clock:
    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def agent():
    agent = Agent()
    yield agent
    agent.process.stdin.close()
    agent.process.wait(timeout=60)


def test_a_life_begins_and_ends_between_the_polls_that_see_it(agent):
    pid = agent.command("start")
    born_s = psutil.Process(pid).create_time()
    clock = Clock(born_s - 1)
    watch = WorkerWatch(lambda: None, clock=clock)
    watch.scan()
    watch._agent_pid = lambda: agent.process.pid
    clock.now_s = born_s + 1
    watch.scan()
    assert watch.present == 1
    (life,) = watch.lives(until_s=born_s + 5)
    assert (life.pid, life.began_at_s, life.ended_at_s) == (pid, born_s, born_s + 5)

    agent.command("end")
    clock.now_s = born_s + 3
    watch.scan()
    assert watch.present == 0
    (life,) = watch.lives(until_s=born_s + 100)
    assert life.ended_at_s == born_s + 2  # between the looks at 1 and 3


def test_a_create_time_outside_the_polls_is_moved_between_them(agent):
    born_s = psutil.Process(agent.command("start")).create_time()
    clock = Clock(born_s + 4)
    watch = WorkerWatch(lambda: None, clock=clock)
    watch.scan()
    watch._agent_pid = lambda: agent.process.pid
    clock.now_s = born_s + 4.5
    watch.scan()
    assert watch.lives(until_s=born_s + 9)[0].began_at_s == born_s + 4


def test_a_worker_that_is_dead_but_not_reaped_has_ended(agent):
    agent.command("start")
    watch = WorkerWatch(lambda: agent.process.pid)
    watch.scan()
    agent.command("kill")
    until_s = time.monotonic() + 60
    while watch.present and time.monotonic() < until_s:
        watch.scan()
    assert watch.present == 0


def test_a_worker_is_watched_on_when_its_agent_is_gone(agent):
    agent.command("start")
    pids = [agent.process.pid, None]
    watch = WorkerWatch(lambda: pids[0])
    watch.scan()
    pids.pop(0)
    watch.scan()
    assert watch.present == 1


def test_an_agent_that_is_not_there_has_no_workers():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    watch = WorkerWatch(lambda: gone.pid)
    watch.scan()
    assert watch.present == 0
    assert watch.lives(until_s=1) == []
