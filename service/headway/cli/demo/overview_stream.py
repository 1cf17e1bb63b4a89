"""The control plane's overview as it changes: Server-Sent Events, read by a thread."""

import json
import threading
from collections.abc import Iterable
from typing import Any

import httpx

RECONNECT_S = 1.0
OVERVIEW_SILENT_S = 15.0  # the stream sends at least every 5 s


class OverviewFeed:
    """Keeps the newest overview that the control plane has sent."""

    def __init__(self, url: str, *, token: str | None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=OVERVIEW_SILENT_S, trust_env=False)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="overview", daemon=True)
        self.newest: dict[str, Any] | None = None

    def start(self) -> None:
        """Begin to listen. It ends with the process, or soon after ``close``."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening at the next event, without waiting for it."""
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                with self._client.stream("GET", "/v1/events") as answer:
                    self._take(answer.raise_for_status().iter_lines())
            except (httpx.HTTPError, ValueError):
                self._closing.wait(RECONNECT_S)

    def _take(self, lines: Iterable[str]) -> None:
        event = ""
        for line in lines:
            if self._closing.is_set():
                return
            name, _, value = line.partition(":")
            if name == "event":
                event = value.strip()
            elif name == "data" and event == "overview":
                self.newest = json.loads(value)
