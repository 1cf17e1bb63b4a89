"""A role installs its own extra and no more, and runs."""

from collections.abc import Callable
from importlib.metadata import version

import pytest

from install.conftest import Environment

pytestmark = [pytest.mark.install, pytest.mark.timeout(1000)]

AGENT_NEEDS = {"grpcio", "protobuf", "psutil", "typing_extensions"}  # the last is grpcio's
OLDEST = ("grpcio==1.66.2", "protobuf==5.27.2", "psutil==6.0.0")  # the lower bounds of pyproject.toml

# These are of the environment of an application.
OF_AN_APP = (
    "headway.emit.celery",
    "headway.emit.rq",
    "headway.cli.demo.libraries.celery_app",
    "headway.cli.demo.libraries.celery_jobs",
)
# These need a client that has an extra of its own.
OF_RABBITMQ = ("headway.collect.rabbitmq", "headway.collect.celery.celery_on_rabbitmq")
IMPORT_ALL = """
import importlib, pkgutil, sys
left_out = tuple(sys.argv[1].split(","))
for name in sys.argv[2:]:
    module = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), name + "."):
        if not found.name.startswith(left_out):
            importlib.import_module(found.name)
"""

ROUND_TRIP = """
from headway.wire.v1 import agent_pb2, agent_pb2_grpc, telemetry_pb2, telemetry_pb2_grpc
sent = agent_pb2.Assignment(pool="mail", template="rq", base_workers=2)
assert agent_pb2.Assignment.FromString(sent.SerializeToString()) == sent
batch = telemetry_pb2.IngestRequest(producer="a", sequence=1)
assert telemetry_pb2.IngestRequest.FromString(batch.SerializeToString()) == batch
import google.protobuf, grpc
print(google.protobuf.__version__, grpc.__version__)
"""

Installed = Callable[..., Environment]


def test_without_an_extra_only_the_agents_needs_are_installed(installed: Installed) -> None:
    names = {name.replace("-", "_") for name in installed().distributions()}
    assert names == {"headway", *AGENT_NEEDS}


def test_the_agent_runs_without_an_extra(installed: Installed) -> None:
    answer = installed().headway("agent", "--help")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "usage: headway agent" in answer.stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("migrate", "control"),
        ("apply", "cli"),
        ("get", "cli"),
        ("demo", "all"),
        ("up", "all"),
        ("init", "all"),
    ],
)
def test_a_missing_extra_is_one_line_that_says_what_to_install(installed: Installed, command: str, extra: str) -> None:
    answer = installed().headway(command, "--help")
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert_names_the_extra(answer.stderr, command, extra)


@pytest.mark.parametrize(("command", "extra"), [("control", "control"), ("pipeline", "spark")])
def test_a_role_that_helps_without_its_extra_names_it_when_it_shall_run(
    installed: Installed, command: str, extra: str
) -> None:
    words = ("--database-url", "postgresql://nobody@127.0.0.1:1/none", "--event-log", "/nowhere")
    assert installed().headway(command, "--help").returncode == 0
    answer = installed().headway(command, *words, HEADWAY_CHECKPOINT="/nowhere/checkpoint")
    assert answer.returncode == 2
    assert_names_the_extra(answer.stderr, command, extra)


def test_a_collector_without_the_client_of_its_library_says_what_to_install(installed: Installed) -> None:
    assert installed().headway("collect", "--help").returncode == 0
    answer = installed().headway("collect", "--check", "--broker", "redis=redis://127.0.0.1:1/0")
    assert answer.returncode == 2
    assert answer.stderr == (
        "headway: connection 'redis': library 'rq' needs the package 'redis': "
        f"pip install 'headway-{version('headway')}-py3-none-any.whl[collect]', the wheel that this came from; "
        "in a clone, pip install '.[collect]'\n"
    )


def assert_names_the_extra(said: str, command: str, extra: str) -> None:
    assert len(said.splitlines()) == 1
    assert said.startswith(f"headway: `headway {command}` needs the package ")
    assert said.endswith(
        f"pip install 'headway-{version('headway')}-py3-none-any.whl[{extra}]', the wheel that this came from; "
        f"in a clone, pip install '.[{extra}]'\n"
    )


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("control", "control"),
        ("control", "migrate"),
        ("collect", "collect"),
        ("spark", "pipeline"),
        ("cli", "get"),
        ("cli", "apply"),
        ("all", "demo"),
        ("all", "up"),
        ("all", "init"),
    ],
)
def test_an_extra_alone_runs_its_role(installed: Installed, extra: str, command: str) -> None:
    answer = installed(extra).headway(command, "--help")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert f"headway {command}" in answer.stdout


@pytest.mark.parametrize(
    ("extra", "command", "setting"),
    [
        ("control", "control", "HEADWAY_DATABASE_URL"),
        ("control", "migrate", "HEADWAY_DATABASE_URL"),
        ("spark", "pipeline", "HEADWAY_DATABASE_URL"),
        ("collect", "collect", "HEADWAY_BROKERS"),
    ],
)
def test_a_role_without_its_settings_says_which_is_missing(
    installed: Installed, extra: str, command: str, setting: str
) -> None:
    answer = installed(extra).headway(command)
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"headway: {setting} is not set: ")
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("extra", "packages"),
    [
        ("", ["headway.agent", "headway.emit", "headway.wire", "headway.scaling", "headway.cli.roles.agent"]),
        ("control", ["headway.control", "headway.cli.roles.control_server", "headway.simulate"]),
        ("collect", ["headway.collect"]),
        ("client", ["headway.client"]),
        ("spark", ["headway_spark", "headway.cli.roles.pipeline_run"]),
        ("all", ["headway", "headway_spark"]),
    ],
)
def test_every_module_of_a_role_imports_with_its_extra_alone(
    installed: Installed, extra: str, packages: list[str]
) -> None:
    left_out = OF_AN_APP if extra == "all" else (*OF_AN_APP, *OF_RABBITMQ)
    imported = installed(extra).python(IMPORT_ALL, ",".join(left_out), *packages)
    assert imported.returncode == 0, imported.stderr


def test_the_agent_runs_beside_the_oldest_protobuf_and_grpc(installed: Installed) -> None:
    """A worker host may pin old ones; generated code that is too new would stop the program it is installed beside."""
    environment = installed("", *OLDEST)
    loaded = environment.python(ROUND_TRIP)
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.split() == ["5.27.2", "1.66.2"]
    answer = environment.headway("agent", "--help")
    assert (answer.returncode, answer.stderr) == (0, "")


def test_migrate_finds_its_migrations_in_the_wheel(installed: Installed, database_url: str) -> None:
    done = installed("control").headway("migrate", HEADWAY_DATABASE_URL=database_url)
    assert done.returncode == 0, done.stderr
    again = installed("control").headway("migrate", HEADWAY_DATABASE_URL=database_url)
    assert again.returncode == 0, again.stderr
