"""Who may make which request: a row for each operation of the API, and a test that none is missing."""

from collections.abc import Mapping

from starlette.routing import compile_path

from headway.control.http.schemas.queue_names import IN_PATH
from headway.store.access.credentials import Role

RANKS: Mapping[Role, int] = {Role.VIEWER: 1, Role.OPERATOR: 2, Role.ADMIN: 3}

WHOEVER_SIGNED_IN = None

RIGHTS: Mapping[tuple[str, str], Role | None] = {
    ("POST", "/v1/session"): WHOEVER_SIGNED_IN,  # and without any token: its body has one
    ("DELETE", "/v1/session"): WHOEVER_SIGNED_IN,
    ("GET", "/v1/account"): WHOEVER_SIGNED_IN,
    ("GET", "/v1/openapi.json"): Role.VIEWER,
    ("GET", "/v1/health"): Role.VIEWER,  # and without any token
    ("GET", "/v1/health/live"): Role.VIEWER,
    ("GET", "/v1/system"): Role.VIEWER,
    ("GET", "/metrics"): Role.VIEWER,
    ("GET", "/v1/events"): Role.VIEWER,
    ("GET", "/v1/profiles"): Role.VIEWER,
    ("GET", "/v1/profiles/{pool}"): Role.VIEWER,
    ("PUT", "/v1/profiles/{pool}"): Role.OPERATOR,
    ("DELETE", "/v1/profiles/{pool}"): Role.OPERATOR,
    ("GET", "/v1/groups"): Role.VIEWER,
    ("GET", "/v1/groups/{name}"): Role.VIEWER,
    ("PUT", "/v1/groups/{name}"): Role.OPERATOR,
    ("DELETE", "/v1/groups/{name}"): Role.OPERATOR,
    ("GET", "/v1/pools"): Role.VIEWER,
    ("PUT", "/v1/pools/{pool}/override"): Role.OPERATOR,
    ("DELETE", "/v1/pools/{pool}/override"): Role.OPERATOR,
    ("PUT", "/v1/pools/{pool}/pause"): Role.OPERATOR,
    ("DELETE", "/v1/pools/{pool}/pause"): Role.OPERATOR,
    ("GET", "/v1/pools/{pool}/restart"): Role.VIEWER,
    ("POST", "/v1/pools/{pool}/restart"): Role.OPERATOR,
    ("GET", "/v1/pools/{pool}/behaviour"): Role.VIEWER,
    ("GET", "/v1/pools/{pool}/explain"): Role.VIEWER,
    ("GET", "/v1/pools/{pool}/history"): Role.VIEWER,
    ("GET", "/v1/pools/{pool}/metrics"): Role.VIEWER,
    ("GET", "/v1/pools/{pool}/series"): Role.VIEWER,
    ("GET", "/v1/queues"): Role.VIEWER,
    ("GET", "/v1/queues/{queue}/metrics"): Role.VIEWER,
    ("GET", "/v1/queues/{queue}/series"): Role.VIEWER,
    ("DELETE", "/v1/queues/{queue}"): Role.OPERATOR,
    ("POST", "/v1/queues/forget"): Role.OPERATOR,
    ("GET", "/v1/hosts"): Role.VIEWER,
    ("GET", "/v1/hosts/wanted"): Role.VIEWER,
    ("POST", "/v1/hosts/{host}/cordon"): Role.OPERATOR,
    ("POST", "/v1/hosts/{host}/uncordon"): Role.OPERATOR,
    ("POST", "/v1/hosts/{host}/drain"): Role.OPERATOR,
    ("POST", "/v1/hosts/{host}/forget"): Role.OPERATOR,
    ("POST", "/v1/hosts/{host}/rotate"): Role.ADMIN,
    ("POST", "/v1/hosts/{host}/revoke"): Role.ADMIN,
    ("GET", "/v1/slo"): Role.VIEWER,
    ("GET", "/v1/slo/export"): Role.VIEWER,
    ("GET", "/v1/workers"): Role.VIEWER,
    ("POST", "/v1/workers/{worker_id}/kill"): Role.OPERATOR,
    ("GET", "/v1/cuts"): Role.VIEWER,
    ("GET", "/v1/decisions"): Role.VIEWER,
    ("GET", "/v1/decisions/latest"): Role.VIEWER,
    ("POST", "/v1/telemetry"): Role.INGEST,
    ("GET", "/v1/audit"): Role.AUDITOR,  # and an administrator's
    ("GET", "/v1/audit/export"): Role.AUDITOR,
    ("GET", "/v1/alerts"): Role.VIEWER,
    ("GET", "/v1/silences"): Role.VIEWER,
    ("PUT", "/v1/silences/{name}"): Role.OPERATOR,
    ("DELETE", "/v1/silences/{name}"): Role.OPERATOR,
    ("GET", "/v1/tokens"): Role.ADMIN,
    ("POST", "/v1/tokens"): Role.ADMIN,
    ("DELETE", "/v1/tokens/{name}"): Role.ADMIN,
}


def needed_for(method: str, path: str) -> Role | None:
    """The role that a request needs; ``WHOEVER_SIGNED_IN``: any. What has no row is an administrator's."""
    asked = "GET" if method in {"HEAD", "OPTIONS"} else method
    return next((role for each, pattern, role in _PATTERNS if each == asked and pattern.match(path)), Role.ADMIN)


def allows(role: Role, needed: Role | None) -> bool:
    """Whether ``role`` may do what takes ``needed``: each of viewer, operator and admin what those before it may."""
    if needed is WHOEVER_SIGNED_IN or role is needed or role is Role.ADMIN:
        return True
    return role in RANKS and needed in RANKS and RANKS[role] >= RANKS[needed]


_PATTERNS = tuple(
    (method, compile_path(path.replace("{queue}", IN_PATH))[0], role) for (method, path), role in RIGHTS.items()
)
