"""A decision, and a batch of telemetry."""

from typing import Any

from control.http.conftest import NOW_S
from headway.scaling.model import Decision, Demand, Step


def decision(target_workers: int, **values: Any) -> Decision:
    return Decision(
        **{
            "pool": "mail",
            "at_s": NOW_S,
            "target_workers": target_workers,
            "binding": "steady_state",
            "demands": (Demand(name="steady_state", slots=2.0),),
            "steps": (Step(name="wanted", workers=2),),
            **values,
        }
    )


BATCH = {
    "producer": "app",
    "sequence": 1,
    "sent_at_s": NOW_S,
    "events": [
        {"queue": "redis/mail", "job_id": "1", "kind": "enqueued", "at_s": NOW_S},
        {"queue": "redis/mail", "job_id": "1", "kind": "started", "at_s": NOW_S, "enqueued_at_s": NOW_S - 1},
    ],
    "samples": [{"queue": "redis/mail", "at_s": NOW_S, "waiting_jobs": 3}],
    "activities": [{"host": "a", "pid": 7, "is_busy": True}],
}
