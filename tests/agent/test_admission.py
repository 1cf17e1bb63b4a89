from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agent.config.host_file import HostFile
from headway.agent.config.templates import Ready
from headway.agent.policy.start_throttle import STARTING_LEAST, STARTING_PER_CORE, admitted, starting_max, uncounted
from headway.scaling.model import Worker, WorkerState
from headway.scaling.reconcile import Action, Drain, Start
from support.workers import template


def start(pool: str, template: str = "rq") -> Start:
    return Start(pool=pool, template=template)


def starting(pool: str, state: WorkerState = WorkerState.STARTING) -> Worker:
    return Worker(worker_id=pool, pool=pool, template="rq", pid=1, state=state, started_at_s=0.0)


def let_in(actions: list[Action], workers: list[Worker], **values: Any) -> list[str]:
    """The pools of the starts that are let in."""
    given = {"starting_max": 4, "free_gpus": 0, "gpus_of": {}}
    return [each.pool for each in admitted(actions, workers, **(given | values)) if isinstance(each, Start)]


def test_pools_take_turns_until_so_many_are_starting() -> None:
    actions = [*[start("mail")] * 9, *[start("web")] * 9]
    assert let_in(actions, []) == ["mail", "web", "mail", "web"]
    assert let_in(actions, [starting("mail"), starting("mail")]) == ["web", "web"]


def test_only_workers_that_start_now_count() -> None:
    running = [starting("mail", state) for state in WorkerState if state is not WorkerState.STARTING]
    assert let_in([start("mail")] * 9, running) == ["mail"] * 4


def test_a_pool_whose_workers_hang_while_they_start_holds_up_no_other() -> None:
    assert let_in([start("mail"), start("web")], [starting("mail")] * 4) == ["web"]


def test_workers_that_do_not_say_when_they_are_ready_are_not_counted() -> None:
    actions = [*[start("mail", "silent")] * 9, *[start("web")] * 9]
    hanging = [replace(starting("mail"), template="silent")] * 9
    assert sorted(let_in(actions, hanging, uncounted={"silent"})) == ["mail"] * 9 + ["web"] * 4


def test_drains_wait_for_nothing() -> None:
    drain = Drain(worker_id="a")
    assert admitted([start("mail"), drain], [starting("mail")] * 9, starting_max=1, free_gpus=0, gpus_of={}) == (drain,)


def test_a_worker_for_which_no_gpu_is_free_waits_and_lets_others_pass() -> None:
    actions = [start("train", "torch"), start("train", "torch"), start("web")]
    assert let_in(actions, [], free_gpus=3, gpus_of={"torch": 2}) == ["train", "web"]
    assert let_in(actions, [], free_gpus=1, gpus_of={"torch": 2}) == ["web"]


@pytest.mark.parametrize(
    ("given", "cpu_cores", "most"),
    [(None, 0.5, STARTING_LEAST), (None, 2.0, 8), (None, 16.0, 16 * STARTING_PER_CORE), (3, 16.0, 3), (100, 1.0, 100)],
)
def test_how_many_start_at_once_suits_the_cores_unless_the_owner_says_otherwise(
    given: int | None, cpu_cores: float, most: int
) -> None:
    assert starting_max(given, cpu_cores=cpu_cores) == most


@pytest.mark.parametrize(("given", "free"), [(None, {"silent"}), (3, set())])
def test_a_number_that_the_owner_gives_counts_every_worker(given: int | None, free: set[str]) -> None:
    templates = {"silent": template(name="silent"), "rq": template(name="rq", ready=Ready(pattern="ready"))}
    assert uncounted(HostFile(templates=templates, starting_max=given)) == free


# --- laws ------------------------------------------------------------------------------------------------------------

POOLS = st.sampled_from(["mail", "train", "web"])
ACTIONS = st.lists(
    st.builds(start, POOLS, st.sampled_from(["rq", "torch"])) | st.just(Drain(worker_id="a")), max_size=30
)
WORKERS = st.lists(st.builds(starting, POOLS, st.sampled_from(WorkerState)), max_size=12)


@given(ACTIONS, WORKERS, st.integers(1, 9), st.integers(0, 4))
def test_no_more_start_than_there_is_room_for_but_for_the_first_of_a_pool(
    actions: list[Action], workers: list[Worker], most: int, free_gpus: int
) -> None:
    chosen = admitted(actions, workers, starting_max=most, free_gpus=free_gpus, gpus_of={"torch": 1})
    before = [each.pool for each in workers if each.state is WorkerState.STARTING]
    starts = [each for each in chosen if isinstance(each, Start)]
    firsts = len({each.pool for each in starts} - set(before))
    assert len(starts) <= max(0, most - len(before)) + firsts
    assert sum(each.template == "torch" for each in starts) <= free_gpus
    for each in {*actions, *chosen}:
        assert chosen.count(each) <= actions.count(each)


@given(ACTIONS, WORKERS, st.integers(1, 9))
def test_whatever_waits_comes_in_once_those_before_it_are_ready(
    actions: list[Action], workers: list[Worker], most: int
) -> None:
    left = [each for each in actions if isinstance(each, Start)]
    for _ in range(len(left) + 1):
        for each in admitted(left, [], starting_max=most, free_gpus=99, gpus_of={"torch": 1}):
            left.remove(each)
    assert left == []
