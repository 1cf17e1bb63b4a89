"""Celery at work: events from ``headway.emit.celery``, whichever broker is between the processes."""

import json
import os
import sys
import time
from abc import abstractmethod
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from headway.collect.source import Cursor, Source
from headway.scaling.model import QueueSample
from support.http_control import HttpControl, serving
from support.queues import job_runs
from support.queues.kills import lost
from support.queues.lives import Due, Event, Run, Verdict, judged
from support.queues.processes import HERE, Hand, Worker
from support.queues.scene import CUT_LATE, Scene
from support.waiting import eventually

CHILDREN = 2
AGREES_WITHIN_S = 30.0


class CeleryScene(Scene):
    """One worker of two processes. Even seeds acknowledge late, odd ones early, as is the default."""

    always = ("kill_worker", "restart_worker", "restart_source", "steady", "stop", "killed", "retry", "cancel")
    moves: ClassVar[dict[str, int]] = {
        "put": 12,
        "burst": 3,
        "later": 4,
        "silent": 3,
        "retry": 4,
        "rejected": 2,
        "killed": 2,
        "cancel": 4,
        "stop": 2,
        "again": 1,
        "restart_source": 2,
        "restart_worker": 1,
        "kill_worker": 1,
        "steady": 1,
    }
    published_s: ClassVar[float]
    """Until workers have published what they do to whoever samples."""

    def __init__(self, broker_url: str, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.is_late = seed % 2 == 0
        self.control = HttpControl()
        self._ended.enter_context(serving(self.control))
        self._env = {
            **os.environ,
            "PYTHONPATH": str(HERE),
            "RUNS_FOLDER": str(folder),
            "BROKER": broker_url,
            "ACKS": "late" if self.is_late else "early",
            "HEADWAY_URL": self.control.url,
            "HEADWAY_CONNECTION": "shop",
        }
        self._python = Path(sys.executable)
        self.hand = Hand(self._python, "celery_app", self._env)
        self.source = self.opened(None)
        self._first_polled_s = 0.0
        """When this source polled first: what was there before has been waiting for it does not know how long."""
        self._put_s: dict[str, tuple[float, float]] = {}
        self._entries: dict[str, Counter[str]] = {}
        """Job -> how often it was sent by a process that reports it, else by one that does not, or for later."""
        self._retried_later: set[str] = set()
        self.workers.append(self.start_worker())
        self.hand.wait_ready()

    def start_worker(self) -> Worker:
        words = ["-m", "celery", "--app=celery_app", "worker", "--queues=mail", f"--concurrency={CHILDREN}"]
        more = ["--include=headway.emit.celery", "--loglevel=WARNING", "--without-mingle"]
        return Worker([str(self._python), *words, *more], self._env, self.folder)

    @abstractmethod
    def opened(self, cursor: Cursor | None) -> Source:
        """What reads the queue, from where another has ended."""

    @abstractmethod
    def give_back(self) -> None:
        """Let what dead workers hold be given to others."""

    # --- moves --------------------------------------------------------------------------------------------------------

    def sent(self, job_id: str, plan: tuple[job_runs.Step, ...], options: dict[str, Any]) -> None:
        began_s, done_s, _ = self.hand.ask("put", job_id=job_id, plan=list(plan), **options)
        later_s = options.get("countdown") or 0.0
        first_s, _ = self._put_s.get(job_id, (began_s + later_s, 0.0))
        self._put_s[job_id] = (first_s, done_s + later_s)
        is_reported = not later_s and not options.get("is_silent")
        if options.get("retry_s"):
            self._retried_later.add(job_id)
        self._entries.setdefault(job_id, Counter())["reported" if is_reported else "as it starts"] += 1

    def put(self) -> None:
        ending = self.chance.choices(("well", "fail", "ignore"), (6, 2, 1))[0]
        self.put_one((ending, self.seconds()), priority=self.chance.choice((0, 0, 3, 6, 9)))

    def burst(self) -> None:
        for _ in range(self.chance.randrange(4, 11)):
            self.put_one(("well", self.seconds(0.3)), priority=self.chance.choice((0, 0, 6)))

    def later(self) -> None:
        self.put_one(("well", self.seconds()), countdown=round(self.chance.uniform(0.3, 2.0), 2))

    def silent(self) -> None:
        self.put_one((self.chance.choice(("well", "fail")), self.seconds()), is_silent=True)

    def retry(self) -> None:
        times = self.chance.randrange(1, 3)
        plan = [("retry", self.seconds(0.2)) for _ in range(times)]
        retry_s = self.chance.choice((0.0, 0.4))
        self.put_one(*plan, ("well", self.seconds()), retry_s=retry_s, is_silent=self.chance.random() < 0.2)

    def rejected(self) -> None:
        if self.is_late:
            self.put_one((self.chance.choice(("requeue", "reject")), self.seconds(0.2)), ("well", self.seconds()))
        else:
            self.put()

    def killed(self) -> None:
        """A job whose process is ended, as by the kernel for its memory."""
        self.put_one(("killed", self.seconds(0.3)), ("well", self.seconds()))

    def again(self) -> None:
        """An id that was put before is put once more."""
        if self.ids:
            job_id = self.chance.choice(self.ids)
            is_plain = job_id not in self._retried_later and job_id not in self.stopped_s
            if is_plain and self._entries[job_id].keys() == {"reported"}:
                self.sent(job_id, (("well", self.seconds()),), {})

    def cancel(self) -> None:
        waiting = self.waiting_ids() or [self.put_one(("well", 0.05), countdown=0.5)]
        self.hand.ask("cancel", job_id=self.chance.choice(waiting))

    def stop(self) -> None:
        """End a job that runs."""
        self.stop_one()

    def kill_worker(self) -> None:
        super().kill_worker()
        self.give_back()  # what it held is nobody's until then

    def restart_source(self) -> None:
        """The collector ends, and another goes on from its cursor."""
        cursor = json.loads(json.dumps(self.source.cursor()))
        self.source.close()
        self.source = self.opened(cursor)
        self._first_polled_s = 0.0

    def steady(self) -> None:
        """Let nothing end for a while, until workers have published so, and compare with ``celery inspect``."""
        hold = self.folder / job_runs.HOLD
        hold.touch()
        try:
            for _ in range(CHILDREN + 1):
                self.put_one(("well", 0.1))
            seen: list[tuple[Any, Any]] = []
            began_s = time.time()

            def agrees() -> bool:
                inspected = self.inspected()
                sample = self.polled(time.time())
                own = {name: len(ids) for name, ids in inspected.items()}
                seen.append((self.held_as_sampled(sample), self.held_as_inspected(own)))
                return time.time() - began_s > self.published_s and seen[-1][0] == seen[-1][1]

            with suppress(AssertionError):
                eventually(agrees, within_s=AGREES_WITHIN_S)
                self.own.compared += 1
                return
            if self.is_steady():
                self.own.differences.append(f"held by workers: sampled {seen[-1][0]}, inspected {seen[-1][1]}")
            else:
                self.own.moving += 1
        finally:
            hold.unlink()

    @abstractmethod
    def held_as_sampled(self, sample: QueueSample) -> tuple[int | None, ...]:
        """What a sample says of jobs that workers have."""

    @abstractmethod
    def held_as_inspected(self, own: dict[str, int]) -> tuple[int, ...]:
        """The same by the counts of Celery's ``inspect``."""

    @abstractmethod
    def is_steady(self) -> bool:
        """Whether the broker knows what the worker holds. What was given back meanwhile, the worker has still."""

    def inspected(self) -> dict[str, list[str]]:
        """The tasks of the worker, by what it does with them."""
        found: dict[str, list[str]] = self.hand.ask("inspected", workers=1)[2]
        return found

    def polled(self, at_s: float) -> QueueSample:
        """The sample of now."""
        reading = self.source.poll(at_s)
        self.own.polled_s.append(at_s)
        self._first_polled_s = self._first_polled_s or at_s
        assert reading.events == ()  # which the workers report
        (sample,) = reading.samples
        return sample

    # --- the end ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        eventually(self._is_idle)
        self.give_back()  # what killed workers held
        eventually(self._is_idle)
        for worker in self.workers:
            worker.ask_to_stop()
        for worker in self.workers:
            worker.wait_stopped()
        batches = -1
        while batches != len(self.control.batches):  # the hand's last ones
            batches = len(self.control.batches)
            time.sleep(1.0)

    def _is_idle(self) -> bool:
        depth = self.hand.ask("depth")[2]
        inspected = self.hand.ask("inspected", workers=len(self.workers))[2]
        mine = {job_id for ids in inspected.values() for job_id in ids}
        return not depth and not mine and not self.running()

    def verdict(self) -> Verdict:
        events = [Event(each["job_id"], each["kind"], each["at_s"]) for each in self.control.events]
        runs = self.runs()
        entries, retries = {}, {}
        for job_id in self.ids:
            mine = [run for run in runs if run.job_id == job_id]
            entries[job_id], retries[job_id] = self._due(job_id, mine)
        return judged(
            events,
            runs,
            entries=entries,
            retries=retries,
            may_miss=self._may_miss,
            may_add=self._may_add,
            late_s=self.grace_s,
        )

    def _due(self, job_id: str, runs: list[Run]) -> tuple[Due, Due]:
        """How often a job is to be reported as entered, and as retried."""
        sent = self._entries[job_id]
        retried = [run for run in runs if run.ending in ("retry", "requeue")]
        surely = [run for run in retried if self._may_miss(run, "end") is None]
        own_retries = [run for run in retried if run.ending == "retry"]
        at_once = own_retries if job_id not in self._retried_later else []
        entered = sent["reported"] + len(at_once)
        # A run of a message that nobody has reported is reported as it begins.
        unreported = [
            run
            for run in runs
            if (sent["as it starts"] and run.attempt == 1) or (run.attempt and run.attempt > 1 and not at_once)
        ]
        least = entered - sum(run not in surely for run in at_once)
        least += sum(self._may_miss(run, "start") is None for run in unreported)
        return Due(least, entered + len(unreported)), Due(len(surely), len(retried))

    def _may_miss(self, run: Run, what: str) -> str | None:
        if what == "end" and run.ending == "killed" and self.is_late:
            return "end of a run that its main process gives back"
        why = lost(run, what, self.kills, grace_s=self.grace_s, stopped_s=self.stopped_s.get(run.job_id, ()))
        if why is not None:
            return why
        return CUT_LATE if what == "end" and self.is_cut_late(run) else None

    def _may_add(self, event: Event) -> str | None:
        is_end = event.kind in ("finished", "failed", "retried")
        if is_end and any(run.job_id == event.job_id and self.is_cut_late(run) for run in self.runs()):
            return CUT_LATE
        for kill in self.kills:
            if kill.began_s - self.grace_s <= event.at_s <= kill.done_s + self.grace_s:
                return "begun as its worker was killed"
        return None
