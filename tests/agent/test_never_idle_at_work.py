"""A worker with a job is never believed idle, whatever happens to the lines in which it reports."""

from dataclasses import dataclass, field

from hypothesis import event, given, settings
from hypothesis import strategies as st

from headway.agent.reporting.report_lines import understood
from headway.agent.reporting.worker_report import BEAT_FRESH_S, WorkerReport
from support.report_lines import beat, job

STEP_S = 0.5
BEAT_STEPS = 4  # every 2 s
PIPE_LINES = 12  # a small pipe is soon full


@dataclass
class Play:
    """A worker whose jobs begin and end, its pipe, and the agent that reads it."""

    now_s: float = 1_000.0
    jobs: dict[str, float] = field(default_factory=dict)
    """Running: id -> since when the agent can know of it: at once, or where the line of its start was lost, from the
    moment on at which the last beat before it is stale."""
    pipe: list[bytes] = field(default_factory=list)
    report: WorkerReport = field(default_factory=WorkerReport)
    begun: int = 0
    loop: int = 0
    lost: int = 0
    steps: int = 0
    is_loop_stuck: bool = False
    is_thread_hidden: bool = False
    is_agent_down: bool = False
    loses_lines_of_jobs: bool = False
    is_pool_flushed: bool = False
    """What ends now stays in the beats, although its end was written: Celery 5.5 after its broker was away."""
    listed: set[str] = field(default_factory=set)
    """What has ended so."""

    def write(self, line: bytes, *, of_main: bool) -> bool:
        """Whether the pipe took it. What a process of the pool loses, the main process does not know."""
        if len(self.pipe) >= PIPE_LINES or (self.loses_lines_of_jobs and not of_main):
            self.lost += of_main
            return False
        self.pipe.append(line)
        return True

    def begin(self) -> None:
        self.begun += 1
        name = f"j{self.begun}"
        is_written = self.write(job("begun", name, at_s=self.now_s), of_main=False)
        self.jobs[name] = self.now_s if is_written else self.now_s + BEAT_FRESH_S

    def end(self, which: int) -> None:
        if self.jobs:
            name = sorted(self.jobs)[which % len(self.jobs)]
            del self.jobs[name]
            if self.write(job("ended", name, at_s=self.now_s), of_main=False) and self.is_pool_flushed:
                self.listed.add(name)

    def step(self) -> None:
        """Half a second, in which the agent reads unless it is down."""
        self.steps += 1
        self.now_s += STEP_S
        self.loop += not self.is_loop_stuck
        if self.steps % BEAT_STEPS == 0 and not self.is_thread_hidden:
            line = beat(*self.jobs, *self.listed, at_s=self.now_s, n=self.steps, loop=self.loop, lost=self.lost)
            self.write(line, of_main=True)
        if not self.is_agent_down:
            self.read()

    def read(self) -> None:
        for line in self.pipe:
            said = understood(line)
            self.report.take(said, at_s=self.now_s - (self.now_s - said.at_s), events_max=10)
        self.pipe.clear()

    def restart_agent(self) -> None:
        self.report = WorkerReport()

    @property
    def is_idle(self) -> bool:
        return self.report.activity(now_s=self.now_s, unix_ahead_s=0.0).is_busy is False

    @property
    def has_work(self) -> bool:
        return any(self.now_s >= at_s for at_s in self.jobs.values())


SWITCHES = ("is_loop_stuck", "is_thread_hidden", "is_agent_down", "loses_lines_of_jobs", "is_pool_flushed")
ACTIONS = st.one_of(
    st.tuples(st.just("wait"), st.integers(1, 30)),
    st.tuples(st.just("begin"), st.integers(1, 3)),
    st.tuples(st.just("end"), st.integers(0, 5)),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.sampled_from(SWITCHES), st.integers(0, 1)),
)


@given(st.lists(ACTIONS, max_size=25))
@settings(max_examples=2_000, deadline=None)
def test_a_worker_with_a_job_is_never_believed_idle(actions: list[tuple[str, int]]) -> None:
    play = Play()
    for what, number in actions:
        if what == "begin":
            for _ in range(number):
                play.begin()
        elif what == "end":
            play.end(number)
        elif what == "restart":
            play.restart_agent()
        elif what in SWITCHES:
            setattr(play, what, bool(number))
        for _ in range(number if what == "wait" else 1):
            play.step()
            if not play.is_agent_down and play.is_idle:
                event("idle")
                assert not play.has_work


@given(st.lists(ACTIONS, max_size=15))
@settings(max_examples=500, deadline=None)
def test_once_all_is_well_a_worker_without_jobs_is_idle_within_a_few_beats(actions: list[tuple[str, int]]) -> None:
    """What was lost, hidden or unread leaves nothing behind: pools come down."""
    play = Play()
    for what, number in actions:
        if what == "begin":
            play.begin()
        elif what == "end":
            play.end(number)
        elif what in SWITCHES:
            setattr(play, what, bool(number))
        for _ in range(number if what == "wait" else 1):
            play.step()
    for switch in SWITCHES:
        setattr(play, switch, False)
    while play.jobs:
        play.end(0)
    for _ in range(int(2 * BEAT_FRESH_S / STEP_S)):
        play.step()
    assert play.is_idle
