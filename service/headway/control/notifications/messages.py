"""What is posted of an incident: CloudEvents 1.0 signed as Standard Webhooks, or Slack's text."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime

from headway.control.notifications.receivers import Receiver
from headway.errors import printable
from headway.store.notifications import BEGIN, Notification


def message_of(notification: Notification, to: Receiver, *, now_s: float) -> tuple[bytes, Mapping[str, str]]:
    """The body and the headers of one attempt. Each attempt has the same ``webhook-id``, and a time of its own."""
    if to.template == "slack":
        return _slack(notification), {"content-type": "application/json"}
    body, name, at = _cloud_event(notification), message_id(notification), str(int(now_s))
    return body, {
        "content-type": "application/cloudevents+json",
        "webhook-id": name,
        "webhook-timestamp": at,
        "webhook-signature": signature(to.secret, name, at, body),
    }


def message_id(notification: Notification) -> str:
    """What a receiver knows a repeated message by."""
    return f"msg_{notification.alert_id.hex}_{notification.phase}"


def signature(secret: bytes, name: str, at: str, body: bytes) -> str:
    """As Standard Webhooks: HMAC-SHA256 of ``id.timestamp.body``."""
    made = hmac.digest(secret, f"{name}.{at}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(made).decode()}"


def _cloud_event(notification: Notification) -> bytes:
    event = {
        "specversion": "1.0",
        "id": message_id(notification),
        "source": "/headway/alerts",
        "type": f"headway.incident.{notification.phase}",
        "subject": str(notification.alert_id),
        "time": datetime.fromtimestamp(notification.at_s, UTC).isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": {
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
    }
    return json.dumps(event).encode()


def _slack(notification: Notification) -> bytes:
    begins = notification.phase == BEGIN
    # Names come from outside: a line of its own in one would be another message to whoever reads this.
    lines = [f"{notification.severity.upper() if begins else 'Ended'}: {printable(notification.summary)}"]
    if begins:
        lines.append(printable(notification.action))
    text = "\n".join(lines)
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return json.dumps({"text": escaped}).encode()
