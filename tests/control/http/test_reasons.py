"""The reasons why the installation is not as it should be."""

from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from headway.control.http.overview.health_reasons import health_of
from headway.control.http.schemas.responses import HealthOut
from headway.scaling.conditions.causes import ailing_pools
from headway.scaling.conditions.installation_facts import HealthRow, InstallationFacts, PipelineRow, ProcessFacts
from support.known_pool import ALL_FAIL, MEASURED, known_pool
from support.seed import Seed


def pipeline(**values: Any) -> PipelineRow:
    return PipelineRow(
        **{"pipeline": "metrics", "is_ready": True, "written_age_s": 1.0, "batch_s": 0.4, "lag_s": 0.0, **values}
    )


def health_by(row: HealthRow, *, now_s: float | None = None, **process: Any) -> HealthOut:
    return health_of(InstallationFacts(known=row, process=ProcessFacts(**process), now_s=now_s))


GOOD = {"leader": "here:1", "epoch": 3, "leader_age_s": 1.0, "pipelines": (pipeline(),)}


@pytest.mark.parametrize(
    ("change", "has_event_log", "says"),
    [
        ({"leader_age_s": None}, True, "no control plane has led yet"),
        ({"leader_age_s": 40.0}, True, "here:1, has sent no heartbeat for 40 s"),
        ({"pipelines": ()}, True, "nothing is measured"),
        ({"pipelines": (pipeline(is_ready=False, stage="starting"),)}, True, "is starting"),
        ({"pipelines": (pipeline(is_ready=False, stage="rebuilding"),)}, True, "metrics is rebuilding: nothing is"),
        ({"pipelines": (pipeline(is_ready=False, stage="warming_up", written_age_s=600.0),)}, True, "reported nothing"),
        ({"pipelines": (pipeline(lag_s=30.0),)}, True, "has not written for 30 s while samples arrive"),
        ({"pipelines": (pipeline(beat_age_s=6.0),)}, True, "metrics not responding: no heartbeat for 6 s"),
        ({"pipelines": (pipeline(is_ready=False, stage="crashed"),)}, True, "metrics crashed 1 s ago: nothing is"),
        ({"pipelines": (pipeline(is_ready=False, stage="restarting"),)}, True, "metrics crashed, restarting"),
        ({"pipelines": (pipeline(is_ready=False, stage="stopped"),)}, True, "was stopped 1 s ago"),
        ({"pipelines": (pipeline(lag_s=11.0, beat_age_s=1.0),)}, True, "hangs in a batch: it answers, and has not"),
        ({"read_ages_s": {"redis": 90.0}}, True, "no queue that a profile names has been read for 90 s"),
        ({"read_ages_s": {"redis": 90.0, "other": 1.0}}, True, "1 of 2 brokers has not been read for 90 s"),
        ({"read_ages_s": {"a": 90.0, "b": 30.0, "c": 1.0}}, True, "2 of 3 brokers have not been read for 90 s"),
        ({"shared_connections": 1}, True, "1 broker is polled by several collectors, of which one counts"),
        ({"clock_s": 1_000.0}, True, "the clock of this control plane is 60 min ahead of that of Postgres"),
        ({"clock_s": 8_200.0}, True, "the clock of this control plane is 60 min behind that of Postgres"),
        ({}, False, "telemetry is refused"),
    ],
)
def test_what_is_wrong_is_reported_in_a_sentence(change: dict[str, Any], has_event_log: bool, says: str) -> None:
    health = health_by(HealthRow(**{**GOOD, **change}), has_event_log=has_event_log, now_s=4_600.0)
    assert health.status == "degraded"
    (reason,) = health.reasons
    assert says in reason
    assert len(health.kinds) == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, None),
        ({"refused": "the disk is full"}, "telemetry is refused: the disk is full"),
        ({"unread_files": 7, "oldest_unread_s": 90.0}, "7 files of events wait for the pipeline, the oldest for 90 s"),
        ({"unread_files": 7, "oldest_unread_s": 9.0}, None),
    ],
)
def test_what_waits_and_what_is_refused_is_reported(change: dict[str, Any], says: str | None) -> None:
    health = health_by(HealthRow(**GOOD), **change)
    assert health.reasons == ([] if says is None else [says])


def test_clocks_that_differ_by_the_way_to_postgres_are_right() -> None:
    assert health_by(HealthRow(**GOOD, clock_s=100.0), now_s=103.0).status == "ok"


def test_what_is_wrong_with_pools_is_reported_once_a_kind() -> None:
    failing, changes = {"failures": (ALL_FAIL,)}, ({"is_crash_looping": True}, {"is_short_of_room": True})
    pools = [known_pool(MEASURED, **values) for values in (failing, {}, failing, *changes, {"lost_jobs": 1})]
    found = list(ailing_pools(pools))
    assert [each.kind for each in found] == ["lost_jobs", "crash_loop", "failing", "capacity"]
    assert found[2].text == "2 pools have too many failing jobs: see `headway top`"
    assert found[3].text == "1 pool needs more workers than hosts have capacity for: see `headway top`"


def test_why_telemetry_is_refused_is_said_also_where_the_log_cannot_be_written() -> None:
    """A disk that was full was reported as a log that is not the one the database knows."""
    full = "the disk of the event log has 3 MiB left"
    health = health_by(HealthRow(**GOOD), has_event_log=False, refused=full)
    assert health.reasons == ["telemetry is refused: the disk of the event log has 3 MiB left"]


def test_a_quiet_pipeline_is_not_a_late_one() -> None:
    row = HealthRow(**{**GOOD, "pipelines": (pipeline(written_age_s=3600.0),)})
    assert health_by(row).status == "ok"


async def test_health_is_read_from_what_the_processes_left(client: httpx.AsyncClient, seed: Seed) -> None:
    assert len((await client.get("/v1/health")).json()["reasons"]) == 2  # nobody led, nothing was measured
    seed.leader()
    seed.pipeline(age_s=30.0)
    health = (await client.get("/v1/health")).json()
    assert (health["status"], health["leader"], health["leader_epoch"]) == ("ok", "here:1", 3)
    assert 1.0 <= health["leader_age_s"] < 10.0
    seed.sample("redis/mail", at_s=NOW_S)  # received now: the pipeline should have written since
    health = (await client.get("/v1/health")).json()
    assert health["status"] == "degraded"
    assert health["pipelines"][0]["lag_s"] == pytest.approx(30.0, abs=5.0)


def test_no_broker_is_to_blame_while_telemetry_is_refused() -> None:
    """What collectors have read is telemetry too: people were sent to brokers that answered."""
    row = HealthRow(**{**GOOD, "read_ages_s": {"redis": 60.0}})
    assert health_by(row).kinds == ["broker"]
    assert health_by(row, has_event_log=False).kinds == ["event_log"]
