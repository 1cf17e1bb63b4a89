"""Job classes of one queue, tried together and apart on Spark, from the event log."""

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from headway.cli.rehearse.rehearsal import base_profile
from headway.scaling.model import EventKind, JobEvent
from headway.simulate.studies.single_pool import Setting
from headway_spark.studies.history import held_events, jobs_of
from headway_spark.studies.topology import Question, findings
from spark.events import publish, table

pytestmark = pytest.mark.timeout(600)

START_S = 1_760_000_000.0


def ran(queue: str, job_class: str, *, count: int, every_s: float, service_s: float) -> list[JobEvent]:
    """Jobs that came by chance, each with its start and its end."""
    chance, found = Random(f"{queue}/{job_class}"), []
    for number in range(count):
        at_s = START_S + chance.random() * count * every_s
        key = {"queue": queue, "job_id": f"{job_class}{number}", "job_class": job_class}
        found += [
            JobEvent(kind=EventKind.ENQUEUED, at_s=at_s, **key),
            JobEvent(kind=EventKind.FINISHED, at_s=at_s + service_s + 1, started_at_s=at_s + 1, **key),
        ]
    return found


def test_what_should_be_apart_is_found_and_what_fits_together_is_left(spark: SparkSession, tmp_path: Path) -> None:
    events = [
        *ran("redis/media", "thumbnail", count=600, every_s=1.0, service_s=0.2),
        *ran("redis/media", "video", count=60, every_s=10.0, service_s=90.0),
        *ran("redis/mail", "welcome", count=200, every_s=3.0, service_s=1.0),
        *ran("redis/mail", "receipt", count=200, every_s=3.0, service_s=1.1),
        *ran("redis/one", "only", count=60, every_s=3.0, service_s=1.0),
    ]
    publish(tmp_path, "1.parquet", table(events))
    question = Question(
        profiles={}, default=base_profile(None), setting=Setting(), targets_s={"thumbnail": 5.0, "video": 600.0}
    )
    with held_events(spark, tmp_path) as log:
        found = {each.queue: each for each in findings(jobs_of(log), question)}
    assert next(iter(found)) == "redis/media", "what should be divided comes first"
    assert found["redis/media"].is_cure
    assert (found["redis/media"].quick, found["redis/media"].slow) == (("thumbnail",), ("video",))
    assert "Give `video` a queue and a pool of its own." in found["redis/media"].text
    assert not found["redis/mail"].is_cure
    assert "leave them together" in found["redis/mail"].text
    assert "fewer than two classes" in found["redis/one"].why
