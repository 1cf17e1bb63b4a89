"""Producers that know what was answered: they repeat what was not, and now and then what was.

Each batch is drawn from the producer's own seed. Most of its events have just happened; some are as late as ingest
still takes as they are; those of the queue ``OVERDUE`` are later, and ingest moves them. Batches that a producer will
give up after the first silence have a queue of their own, so that each of them is there wholly or not at all.
"""

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from headway.emit.client import TelemetryClient
from headway.errors import Overloaded, Unavailable
from headway.scaling.model import EventKind, JobEvent, QueueSample, Receipt, TelemetryBatch

OVERDUE = "proof/overdue"
KINDS = [kind for kind in EventKind if kind is not EventKind.SAMPLE]
CLASSES = [None, "Mail", "Video", "Report"]
LATE_MAX_S = 450.0  # with what an answer may take, inside the 600 s of ingest
ANSWER_WITHIN_S = 140.0
PAUSE_S = 0.2  # before a batch without an answer is sent again
HASTY_S = 0.02  # a producer that gives up so soon often misses an answer


class Endpoint(Protocol):
    """One way to one control plane."""

    def send(self, batch: TelemetryBatch) -> Receipt:
        """Return its answer. Raises ``Unavailable`` where there is none or it says "later"."""

    def close(self) -> None: ...


class HttpEndpoint:
    """The endpoint for those that speak no gRPC."""

    def __init__(self, address: str, *, deadline_s: float = 5.0) -> None:
        self._address, self._deadline_s = address, deadline_s

    def send(self, batch: TelemetryBatch) -> Receipt:
        connection = http.client.HTTPConnection(self._address, timeout=self._deadline_s)
        try:
            connection.request("POST", "/v1/telemetry", json.dumps(_body(batch)))
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"{self._address}: {error}") from error
        finally:
            connection.close()
        if answer.status in {429, 503}:
            raise Unavailable(body.decode())
        assert answer.status == 200, body.decode()
        return Receipt(**json.loads(body))

    def close(self) -> None:
        """Nothing is held between two calls."""


def _body(batch: TelemetryBatch) -> dict[str, Any]:
    """The batch without what only agents and collectors send, over gRPC."""
    body = asdict(batch)
    assert not body.pop("polls") + body.pop("receptions")
    for event in body["events"]:
        assert (event.pop("received_at_s"), event.pop("is_redelivered")) == (None, None)
    return body


def endpoints(*, grpc: str, http: str) -> list[Endpoint]:
    """The ways to one control plane, one of them hasty."""
    patient, hasty = TelemetryClient(grpc, token=None), TelemetryClient(grpc, token=None, deadline_s=HASTY_S)
    return [patient, hasty, HttpEndpoint(http)]


@dataclass(slots=True)
class Ledger:
    """What one producer sent and was answered."""

    answered: list[TelemetryBatch] = field(default_factory=list)
    abandoned: list[TelemetryBatch] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """Answers that cannot be."""


class Producer(threading.Thread):
    """Sends batches until asked to stop, and the last one until it is answered."""

    def __init__(self, name: str, ways: Sequence[Endpoint], *, seed: str, events_per_s: float) -> None:
        super().__init__(name=name, daemon=True)
        self.ledger = Ledger()
        self.error: BaseException | None = None
        self._ways = ways
        self._rng = random.Random(seed)
        self._events_per_s = events_per_s
        self._sequences = iter(range(1, 1 << 62))
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                batch = self._batch()
                self._send(batch)
                self._stopping.wait(self._rng.expovariate(self._events_per_s / len(batch.events)))
            self._end_with_a_repetition()
        except BaseException as error:  # noqa: BLE001 - shown by whoever joins
            self.error = error

    # --- telling -----------------------------------------------------------------------------------------------------

    def _send(self, batch: TelemetryBatch) -> None:
        counts = self.ledger.counts
        counts["batches"] += 1
        counts["events"] += len(batch.events)
        is_answered = self._twice_at_once(batch) if self._rng.random() < 0.1 else self._once(batch, is_first=True)
        if _is_given_up(batch):
            kept = self.ledger.answered if is_answered else self.ledger.abandoned
            kept.append(batch)
            return
        deadline_s = time.monotonic() + ANSWER_WITHIN_S
        while not is_answered:
            assert time.monotonic() < deadline_s, f"{self.name}: no answer within {ANSWER_WITHIN_S:.0f} s"
            time.sleep(PAUSE_S)
            counts["resent"] += 1
            is_answered = self._once(batch, is_first=False)
        self.ledger.answered.append(batch)
        if self._rng.random() < 0.1:
            self._again(self._rng.choice(self.ledger.answered[-20:]))

    def _once(self, batch: TelemetryBatch, *, is_first: bool) -> bool:
        """Send ``batch`` by any way. Returns whether it was answered."""
        try:
            receipt = self._rng.choice(self._ways).send(batch)
        except (Unavailable, Overloaded):
            self.ledger.counts["unanswered"] += 1
            return False
        self._check(batch, receipt, is_duplicate=False if is_first else None)
        return True

    def _end_with_a_repetition(self) -> None:
        """Send what was answered last once more: however short the storm, it has a batch that was sent twice."""
        deadline_s = time.monotonic() + ANSWER_WITHIN_S
        while self.ledger.answered and not self._again(self.ledger.answered[-1]):
            assert time.monotonic() < deadline_s, f"{self.name}: no answer within {ANSWER_WITHIN_S:.0f} s"
            time.sleep(PAUSE_S)

    def _again(self, batch: TelemetryBatch) -> bool:
        """Send what was answered once more, as who lost the answer does. Returns whether it was answered again."""
        self.ledger.counts["resent"] += 1
        try:
            receipt = self._rng.choice(self._ways).send(batch)
        except (Unavailable, Overloaded):
            return False
        self._check(batch, receipt, is_duplicate=True)
        return True

    def _twice_at_once(self, batch: TelemetryBatch) -> bool:
        """Send ``batch`` by two ways at the same time. Returns whether any answered."""
        receipts: list[Receipt] = []

        def send(way: Endpoint) -> None:
            try:
                receipts.append(way.send(batch))
            except (Unavailable, Overloaded):
                self.ledger.counts["unanswered"] += 1

        self.ledger.counts["resent"] += 1
        threads = [threading.Thread(target=send, args=(self._rng.choice(self._ways),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(receipts) == 2 and sum(receipt.is_duplicate for receipt in receipts) != 1:
            self.ledger.faults.append(f"{self.name} {batch.sequence}: sent twice at once, answered {receipts}")
        return bool(receipts)

    def _check(self, batch: TelemetryBatch, receipt: Receipt, *, is_duplicate: bool | None) -> None:
        """Note an answer that cannot be; ``is_duplicate`` is None where both answers are right."""
        self.ledger.counts["duplicates"] += receipt.is_duplicate
        whole = Receipt(
            is_duplicate=False,
            accepted_events=len(batch.events),
            accepted_samples=len(batch.samples),
            corrected_times=sum(event.queue == OVERDUE for event in batch.events),
        )
        expected = Receipt(is_duplicate=True) if receipt.is_duplicate else whole
        if receipt != expected or is_duplicate not in {None, receipt.is_duplicate}:
            self.ledger.faults.append(f"{self.name} {batch.sequence}: answered {receipt}, not {expected}")

    # --- what is told ------------------------------------------------------------------------------------------------

    def _batch(self) -> TelemetryBatch:
        rng, now_s, sequence = self._rng, time.time(), next(self._sequences)
        drawn = rng.random()
        if drawn < 0.08:
            queues = [_own_queue(self.name, sequence)]
        elif drawn < 0.12:
            queues = [OVERDUE]
        else:
            queues = [f"proof/{number:02d}" for number in range(12)]
        events = tuple(self._events(rng.choice((1, 3, 20, 120)), queues, now_s=now_s))
        samples = () if queues == [OVERDUE] else tuple(self._samples(rng.randrange(3), queues, now_s=now_s))
        self.ledger.counts["late_events"] += sum(now_s - event.at_s > 60 for event in events)
        return TelemetryBatch(producer=self.name, sequence=sequence, sent_at_s=now_s, events=events, samples=samples)

    def _events(self, count: int, queues: list[str], *, now_s: float) -> Iterator[JobEvent]:
        rng = self._rng
        for number in range(count):
            queue = rng.choice(queues)
            at_s = now_s - (rng.uniform(700, 5_000) if queue == OVERDUE else self._age_s())
            yield JobEvent(
                queue=queue,
                job_id=f"{self.name}-{number}",
                kind=rng.choice(KINDS),
                at_s=at_s,
                enqueued_at_s=at_s - rng.expovariate(0.5) if rng.random() < 0.9 else None,
                started_at_s=at_s - rng.lognormvariate(0, 2) if rng.random() < 0.9 else None,
                job_class=rng.choice(CLASSES),
            )

    def _samples(self, count: int, queues: list[str], *, now_s: float) -> Iterator[QueueSample]:
        rng = self._rng
        for _ in range(count):
            yield QueueSample(
                queue=rng.choice(queues),
                at_s=now_s - self._age_s(),
                waiting_jobs=rng.randrange(1000),
                in_flight_jobs=rng.choice((None, 3)),
                oldest_age_s=rng.choice((None, 0.5)),
            )

    def _age_s(self) -> float:
        drawn = self._rng.random()
        return self._rng.uniform(0, 1 if drawn < 0.7 else 30 if drawn < 0.9 else LATE_MAX_S)


def _own_queue(producer: str, sequence: int) -> str:
    return f"proof/alone-{producer}-{sequence}"


def _is_given_up(batch: TelemetryBatch) -> bool:
    return batch.events[0].queue == _own_queue(batch.producer, batch.sequence)
