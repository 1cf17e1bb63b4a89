"""The table of conditions: each has what every place that reads it needs, and each is judged for itself."""

from itertools import combinations
from typing import Any

import pytest

from control.http.known_pool import ALL_FAIL, MEASURED, known_pool
from headway.scaling.conditions.condition import Subject
from headway.scaling.conditions.condition_table import (
    CONDITIONS,
    OF_HOSTS,
    OF_INSTALLATION,
    OF_POOLS,
    STATES,
    STATES_BY_URGENCY,
)
from headway.scaling.conditions.pool_conditions import causes_of, state_of
from headway.scaling.model import Suspension

LATE = {"waiting_jobs": 1, "oldest_age_s": 50.0}


def test_no_two_conditions_have_one_name() -> None:
    assert len(CONDITIONS) == len(OF_INSTALLATION) + len(OF_HOSTS) + len(OF_POOLS) + 1


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=lambda each: each.name)
def test_every_incident_has_its_rule_of_prometheus(condition: Any) -> None:
    assert not condition.own_rule or condition.alert is not None


def test_conditions_that_share_an_alert_are_one_incident_and_as_urgent() -> None:
    for one, other in combinations(CONDITIONS.values(), 2):
        if one.alert is not None and one.alert is other.alert:
            assert (one.severity, one.own_rule) == (other.severity, other.own_rule)


def test_health_counts_every_condition_of_pools_that_it_names() -> None:
    for each in CONDITIONS.values():
        is_counted = each.counting is not None
        assert is_counted == (each.subject is Subject.POOL and each.is_in_health), each.name


def test_states_are_ordered_by_urgency_and_those_in_order_are_left_out() -> None:
    assert set(STATES) - set(STATES_BY_URGENCY) == {"scaling", "on_time", "idle"}
    severities = [CONDITIONS[name].severity for name in STATES_BY_URGENCY]
    assert severities == sorted(severities, key=["page", "ticket", "note"].index)


@pytest.mark.parametrize(
    ("metrics", "values", "kinds"),
    [
        (MEASURED, {}, []),
        # A worse condition hides no other.
        ({**MEASURED, **LATE}, {"failures": (ALL_FAIL,)}, ["breaching", "failing"]),
        ({**MEASURED, **LATE}, {"target_workers": 20}, ["breaching", "at_ceiling"]),
        ({**MEASURED, **LATE}, {"measured_age_s": 60.0}, ["breaching", "stale"]),
        # Nobody can start a job then: that is no lateness.
        ({**MEASURED, **LATE}, {"suspension": Suspension.LIBRARY}, ["suspended"]),
        # Workers that no host can run are not missing beside that.
        (MEASURED, {"no_host": "no host has enrolled", "unstarted_workers": 2, "is_short_of_room": True}, ["no_host"]),
        (MEASURED, {"host_troubles": [("host_disk", "the agent of a cannot write")]}, ["host_disk"]),
    ],
)
def test_each_condition_is_judged_for_itself(metrics: dict[str, Any], values: dict[str, Any], kinds: list[str]) -> None:
    pool = known_pool(metrics, **values)
    assert [each.kind for each in causes_of(pool)] == kinds
    own = [kind for kind in kinds if CONDITIONS[kind].word]
    assert not own or state_of(pool) == own[0]
