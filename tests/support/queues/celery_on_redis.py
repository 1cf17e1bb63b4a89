"""Celery on Redis or Valkey: samples from the collector's source, beside what stands in the broker."""

import json
import time
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import redis

from headway.collect.celery.celery_source import CelerySource
from headway.collect.source import Cursor
from headway.connections import Connection
from headway.local.iso_time import unix_s
from headway.scaling.model import QueueSample
from support.queues.celery_scene import CeleryScene
from support.queues.lives import Run
from support.queues.scene import redis_changes

LISTS = ("mail", "mail\x06\x163", "mail\x06\x166", "mail\x06\x169")
BEFORE_S = 10.0
SENT_WITHIN_S = 1.0
PUBLISHED_WITHIN_S = 7.0


class CeleryOnRedis(CeleryScene):
    """What a worker that died held is given back when somebody restores what nobody acknowledges any more."""

    moves: ClassVar[dict[str, int]] = {**CeleryScene.moves, "overdue": 1}
    published_s = 3.0  # a heartbeat comes each 2 s

    def __init__(self, url: str, folder: Path, seed: int) -> None:
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        self._connection = Connection(name="shop", url=url, library="celery")
        self._flights: list[tuple[float, int, int]] = []
        """When, what was sampled as in flight, and how many workers held."""
        parts = urlsplit(url)
        database = parse_qs(parts.query).get("db", ["0"])[0]
        super().__init__(f"redis+socket://{parts.path}?virtual_host={database}", folder, seed)
        self._ended.callback(self.redis.close)

    def opened(self, cursor: Cursor | None) -> CelerySource:
        # What a collector learns in its first ten seconds: tests/collect/test_celery.py.
        first = {
            "acknowledges_early": not self.is_late,
            "acknowledges_late": self.is_late,
            "workers_publish": True,
            "queues": ["mail"],
        }
        return CelerySource(self._connection, first if cursor is None else cursor)

    def changes(self) -> int:
        return redis_changes(self.redis)

    def give_back(self) -> None:
        self.hand.ask("recover")

    def overdue(self) -> None:
        """What workers hold is given to them once more, as after the visibility timeout."""
        self.give_back()

    def held_as_sampled(self, sample: QueueSample) -> tuple[int | None, ...]:
        return sample.in_flight_jobs, sample.reserved_jobs

    def held_as_inspected(self, own: dict[str, int]) -> tuple[int, ...]:
        return own["active"] + own["reserved"], own["reserved"]

    def is_steady(self) -> bool:
        inspected = self.inspected()
        named = inspected["reserved"] + (inspected["active"] if self.is_late else [])
        return sorted(named) == sorted(_message(json.loads(text)[0])["id"] for text in self.redis.hvals("unacked"))

    def compare(self) -> None:
        found = self.unchanged(self._beside)
        if found is None:
            self.own.moving += 1
            return
        at_s, sample, depth, listed, held = found
        self.own.compared += 1
        self.own.compare("messages", sum(1 for _ in listed), depth)
        later = [each for each in listed if each["due_s"] is not None and each["due_s"] > at_s]
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
        sample = self.polled(at_s)
        depth = self.hand.ask("depth")[2]
        listed = [_message(json.loads(text)) for key in LISTS for text in self.redis.lrange(key, 0, -1)]
        held = [_message(json.loads(text)[0]) for text in self.redis.hvals("unacked")]
        return at_s, sample, depth, listed, held

    def _entered_s(self, message: dict[str, Any]) -> tuple[float, float]:
        """Between which moments a message that is due entered the queue."""
        if message["due_s"] is not None:
            return message["due_s"], message["due_s"]
        if message["attempt"] > 1:
            sent_s = max(run.ended_s for run in self.runs() if run.job_id == message["id"] and run.ending == "retry")
            return sent_s, sent_s + SENT_WITHIN_S + self.grace_s
        return self._put_s[message["id"]]

    def settle(self) -> None:
        super().settle()
        self._compare_flights(self.runs())

    def _compare_flights(self, runs: list[Run]) -> None:
        """In flight is what workers hold and what they have published to run, which may be one heartbeat old."""
        for at_s, in_flight, held in self._flights:
            lately = sum(
                run.began_s <= at_s and (run.ended_s or at_s) >= at_s - PUBLISHED_WITHIN_S - self.grace_s
                for run in runs
            )
            if not held <= in_flight <= held + lately:
                self.own.differences.append(f"in flight: sampled {in_flight}, {held} held and {lately} run lately")


def _message(value: dict[str, Any]) -> dict[str, Any]:
    headers = value["headers"]
    return {
        "id": headers["id"],
        "due_s": unix_s(headers.get("eta")),
        "attempt": headers.get("retries", 0) + 1,
    }
