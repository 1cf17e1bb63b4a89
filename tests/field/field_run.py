"""One ``headway up`` with a pool per case: long jobs, and all that happens to their workers meanwhile."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.running_up import RunningUp, running_up
from field.brokers import Send, places_of, sender
from field.cases import Case
from field.judge import FALL_PER_WORKER_S, FALL_S, Rules, Verdict, verdict
from field.recording import Kind, Recording, events_of
from field.watch import Watch, end_workers
from field.worker_files import Place, host_file, profiles

POLL_S = 0.5
STARTING_MAX = 6  # workers at once, on two cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happens in a run; seconds are those after the long jobs were sent."""

    crew: int = 3
    """Workers per pool at the beginning; all but one of them get a long job."""
    floor: int = 0
    """Workers per pool that are wanted once the long jobs have begun."""
    long_s: tuple[float, float] = (74.0, 80.0)
    """The shortest and the longest of the long jobs."""
    shrinks_at_s: float = 4.0
    agent_killed_at_s: float = 18.0
    short_jobs_at_s: float = 30.0
    control_killed_at_s: float = 40.0
    short_jobs: int = 2
    short_s: float = 1.0
    late_s: float = 40.0
    """For so long after their time jobs that have not ended are waited for."""
    ready_within_s: float = 200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one case."""

    recording: Recording
    verdict: Verdict


def play(cases: Sequence[Case], folder: Path, *, story: Story, rng: random.Random) -> Mapping[Case, Outcome]:
    """Play the story with a pool per case, and judge each."""
    with places_of(cases, folder) as places:
        _write_files(places, folder, story, workers_min=story.crew)
        (folder / "tmp").mkdir()
        try:
            with running_up(folder, {"TMPDIR": str(folder / "tmp")}) as up:
                recordings = _Run(up, places, folder, story, rng).play()
        finally:
            end_workers(places)
    return {
        place.case: Outcome(recording=found, verdict=verdict(found, rules_of(place.case, story)))
        for place, found in zip(places, recordings, strict=True)
    }


def rules_of(case: Case, story: Story) -> Rules:
    """What may be expected of a case in a story."""
    return Rules(
        floor=story.floor,
        slots=case.slots,
        has_reporter=case.has_reporter,
        is_idle_known=case.is_idle_known,
        is_busy_known=case.is_busy_known,
    )


def _write_files(places: Sequence[Place], folder: Path, story: Story, *, workers_min: int) -> None:
    (folder / "profiles.yaml").write_text(profiles(places, workers_min=workers_min, workers_max=story.crew))
    host = folder / "host.toml"
    if not host.exists():
        host.write_text(host_file(places, starting_max=STARTING_MAX))


class _Run:
    """A story that is being played."""

    def __init__(self, up: RunningUp, places: Sequence[Place], folder: Path, story: Story, rng: random.Random) -> None:
        self._up = up
        self._places = places
        self._folder = folder
        self._story = story
        self._rng = rng
        self._watch = Watch(up, places)
        self._sent: dict[str, dict[str, float]] = {place.case.name: {} for place in places}
        self._sends: dict[str, Send] = {}
        self._began_s = 0.0

    def play(self) -> list[Recording]:
        """Returns a recording per place."""
        story = self._story
        with self._watch.watching(), self._senders():
            self._until(self._are_all_ready, within_s=story.ready_within_s)
            self._began_s = time.time()
            self._send_long_jobs()
            for at_s, act in sorted(
                (
                    (story.shrinks_at_s, self._shrink),
                    (story.agent_killed_at_s, lambda: self._kill("agent")),
                    (story.short_jobs_at_s, self._send_short_jobs),
                    (story.control_killed_at_s, lambda: self._kill("control")),
                ),
                key=lambda step: step[0],
            ):
                time.sleep(max(0.0, self._began_s + at_s - time.time()))
                act()
            left_s = self._began_s + story.long_s[1] + story.late_s - time.time()
            self._until(self._have_all_ended, within_s=left_s)
            fall_s = max(FALL_S, FALL_PER_WORKER_S * (story.crew - story.floor))
            self._until(self._are_all_down, within_s=fall_s + story.late_s)
        return [self._watch.recording(place, self._sent[place.case.name]) for place in self._places]

    @contextmanager
    def _senders(self) -> Iterator[None]:
        with ExitStack() as stack:
            self._sends = {place.case.name: stack.enter_context(sender(place)) for place in self._places}
            yield

    def _until(self, holds: Callable[[], bool], *, within_s: float) -> None:
        """Wait until it holds, or the time is over: the judge says what is missing."""
        until_s = time.monotonic() + within_s
        while not holds() and time.monotonic() < until_s:
            time.sleep(POLL_S)

    def _are_all_ready(self) -> bool:
        return all(self._watch.running(place) >= self._story.crew for place in self._places)

    def _have_all_ended(self) -> bool:
        return all(set(self._sent[place.case.name]) <= _ended(place) for place in self._places)

    def _are_all_down(self) -> bool:
        return all(self._watch.living(place) <= self._story.floor for place in self._places)

    def _send_long_jobs(self) -> None:
        for place in self._places:
            for number in range(self._story.crew - 1):
                self._send(place, f"long-{number}", self._rng.uniform(*self._story.long_s))

    def _send_short_jobs(self) -> None:
        for place in self._places:
            for number in range(self._story.short_jobs):
                self._send(place, f"short-{number}", self._story.short_s)

    def _send(self, place: Place, job_id: str, seconds: float) -> None:
        sent = self._sent[place.case.name]
        queue = place.served[len(sent) % len(place.served)]
        sent[job_id] = time.time()
        self._sends[place.case.name](job_id, seconds, queue)

    def _shrink(self) -> None:
        _write_files(self._places, self._folder, self._story, workers_min=self._story.floor)
        self._up.headway("apply", "profiles.yaml")

    def _kill(self, role: str) -> None:
        os.kill(self._up.pid_of(role), signal.SIGKILL)


def _ended(place: Place) -> set[str]:
    return {event.job_id for event in events_of(place.log.read_text().splitlines()) if event.kind is Kind.END}
