"""`make quick`: what says within a minute whether a change is on its way. `make check` and `make test` judge it.

Lint, types as far as they changed, the tests of the folders that were touched since main, and the pure tests. What
would not end in time does not begin, and what has not ended is cut off (``in_time.py``); both are named, and so are the
kinds that start a JVM, a browser or whole systems.

The exit status is 0 where lint, types and every test of what changed ended and passed, 1 where something failed, and
``NOT_ALL_RAN`` where nothing failed and something of these did not end. The pure tests that follow may be left out.

    .venv/bin/python tools/quick.py [--within SECONDS]
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from in_time import NOT_ALL_RAN

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent

WITHIN_S = 60.0
ENDING_S = 12.0  # from the end of the last test to that of pytest: servers stop, also on a busy machine
KILLING_S = 1.5  # whatever runs so long before the end has not ended by itself
SLOW = "proof or field or spark or e2e or install or browser"
PURE = ("tests/scaling", "tests/simulate")
WEB_TESTS = ROOT / "tests" / "control" / "web"

# What was changed -> the tests that judge it. The first that fits; a package has a folder of its name.
TESTS = (
    (r"tests/(?:\w+/)*test_\w+\.py", r"\g<0>"),
    (r"tests/support/.*|tests/\w+\.py", "tests/architecture"),
    (r"tests/(\w+)/.*", r"tests/\1"),
    (r"service/headway/(\w+)/.*", r"tests/\1"),
    (r"service/headway/(?:settings|__main__)\.py", "tests/architecture"),
    (r"service/headway/strategies\.py", "tests/test_loading_strategies.py"),
    (r"sparkjobs/.*", "tests/spark"),
    (r"migrations/.*", "tests/upgrade/test_rows.py"),
    (r"proto/.*", "tests/wire"),
    (r"benchmarks/.*", "tests/benchmarks"),
    (
        r"[\w-]+\.md|docs/.*|Dockerfile|docker-compose\.yml|pyproject\.toml|Makefile|tools/.*|\.\w.*",
        "tests/architecture",
    ),
)


def main() -> int:
    """Run what fits into the time, a minute. Returns the exit status."""
    began_s = time.monotonic()
    parser = argparse.ArgumentParser(description="Whether a change is on its way, within a minute.")
    parser.add_argument("--within", type=float, default=WITHIN_S, help="seconds that it may take (60)")
    within_s = parser.parse_args().within
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # not without ending what it began
    changed = changed_files()
    touched = tests_of(changed)
    checks = {name: begun(*words) for name, words in _checks().items()}
    tests = _tests_begun(touched, end_by_s=time.time() + within_s - ENDING_S)
    with killed_in_time((*checks.values(), tests), began_s + within_s - KILLING_S):
        statuses = [_ended(name, process, began_s) for name, process in checks.items()]
        since = f"{len(changed)} files changed since {_base()[0]}"
        print(
            f"quick: {since}: {', '.join(touched) or 'no tests of their own'}; then the pure tests: {', '.join(PURE)}",
            flush=True,
        )
        assert tests.stdout is not None
        for line in tests.stdout:
            print(line, end="", flush=True)
        statuses.append(status_of(tests))
    took_s = time.monotonic() - began_s
    print(f"quick: {took_s:.0f} s; not run: {SLOW.replace(' or ', ', ')} tests, and those of all other folders")
    return status_of_all(statuses)


def status_of_all(statuses: Iterable[int]) -> int:
    unlike = {status for status in statuses if status}
    if unlike == {NOT_ALL_RAN}:
        print("quick: nothing failed, but not all of it ended in time: `make check` judges the rest")
        return NOT_ALL_RAN
    return 1 if unlike else 0


def changed_files() -> list[str]:
    """What differs from main, committed or not; on main itself, from the last commit."""
    _, base = _base()
    listed = [_git("diff", "--name-only", base), _git("ls-files", "--others", "--exclude-standard")]
    return sorted({line for text in listed for line in text.splitlines()})


def tests_of(changed: Iterable[str]) -> list[str]:
    """The test files and folders that judge ``changed``, without those that another of them holds."""
    found = dict.fromkeys(filter(None, map(_test_of, changed)))
    there = [test for test in found if (ROOT / test).exists()]
    return [test for test in there if not any(test != other and test.startswith(f"{other}/") for other in there)]


def _test_of(file: str) -> str | None:
    for pattern, tests in TESTS:
        if found := re.fullmatch(pattern, file):
            return found.expand(tests)
    return None


def _base() -> tuple[str, str]:
    """By what changes are counted: a name for people, and a commit."""
    base = _git("merge-base", "HEAD", "main")
    is_main = not base or base == _git("rev-parse", "HEAD")
    return ("the last commit", "HEAD") if is_main else ("main", base)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _checks() -> dict[str, tuple[str, ...]]:
    ruff, node = str(BIN / "ruff"), shutil.which("node")
    checks = {"format": (ruff, "format", "--check", "."), "lint": (ruff, "check", "."), "types": (str(BIN / "mypy"),)}
    if node is not None:
        checks["web"] = (node, "--test", "--test-reporter=spec", *map(str, sorted(WEB_TESTS.glob("*.test.mjs"))))
    return checks


def begun(*words: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        words,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that its own processes end with it
    )


def _ended(name: str, process: "subprocess.Popen[str]", began_s: float) -> int:
    printed, _ = process.communicate()
    status = status_of(process)
    result = {0: "good", NOT_ALL_RAN: "not ended in time"}.get(status, printed.strip())
    print(f"quick: {name}, after {time.monotonic() - began_s:.0f} s: {result}", flush=True)
    return status


def status_of(process: "subprocess.Popen[str]") -> int:
    return NOT_ALL_RAN if process.wait() == -signal.SIGKILL else process.returncode


@contextmanager
def killed_in_time(processes: Iterable["subprocess.Popen[str]"], kill_at_s: float) -> Iterator[None]:
    """Kill what has not ended by itself at that moment of the monotonic clock, or at the end of the block."""

    def kill() -> None:
        for process in processes:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(kill_at_s - time.monotonic(), kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        kill()


def _tests_begun(touched: list[str], *, end_by_s: float) -> "subprocess.Popen[str]":
    """The tests, which wait about as long as they compute: they begin beside the checks."""
    words = ["-m", "pytest", "-q", "-m", f"not ({SLOW})", "--maxfail", "10", *touched, *PURE]
    words += ["--numprocesses", "auto", "--dist", "loadfile"]
    # Not as on a machine of CI, where a test that is left out has failed: here it is counted.
    environment = {**os.environ, "TESTS_END_BY_S": f"{end_by_s:.1f}", "TESTS_DUE": ":".join(touched), "CI": ""}
    return begun(sys.executable, *words, environment=environment)


if __name__ == "__main__":
    sys.exit(main())
