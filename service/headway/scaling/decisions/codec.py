"""A decision out of the plain values that it is stored and sent as."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from headway.scaling.model import (
    Arrivals,
    DayBudget,
    Decision,
    DelayedJobs,
    Demand,
    MemberPickup,
    Mode,
    NoteFact,
    Objective,
    Plateau,
    QueueMetrics,
    QueueOrder,
    Step,
    Stoppage,
    Suspension,
)


def decision_from_mapping(body: Mapping[str, Any]) -> Decision:
    """The decision that ``body`` holds. Keys of later versions are passed over, missing ones are not known."""
    values = _known(Decision, body)
    if "mode" in values:
        values["mode"] = Mode(values["mode"])
    if values.get("objective") is not None:
        values["objective"] = Objective(**_known(Objective, values["objective"]))
    if values.get("suspension") is not None:
        values["suspension"] = Suspension(values["suspension"])
    if values.get("stoppage") is not None:
        values["stoppage"] = Stoppage(**_known(Stoppage, values["stoppage"]))
    if values.get("plateau") is not None:
        values["plateau"] = Plateau(**_known(Plateau, values["plateau"]))
    if values.get("day_budget") is not None:
        values["day_budget"] = DayBudget(**_known(DayBudget, values["day_budget"]))
    if values.get("queue_order") is not None:
        values["queue_order"] = QueueOrder(values["queue_order"])
    values["member_pickups"] = tuple(_member_pickup(row) for row in body.get("member_pickups", ()))
    values["demands"] = tuple(Demand(**_known(Demand, row)) for row in body.get("demands", ()))
    values["steps"] = tuple(Step(**_known(Step, row)) for row in body.get("steps", ()))
    values["metrics"] = tuple(metrics_from_mapping(row) for row in body.get("metrics", ()))
    values["notes"] = tuple(body.get("notes", ()))
    values["note_facts"] = tuple(_note_fact(row) for row in body.get("note_facts", ()))
    return Decision(**values)


def _note_fact(body: Mapping[str, Any]) -> NoteFact:
    return NoteFact(kind=body["kind"], about=tuple(body.get("about", ())))


def _member_pickup(body: Mapping[str, Any]) -> MemberPickup:
    values = _known(MemberPickup, body)
    values["objective"] = Objective(**_known(Objective, values["objective"]))
    return MemberPickup(**values)


def metrics_from_mapping(body: Mapping[str, Any]) -> QueueMetrics:
    """The metrics that ``body`` holds; of keys as ``decision_from_mapping``."""
    values = _known(QueueMetrics, body)
    values["arrivals"] = tuple(Arrivals(**_known(Arrivals, row)) for row in body.get("arrivals", ()))
    values["delayed"] = tuple(DelayedJobs(**_known(DelayedJobs, row)) for row in body.get("delayed", ()))
    return QueueMetrics(**values)


def _known(kind: type[Any], body: Mapping[str, Any]) -> dict[str, Any]:
    names = {item.name for item in fields(kind)}
    return {name: value for name, value in body.items() if name in names}
