"""The HTTP server: the API under /v1 and the dashboard. It decides nothing."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from headway import __version__
from headway.control.auth.authenticator import LOCAL, Authenticator
from headway.control.auth.certificates import Certificates
from headway.control.bounds import DEFAULT, Bounds
from headway.control.http import dashboard
from headway.control.http.connections import Connections
from headway.control.http.dependencies import TAKEN, ApiContext
from headway.control.http.middleware import RequestGuard
from headway.control.http.overview.broadcaster import Feed
from headway.control.http.overview.health_reasons import process_facts
from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.control.http.overview.totals_cache import TotalsCache
from headway.control.http.problems import Problem, install
from headway.control.http.prometheus import exposition
from headway.control.http.routes import (
    audit_log,
    groups,
    health,
    hosts,
    overrides,
    overview_events,
    profiles,
    queries,
    session,
    telemetry,
    tokens,
    windows,
    workers,
)
from headway.control.http.routes.incidents import alerts
from headway.control.http.routes.reports import series, slo
from headway.control.http.schemas.responses import Overview
from headway.control.http.schemas.schema_base import describe_dataclasses
from headway.control.http.session_cookie import COOKIE, CSRF_HEADER
from headway.control.ingest.ingest import Ingest
from headway.control.listen_address import ListenAddress
from headway.control.scheduler.maintenance import Maintenance
from headway.scaling.conditions.installation_facts import ProcessFacts
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Strategy
from headway.store.engine import Engine


class App(FastAPI):
    """The server as an ASGI application."""

    def openapi(self) -> dict[str, Any]:
        """The API's description, with what operations read and answer by themselves."""
        if self.openapi_schema is None:
            self.openapi_schema = _described(self)
        return self.openapi_schema

    @property
    def overviews(self) -> OverviewBuilder:
        """What makes the snapshots that are shown."""
        context: ApiContext = self.state.context
        return context.overviews

    async def close(self) -> None:
        """End the answers that are held open, so that a server can stop."""
        context: ApiContext = self.state.context
        await context.feed.close()


def create_app(
    *,
    engine: Engine,
    ingest: Ingest,
    feed: Feed,
    token: str | None,
    address: ListenAddress,
    clock: Callable[[], float] = time.time,
    strategies: Mapping[str, Strategy] = BUILT_IN,
    callers: Authenticator | None = None,
    bounds: Bounds = DEFAULT,
    upkeep: Maintenance | None = None,
    certificates: Certificates | None = None,
    connections: Connections | None = None,
    ended_strangers: Callable[[], int] = lambda: 0,
    recommends_only: bool = False,
) -> App:
    """The application. With a ``token``, every request but health and the dashboard's files must bring one.

    ``connections`` are those of its server, and ``ended_strangers`` counts those of the gRPC server: it shows both.
    """
    app = routed()
    callers = callers or Authenticator(token=token, engine=engine)

    def process() -> ProcessFacts:
        return process_facts(ingest, callers, upkeep=upkeep, certificates=certificates, now_s=clock())

    app.state.context = ApiContext(
        engine=engine,
        ingest=ingest,
        feed=feed,
        overviews=OverviewBuilder(
            engine=engine,
            clock=clock,
            process=process,
            strategies=strategies,
            recommends_only=recommends_only,
        ),
        totals=TotalsCache(engine, clock),
        clock=clock,
        caller=LOCAL,
        bounds=bounds,
        strategies=strategies,
        callers=callers,
        connections=connections or Connections(),
        ended_strangers=ended_strangers,
        recommends_only=recommends_only,
    )
    app.add_middleware(RequestGuard, callers=callers, bound_host=address.host)
    return app


def routed() -> App:
    """The app's paths with nothing behind them: enough to describe the API."""
    app = App(
        title="Headway",
        version=__version__,
        summary="Keeps the wait of jobs in queues short with as few workers as that takes.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    install(app)
    for module in (
        health,
        profiles,
        groups,
        overrides,
        hosts,
        queries,
        windows,
        series,
        slo,
        workers,
        telemetry,
        overview_events,
        tokens,
        session,
        audit_log,
        alerts,
        exposition,
        dashboard,
    ):
        # Not included: nothing is added to a router's routes, and for each app FastAPI would build them all anew.
        app.router.routes.extend(module.router.routes)
    app.mount("/static", dashboard.Files(directory=dashboard.WEB))
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    described = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    stream = described["paths"]["/v1/events"]["get"]["responses"]["200"]["content"]
    # The framework writes a keyword of OpenAPI 3.2 here, which readers of 3.1 may refuse.
    stream["text/event-stream"] = {"schema": {"type": "string", "description": "Events; the data of each is JSON."}}
    components = described["components"]
    template = "#/components/schemas/{model}"
    _, definitions = models_json_schema(
        [*((body, "validation") for body in TAKEN), (Problem, "serialization"), (Overview, "serialization")],
        ref_template=template,
    )
    components["schemas"] = dict(sorted({**definitions["$defs"], **components["schemas"]}.items()))
    describe_dataclasses(components["schemas"])
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "description": "A token"}}
    components["securitySchemes"]["session"] = {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": f"A browser's session; {CSRF_HEADER} beside it with what changes something. The name ends with "
        "the port, and begins with __Host- under TLS.",
    }
    # Either the token, or none where the control plane was started without one (then only on its own machine).
    described["security"] = [{"token": []}, {"session": []}, {}]
    return described
