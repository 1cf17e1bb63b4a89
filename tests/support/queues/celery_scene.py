"""Celery on Redis or Valkey: events from ``headway.emit.celery``, samples from the collector's source."""

import json
import os
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from headway.collect.celery.celery_source import HEAD_JOBS, CelerySource
from headway.connections import Connection
from headway.local.iso_time import unix_s
from headway.scaling.model import QueueSample
from support.http_control import HttpControl, serving
from support.queues import job_runs
from support.queues.lives import Due, Event, Run, Verdict, judged
from support.queues.processes import HERE, Hand, Worker
from support.queues.scene import CUT_LATE, Scene
from support.waiting import eventually

LISTS = ("mail", "mail\x06\x163", "mail\x06\x166", "mail\x06\x169")
KILLED_MISSES_S = 0.2
GRACE_S = 0.3  # until what is under way has arrived, on a machine that has much else to do
CHILDREN = 2
HEARTBEAT_S = 3.0
BEFORE_S = 10.0
SENT_WITHIN_S = 1.0


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
        "overdue": 1,
        "restart_source": 2,
        "restart_worker": 1,
        "kill_worker": 1,
        "steady": 1,
    }

    def __init__(self, url: str, folder: Path, seed: int) -> None:
        super().__init__(url, folder, seed)
        self.is_late = seed % 2 == 0
        parts = urlsplit(url)
        database = parse_qs(parts.query).get("db", ["0"])[0]
        self.control = HttpControl()
        self._ended.enter_context(serving(self.control))
        self._env = {
            **os.environ,
            "PYTHONPATH": str(HERE),
            "RUNS_FOLDER": str(folder),
            "BROKER": f"redis+socket://{parts.path}?virtual_host={database}",
            "ACKS": "late" if self.is_late else "early",
            "HEADWAY_URL": self.control.url,
            "HEADWAY_CONNECTION": "shop",
        }
        self._python = Path(sys.executable)
        self.hand = Hand(self._python, "celery_app", self._env)
        self._connection = Connection(name="shop", url=url, library="celery")
        # What a collector learns in its first ten seconds: tests/collect/test_celery.py.
        self.source = CelerySource(self._connection, {"acknowledges_early": not self.is_late, "queues": ["mail"]})
        self._first_polled_s = 0.0
        """When this source polled first: what was there before has been waiting for it does not know how long."""
        self._put_s: dict[str, tuple[float, float]] = {}
        self._entries: dict[str, Counter[str]] = {}
        """Job -> how often it was sent by a process that reports it, else by one that does not, or for later."""
        self._retried_later: set[str] = set()
        self._flights: list[tuple[float, int, int]] = []
        """When, what was sampled as in flight, and how many workers held."""
        self.workers.append(self.start_worker())
        self.hand.wait_ready()

    def start_worker(self) -> Worker:
        words = ["-m", "celery", "--app=celery_app", "worker", "--queues=mail", f"--concurrency={CHILDREN}"]
        more = ["--include=headway.emit.celery", "--loglevel=WARNING", "--without-mingle"]
        return Worker([str(self._python), *words, *more], self._env, self.folder)

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

    def overdue(self) -> None:
        """What workers hold is given to them once more, as after the visibility timeout."""
        self.hand.ask("recover")

    def kill_worker(self) -> None:
        super().kill_worker()
        self.overdue()  # what it held is nobody's until then

    def restart_source(self) -> None:
        """The collector ends, and another goes on from its cursor."""
        cursor = json.loads(json.dumps(self.source.cursor()))
        self.source.close()
        self.source = CelerySource(self._connection, cursor)
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
                inspected = self.hand.ask("inspected", workers=1)[2]
                sample = self._polled(time.time())
                own = {name: len(ids) for name, ids in inspected.items()}
                in_flight = own["active"] + own["reserved"]
                seen.append(((sample.in_flight_jobs, sample.reserved_jobs), (in_flight, own["reserved"])))
                return time.time() - began_s > HEARTBEAT_S and seen[-1][0] == seen[-1][1]

            with suppress(AssertionError):
                eventually(agrees, within_s=20.0)
                self.own.compared += 1
                return
            if self._is_held_as_inspected():
                self.own.differences.append(f"in flight and reserved: sampled {seen[-1][0]}, inspected {seen[-1][1]}")
            else:
                self.own.moving += 1
        finally:
            hold.unlink()

    def _is_held_as_inspected(self) -> bool:
        """Whether the broker knows what the worker holds. What was given back meanwhile, the worker has still."""
        inspected = self.hand.ask("inspected", workers=1)[2]
        named = inspected["reserved"] + (inspected["active"] if self.is_late else [])
        return sorted(named) == sorted(_message(json.loads(text)[0])["id"] for text in self.redis.hvals("unacked"))

    # --- what the library itself answers ------------------------------------------------------------------------------

    def compare(self) -> None:
        found = self.unchanged(self._beside)
        if found is None:
            self.own.moving += 1
            return
        at_s, sample, depth, listed, held = found
        self.own.compared += 1
        self.own.compare("messages", sum(1 for _ in listed), depth)
        later = [each for each in listed if each["is_shown"] and each["due_s"] is not None and each["due_s"] > at_s]
        held_later = [each for each in held if each["due_s"] is not None and each["due_s"] > at_s]
        self.own.compare("waiting", sample.waiting_jobs, depth - len(later))
        self.own.compare("delayed", sample.delayed_jobs, len(later) + len(held_later))
        due = len(held) - len(held_later)
        if sample.in_flight_jobs is not None:
            self._flights.append((at_s, sample.in_flight_jobs, due))
        if self.is_late:
            return  # which of those that are held run is known from heartbeats: ``steady`` compares them
        waiting = [each for each in (*listed, *held) if each not in later and each not in held_later]
        if not waiting:
            self.own.compare_age(sample, None)
            return
        entered = [self._entered_s(each) for each in waiting]
        first = (min(each[0] for each in entered), min(each[1] for each in entered))
        if sample.oldest_age_s is None and min(first[0], at_s - BEFORE_S) < self._first_polled_s:
            return  # what was there before this collector, and what was taken beside it
        self.own.compare_age(sample, (at_s - first[1], at_s - first[0]))

    def _beside(self) -> tuple[float, QueueSample, int, list[dict[str, Any]], list[dict[str, Any]]]:
        at_s = time.time()
        sample = self._polled(at_s)
        depth = self.hand.ask("depth")[2]
        listed = [
            {**_message(json.loads(text)), "is_shown": number < HEAD_JOBS}
            for key in LISTS
            for number, text in enumerate(reversed(self.redis.lrange(key, 0, -1)))
        ]
        held = [_message(json.loads(text)[0]) for text in self.redis.hvals("unacked")]
        return at_s, sample, depth, listed, held

    def _polled(self, at_s: float) -> QueueSample:
        reading = self.source.poll(at_s)
        self.own.polled_s.append(at_s)
        self._first_polled_s = self._first_polled_s or at_s
        assert reading.events == ()  # which the workers report
        (sample,) = reading.samples
        return sample

    def _entered_s(self, message: dict[str, Any]) -> tuple[float, float]:
        """Between which moments a message that is due entered the queue."""
        if message["due_s"] is not None:
            return message["due_s"], message["due_s"]
        if message["attempt"] > 1:
            sent_s = max(run.ended_s for run in self.runs() if run.job_id == message["id"] and run.ending == "retry")
            return sent_s, sent_s + SENT_WITHIN_S
        return self._put_s[message["id"]]

    # --- the end ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        eventually(self._is_idle)
        self.hand.ask("recover")  # what killed workers held
        eventually(self._is_idle)
        for worker in self.workers:
            worker.ask_to_stop()
        for worker in self.workers:
            worker.wait_stopped()
        batches = -1
        while batches != len(self.control.batches):  # the hand's last ones
            batches = len(self.control.batches)
            time.sleep(1.0)
        self._compare_flights(self.runs())

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
        return judged(events, runs, entries=entries, retries=retries, may_miss=self._may_miss, may_add=self._may_add)

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
        at_s = run.began_s if what == "start" else run.ended_s
        if what == "end" and run.ending == "killed" and self.is_late:
            return "end of a run that its main process gives back"
        for kill in self.kills:
            is_with_it = at_s is not None and at_s <= kill.began_s <= at_s + GRACE_S
            if run.ending == "killed" and is_with_it:
                return "last 0.2 s of a killed worker"
            if run.pid in kill.pids:
                if at_s is None:
                    return "end of a run that nobody was left to report"
                if at_s >= kill.began_s - KILLED_MISSES_S - GRACE_S:
                    return "last 0.2 s of a killed worker"
        return CUT_LATE if what == "end" and self.is_cut_late(run) else None

    def _may_add(self, event: Event) -> str | None:
        is_end = event.kind in ("finished", "failed", "retried")
        if is_end and any(run.job_id == event.job_id and self.is_cut_late(run) for run in self.runs()):
            return CUT_LATE
        for kill in self.kills:
            if kill.began_s - GRACE_S <= event.at_s <= kill.done_s + GRACE_S:
                return "begun as its worker was killed"
        return None

    def _compare_flights(self, runs: list[Run]) -> None:
        """In flight is what workers hold and what they have published to run, which may be one heartbeat old."""
        for at_s, in_flight, held in self._flights:
            lately = sum(run.began_s <= at_s and (run.ended_s or at_s) >= at_s - 7.0 for run in runs)
            if not held <= in_flight <= held + lately:
                self.own.differences.append(f"in flight: sampled {in_flight}, {held} held and {lately} run lately")


def _message(value: dict[str, Any]) -> dict[str, Any]:
    headers = value["headers"]
    return {
        "id": headers["id"],
        "due_s": unix_s(headers.get("eta")),
        "attempt": headers.get("retries", 0) + 1,
    }
