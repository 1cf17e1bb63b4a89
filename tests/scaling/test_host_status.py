"""Of all that is true of a host, the worst is shown: one word and one sentence for page, command line and API."""

from dataclasses import replace
from typing import Any

import pytest

from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.host_table import status_of
from headway.scaling.model import HostProblem, HostProblemKind, HostState, Worker, WorkerState
from support.hosts import any_host

WORKER = Worker(
    worker_id="w", pool="mail", template="rq", pid=1, state=WorkerState.RUNNING, started_at_s=0.0, restart_generation=0
)
FULL = HostProblem(kind=HostProblemKind.STATE_FOLDER, error_number=28)
FAILING = {"failing": frozenset({"rq"})}
WORSE = {"state": HostState.DRAINING, "problems": (FULL,), **FAILING}


def row(*, hung_up_s: float | None = None, **values: Any) -> HostRow:
    host = replace(any_host("a", cpu_cores=1), **values)
    return HostRow(host=host, agent_version="1", reported_at_s=0.0, hung_up_s=hung_up_s)


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (row(), "reporting"),
        (row(**FAILING), "failing"),
        (row(state=HostState.CORDONED, **FAILING), "cordoned"),
        (row(state=HostState.DRAINING, **FAILING), "drained"),
        (row(state=HostState.DRAINING, workers=(WORKER,)), "draining"),
        (row(**WORSE), "cannot write"),
        (row(hung_up_s=3.0, **WORSE), "connection lost"),
        (row(hung_up_s=3.0, is_known=False, **WORSE), "unreachable"),
    ],
)
def test_the_worst_of_a_host_is_its_status(seen: HostRow, word: str) -> None:
    assert status_of(seen).word == word
    assert status_of(seen).meaning.endswith(".")


def test_a_status_names_what_the_host_cannot_do_and_what_fails_there() -> None:
    assert status_of(row(**FAILING)).meaning == "Workers of rq crash here."
    assert status_of(row(**WORSE)).meaning.startswith("It gets nothing new: its agent cannot write to its state folder")
