"""The one entry point: it reads the first word and imports that command only.

So a role needs its own extra and no more.
"""

import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

from headway import __version__
from headway.cli.process import credential_handover
from headway.cli.process.loading import loading
from headway.errors import HeadwayError, printable


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command lives, which extra it needs and what it does."""

    module: str
    extra: str
    summary: str


COMPLETION_VARIABLE = "_HEADWAY_COMPLETE"  # set by the script of `headway completion` alone

GRPC_SETTINGS = {
    # A line of its own for each failed handshake, which ours logs once, in words for a person.
    "GRPC_VERBOSITY": "ERROR",
    # What it would do in each child before that is another program: some of those that become another user's die of it.
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}

GROUPS = {
    "On one machine": {
        "demo": Command("headway.cli.demo.demo", "all", "everything on this machine, with real jobs and real workers"),
        "up": Command("headway.cli.local.up", "all", "everything on this machine, for your own broker"),
        "init": Command("headway.cli.setup.init", "all", "write profiles.yaml and host.toml for what is found here"),
        "backup": Command(
            "headway.cli.local.backup", "all", "keep all that `up` has in one file, while it runs or not"
        ),
        "restore": Command("headway.cli.local.restore", "all", "put a backup in place of what `up` has"),
    },
    "Run a role": {
        "control": Command("headway.cli.roles.control", "control", "the control plane: HTTP, gRPC and the scheduler"),
        "pipeline": Command("headway.cli.roles.pipeline", "spark", "the Spark pipeline"),
        "collect": Command("headway.cli.roles.collect", "collect", "the broker collectors"),
        "agent": Command("headway.cli.roles.agent", "", "the agent of one host"),
        "migrate": Command("headway.cli.roles.migrate", "control", "bring the database to this version's tables"),
        "keys": Command("headway.cli.roles.keys", "control", "make a CA and certificates for TLS"),
    },
    "Configure": {
        "apply": Command("headway.cli.operator.apply", "cli", "send profiles.yaml to the control plane"),
        "diff": Command("headway.cli.operator.apply", "cli", "show what `apply` would change"),
        "validate": Command(
            "headway.cli.operator.apply", "cli", "find the mistakes in profiles.yaml, without a control plane"
        ),
        "export": Command("headway.cli.operator.apply", "cli", "print the control plane's profiles as a profiles.yaml"),
        "schema": Command(
            "headway.cli.setup.file_schemas", "control", "print the JSON Schema of a file, for your editor"
        ),
        "delete": Command("headway.cli.operator.apply", "cli", "take a pool's profile out of the control plane"),
        "scale": Command("headway.cli.operator.override", "cli", "override a pool's workers for a limited time"),
        "pause": Command("headway.cli.operator.override", "cli", "keep a pool's last target"),
        "resume": Command("headway.cli.operator.override", "cli", "end a pause"),
        "restart": Command("headway.cli.operator.workers", "cli", "replace a pool's workers, one by one"),
        "host": Command("headway.cli.operator.host", "cli", "cordon, drain or forget a host; rotate its credential"),
        "kill": Command("headway.cli.operator.workers", "cli", "kill a worker that does not end, with its jobs"),
        "queue": Command("headway.cli.operator.queue", "cli", "forget a queue that is gone"),
        "token": Command("headway.cli.operator.token", "cli", "make, list and revoke tokens"),
    },
    "Inspect and operate": {
        "top": Command("headway.cli.operator.top", "cli", "show every pool, refreshed every two seconds"),
        "get": Command("headway.cli.operator.get", "cli", "list pools, queues, workers, hosts, objectives and more"),
        "describe": Command("headway.cli.operator.describe", "cli", "show the details of a pool, a queue or a host"),
        "explain": Command("headway.cli.operator.explain", "cli", "explain why a pool has its workers"),
        "events": Command("headway.cli.operator.events.events", "cli", "show what happened, and on as it happens"),
        "logs": Command(
            "headway.cli.operator.events.logs", "cli", "show what a pool's workers have printed on this host"
        ),
        "doctor": Command("headway.cli.doctor.doctor", "cli", "find what is wrong, with a cure for each thing"),
        "audit": Command("headway.cli.operator.audit", "cli", "show or export who did what, refusals included"),
        "completion": Command(
            "headway.cli.operator.completion.shells", "cli", "let a shell complete commands and names"
        ),
    },
    "Plan, simulate and learn": {
        "plan": Command("headway.cli.rehearse.plan", "cli", "work out how many workers a load needs at its peak"),
        "simulate": Command(
            "headway.cli.rehearse.simulate", "cli", "rehearse workloads under strategies on a virtual clock"
        ),
        "backtest": Command(
            "headway.cli.backtesting.backtest", "cli,spark", "play recorded jobs under many candidates, on Spark"
        ),
        "report": Command(
            "headway.cli.reporting.savings_report", "all", "compare the workers of today with those Headway would run"
        ),
        "tune": Command(
            "headway.cli.backtesting.tune", "cli,spark", "suggest a policy for each pool from its own past, on Spark"
        ),
        "topology": Command(
            "headway.cli.backtesting.topology", "cli,spark", "find job classes that should not share a queue"
        ),
        "seasons": Command(
            "headway.cli.backtesting.seasons", "cli,spark", "learn what each hour of the week brings, and show it"
        ),
        "conformance": Command(
            "headway.peers.conformance", "", "replay recorded answers of other autoscalers' formulas"
        ),
    },
}
"""The commands by their first word, in the order in which a stranger meets them."""
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


def main(argv: list[str] | None = None) -> int:
    """Run the command that the first word names. Returns the exit status."""
    if argv is None:
        sys.excepthook = _uncaught
        if COMPLETION_VARIABLE in os.environ:
            return _completed(os.environ.pop(COMPLETION_VARIABLE))
    return _run(sys.argv[1:] if argv is None else argv)


def _run(words: list[str]) -> int:
    if not words or words[0] in {"-h", "--help", "help"}:
        print(_usage())
        return 0
    if words[0] == "--version":
        print(f"headway {__version__}")
        return 0
    command = COMMANDS.get(words[0])
    if command is None:
        near = difflib.get_close_matches(words[0], COMMANDS, n=1, cutoff=0.7)
        meant = f"did you mean `{near[0]}`? " if near else ""
        return _fail(f"no command {words[0]!r}; {meant}`headway --help` lists them")
    try:
        credential_handover.take()
        with _grpc_settings(), loading():
            module = importlib.import_module(command.module)
        status: int = module.main(words)
        sys.stdout.flush()
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing in {"", "headway", "headway_spark"}:
            raise
        extra = f"[{command.extra}]" if command.extra else ""
        return _fail(
            f"`headway {words[0]}` needs the package {missing!r}: pip install 'headway-{__version__}-py3-none-any.whl"
            f"{extra}', the wheel that this came from; in a clone, pip install '.{extra}'"
        )
    except HeadwayError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # Whoever read has read enough, as `head` does; the flush at the end of the process would complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    return status


def _completed(instruction: str) -> int:
    """Print what the script of a shell asks for, and nothing where the extra for that is not installed."""
    try:
        shells = importlib.import_module("headway.cli.operator.completion.shells")
    except ModuleNotFoundError:
        return 1
    known = {name: (command.module, command.summary) for name, command in COMMANDS.items()}
    status: int = shells.answer_shell(instruction, known)
    return status


@contextmanager
def _grpc_settings() -> Iterator[None]:
    """Keep gRPC from what it does unasked, unless the environment sets it.

    gRPC reads its variables when it is imported; workers, which get this environment, shall not have them.
    """
    ours = {name: value for name, value in GRPC_SETTINGS.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


def _usage() -> str:
    width = max(len(name) for name in COMMANDS)
    lines = []
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<{width}}  {command.summary}" for name, command in commands.items())]
    ends = "`headway COMMAND --help` lists its options, `headway --version` the version."
    return "\n".join(["usage: headway COMMAND [options]", *lines, "", ends])


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the trace of a bug; what it names must not move the cursor."""
    lines = "".join(traceback.format_exception(kind, error, trace)).rstrip("\n").split("\n")
    print("\n".join(f"  {printable(line)}" for line in lines), file=sys.stderr)


def _fail(message: str) -> int:
    print(f"headway: {printable(message)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
