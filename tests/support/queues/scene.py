"""A library at work under moves drawn by chance: real workers, and jobs that write down what they do."""

import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import redis

from headway.collect.source import Source
from headway.scaling.model import QueueSample
from support.processes import runs
from support.queues import job_runs
from support.queues.kills import Kill
from support.queues.lives import Run, Verdict, quantile, runs_from
from support.queues.processes import Hand, Worker
from support.waiting import eventually

PAUSE_S_MAX = 0.12
UNCHANGED_TRIES = 8
SLACK_S = 0.1  # from one read of a clock to another, and while a worker has taken a job that it has not noted yet
WIDTH_S, WIDTH_PART = 2.0, 0.05
CUT_LATE = "end of a run that wrote it and was ended before the library noted it"
GRACE_S = 0.5


@dataclass(slots=True)
class OwnAnswers:
    """Samples beside what the library itself answered while nothing moved."""

    slack_s: float = SLACK_S
    differences: list[str] = field(default_factory=list)
    compared: int = 0
    moving: int = 0
    """Samples during which something moved, each time it was tried: nothing is known to compare them with."""
    ages: int = 0
    widths_s: list[float] = field(default_factory=list)
    """How far the bounds of each age were apart."""
    polled_s: list[float] = field(default_factory=list)
    wide: int = 0
    """Ages whose bounds were further apart than ``WIDTH_S`` or ``WIDTH_PART``, and than the polls were then."""

    def compare(self, what: str, sampled: object, own: object) -> None:
        """Note a difference."""
        if sampled != own:
            self.differences.append(f"{what}: sampled {sampled}, the library has {own}")

    def compare_age(self, sample: QueueSample, true_s: tuple[float, float] | None) -> None:
        """Note where ``sample`` does not hold the true age, which is between two bounds; ``None``: nothing waits."""
        age_s, bound_s = sample.oldest_age_s, sample.oldest_age_max_s
        if true_s is None:
            self.compare("age where nothing waits", age_s, 0.0)
            return
        self.ages += 1
        if age_s is None:
            self.differences.append(f"no age, and {true_s} is true")
            return
        bound_s = age_s if bound_s is None else bound_s
        if age_s > true_s[1] + self.slack_s or bound_s < true_s[0] - self.slack_s:
            self.differences.append(f"age {age_s:.3f} to {bound_s:.3f}, and {true_s[0]:.3f} to {true_s[1]:.3f} is true")
        self.widths_s.append(bound_s - age_s)
        then_s = [at_s for at_s in self.polled_s if at_s >= sample.at_s - bound_s - 1.0]
        between_s = max((later - at_s for at_s, later in pairwise(then_s)), default=0.0)
        self.wide += bound_s - age_s > max(WIDTH_S, WIDTH_PART * age_s, 2 * between_s)

    def figures(self) -> dict[str, Any]:
        """For a ledger of proofs."""
        polls_s = [later - at_s for at_s, later in pairwise(self.polled_s)]
        return {
            "samples_compared": self.compared,
            "samples_moving": self.moving,
            "ages_compared": self.ages,
            "ages_too_wide": self.wide,
            "age_width_s": {"p50": quantile(self.widths_s, 0.5), "p99": quantile(self.widths_s, 0.99)},
            "poll_interval_s": {"p50": quantile(polls_s, 0.5)},
        }


class Scene(ABC):
    """One library with its workers and one queue."""

    always: tuple[str, ...]
    """Moves that every story has at least once."""
    moves: ClassVar[dict[str, int]]
    """How often each move is drawn, beside the others."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.grace_s = GRACE_S
        """What a worker does is noted and reported so much later at most: longer where others keep the machine busy."""
        self.chance = random.Random(seed)
        self.hand: Hand
        self.workers: list[Worker] = []
        self.source: Source
        self.own = OwnAnswers()
        self.kills: list[Kill] = []
        self.made: Counter[str] = Counter()
        self.ids: list[str] = []
        self.stopped_s: dict[str, list[float]] = {}
        """Job -> when it was to be ended, each time."""
        self._ended = ExitStack()

    # --- a story ------------------------------------------------------------------------------------------------------

    def play(self, moves: int) -> None:
        """So many moves, drawn by chance, and some of each kind that always is."""
        names = [*self.always, *self.chance.choices(list(self.moves), list(self.moves.values()), k=moves)]
        drawn = names[len(self.always) : moves]
        for name in self.always:  # none of them before anything is there, or as all ends
            drawn.insert(self.chance.randrange(len(drawn) // 4, max(len(drawn) * 3 // 4, 1)), name)
        for name in drawn:
            self.made[name] += 1
            getattr(self, name)()
            self.compare()
            time.sleep(self.chance.uniform(0.0, PAUSE_S_MAX))
        self.settle()

    def close(self) -> None:
        """End all processes."""
        self.hand.end()
        for worker in self.workers:
            worker.end()
        self.source.close()
        self._ended.close()

    @abstractmethod
    def compare(self) -> None:
        """Poll, and compare the sample with what the library itself answers."""

    @abstractmethod
    def settle(self) -> None:
        """Let all that was put end, and be reported."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """What was reported beside what was."""

    @abstractmethod
    def start_worker(self) -> Worker:
        """Another worker."""

    # --- moves that all have ------------------------------------------------------------------------------------------

    def restart_worker(self) -> None:
        """Ask a worker to end, which finishes its jobs first, and start another."""
        worker = self.workers.pop(self.chance.randrange(len(self.workers)))
        worker.ask_to_stop()
        worker.wait_stopped()
        self.workers.append(self.start_worker())

    def kill_worker(self) -> None:
        """``kill -9`` a worker, alone or with all that it began, and start another."""
        self.wait_running()
        worker = self.workers.pop(self.chance.randrange(len(self.workers)))
        with_children = self.chance.random() < 0.5
        self.kills.append(worker.kill(with_children=with_children))
        self.workers.append(self.start_worker())

    def stop_one(self) -> None:
        """End a job that runs, by the library's own means."""
        job_id = self.chance.choice(self.wait_running()).job_id
        began_s, _, _ = self.hand.ask("stop", job_id=job_id)
        self.stopped_s.setdefault(job_id, []).append(began_s)

    def is_cut_late(self, run: Run) -> bool:
        """Whether ``run`` wrote its end and was ended from outside then: the library may have noted another end."""
        if run.ended_s is None:
            return False
        stops_s = self.stopped_s.get(run.job_id, [])
        return any(run.began_s <= asked_s <= run.ended_s + self.grace_s for asked_s in stops_s) or any(
            kill.with_children and run.pid in kill.pids for kill in self.kills
        )

    def wait_running(self) -> list[Run]:
        """Runs that are under way, as soon as there are some; a job is put for it where none is, and none to come."""
        put: set[str] = set()

        def found() -> list[Run]:
            running = self.running()
            if not running and put <= {run.job_id for run in self.runs()}:  # one that has run already was too short
                put.add(self.put_one(("well", 0.8)))
            return running

        return eventually(found)

    def put_one(self, *plan: job_runs.Step, **options: Any) -> str:
        """Put a job with a new id, which comes back."""
        job_id = f"job-{len(self.ids):04d}"
        self.ids.append(job_id)
        self.sent(job_id, plan, options)
        return job_id

    @abstractmethod
    def sent(self, job_id: str, plan: tuple[job_runs.Step, ...], options: dict[str, Any]) -> None:
        """Put it."""

    # --- what is ------------------------------------------------------------------------------------------------------

    def runs(self) -> list[Run]:
        """All runs so far."""
        return runs_from(job_runs.lines(self.folder))

    def running(self) -> list[Run]:
        """Those that have not ended, of processes that live."""
        return [run for run in self.runs() if run.ended_s is None and runs(run.pid)]

    def waiting_ids(self) -> list[str]:
        """Jobs of which no run has begun."""
        begun = {run.job_id for run in self.runs()}
        return [job_id for job_id in self.ids if job_id not in begun]

    def unchanged(self, read: Callable[[], Any]) -> Any:
        """What ``read`` returns if nothing was written to the broker meanwhile, tried some times; else ``None``."""
        for _ in range(UNCHANGED_TRIES):
            before = self.changes()
            found = read()
            if self.changes() == before:
                return found
        return None

    @abstractmethod
    def changes(self) -> object:
        """Something that is another one once anything was written to the broker."""

    def seconds(self, most: float = 0.4) -> float:
        """How long a job takes."""
        return round(self.chance.uniform(0.03, most), 3)


def redis_changes(client: "redis.Redis") -> int:
    """How many writes a Redis has seen."""
    return int(client.info("persistence")["rdb_changes_since_last_save"])
