"""RQ 2 or 3: events from `headway collect` as a process, samples from the collector's source."""

import json
import math
import os
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import redis

from emit.service import Service, serving
from headway.collect.rq.rq_source import RqSource
from headway.connections import Connection
from headway.scaling.model import QueueSample
from support.queues import job_runs
from support.queues.lives import Due, Event, Run, Verdict, judged
from support.queues.processes import HERE, Collector, Hand, Worker
from support.queues.scene import CUT_LATE, Scene, redis_changes
from support.waiting import eventually

WORKERS = 2
SAME_SCORE_S = 1.0
TWICE = "run of a job that stood in the queue twice"
UNNOTED = "end of a run that no worker was left to note: its job was given up later"
GUESSED = "end of a run cut short whose id was put again"


class RqScene(Scene):
    """Two workers."""

    always = ("kill_worker", "restart_worker", "kill_collector", "stop", "killed", "retry", "cancel", "requeue")
    moves: ClassVar[dict[str, int]] = {
        "put": 12,
        "burst": 3,
        "later": 4,
        "retry": 4,
        "returns_retry": 2,
        "killed": 2,
        "cancel": 4,
        "stop": 2,
        "requeue": 2,
        "again": 2,
        "after": 2,
        "expires": 2,
        "kill_collector": 1,
        "restart_worker": 1,
        "kill_worker": 1,
    }

    def __init__(self, url: str, folder: Path, seed: int, *, python: Path, ours: Path) -> None:
        super().__init__(folder, seed)
        self.redis = redis.Redis.from_url(url)
        self._ended.callback(self.redis.close)
        self._env = {
            **os.environ,
            "PYTHONPATH": str(HERE),
            "RUNS_FOLDER": str(folder),
            "BROKER": url,
        }
        self._python = python
        self.hand = Hand(python, "rq_app", self._env)
        self.service = Service()
        self._ended.enter_context(serving(self.service))
        brokers = folder / "brokers.toml"
        brokers.write_text(f'shop = "{url}"\n')
        self.collector = Collector(ours, folder, control=self.service.address, brokers=brokers)
        self._ended.callback(self.collector.kill)
        self.collector.start()
        self._connection = Connection(name="shop", url=url)
        self.source = RqSource(self._connection, None)
        self._puts_s: dict[str, list[float]] = {}
        """Job -> when it was put, each time: once more writes its record anew."""
        self._cut_short: set[str] = set()
        """Jobs of which an entry may be followed by no run."""
        self._given_up: set[str] = set()
        """Jobs that a killed worker had; one that it had taken and not begun wrote nothing."""
        self._seen_held: tuple[set[str], float] = (set(), 0.0)
        """What was in flight at the end of the story, and since when."""
        self._by_hand: Counter[str] = Counter()
        """Job -> how often it was put back by hand."""
        self.hand.wait_ready()
        self.collector.wait_polled(0.0)
        # Of a worker that is killed with its scheduler, RQ takes up to ten minutes to replace the scheduler.
        scheduler = Worker([str(python), "-c", "import rq_app; rq_app.schedule()"], self._env, folder)
        self._ended.callback(scheduler.end)
        self.workers += [self.start_worker() for _ in range(WORKERS)]

    def start_worker(self) -> Worker:
        return Worker([str(self._python), "-c", "import rq_app; rq_app.worker()"], self._env, self.folder)

    # --- moves --------------------------------------------------------------------------------------------------------

    def sent(self, job_id: str, plan: tuple[job_runs.Step, ...], options: dict[str, Any]) -> None:
        began_s, _, _ = self.hand.ask("put", job_id=job_id, plan=list(plan), **options)
        self._puts_s.setdefault(job_id, []).append(began_s)

    def put(self) -> None:
        ending = self.chance.choices(("well", "fail"), (6, 2))[0]
        self.put_one((ending, self.seconds()), at_front=self.chance.random() < 0.2)

    def burst(self) -> None:
        for _ in range(self.chance.randrange(4, 9)):
            self.put_one(("well", self.seconds(0.2)))

    def later(self) -> None:
        self.put_one(("well", self.seconds()), delay_s=round(self.chance.uniform(0.3, 1.5), 2))

    def retry(self) -> None:
        times = self.chance.randrange(1, 3)
        plan = [("fail", self.seconds()) for _ in range(times)]
        self.put_one(*plan, ("well", self.seconds()), retries=times, retry_s=self.chance.choice((0, 1)))

    def returns_retry(self) -> None:
        self.put_one(("retry", self.seconds()), ("well", self.seconds()))

    def killed(self) -> None:
        """A job whose process is ended, as by the kernel for its memory."""
        self.put_one(("killed", self.seconds()), ("well", self.seconds()), retries=self.chance.randrange(2))

    def cancel(self) -> None:
        waiting = self.waiting_ids() or [self.put_one(("well", 0.05), delay_s=1.0)]
        job_id = self.chance.choice(waiting)
        self._cut_short.add(job_id)
        self.hand.ask("cancel", job_id=job_id)

    def stop(self) -> None:
        self.stop_one()

    def requeue(self) -> None:
        """A job that has failed is put back by hand."""
        failed = [run.job_id for run in self.runs() if run.ending == "fail"]
        if failed:
            job_id = self.chance.choice(failed)
            if self.hand.ask("requeue", job_id=job_id)[2]:
                self._by_hand[job_id] += 1

    def again(self) -> None:
        """An id that was put before is put once more, whether it waits, runs or has ended."""
        if self.ids:
            job_id = self.chance.choice(self.ids)
            self.sent(job_id, (("well", self.seconds()),), {})

    def after(self) -> None:
        """A job that waits for another."""
        first = self.put_one(("well", self.seconds()))
        self.put_one(("well", self.seconds()), after=first)

    def expires(self) -> None:
        job_id = self.put_one(("well", self.seconds()), ttl=1)
        self._cut_short.add(job_id)

    def kill_collector(self) -> None:
        """``kill -9`` the collector; another goes on from its cursor, and so does the source here."""
        self.collector.kill()
        cursor = json.loads(json.dumps(self.source.cursor()))
        self.source.close()
        self.source = RqSource(self._connection, cursor if cursor["looked_at_s"] else None)
        self.collector.start()

    # --- what the library itself answers ------------------------------------------------------------------------------

    def changes(self) -> int:
        return redis_changes(self.redis)

    def compare(self) -> None:
        found = self.unchanged(self._beside)
        if found is None:
            self.own.moving += 1
            return
        at_s, sample, (waiting, begun, scheduled, taken), overdue_s, entered_s = found
        self.own.compared += 1
        own = (waiting + len(overdue_s), begun + taken, scheduled - len(overdue_s))
        if sample is None:
            self.own.compare("counts of a queue that is not there", own, (0, 0, 0))
            return
        self.own.compare("counts", (sample.waiting_jobs, sample.in_flight_jobs, sample.delayed_jobs), own)
        # Of a job whose record has expired nobody knows since when it waits, nor of one that was put twice.
        if len(entered_s) == waiting and not any(map(self._again_s, entered_s)):
            oldest_s = at_s - min([*entered_s.values(), *overdue_s], default=at_s)
            self.own.compare_age(sample, (oldest_s, oldest_s) if waiting or overdue_s else None)

    def _beside(self) -> tuple[float, QueueSample | None, list[int], list[float], dict[str, float]]:
        at_s = time.time()
        samples = self.source.poll(at_s).samples
        self.own.polled_s.append(at_s)
        asked = self.hand.ask("counts")[2], self.hand.ask("overdue_s", at_s=at_s)[2], self.hand.ask("entered_s")[2]
        return at_s, next(iter(samples), None), *asked

    # --- the end ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        eventually(lambda: self._is_idle() and self._is_left_to_dead_workers())
        self._given_up.update(self.hand.ask("recover")[2])
        eventually(lambda: self._is_idle() and not self._held())
        self.collector.wait_polled(time.time(), times=3)
        for worker in self.workers:
            worker.ask_to_stop()

    def _is_idle(self) -> bool:
        waiting, _, delayed, _ = self.hand.ask("counts")[2]
        return not (waiting or delayed or self.running())

    def _held(self) -> set[str]:
        return set(self.hand.ask("held")[2])

    def _is_left_to_dead_workers(self) -> bool:
        """Whether those of the jobs in flight are dead: a living one notes soon that a job of its has ended."""
        held, now_s = self._held(), time.monotonic()
        if held != self._seen_held[0]:
            self._seen_held = (held, now_s)
        cut_short = {run.job_id for run in self.runs() if run.ended_s is None}
        return held <= cut_short or now_s - self._seen_held[1] > 2 * self.grace_s

    def verdict(self) -> Verdict:
        events = [Event(each.job_id, str(each.kind), each.at_s) for each in self.service.events]
        runs = self.runs()
        self._polls = [(began, ended) for began, ended, _ in self.collector.polls()]
        self._next_began_s: dict[tuple[str, float], float] = {}
        self._ended_before_s: dict[tuple[str, float], float] = {}
        entries, retries = {}, {}
        for job_id in self.ids:
            mine = [run for run in runs if run.job_id == job_id]
            for run, following in pairwise(mine):
                self._next_began_s[job_id, run.began_s] = following.began_s
                self._ended_before_s[job_id, following.began_s] = run.ended_s or math.inf
            entries[job_id], retries[job_id] = self._due(job_id, mine)
        # An end is what the record says: no later than the next run's beginning, however busy the machine is.
        return judged(events, runs, entries=entries, retries=retries, may_miss=self._may_miss, may_add=self._may_add)

    def _due(self, job_id: str, runs: list[Run]) -> tuple[Due, Due]:
        surely = [run for run in runs if self._may_miss(run, "start") is None]
        is_cut = job_id in self._cut_short
        again = len(self._again_s(job_id))
        is_given_up = job_id in self._given_up
        # A killed worker may have had one that was put back by hand, before it ran.
        most = max(len(runs), 1 + self._by_hand[job_id]) + is_cut + again + is_given_up
        back = [run for run in runs[:-1] if run.end == "failed"]
        sure_back = [run for run in back if self._may_miss(run, "end") is None]
        by_hand = self._by_hand[job_id] + again
        hidden = sum(self._is_entry_hidden(at_s, runs) for at_s in self._again_s(job_id))
        hidden += sum(not self._is_polled(*each) for each in pairwise(self._puts_s[job_id]))
        return Due(max(0, len(surely) - hidden), most), Due(max(0, len(sure_back) - by_hand), len(back) + is_given_up)

    def _again_s(self, job_id: str) -> list[float]:
        """When the id of a job was put once more."""
        return self._puts_s[job_id][1:]

    def _is_entry_hidden(self, again_s: float, runs: list[Run]) -> bool:
        """Whether the record of a run that was under way overwrote a new entry of its id before a poll saw it."""
        return any(
            run.began_s <= again_s <= run.ended_s and not self._is_polled(again_s, run.ended_s)
            for run in runs
            if run.ended_s is not None
        )

    def _is_polled(self, since_s: float, until_s: float) -> bool:
        """Whether a whole poll lies between two moments."""
        return any(since_s <= began_s and ended_s <= until_s for began_s, ended_s in self._polls)

    def _is_end_guessed(self, run: Run) -> bool:
        """Whether the id of a run was put again before the record showed a poll how it ended."""
        is_put_again = bool(self._again_s(run.job_id)) or self._by_hand[run.job_id] > 0
        return is_put_again and (run.ended_s is None or self._is_overwritten(run))

    def _may_miss(self, run: Run, what: str) -> str | None:
        """The record of a run is overwritten by the next of its job: what surely is seen, is seen while it runs."""
        if what == "end" and self.is_cut_late(run):
            return CUT_LATE
        if what == "end" and self._is_end_guessed(run):
            return GUESSED
        if what == "end" and self._is_left_to_nobody(run):
            return UNNOTED
        before_s = self._ended_before_s.get((run.job_id, run.began_s))
        # RQ notes ends in whole seconds: of two ends of one id in the same second only the first is noticed.
        if (
            before_s is not None
            and self._again_s(run.job_id)
            and (not self._is_polled(before_s, run.began_s) or run.began_s - before_s < SAME_SCORE_S)
        ):
            return TWICE
        if what == "end" and self._again_s(run.job_id) and self._is_end_overwritten(run):
            return TWICE
        return "run of a job that ran again before the next poll" if self._is_overwritten(run) else None

    def _is_left_to_nobody(self, run: Run) -> bool:
        """Whether the worker that would have noted the sudden end of ``run`` was dead: RQ gives the job up later."""
        is_sudden = run.ending == "killed" and run.job_id in self._given_up
        return is_sudden and any(
            kill.worker == run.parent and kill.began_s <= (run.ended_s or 0.0) + self.grace_s for kill in self.kills
        )

    def _is_end_overwritten(self, run: Run) -> bool:
        """Whether no poll saw the record between the end of ``run`` and the next run."""
        next_s = self._next_began_s.get((run.job_id, run.began_s))
        if next_s is None or run.ended_s is None:
            return False
        return not self._is_polled(run.ended_s, next_s)

    def _is_overwritten(self, run: Run) -> bool:
        """Whether no poll saw the record while it was of ``run``, and another run followed."""
        next_s = self._next_began_s.get((run.job_id, run.began_s))
        if next_s is None:
            # A retry writes its entry over the run before, also where its worker was killed and it wrote nothing.
            if run.job_id not in self._given_up or run.ended_s is None or run.end != "failed":
                return False
            next_s = math.inf
        # Of two runs of one id at once the record shows the later, and of one that was put again the new entry.
        again_s = [at_s for at_s in self._again_s(run.job_id) if at_s >= run.began_s]
        alone_until_s = min(run.ended_s or 0.0, next_s, *again_s)
        return not self._is_polled(run.began_s, alone_until_s)

    def _has_died(self, event: Event) -> bool:
        """Whether a worker may have been killed with a job that it had not begun, which RQ gives up by itself later."""
        has_run = any(run.job_id == event.job_id for run in self.runs())
        put_s = self._puts_s[event.job_id][-1]
        return not has_run and any(put_s <= kill.done_s + self.grace_s <= event.at_s for kill in self.kills)

    def _may_add(self, event: Event) -> str | None:
        for kill in self.kills:  # a run that RQ noted and that wrote nothing
            if kill.began_s - self.grace_s <= event.at_s <= kill.done_s + self.grace_s:
                return "begun as its worker was killed"
        if event.kind in ("started", "failed") and (event.job_id in self._given_up or self._has_died(event)):
            return "given up with its worker"
        if event.kind in ("finished", "failed"):
            runs = [run for run in self.runs() if run.job_id == event.job_id]
            if any(map(self._is_end_guessed, runs)):
                return GUESSED
            if any(map(self.is_cut_late, runs)):
                return CUT_LATE
        return None
