"""Whatever is killed, and whenever: the buckets in Postgres are those of the events that were answered, each once.

The four proofs differ in what is killed; a short seed of each runs with all tests.
"""

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from proof.conftest import Proof
from proof.logged import log_differences, merged_hours
from proof.producers import Producer
from proof.roles import PAST_FILES, Scene, Trouble, scene
from proof.truth import differences, stored, truth

SETTLE_WITHIN_S = 400.0  # the start of a pipeline among it, which takes a minute or, on a busy machine, five
COMPARES_EACH_S = 5.0  # also without new rows of queues: those of job classes have no revision
EVENTS_PER_S = 200.0
QUICK = "-XX:TieredStopAtLevel=1"  # no life is long enough for the thorough compiler to pay


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """What happens in a round, besides producers that send all the time."""

    trouble: Trouble
    times: int
    pause_s: tuple[float, float]
    """Between two troubles, drawn from the seed."""
    ingests: int = 1
    waits: Callable[[Scene], object] = Scene.await_ingests
    """What most of the pauses wait for first; the others hit a start."""
    waits_share: float = 0.8


def revision(database_url: str) -> int:
    """Of the newest rows in Postgres: it grows with every write."""
    with psycopg.connect(database_url) as connection:
        found = connection.execute("select coalesce(max(revision), 0) from queue_buckets").fetchone()
    return int(found[0]) if found else 0


def await_progress(made: Scene) -> None:
    """Wait until the pipeline is ready, and for the next rows in Postgres."""
    made.pipeline.await_ready()
    before, until_s = revision(made.database_url), time.monotonic() + SETTLE_WITHIN_S
    while revision(made.database_url) == before:
        assert time.monotonic() < until_s, made.pipeline.last_words()
        time.sleep(0.1)


PIPELINE = Storm(trouble=Scene.kill_pipeline, times=20, pause_s=(0.1, 12.0), waits=await_progress, waits_share=0.5)
INGEST = Storm(trouble=Scene.kill_first_ingest, times=40, pause_s=(0.05, 6.0))
POSTGRES = Storm(trouble=Scene.restart_postgres, times=20, pause_s=(1.0, 12.0))
TWO_INGESTS = Storm(trouble=Scene.kill_ingest, times=30, pause_s=(0.05, 8.0), ingests=2)


@pytest.mark.proof
@pytest.mark.parametrize(
    "storm",
    [
        pytest.param(PIPELINE, id="pipeline-killed"),
        pytest.param(INGEST, id="ingest-killed"),
        pytest.param(POSTGRES, id="postgres-restarted"),
        pytest.param(TWO_INGESTS, id="two-ingests"),
    ],
)
def test_exactness(proof: Proof, storm: Storm) -> None:
    for seed in proof.seeds():
        folder = Path(tempfile.mkdtemp(prefix="headway-proof-"))  # kept where the round fails: its logs tell why
        with scene(folder, ingests=storm.ingests, past_hours=12, jvm_options=QUICK) as made:
            figures = weathered(storm, made, seed=str(seed), events_per_s=EVENTS_PER_S)
            ended(made)
        proof.record(seed, **figures, merged_hours=merged_hours(made.event_log))
        shutil.rmtree(folder)


def weathered(storm: Storm, made: Scene, *, seed: str, events_per_s: float) -> dict[str, Any]:
    """Let ``storm`` pass over the scene: nothing is lost or counted twice. Returns its figures."""
    rng, began_s = random.Random(seed), time.monotonic()
    with ExitStack() as stack:
        producers = sending(made, storm, stack, seed=seed, events_per_s=events_per_s)
        troubles = trouble(made, storm, rng)
        for producer in producers:
            producer.stop()
        for producer in producers:
            while producer.is_alive():
                made.tend()  # its last batch may wait for a role that has gone with Postgres
                producer.join(0.1)
            if producer.error is not None:
                raise producer.error
    ledgers = [producer.ledger for producer in producers]
    made.ledgers += ledgers
    faults = [fault for ledger in ledgers for fault in ledger.faults]
    assert not faults, "\n".join(faults)
    settled_s = settle(made)
    return {
        "troubles": dict(troubles),
        **sum((ledger.counts for ledger in ledgers), Counter()),
        "given_up": sum(len(ledger.abandoned) for ledger in ledgers),
        "settled_s": round(settled_s, 1),
        "took_s": round(time.monotonic() - began_s, 1),
    }


def ended(made: Scene) -> None:
    """Stop the scene: what the pipeline had half done changes nothing either, and the log has each event once."""
    made.pipeline.stop()
    assert_exact(made)
    made.stop()
    wrong = log_differences(made.event_log, made.ledgers, past_files=made.past_hours * PAST_FILES)
    assert not wrong, "\n".join([f"{made.folder}:", *wrong])
    assert list((made.event_log / "tmp").glob("*.parquet")) == []


def sending(made: Scene, storm: Storm, stack: ExitStack, *, seed: str, events_per_s: float) -> list[Producer]:
    """Four producers that send from now on."""
    ways = made.ways(storm.ingests)
    for way in ways:
        stack.callback(way.close)
    producers = [
        Producer(f"{seed}-{number}", ways, seed=f"{seed}-{number}", events_per_s=events_per_s / 4)
        for number in range(4)
    ]
    for producer in producers:
        producer.start()
        stack.callback(producer.stop)
    return producers


def trouble(made: Scene, storm: Storm, rng: random.Random) -> Counter[str]:
    """Make all the trouble, with the roles started again as a supervisor would. Returns what was done."""
    troubles: Counter[str] = Counter()
    made.pipeline.await_ready()
    while troubles.total() < storm.times:
        if rng.random() < storm.waits_share:
            storm.waits(made)
        wait(made, rng.uniform(*storm.pause_s))
        done = storm.trouble(made, rng)
        if done:
            troubles[done] += 1
        made.tend()
    return troubles


def wait(made: Scene, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        made.tend()
        time.sleep(min(0.1, max(0.0, until_s - time.monotonic())))


def settle(made: Scene) -> float:
    """Wait until everything is there, for as long as there is more of it each time. Returns how long it took."""
    expected, began_s = truth(made.ledgers), time.monotonic()
    wrong, moved_s = differences(expected, stored(made.database_url)), began_s
    seen, seen_s = revision(made.database_url), began_s
    while wrong:
        made.tend()
        if time.monotonic() > moved_s + SETTLE_WITHIN_S:
            assert_exact(made)
        time.sleep(0.5)
        newest = revision(made.database_url)
        if newest == seen and time.monotonic() < seen_s + COMPARES_EACH_S:
            continue  # to compare all rows takes as much of a processor as to make them
        before, wrong = wrong, differences(expected, stored(made.database_url))
        seen, seen_s = newest, time.monotonic()
        moved_s = moved_s if wrong == before else seen_s
    return time.monotonic() - began_s


def assert_exact(made: Scene) -> None:
    wrong = differences(truth(made.ledgers), stored(made.database_url))
    assert not wrong, "\n".join([f"{made.folder}:", *wrong])


# --- a short seed of each -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_ingests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One scene for all: starting a pipeline takes longer than the trouble. What one test sends, the next finds."""
    with scene(tmp_path_factory.mktemp("scene"), ingests=2, jvm_options=QUICK) as made:
        yield made
        ended(made)


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.postgres
@pytest.mark.timeout(900)
class TestShortly:
    def test_a_killed_ingest_counts_what_it_answered_once(self, two_ingests: Scene) -> None:
        storm = Storm(trouble=Scene.kill_first_ingest, times=3, pause_s=(0.2, 2.0))
        assert weathered(storm, two_ingests, seed="ingest", events_per_s=EVENTS_PER_S)["resent"] > 0

    def test_two_ingests_count_a_batch_sent_to_both_once(self, two_ingests: Scene) -> None:
        storm = Storm(trouble=Scene.kill_ingest, times=2, pause_s=(0.2, 2.0), ingests=2)
        assert weathered(storm, two_ingests, seed="two", events_per_s=EVENTS_PER_S)["duplicates"] > 0

    def test_a_restarted_postgres_loses_nothing_and_doubles_nothing(self, two_ingests: Scene) -> None:
        storm = Storm(trouble=Scene.restart_postgres, times=2, pause_s=(0.5, 2.0))
        assert weathered(storm, two_ingests, seed="postgres", events_per_s=EVENTS_PER_S)["troubles"] == {"postgres": 2}

    def test_a_killed_pipeline_counts_every_event_once(self, two_ingests: Scene) -> None:
        storm = Storm(trouble=Scene.kill_pipeline, times=1, pause_s=(0.5, 2.0), waits=await_progress)
        assert weathered(storm, two_ingests, seed="pipeline", events_per_s=EVENTS_PER_S)["late_events"] > 0
