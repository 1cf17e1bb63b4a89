"""What people see, read as they read it: the dashboard, `headway top`, health, `/metrics` and the alerts."""

import contextlib
import itertools
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from headway.cli.terminal.labels import STATES
from lab.alerts import Samples, rules, scraped
from shown.site import ANSWER_S, TOKEN, Site

GREEN = frozenset({"on_time", "idle", "scaling"})
POLL_S = 0.4
TOP_WITHIN_S = 60.0
WORDS_MAX = 300
ROW = re.compile(r"\S+\s{2,}|\s")  # of a table, or the rest of one; a sentence has single spaces
QUIET_S = 12.0  # QUIET_MS of the page's stream.js: then it says so
VIEWS = ("dashboard", "top", "health", "/metrics", "alerts")


@dataclass(frozen=True, slots=True)
class ViewPoll:
    """What a view showed at one moment."""

    at_s: float
    """By the monotonic clock, when the answer was there."""
    wrong: tuple[str, ...]
    """What it says is wrong; empty where it is green."""


@dataclass
class Seen:
    """What the views have shown since the cause began, each until it named the cause."""

    names: Callable[[str, str], bool]
    """Whether a view's sentence names the cause."""
    began_s: float
    red_s: dict[str, float] = field(default_factory=dict)
    named_s: dict[str, float] = field(default_factory=dict)
    says: dict[str, str] = field(default_factory=dict)

    def take(self, view: str, poll: ViewPoll) -> None:
        """Take in one poll."""
        if not poll.wrong or poll.at_s < self.began_s:
            return
        after_s = round(poll.at_s - self.began_s, 1)
        self.red_s.setdefault(view, after_s)
        named = [each for each in poll.wrong if self.names(view, each)]
        if view not in self.named_s:
            self.says[view] = (named or poll.wrong)[0][:WORDS_MAX]
            if named:
                self.named_s[view] = after_s

    @property
    def is_complete(self) -> bool:
        return all(view in self.named_s for view in VIEWS)


class Views:
    """Polls every view of a site from threads, as different people would, with pauses that are longer by a factor."""

    def __init__(self, site: Site, *, pauses: float = 1.0) -> None:
        self._site = site
        self._pauses = pauses
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._newest: dict[str, ViewPoll] = {}
        self._polled: list[tuple[str, ViewPoll]] = []
        self._before: Samples = []

    @contextmanager
    def polling(self) -> Iterator["Views"]:
        """Poll until the block ends."""
        self._before = scraped(self._metrics())
        threads = [
            threading.Thread(target=run, daemon=True)
            for run in (self._watch, self._run_top, self._run_health, self._run_metrics)
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._over.set()
            for thread in threads:
                thread.join(TOP_WITHIN_S)

    def news(self) -> list[tuple[str, ViewPoll]]:
        """The polls since the last call."""
        with self._lock:
            polled, self._polled = self._polled, []
        return polled

    def wrong(self) -> dict[str, tuple[str, ...]]:
        """What each view shows is wrong at present; a view that was never seen is wrong."""
        with self._lock:
            return {
                view: self._newest[view].wrong if view in self._newest else ("not seen yet",)
                for view in VIEWS
                if view not in self._newest or self._newest[view].wrong
            }

    def _saw(self, view: str, wrong: list[str]) -> None:
        poll = ViewPoll(time.monotonic(), tuple(wrong))
        with self._lock:
            self._newest[view] = poll
            self._polled.append((view, poll))

    # --- each view ---------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """The dashboard: what its page gets from the stream, and what it says where the connection is lost."""
        while not self._over.wait(0.2):
            try:
                with (
                    self._client(timeout=httpx.Timeout(ANSWER_S, read=None)) as client,
                    client.stream("GET", "/v1/events") as answer,
                ):
                    if answer.status_code != 200:
                        answer.read()
                        self._saw("dashboard", [f"Connection lost: {_detail(answer)}"])
                        continue
                    self._follow(answer)
            except httpx.HTTPError as error:
                self._saw("dashboard", [f"Connection lost: {error!r}"])

    def _follow(self, answer: httpx.Response) -> None:
        silence = threading.Timer(0.0, lambda: None)
        name, data = "", ""

        def silent() -> None:
            self._saw("dashboard", ["The control plane has gone quiet"])

        try:
            for line in answer.iter_lines():
                if self._over.is_set():
                    return
                silence.cancel()
                silence = threading.Timer(QUIET_S, silent)
                silence.daemon = True
                silence.start()
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    data = line.removeprefix("data: ")
                elif not line and data:
                    self._saw("dashboard", [data] if name == "problem" else wrong_of(json.loads(data)))
                    name, data = "", ""
        finally:
            silence.cancel()

    def _run_top(self) -> None:
        """`headway top`, the command, one call after the other."""
        while not self._over.wait(0.2 * self._pauses):
            argv = [sys.executable, "-m", "headway", "top", "--once"]
            try:
                done = subprocess.run(
                    argv, env=self._site.environment, capture_output=True, text=True, check=False, timeout=TOP_WITHIN_S
                )
            except subprocess.TimeoutExpired:
                self._saw("top", [f"no answer for {TOP_WITHIN_S:.0f} s"])
                continue
            self._saw("top", wrong_in(done.stdout) if done.returncode == 0 else [done.stderr.strip()])

    def _run_health(self) -> None:
        while not self._over.wait(POLL_S * self._pauses):
            self._saw("health", self._health())

    def _run_metrics(self) -> None:
        while not self._over.wait(POLL_S * self._pauses):
            text, said = self._scrape()
            samples = scraped(text)
            kinds = [labels["reason"] for name, labels, _ in samples if name == "headway_health_reason"]
            states = [labels["state"] for name, labels, _ in samples if name == "headway_pool_state"]
            is_well = any(name == "headway_healthy" and value == 1 for name, _, value in samples)
            wrong = [f'headway_health_reason{{reason="{kind}"}}' for kind in kinds]
            wrong += [f'headway_pool_state{{state="{state}"}}' for state in states if state not in GREEN]
            self._saw("/metrics", wrong if text is not None and (wrong or is_well) else wrong or [f"no answer: {said}"])
            self._saw("alerts", self._alerts(samples))

    def _alerts(self, samples: Samples) -> list[str]:
        found = []
        for rule in rules():
            for labels in rule.pending(samples, self._before):
                labelled = ",".join(
                    f"{key}={value}" for key, value in labels.items() if key in {"reason", "state", "pool"}
                )
                found.append(f"{rule.name}({labelled}), fires after {rule.for_s:.0f} s")
        return found

    def _health(self) -> list[str]:
        try:
            with self._client() as client:
                answer = client.get("/v1/health")
        except httpx.HTTPError as error:
            return [f"no answer: {error!r}"]
        if answer.status_code != 200:
            return [_detail(answer)]
        return list(answer.json()["reasons"])

    def _scrape(self) -> tuple[str | None, str]:
        try:
            with self._client() as client:
                answer = client.get("/metrics")
        except httpx.HTTPError as error:
            return None, repr(error)
        return (answer.text, "") if answer.status_code == 200 else (None, _detail(answer))

    def _metrics(self) -> str | None:
        return self._scrape()[0]

    def _client(self, **options: Any) -> httpx.Client:
        shown = {"headers": {"Authorization": f"Bearer {TOKEN}"}, "timeout": ANSWER_S, "trust_env": False, **options}
        return httpx.Client(base_url=self._site.url, verify=self._site.verify, **shown)


def wrong_in(printed: str) -> list[str]:
    """What `headway top` prints is wrong: the sentences below its table, and pools whose word is none of the good."""
    _, _, *lines = printed.splitlines()
    rows = list(itertools.takewhile(ROW.match, lines))
    bad = {STATES[state] for state in STATES if state not in GREEN}
    sentences = " ".join(lines[len(rows) :])
    states = [row for row in rows if any(f"  {word}  " in row for word in bad)]
    return [*([sentences] if sentences else []), *states]


def wrong_of(overview: dict[str, Any]) -> list[str]:
    """What a page or a terminal shows in red of an overview, or of the answer on pools."""
    found = list(overview["health"]["reasons"])
    for pool in overview["pools"]:
        causes = [f"{pool['pool']}: {cause}" for cause in pool["causes"]]
        found += causes or ([f"{pool['pool']} is {pool['state']}"] if pool["state"] not in GREEN else [])
    return found


def _detail(answer: httpx.Response) -> str:
    with contextlib.suppress(ValueError):
        return str(answer.json()["detail"])
    return f"HTTP {answer.status_code}"
