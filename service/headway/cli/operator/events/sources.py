"""What happened, read from the API: decisions that changed a target, alerts, and what people changed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headway.cli.api_client import Api, path_of
from headway.cli.operator.report_tables import about, change_text
from headway.errors import Forbidden, NotFound

PAGE_DECISIONS = 500
PAGE_ROWS = 1_000  # of anything else

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened."""

    at_s: float
    kind: str
    """`scaled`, `job cut`, `alert`, `alert ended` or `change`."""
    about: str
    """As ``pool mail``, ``host web-1`` or ``the installation``."""
    text: str
    source: Body
    """The row of the API that it is from."""

    @property
    def key(self) -> str:
        """The same for no two."""
        return json.dumps([self.at_s, self.kind, self.about, self.text], sort_keys=True)


def events_of(api: Api, *, from_s: float, pool: str | None, limit: int) -> list[Event]:
    """The newest ``limit`` of what happened since ``from_s``, the oldest first.

    What people changed is left out where the caller may not read the audit log.
    """
    if pool is not None and not api.get("/v1/decisions", pool=pool, limit=1)["decisions"]:
        api.get(path_of("profiles", pool))  # refused in the API's words if there is no such pool
    found = [
        *_decided(api, from_s, pool, limit),
        *_cut(api, from_s, pool, limit),
        *_alerts(api, pool, limit),
        *_changed(api, from_s, pool, limit),
    ]
    recent = sorted((each for each in found if each.at_s >= from_s), key=lambda each: (each.at_s, each.key))
    return recent[-limit:]


def _decided(api: Api, from_s: float, pool: str | None, limit: int) -> Iterator[Event]:
    for direction in ("up", "down"):
        query = {"pool": pool, "direction": direction, "from_s": from_s, "limit": min(limit, PAGE_DECISIONS)}
        for row in api.get("/v1/decisions", **query)["decisions"]:
            decision = row["decision"]
            before, after = row["previous_workers"], decision["target_workers"]
            why = row["explanation"]["binding_label"]
            yield Event(
                at_s=row["decided_at_s"],
                kind="scaled",
                about=f"pool {decision['pool']}",
                text=f"{'undecided' if before is None else before} → {after} workers: {why}",
                source=row,
            )


def _cut(api: Api, from_s: float, pool: str | None, limit: int) -> Iterator[Event]:
    try:
        cuts = api.get("/v1/cuts", pool=pool, from_s=from_s, limit=min(limit, PAGE_ROWS))["cuts"]
    except NotFound:
        return  # a control plane of an earlier version
    for row in cuts:
        yield Event(
            at_s=row["recorded_at_s"], kind="job cut", about=f"pool {row['pool']}", text=row["sentence"], source=row
        )


def _alerts(api: Api, pool: str | None, limit: int) -> Iterator[Event]:
    query = {"state": "all", "pool": pool, "limit": min(limit, PAGE_ROWS)}
    for row in api.get("/v1/alerts", **query)["alerts"]:
        yield Event(at_s=row["since_s"], kind="alert", about=about(row), text=row["summary"], source=row)
        if row["until_s"] is not None:
            yield Event(at_s=row["until_s"], kind="alert ended", about=about(row), text=row["summary"], source=row)


def _changed(api: Api, from_s: float, pool: str | None, limit: int) -> Iterator[Event]:
    query = {
        "from_s": from_s,
        "subject": None if pool is None else f"profile {pool}",
        "limit": min(limit, PAGE_ROWS),
    }
    try:
        acts = api.get("/v1/audit", **query)["acts"]
    except Forbidden:
        return
    for row in acts:
        what = change_text(row["before"], row["after"])
        text = f"{row['action']} by {row['actor']}"
        yield Event(
            at_s=row["at_s"], kind="change", about=row["subject"], text=f"{text}: {what}" if what else text, source=row
        )
