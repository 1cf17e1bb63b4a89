"""What is posted of an incident or an event of a pool: CloudEvents 1.0 signed as Standard Webhooks, or Slack's text."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headway.control.notifications.receivers import Receiver
from headway.errors import printable
from headway.scaling.model import PoolEventKind
from headway.store.outbox.notifications import BEGIN, Notification
from headway.store.outbox.pool_events import PostedEvent

Posted = Notification | PostedEvent


def message_of(notification: Posted, to: Receiver, *, now_s: float) -> tuple[bytes, Mapping[str, str]]:
    """The body and the headers of one attempt. Each attempt has the same ``webhook-id``, and a time of its own."""
    if to.template == "slack":
        text = _event_text(notification) if isinstance(notification, PostedEvent) else _incident_text(notification)
        return _slack(text), {"content-type": "application/json"}
    made = _pool_event(notification) if isinstance(notification, PostedEvent) else _incident(notification)
    body, name, at = json.dumps(made).encode(), message_id(notification), str(int(now_s))
    return body, {
        "content-type": "application/cloudevents+json",
        "webhook-id": name,
        "webhook-timestamp": at,
        "webhook-signature": signature(to.secret, name, at, body),
    }


def message_id(notification: Posted) -> str:
    """What a receiver knows a repeated message by."""
    if isinstance(notification, PostedEvent):
        return f"evt_{notification.event_id.hex}"
    return f"msg_{notification.alert_id.hex}_{notification.phase}"


def signature(secret: bytes, name: str, at: str, body: bytes) -> str:
    """As Standard Webhooks: HMAC-SHA256 of ``id.timestamp.body``."""
    made = hmac.digest(secret, f"{name}.{at}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(made).decode()}"


def _cloud_event(posted: Posted, kind: str, *, source: str, subject: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": message_id(posted),
        "source": source,
        "type": f"headway.{kind}",
        "subject": subject,
        "time": datetime.fromtimestamp(posted.at_s, UTC).isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": data,
    }


def _pool_event(event: PostedEvent) -> dict[str, Any]:
    return _cloud_event(
        event,
        f"pool.{event.event}",
        source="/headway/pools",
        subject=event.pool,
        data={
            "pool": event.pool,
            "event": event.event,
            "sequence": event.number,
            "at_s": event.at_s,
            "from_workers": event.from_workers,
            "to_workers": event.to_workers,
            "why": event.why,
            "decision_id": event.decision_id,
        },
    )


def _incident(notification: Notification) -> dict[str, Any]:
    return _cloud_event(
        notification,
        f"incident.{notification.phase}",
        source="/headway/alerts",
        subject=str(notification.alert_id),
        data={
            "alert_id": str(notification.alert_id),
            "phase": notification.phase,
            "rule": notification.rule,
            "severity": notification.severity,
            "pool": notification.pool or None,
            "host": notification.host or None,
            "kind": notification.kind or None,
            "since_s": notification.since_s,
            "until_s": None if notification.phase == BEGIN else notification.at_s,
            "summary": notification.summary,
            "action": notification.action,
        },
    )


def _event_text(event: PostedEvent) -> str:
    change = f"{event.from_workers} → {event.to_workers} workers"
    what = change if event.event is PoolEventKind.SCALED else f"{event.event.replace('_', ' ')}, {change}"
    return f"{printable(event.pool)}: {what}. {printable(event.why)}"


def _incident_text(notification: Notification) -> str:
    begins = notification.phase == BEGIN
    # Names come from outside: a line of its own in one would be another message to whoever reads this.
    lines = [f"{notification.severity.upper() if begins else 'Ended'}: {printable(notification.summary)}"]
    if begins:
        lines.append(printable(notification.action))
    return "\n".join(lines)


def _slack(text: str) -> bytes:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return json.dumps({"text": escaped}).encode()
