"""Incidents, and silences of them."""

from typing import Annotated, Literal, Self
from uuid import UUID

from fastapi import Query, Request
from pydantic import Field, model_validator

from headway.control.http.dependencies import NamePath, PoolQuery, WithContext, body_of, model_of, operations, taking
from headway.control.http.problems import declared
from headway.control.http.schemas.requests import HeldForAWhile, Taken, Text
from headway.control.http.schemas.schema_base import Given
from headway.errors import Invalid, NotFound, printable
from headway.store.engine import transaction
from headway.store.incidents import (
    Incident,
    Silence,
    delete_silence,
    list_incidents,
    list_silences,
    put_silence,
    silenced_until_s,
)

ALERTS_PAGE_MAX = 1_000

router = operations(prefix="/v1", tags=["alerts"])


class Matchers(Taken):
    """The labels of the incidents that are meant: each that is named must be equal."""

    rule: Text | None = None
    severity: Text | None = None
    pool: Text | None = None
    host: Text | None = None
    kind: Text | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.labels:
            raise ValueError("name at least one label: nothing silences everything")
        return self

    @property
    def labels(self) -> dict[str, str]:
        """The labels that are named."""
        return self.model_dump(exclude_none=True)


class SilenceBody(HeldForAWhile):
    """Which incidents are not to disturb anybody, until when and why."""

    matchers: Matchers
    reason: Text


class AlertOut(Given):
    """One incident."""

    id: UUID
    rule: str
    severity: Literal["page", "ticket"]
    pool: str | None
    host: str | None
    kind: str | None
    """Of the rule `degraded`: the kind of reason, as health names it. Of `error_budget_spent`: the day of UTC."""
    since_s: float
    """Unix seconds: since when it is so."""
    until_s: float | None
    """Unix seconds; null while it goes on."""
    summary: str
    action: str
    silenced_until_s: float | None


class AlertsOut(Given):
    """Incidents, those that began last first."""

    alerts: list[AlertOut]
    next: str | None
    """Where the next page goes on; null: there is none."""


class SilenceOut(Given):
    """A silence, also one that has ended."""

    name: str
    matchers: dict[str, str]
    until_s: float
    reason: str
    created_by: str


class SilencesOut(Given):
    """Every silence, by name."""

    silences: list[SilenceOut] = Field()


@router.get("/alerts", summary="List incidents", responses=declared(Invalid))
async def list_alerts(
    context: WithContext,
    *,
    state: Annotated[Literal["firing", "all"], Query(description="Those that go on, or all.")] = "firing",
    pool: PoolQuery = None,
    limit: Annotated[int, Query(ge=1, le=ALERTS_PAGE_MAX)] = 100,
    before: Annotated[str | None, Query(max_length=100, description="The `next` of an earlier answer.")] = None,
) -> AlertsOut:
    """What the leader has found wrong. Without a leader, what was so when it was last known."""
    now_s = context.clock()
    async with transaction(context.engine) as conn:
        found = await list_incidents(conn, is_firing=state == "firing", pool=pool, limit=limit, before=before)
        silences = await list_silences(conn)

    def shown(incident: Incident) -> AlertOut:
        return AlertOut.taken_from(
            incident,
            id=incident.alert_id,
            pool=incident.pool or None,
            host=incident.host or None,
            kind=incident.kind or None,
            silenced_until_s=None if incident.until_s else silenced_until_s(incident, silences, now_s=now_s),
        )

    return AlertsOut(alerts=[shown(each) for each in found], next=found[-1].cursor if len(found) == limit else None)


@router.get("/silences", summary="List silences", responses=declared())
async def get_silences(context: WithContext) -> SilencesOut:
    """Every silence, those that have ended included."""
    async with transaction(context.engine) as conn:
        return SilencesOut(silences=[SilenceOut.taken_from(each) for each in await list_silences(conn)])


@router.put("/silences/{name}", summary="Set a silence", **taking(SilenceBody))
async def set_silence(name: NamePath, context: WithContext, request: Request) -> SilenceOut:
    """Let incidents with these labels disturb nobody until a time. They still open and close."""
    now_s = context.clock()
    body = await body_of(request, lambda given: model_of(SilenceBody, given))
    silence = Silence(
        name=name,
        matchers=body.matchers.labels,
        until_s=body.end_s(now_s=now_s),
        reason=body.reason,
        created_by=str(printable(context.actor)),
    )
    async with transaction(context.engine) as conn:
        await put_silence(conn, silence, actor=context.actor)
    return SilenceOut.taken_from(silence)


@router.delete("/silences/{name}", summary="End a silence", status_code=204, responses=declared(Invalid, NotFound))
async def end_silence(name: NamePath, context: WithContext) -> None:
    """End a silence before its time."""
    async with transaction(context.engine) as conn:
        await delete_silence(conn, name, actor=context.actor)
