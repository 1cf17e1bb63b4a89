"""How large a profile may be that is sent: each of its lists is gone through at every evaluation."""

from collections.abc import Mapping, Sized
from typing import Any

from headway.control.bounds import Bounds
from headway.errors import Invalid

SCHEDULES_MAX = 100
STRATEGY_OPTIONS_MAX = 100  # no strategy reads as many


def refuse_larger(pool: str, values: Mapping[str, Any], bounds: Bounds) -> None:
    """Refuse a profile with longer lists than are taken, before any of it is read. Raises ``Invalid``."""
    placement = values.get("placement")
    labels = placement.get("labels") if isinstance(placement, Mapping) else None
    of_queues, raised = bounds.queues_per_profile_max, "raise HEADWAY_QUEUES_PER_PROFILE of the control plane"
    breaches = [
        f"profile {pool!r}: {name} has {len(given)} entries, at most {most} are taken: {cure}"
        for name, given, most, cure in (
            ("queues", values.get("queues"), of_queues, f"make several pools, or {raised}"),
            ("member_objectives", values.get("member_objectives"), of_queues, raised),
            ("schedules", values.get("schedules"), SCHEDULES_MAX, "have fewer"),
            ("strategy_options", values.get("strategy_options"), STRATEGY_OPTIONS_MAX, "have fewer"),
            ("placement.labels", labels, bounds.labels_max, "have fewer, as HEADWAY_LABELS allows hosts no more"),
        )
        if isinstance(given, Sized) and len(given) > most
    ]
    if breaches:
        raise Invalid(*breaches)
