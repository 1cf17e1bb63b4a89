"""Telemetry: what happened to jobs and the state of queues, for senders that speak no gRPC."""

from fastapi import Request

from headway.control.http.dependencies import WithContext, body_of, model_of, operations, takes
from headway.control.http.middleware import TELEMETRY_PATH
from headway.control.http.problems import TooLarge, declared
from headway.control.http.schemas.requests import TelemetryBody
from headway.control.http.schemas.responses import ReceiptOut
from headway.errors import Invalid, Overloaded

router = operations(tags=["telemetry"])


@router.post(
    TELEMETRY_PATH,
    summary="Send telemetry",
    responses=declared(Invalid, TooLarge, Overloaded),
    openapi_extra=takes(TelemetryBody),
)
async def send_telemetry(context: WithContext, request: Request) -> ReceiptOut:
    """Accept one batch. It is answered when it is durable; sent again, it counts once."""
    batch = await body_of(request, lambda body: model_of(TelemetryBody, body).value())
    return ReceiptOut.model_validate(await context.ingest.accept(batch, context.caller))
