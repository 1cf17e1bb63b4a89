"""The entry of a job, from readings of the broker and receptions: within its bounds of the truth, or unknown."""

from collections import deque
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.entries import entry_times
from headway.scaling.entries.entry_times import EntryBounds, EntryTimes
from headway.scaling.model import BrokerPoll, EnteredJob, EventKind, JobEvent, PolledQueue, QueueReceptions

QUEUE, COLLECTOR = "shop/mail", "collect-shop"
STEP_S = 0.05
POLL_S = 0.5
FAR_S = 1_000_000.0


@dataclass
class Broker:
    """One queue, its workers on several hosts, a collector, and what each of them knows; the truth beside it."""

    rng: Random
    names_jobs: bool
    hosts: int = 1
    slots: int = 2
    service_s: float = 1.0
    times: EntryTimes = field(default_factory=EntryTimes)
    now_s: float = FAR_S
    waiting: "deque[str]" = field(default_factory=deque)
    entered_s: dict[str, float] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    taken: dict[int, list[tuple[str, float]]] = field(default_factory=dict)
    """Host -> jobs received there that have not begun, and when."""
    running: dict[int, list[float]] = field(default_factory=dict)
    unsent: dict[int, list[float]] = field(default_factory=dict)
    sent_s: dict[int, float] = field(default_factory=dict)
    last_poll_s: float | None = None
    strangers: int = 0
    """Consumers that report nothing."""
    unwhole: set[int] = field(default_factory=set)
    answers: list[tuple[str, float, EntryBounds | None]] = field(default_factory=list)
    """Of each job that began: when, and what was answered."""
    lost_polls: int = 0

    def enter(self, jobs: int = 1) -> None:
        for _ in range(jobs):
            name = str(len(self.entered_s))
            self.entered_s[name] = self.now_s
            self.waiting.append(name)

    def poll(self, *, is_lost: bool = False) -> None:
        held = sum(len(each) for each in self.taken.values())
        new = [job for job in self.waiting if job not in self.named] if self.names_jobs else []
        self.named.update(new)
        row = PolledQueue(
            queue=QUEUE,
            waiting_jobs=len(self.waiting),
            held_jobs=held,
            consumers=self.strangers + sum(1 for host in range(self.hosts) if host in self.sent_s),
            entered=tuple(EnteredJob(job_id=job, attempt=1) for job in new),
            is_complete=self.names_jobs,
            is_ordered=not self.names_jobs,
        )
        at_s = self.now_s
        poll = BrokerPoll(
            connection="shop",
            at_s=at_s,
            until_s=at_s + 0.001,
            after_s=self.last_poll_s,
            queues=(row,) if self.waiting or held else (),
        )
        self.last_poll_s = at_s
        if not is_lost:
            self.times.take_poll(poll, COLLECTOR)
            self.times.note_read(QUEUE, at_s, COLLECTOR)

    def work(self) -> None:
        """Take and begin what can be, and report it."""
        for host in range(self.hosts):
            taken, running = self.taken.setdefault(host, []), self.running.setdefault(host, [])
            running[:] = [end_s for end_s in running if end_s > self.now_s]
            while self.waiting and len(taken) < self.slots * 2:
                self.now_s += 1e-4
                taken.append((self.waiting.popleft(), self.now_s))
                self.unsent.setdefault(host, []).append(self.now_s)
            begun = []
            while taken and len(running) < self.slots:
                job, received_s = taken.pop(0)
                running.append(self.now_s + self.service_s * self.rng.uniform(0.1, 2.0))
                begun.append((job, received_s))
            self.report(host)
            for job, received_s in begun:
                self.begin(job, received_s)

    def report(self, host: int) -> None:
        self.now_s += 1e-4
        since_s = self.sent_s.get(host, FAR_S - 1.0)
        receptions = QueueReceptions(
            queue=QUEUE,
            since_s=since_s,
            until_s=self.now_s,
            received_at_s=tuple(self.unsent.pop(host, ())),
            workers=1,
            is_prompt=True,
            is_whole=host not in self.unwhole,
        )
        self.unwhole.discard(host)
        self.sent_s[host] = self.now_s
        self.times.take_receptions(receptions, f"agent-{host}")

    def begin(self, job: str, received_s: float, *, is_redelivered: bool | None = None) -> None:
        started = JobEvent(
            queue=QUEUE,
            job_id=job,
            kind=EventKind.STARTED,
            at_s=self.now_s,
            attempt=1,
            received_at_s=received_s,
            is_redelivered=is_redelivered,
        )
        self.answers.append((job, self.now_s, self.times.entry(started)))

    def wrong(self) -> list[tuple[str, float, EntryBounds]]:
        """Answers whose bounds do not hold the truth."""
        return [
            (job, self.entered_s[job], bounds)
            for job, _, bounds in self.answers
            if bounds is not None and not bounds.after_s <= self.entered_s[job] <= bounds.until_s
        ]

    @property
    def known_share(self) -> float:
        return sum(bounds is not None for *_, bounds in self.answers) / len(self.answers)


SCENES = st.builds(
    Broker,
    rng=st.integers(0, 2**32).map(Random),
    names_jobs=st.booleans(),
    hosts=st.integers(1, 3),
    slots=st.integers(1, 4),
    service_s=st.sampled_from([0.05, 0.5, 3.0]),
)
BURSTS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), max_size=8)
"""Steps from one burst to the next, and its jobs."""


def play(broker: Broker, bursts: list[tuple[int, int]], *, idle_steps: int = 40, works: bool = True) -> None:
    """Let jobs enter, and then ``idle_steps`` pass; a poll every ``POLL_S``."""
    next_poll_s = broker.now_s
    for steps, jobs in [*bursts, (idle_steps, 0)]:
        for _ in range(steps):
            broker.now_s += STEP_S * broker.rng.uniform(0.2, 1.8)
            if broker.now_s >= next_poll_s:
                broker.poll(is_lost=broker.rng.random() < broker.lost_polls / 10)
                next_poll_s = broker.now_s + POLL_S
            if works:
                broker.work()
        broker.enter(jobs)


@given(SCENES, BURSTS)
def test_an_entry_is_within_its_bounds(broker: Broker, bursts: list[tuple[int, int]]) -> None:
    play(broker, [(20, 1), *bursts], idle_steps=400)
    assert broker.wrong() == []
    for _, started_s, bounds in broker.answers:
        assert bounds is None or bounds.is_close(started_at_s=started_s)
        assert bounds is None or bounds.after_s <= bounds.estimate_s <= min(bounds.until_s, started_s)


@pytest.mark.parametrize("names_jobs", [True, False])
@pytest.mark.parametrize("service_s", [0.05, 1.0])
def test_the_entries_of_an_ordinary_day_are_known(names_jobs: bool, service_s: float) -> None:
    """Single jobs, a burst before the first worker works, and a backlog."""
    broker = Broker(rng=Random(1), names_jobs=names_jobs, service_s=service_s)
    broker.poll()
    broker.report(0)
    play(broker, [(10, 1)] * 5)
    play(broker, [(20, 40)], idle_steps=200, works=False)
    play(broker, [(10, 3)] * 20, idle_steps=2_000)
    assert len(broker.answers) == 5 + 40 + 60
    assert broker.wrong() == []
    assert broker.known_share == 1.0
    far = max(abs(bounds.estimate_s - broker.entered_s[job]) for job, _, bounds in broker.answers if bounds is not None)
    assert far <= POLL_S + 0.3


@given(SCENES, BURSTS, st.integers(0, 5))
def test_lost_readings_make_entries_unknown_and_none_wrong(
    broker: Broker, bursts: list[tuple[int, int]], lost: int
) -> None:
    broker.lost_polls = lost
    play(broker, [(20, 1), *bursts], idle_steps=200)
    assert broker.wrong() == []


@given(SCENES, BURSTS, BURSTS, st.integers(1, 20))
def test_a_consumer_that_does_not_report_makes_no_entry_wrong(
    broker: Broker, before: list[tuple[int, int]], after: list[tuple[int, int]], taken_jobs: int
) -> None:
    play(broker, [(20, 1), *before])
    broker.strangers = 1
    play(broker, [(20, 40)], works=False)
    for _ in range(min(taken_jobs, len(broker.waiting))):
        broker.waiting.popleft()
    broker.enter(taken_jobs)
    play(broker, after, idle_steps=200)
    assert broker.wrong() == []


@given(SCENES, BURSTS, BURSTS)
def test_a_purge_makes_no_entry_wrong(
    broker: Broker, before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    play(broker, [(20, 1), *before, (20, 40)], works=False)
    broker.waiting.clear()
    play(broker, [(20, 5), *after], idle_steps=200)
    assert broker.wrong() == []


@given(SCENES, BURSTS, BURSTS)
def test_a_redelivery_makes_no_entry_wrong(
    broker: Broker, before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    """A worker of the first host dies: what it held is at the head of the queue again."""
    play(broker, [(20, 1), *before, (1, 30)])
    lost = [job for job, _ in broker.taken.get(0, [])]
    broker.taken[0] = []
    broker.named.update(lost)  # their messages say that they were put back
    broker.waiting.extendleft(reversed(lost))
    play(broker, [(11, 0)], works=False, idle_steps=0)
    again = set(lost)
    host = broker.hosts - 1
    while again & set(broker.waiting):  # one worker takes them, and says that they come again
        job = broker.waiting.popleft()
        broker.now_s += 1e-3
        broker.unsent.setdefault(host, []).append(broker.now_s)
        broker.unwhole.add(host)
        broker.report(host)
        broker.begin(job, broker.now_s - 1e-4, is_redelivered=job in again)
    play(broker, [(20, 5), *after], idle_steps=200)
    assert broker.wrong() == []


def started(job: str, *, at_s: float, received_at_s: float | None) -> JobEvent:
    return JobEvent(queue=QUEUE, job_id=job, kind=EventKind.STARTED, at_s=at_s, attempt=1, received_at_s=received_at_s)


def poll(at_s: float, *rows: PolledQueue, after_s: float | None = None) -> BrokerPoll:
    return BrokerPoll(connection="shop", at_s=at_s, until_s=at_s, after_s=after_s, queues=rows)


def read(times: EntryTimes, poll: BrokerPoll, producer: str = COLLECTOR) -> None:
    """Take ``poll`` of a collector that reads the queue."""
    times.take_poll(poll, producer)
    times.note_read(QUEUE, poll.at_s, producer)


def named(*jobs: str, waiting_jobs: int | None = None) -> PolledQueue:
    return PolledQueue(
        queue=QUEUE,
        waiting_jobs=len(jobs) if waiting_jobs is None else waiting_jobs,
        entered=tuple(EnteredJob(job_id=job, attempt=1) for job in jobs),
        is_complete=True,
    )


def test_the_second_start_of_one_attempt_has_no_known_entry() -> None:
    """It is another delivery: the job waited twice, and the first run lies between."""
    times = EntryTimes()
    read(times, poll(10.0))
    read(times, poll(10.5, named("a"), after_s=10.0))
    first = started("a", at_s=12.0, received_at_s=11.0)
    assert times.entry(first) == EntryBounds(after_s=10.0, until_s=10.5, estimate_s=10.25)
    assert times.entry(first) == times.entry(first) is not None, "sent twice, the same start has the same entry"
    assert times.entry(replace(first, at_s=20.0, received_at_s=None)) is None


def test_a_job_that_enters_again_under_its_id_has_its_new_entry() -> None:
    times = EntryTimes()
    read(times, poll(10.0))
    read(times, poll(10.5, named("a"), after_s=10.0))
    assert times.entry(started("a", at_s=11.0, received_at_s=11.0)) is not None
    read(times, poll(20.0, after_s=10.5))
    read(times, poll(20.5, named("a"), after_s=20.0))
    again = times.entry(started("a", at_s=21.0, received_at_s=21.0))
    assert again == EntryBounds(after_s=20.0, until_s=20.5, estimate_s=20.25)


def test_a_job_that_was_put_back_entered_after_a_reading_that_found_nothing_waiting_or_held() -> None:
    times = EntryTimes()
    read(times, poll(10.0))
    held = PolledQueue(queue=QUEUE, waiting_jobs=0, held_jobs=1, is_complete=True)
    read(times, poll(10.5, held, after_s=10.0))
    again = replace(started("a", at_s=11.5, received_at_s=11.0), is_redelivered=True)
    assert times.entry(again) == EntryBounds(after_s=10.0, until_s=11.0, estimate_s=10.5)
    assert times.entry(started("b", at_s=11.5, received_at_s=11.0)) == EntryBounds(
        after_s=10.5, until_s=11.0, estimate_s=11.0
    )


def test_jobs_of_the_first_reading_entered_nobody_knows_when() -> None:
    times = EntryTimes()
    read(times, poll(10.0, named("a")))
    assert times.entry(started("a", at_s=11.0, received_at_s=11.0)) is None


def test_a_job_that_no_reading_saw_is_unknown_where_a_reading_did_not_name_all() -> None:
    times = EntryTimes()
    read(times, poll(10.0))
    read(times, poll(12.5, replace(named("a", waiting_jobs=7), is_complete=False), after_s=10.0))
    assert times.entry(started("b", at_s=13.0, received_at_s=13.0)) is None


def test_a_control_plane_that_missed_a_reading_does_not_take_a_job_for_new() -> None:
    """The reading that it missed may have named the job."""
    times = EntryTimes()
    read(times, poll(10.0))
    read(times, poll(12.5, named(waiting_jobs=3), after_s=12.0))
    assert times.entry(started("b", at_s=13.0, received_at_s=13.0)) is None


def test_readings_of_a_second_collector_count_once_the_first_is_silent() -> None:
    times = EntryTimes()
    read(times, poll(10.0))
    read(times, poll(10.5), "collect-other")
    assert times.entry(started("a", at_s=11.0, received_at_s=11.0)) == EntryBounds(
        after_s=10.0, until_s=11.0, estimate_s=11.0
    )
    read(times, poll(20.0), "collect-other")
    assert times.entry(started("b", at_s=20.5, received_at_s=20.5)) is not None


def test_a_name_that_was_forgotten_makes_no_entry_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_times, "JOBS_MAX", 2)
    times = EntryTimes()
    read(times, poll(10.0))
    read(times, poll(10.5, named("a", "b"), after_s=10.0))
    read(times, poll(15.0, named("c", waiting_jobs=3), after_s=10.5))
    assert times.entry(started("a", at_s=15.5, received_at_s=15.5)) is None
    assert times.entry(started("c", at_s=15.5, received_at_s=15.5)) is None, "its bounds are 4.5 s apart"


def test_an_arrival_that_was_reported_with_its_start_happened_at_the_entry() -> None:
    times = EntryTimes()
    read(times, poll(10.0))
    read(times, poll(10.5, named("a"), after_s=10.0))
    begun = started("a", at_s=12.0, received_at_s=11.0)
    arrived = replace(begun, kind=EventKind.ENQUEUED, received_at_s=None)
    own = replace(begun, job_id="b", enqueued_at_s=3.0)
    assert times.completed([arrived, begun, own]) == (
        replace(arrived, at_s=10.25),
        replace(begun, enqueued_at_s=10.25),
        own,
    )


def test_of_a_queue_that_the_collector_does_not_read_no_entry_is_known() -> None:
    """It is named by no reading, and is not empty for that."""
    times = EntryTimes()
    times.take_poll(poll(10.0), COLLECTOR)
    assert times.entry(started("a", at_s=11.0, received_at_s=11.0)) is None
    times.note_read(QUEUE, 20.0, COLLECTOR)
    times.take_poll(poll(20.0), COLLECTOR)
    assert times.entry(started("b", at_s=20.1, received_at_s=20.1)) is None, "readings before did not know of it"
    assert times.entry(started("c", at_s=21.0, received_at_s=21.0)) is not None
    times.take_poll(poll(50.0), COLLECTOR)
    assert times.entry(started("d", at_s=51.0, received_at_s=51.0)) is None, "it is read no more"


def test_a_queue_that_is_new_was_not_there_at_readings_that_find_all_queues() -> None:
    row = PolledQueue(queue=QUEUE, waiting_jobs=0, held_jobs=1, is_complete=True)
    for finds_all, entry in (
        (True, EntryBounds(after_s=10.5, until_s=11.0, estimate_s=11.0)),
        (False, None),
    ):
        times = EntryTimes()
        times.take_poll(replace(poll(10.0), finds_all=True), COLLECTOR)
        times.take_poll(replace(poll(10.5, after_s=10.0), finds_all=finds_all), COLLECTOR)
        read(times, replace(poll(10.9, row, after_s=10.5), finds_all=True))
        assert times.entry(started("a", at_s=11.0, received_at_s=11.0)) == entry


def test_what_another_worker_holds_does_not_hide_when_a_job_entered() -> None:
    """A worker that leaves puts a job back a while later: one that is received at once meanwhile was not held."""

    def entry(*, is_prompt: bool) -> EntryBounds | None:
        times = EntryTimes()
        read(times, poll(10.0))
        held = PolledQueue(queue=QUEUE, waiting_jobs=0, held_jobs=1, consumers=2, is_ordered=True)
        for at_s in (11.0, 12.0, 13.0, 14.0):
            read(times, poll(at_s, held, after_s=at_s - 1.0))
        receptions = QueueReceptions(
            queue=QUEUE, since_s=9.0, until_s=14.6, received_at_s=(14.5,), workers=1, is_prompt=is_prompt
        )
        times.take_receptions(receptions, "agent-1")
        return times.entry(started("a", at_s=14.6, received_at_s=14.5))

    assert entry(is_prompt=True) == EntryBounds(after_s=14.0, until_s=14.5, estimate_s=14.5)
    assert entry(is_prompt=False) is None
