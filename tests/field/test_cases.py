"""The cases of the field: the whole matrix, and the selection that `make field` plays."""

import tomllib
from pathlib import Path

import pytest
import yaml

from field.cases import (
    Acks,
    Broker,
    Case,
    Queues,
    Workers,
    Wrapper,
    celery_cases,
    selection,
    whole_matrix,
)
from field.pairwise import pairs_of
from field.worker_files import KNOWS_REPORTER, Place, host_file, profiles
from headway.agent.config.host_file import load

FACTORS = ("workers", "broker", "acks", "queues", "has_reporter", "has_heartbeat")


def place_of(case: Case, folder: Path) -> Place:
    place = Place(
        case=case,
        connection="mail",
        connection_table={"url": "redis://h/0"},
        url="redis://h/0",
        folder=folder / case.name,
    )
    place.folder.mkdir()
    return place


def test_the_matrix_has_every_combination_and_each_name_once() -> None:
    cases = whole_matrix()
    assert len({case.name for case in cases}) == len(cases)
    assert len(celery_cases()) == 2 * 5 * 2 * 3 * 2 * 2  # brokers, pools, acks, queues, reporter, heartbeat
    assert {case.workers for case in cases} == set(Workers)
    assert {case.wrapper for case in cases} == set(Wrapper)


def test_in_the_selection_any_two_factors_of_celery_meet_in_each_pair_of_values() -> None:
    def pairs(cases: list[Case]) -> set[object]:
        rows = ({name: getattr(case, name) for name in FACTORS} for case in cases if case.is_celery)
        return {pair for row in rows for pair in pairs_of(row)}

    assert pairs(selection()) == pairs(celery_cases())


def test_the_selection_is_small_and_has_each_library_and_wrapper() -> None:
    cases = selection()
    assert len(cases) <= 20, "each takes a second of a processor for each of its workers"
    assert {case.workers for case in cases} == set(Workers)
    assert {case.wrapper for case in cases} == set(Wrapper)


@pytest.mark.parametrize(
    ("case", "is_idle_known", "is_busy_known"),
    [
        (Case(workers=Workers.PREFORK_1, broker=Broker.RABBITMQ, has_reporter=True), True, True),
        (Case(workers=Workers.PREFORK_1, broker=Broker.REDIS), True, True),  # its heartbeats
        (Case(workers=Workers.PREFORK_1, broker=Broker.REDIS, has_heartbeat=False), False, False),
        (Case(workers=Workers.PREFORK_1, broker=Broker.RABBITMQ), False, False),
        (Case(workers=Workers.SOLO, broker=Broker.REDIS), True, False),  # none while a job runs
        (Case(workers=Workers.SOLO, has_reporter=True, has_heartbeat=False), True, True),
        (Case(workers=Workers.RQ_FORKING), True, True),
        (Case(workers=Workers.DRAMATIQ, broker=Broker.RABBITMQ), False, False),
    ],
)
def test_what_somebody_knows_of_a_worker(case: Case, is_idle_known: bool, is_busy_known: bool) -> None:
    assert (case.is_idle_known, case.is_busy_known) == (is_idle_known, is_busy_known)


def test_the_files_of_every_case_are_taken_by_headway(tmp_path: Path) -> None:
    places = [place_of(case, tmp_path) for case in whole_matrix()]
    path = tmp_path / "host.toml"
    path.write_text(host_file(places, starting_max=2))
    templates = load(path).templates
    assert set(templates) == {place.case.name for place in places}
    assert {name: each.slots for name, each in templates.items()} == {
        each.case.name: each.case.slots for each in places
    }
    pools = yaml.safe_load(profiles(places, workers_min=1, workers_max=3))["pools"]
    assert all(len(pools[place.case.name]["queues"]) == len(place.served) for place in places)


def test_a_celery_worker_is_started_as_init_writes_it(tmp_path: Path) -> None:
    case = Case(workers=Workers.GEVENT, acks=Acks.EARLY, queues=Queues.TWO_IN_POOL, has_heartbeat=False)
    path = tmp_path / "host.toml"
    path.write_text(host_file([place_of(case, tmp_path)], starting_max=2))
    argv = tomllib.loads(path.read_text())["templates"][case.name]["argv"]
    assert argv[0].endswith("/bin/celery")
    assert argv[argv.index("--queues") + 1] == f"{case.name}.mail,{case.name}.bulk"
    assert argv[argv.index("--concurrency") + 1] == "4"
    assert argv[argv.index("--pool") + 1] == "gevent"
    assert "--without-heartbeat" in argv
    assert "headway" not in " ".join(argv), "its environment has nothing of Headway"


def test_a_template_says_whether_a_reporter_is_loaded(tmp_path: Path) -> None:
    cases = [Case(workers=Workers.SOLO, has_reporter=has_reporter) for has_reporter in (True, False)]
    path = tmp_path / "host.toml"
    path.write_text(host_file([place_of(case, tmp_path) for case in cases], starting_max=2))
    templates = tomllib.loads(path.read_text())["templates"]
    said = [templates[case.name].get("reporter") for case in cases]
    assert said == (["celery", "none"] if KNOWS_REPORTER else [None, None])
