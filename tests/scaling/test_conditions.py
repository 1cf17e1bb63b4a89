"""The table of conditions: each has what every place that reads it needs, and each is judged for itself."""

from dataclasses import fields
from itertools import combinations
from typing import Any

import pytest

from headway.scaling.conditions.causes import causes_of, state_of
from headway.scaling.conditions.condition import Condition, Subject
from headway.scaling.conditions.condition_table import CONDITIONS, STATES, STATES_BY_URGENCY, URGENCIES
from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.host_table import OF_HOSTS
from headway.scaling.conditions.installation_table import OF_INSTALLATION
from headway.scaling.conditions.pool_facts import NoHost
from headway.scaling.conditions.pool_table import OF_POOLS
from headway.scaling.conditions.series_table import OF_SERIES
from headway.scaling.model import GroupUse, Host, HostCapacity, HostProblem, HostProblemKind, Suspension
from support.known_pool import ALL_FAIL, MEASURED, known_pool

LATE = {"waiting_jobs": 1, "oldest_age_s": 50.0}
NEVER_SEEN = {"sampled_at_s": None, "waiting_jobs": None}
DATABASE = GroupUse(name="database", cap=40, is_binding=True)
FULL = HostRow(
    host=Host(
        host_id="a",
        name="a",
        capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1),
        problems=(HostProblem(kind=HostProblemKind.STATE_FOLDER, error_number=28),),
    ),
    agent_version="1",
    reported_at_s=1.0,
)


def test_no_two_conditions_have_one_name() -> None:
    assert len(CONDITIONS) == len(OF_INSTALLATION) + len(OF_HOSTS) + len(OF_POOLS) + len(OF_SERIES) + 1


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=lambda each: each.name)
def test_every_incident_has_its_rule_of_prometheus(condition: Any) -> None:
    assert not condition.own_rule or condition.alert is not None


def test_conditions_that_share_an_alert_are_one_incident_and_as_urgent() -> None:
    for one, other in combinations(CONDITIONS.values(), 2):
        if one.alert is not None and one.alert is other.alert:
            assert (one.severity, one.own_rule) == (other.severity, other.own_rule)


def test_health_names_what_has_a_sentence_for_it_and_nothing_else() -> None:
    """Of pools it is the number and the sentence of the condition, so that only a predicate is needed."""
    without = {each.name: each.default for each in fields(Condition)}
    for each in CONDITIONS.values():
        if each.subject is Subject.POOL:
            assert not each.is_in_health or each.is_true is not without["is_true"], each.name
            assert each.counting is without["counting"] or each.is_in_health, each.name
        else:
            says = [name for name in ("of_installation", "of_hosts") if getattr(each, name) is not without[name]]
            assert each.is_in_health == bool(says), each.name


def test_every_verb_has_its_form_for_several() -> None:
    assert CONDITIONS["bottleneck"].counted(1) == "1 pool has a bottleneck"
    assert CONDITIONS["capacity"].counted(2) == "2 pools need more workers than hosts have capacity for"
    assert CONDITIONS["cut_jobs"].counted(2) == "2 jobs were cut, or may have been, in the last 15 min"


def test_states_are_ordered_by_urgency_and_those_in_order_are_left_out() -> None:
    assert set(STATES) - set(STATES_BY_URGENCY) == {"scaling", "on_time", "idle"}
    severities = [CONDITIONS[name].severity for name in STATES_BY_URGENCY]
    assert severities == sorted(severities, key=["page", "ticket", "note"].index)


def test_a_more_urgent_state_has_a_greater_urgency_and_what_is_so_for_moments_has_none() -> None:
    ordered = [name for name in STATES_BY_URGENCY if not CONDITIONS[name].is_momentary]
    urgencies = [URGENCIES[name] for name in ordered]
    assert urgencies == sorted(set(urgencies), reverse=True)
    assert min(urgencies) > 0
    assert {name for name in STATES if not URGENCIES[name]} == {"at_risk", "scaling", "on_time", "idle"}
    assert set(URGENCIES) == set(STATES)


def test_pools_are_counted_by_the_worst_first_and_only_by_a_state() -> None:
    words = dict.fromkeys(CONDITIONS[name].counted_as for name in URGENCIES)
    assert [each for each in words if each] == ["late", "failing", "without fresh data", "suspended"]
    assert all(each.word for each in CONDITIONS.values() if each.counted_as)


@pytest.mark.parametrize(
    ("metrics", "values", "kinds"),
    [
        (MEASURED, {}, []),
        # A worse condition hides no other.
        ({**MEASURED, **LATE}, {"failures": (ALL_FAIL,)}, ["breaching", "failing"]),
        ({**MEASURED, **LATE}, {"target_workers": 20}, ["breaching", "at_ceiling"]),
        ({**MEASURED, **LATE}, {"target_workers": 3, "capped_by": (DATABASE,)}, ["breaching", "at_ceiling"]),
        (MEASURED, {"target_workers": 3, "capped_by": (DATABASE,)}, []),
        ({**MEASURED, **LATE}, {"measured_age_s": 60.0}, ["breaching", "stale"]),
        # Nobody can start a job then: that is no lateness.
        ({**MEASURED, **LATE}, {"suspension": Suspension.LIBRARY}, ["suspended"]),
        # Workers that no host can run are not missing beside that.
        (MEASURED, {"no_host": NoHost.NONE_ENROLLED, "unstarted_workers": 2, "is_short_of_room": True}, ["no_host"]),
        (MEASURED, {"hosts": [FULL]}, ["host_disk"]),
        # A broker that is polled and does not list the queue is no broker that nobody reads.
        (NEVER_SEEN, {"measured_age_s": None}, ["unseen"]),
        (NEVER_SEEN, {"measured_age_s": None, "is_broker_polled": True}, ["unlisted"]),
        (NEVER_SEEN, {"measured_age_s": None, "is_broker_polled": True, "has_queues": False}, ["unlisted"]),
        (NEVER_SEEN, {"is_broker_polled": True, "no_host": NoHost.NONE_ENROLLED}, ["no_host", "unlisted"]),
        (MEASURED, {"is_broker_polled": True, "measured_age_s": 60.0}, ["stale"]),
    ],
)
def test_each_condition_is_judged_for_itself(metrics: dict[str, Any], values: dict[str, Any], kinds: list[str]) -> None:
    pool = known_pool(metrics, **values)
    assert [each.kind for each in causes_of(pool)] == kinds
    own = [kind for kind in kinds if CONDITIONS[kind].word]
    assert not own or state_of(pool) == own[0]


def test_who_is_late_under_the_cap_of_a_group_reads_which() -> None:
    pool = known_pool({**MEASURED, **LATE}, capped_by=(DATABASE,))
    (sentence,) = [each.text for each in causes_of(pool) if each.kind == "at_ceiling"]
    assert sentence == "group database allows no more workers: 40 workers for all its pools"
