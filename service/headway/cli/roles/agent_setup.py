"""`headway agent init | check | unit`: what a host needs before its agent can run."""

import argparse
import getpass
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import grpc

from headway.agent.config.celery_command import INCLUDE, is_celery_inside, worker_word
from headway.agent.config.cut_warnings import cut_warnings
from headway.agent.config.environment_file import UnusableEnvironmentFile, variables_of
from headway.agent.config.folder_permissions import movers
from headway.agent.config.host_file import HostFile, load
from headway.agent.config.library_presets import STARTERS, host_text
from headway.agent.config.redaction import shown as shown_command
from headway.agent.config.slots_check import slots_doubt
from headway.agent.config.systemd_unit import Unit, unit_text
from headway.agent.config.templates import REPORTER_PIPE, Reporter, Template, uid_of
from headway.agent.reporting.loading import PYTHONPATH, loads_by_itself
from headway.agent.reporting.run_folder import REPORTER
from headway.agent.state.state_dir import StateFolder
from headway.agent.system.capacity import capacity, measure
from headway.cli.roles.grpc_tls import grpc_tls
from headway.cli.terminal.printing import say, say_text
from headway.errors import Conflict, Misconfigured, Unavailable
from headway.scaling.model import HostCapacity
from headway.settings import AgentSettings
from headway.wire.channel import Tls, open_channel

ANSWER_BOUND_S = 5.0
ENVIRONMENT_FILE = Path("/etc/headway/agent.env")


def add_init(parser: argparse.ArgumentParser) -> None:
    """The words of ``init``."""
    parser.add_argument("libraries", nargs="+", metavar="LIBRARY", choices=sorted(STARTERS), help=", ".join(STARTERS))
    parser.add_argument("--file", type=Path, default=Path("host.toml"), help="where to write (%(default)s)")
    parser.add_argument("--print", dest="is_shown", action="store_true", help="show it, to be pasted; write nothing")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")


def init(given: argparse.Namespace) -> int:
    """Write ``host.toml`` with a template for each library."""
    text = host_text({name: STARTERS[name] for name in given.libraries})
    if given.is_shown:
        say_text(text)
        return 0
    path: Path = given.file
    try:
        with path.open("w" if given.force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Conflict(f"{path} would be overwritten: add --force to replace it, or --print and paste") from None
    except OSError as error:
        raise Misconfigured(f"{path} cannot be written: {error.strerror}; choose another with --file") from error
    say(f"wrote {path} with templates: {', '.join(given.libraries)}")
    say("next: put the names of your application and queues in the place of APP and QUEUE, rename the tables after")
    say("your pools' templates, then type")
    say(f"  headway agent check --host-file {path}")
    return 0


def check(settings: AgentSettings, *, is_offline: bool) -> int:
    """Say what the agent would run here, and whether anything stands in its way."""
    host_file = load(settings.host_file)
    room = capacity(
        measure(),
        workers_bytes=0,
        reserve_cpu_cores=host_file.reserve_cpu_cores,
        reserve_memory_bytes=host_file.reserve_memory_bytes,
        gpus=host_file.gpus,
    )
    say(f"{settings.host_file}: templates: {len(host_file.templates)}")
    for template in host_file.templates.values():
        for line in _template_lines(template, room):
            say(line)
    for sentence in (*warnings(settings, host_file), *_template_warnings(host_file)):
        say(f"warning            {sentence}")
    reserved = f"{host_file.reserve_cpu_cores:g} cores and {_size(host_file.reserve_memory_bytes)}"
    is_any_reserved = host_file.reserve_cpu_cores or host_file.reserve_memory_bytes
    kept_back = f", with {reserved} kept back" if is_any_reserved else ""
    say(f"room for workers   {room.cpu_cores:g} cores, {_size(room.memory_bytes)}{kept_back}")
    _check_state(settings.state_dir)
    if is_offline:
        return 0
    return _check_control(settings)


def _template_warnings(host_file: HostFile) -> Iterator[str]:
    """What cuts jobs, which slots are not those of the command line, and which files of variables cannot be used.

    The last are no mistakes of ``host.toml``: the agent starts, and the workers of other templates do.
    """
    yield from cut_warnings(host_file.templates.values(), inherited=os.environ)
    for template in host_file.templates.values():
        if doubt := slots_doubt(template, cores=os.cpu_count() or 1):
            yield f"template {template.name}: {doubt}"
        try:
            variables_of(template)
        except UnusableEnvironmentFile as error:
            yield f"{error}: until then none of its workers starts"


def warnings(settings: AgentSettings, host_file: HostFile) -> list[str]:
    """What jobs can do to this agent that they should not, a sentence each."""
    own = os.geteuid()
    shared = [name for name, template in host_file.templates.items() if uid_of(template) == own]
    can = "are root on this host" if own == 0 else "can read this host's credential and end the agent"
    shared_user = (
        f"templates {', '.join(shared)} have no user of their own: their jobs {can}; give each a `user`, which an "
        "agent that runs as root can become"
    )
    return [
        *([shared_user] if shared else []),
        *(
            f"state folder {settings.state_dir} is in reach of jobs of user {user}, who may change {folder}: they can "
            "move it away, and the next agent would know no worker; when none runs, choose another with --state-dir"
            for user, folder in movers(settings.state_dir, host_file.templates.values())
        ),
    ]


def _template_lines(template: Template, room: HostCapacity) -> Iterable[str]:
    ready, stop = template.ready, template.stop
    pattern = f"its output shows {ready.pattern!r}, within {ready.timeout_s:g} s" if ready.pattern else None
    yield f"  {template.name}"
    yield f"    runs             {shown_command(template.argv)}"
    yield f"    in               {template.working_directory}"
    yield f"    program          {_program(template)}"
    yield f"    jobs at once     {template.slots}"
    yield f"    ready when       {pattern or f'it has lived for {ready.after_s:g} s'}"
    deadline = "; never killed, for it sets no drain_timeout_s"
    if stop.drain_timeout_s is not None:
        deadline = f", and by {signal.Signals(stop.force_signal).name} after {stop.drain_timeout_s:g} s"
    yield f"    stopped by       {signal.Signals(stop.stop_signal).name}{deadline}"
    needed = f"{template.cpu_cores:g} cores, {_size(template.memory_bytes)}"
    needed += f", {template.gpus} GPUs" if template.gpus else ""
    yield f"    needs            {needed}: {_fitting(template, room)} fit when nothing else runs"
    if reporting := _reporting(template):
        yield f"    reports          {reporting}"
    yield from _maintenance_lines(template)


def _reporting(template: Template) -> str | None:
    """Whether its workers report what they do; ``None`` where nothing is known that would let them."""
    if loads_by_itself(template):
        return f"its jobs to the agent, which adds `{INCLUDE} {REPORTER}`"
    if template.reporter is Reporter.CELERY:
        return f"its jobs to the agent, once Celery has `{INCLUDE} {REPORTER}` among its words; {_PASSED_ON}"
    if is_celery_inside(template.argv):
        words = f'give Celery the words `{INCLUDE} {REPORTER}`, and the template `reporter = "celery"`'
        return f"nothing: {words}; {_PASSED_ON}"
    return 'nothing: reporter = "none"' if worker_word(template.argv) is not None else None


_PASSED_ON = f"it needs {PYTHONPATH} and {REPORTER_PIPE} of the agent, which sudo, a container, -E and -I keep from it"


def _maintenance_lines(template: Template) -> Iterable[str]:
    """Who it runs as, and what is said beyond the defaults of when it goes."""
    yield f"    runs as          {template.user or 'the user of the agent'}"
    if template.environment_file is not None:
        yield f"    variables        of {template.environment_file}, too, which is read at each start"
    if template.umask is not None:
        yield f"    umask            {template.umask:04o}"
    recycle = template.recycle
    limits = (
        f"{recycle.after_s:g} s" if recycle.after_s is not None else None,
        f"{recycle.jobs} jobs" if recycle.jobs is not None else None,
        _size(recycle.memory_bytes) if recycle.memory_bytes is not None else None,
    )
    if any(limits):
        yield f"    replaced after   {' or '.join(limit for limit in limits if limit)}"
    if template.isolation_drain_after_s is not None:
        yield f"    drained          when partitioned from the control plane for {template.isolation_drain_after_s:g} s"


def _program(template: Template) -> str:
    program = template.argv[0]
    if "/" in program:
        return str((Path(template.working_directory) / program).resolve())
    return shutil.which(program, path=template.environment.get("PATH")) or program


def _fitting(template: Template, room: HostCapacity) -> int:
    by_cores = room.cpu_cores / template.cpu_cores if template.cpu_cores else float("inf")
    by_memory = room.memory_bytes / template.memory_bytes if template.memory_bytes else float("inf")
    by_gpus = room.gpus / template.gpus if template.gpus else float("inf")
    return int(min(by_cores, by_memory, by_gpus, 10_000))


def _size(size_bytes: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.3g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.3g} TB"


def _check_state(state_dir: Path) -> None:
    StateFolder(state_dir).check()
    was_used = StateFolder(state_dir).was_used
    nearest = next(folder for folder in (state_dir.absolute(), *state_dir.absolute().parents) if folder.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        raise Misconfigured(
            f"state folder {state_dir} cannot be written by {getpass.getuser()}: name another with --state-dir"
        )
    say(f"state folder       {state_dir}, {'of an earlier agent, which this one follows' if was_used else 'new'}")


def _check_control(settings: AgentSettings) -> int:
    """Whether anybody listens there; who may speak to it is found out by the agent's first call."""
    tls = grpc_tls(settings.tls)
    answers = {address: _answers(address, tls) for address in settings.control}
    if not any(answers.values()):
        trust = ", does it show a certificate that HEADWAY_TLS_CA vouches for," if settings.tls else ""
        raise Unavailable(
            f"control plane {','.join(settings.control)} does not answer within {ANSWER_BOUND_S:g} s: is it up{trust} "
            "and is HEADWAY_CONTROL its gRPC server? (--offline leaves this out)"
        )
    for address, is_there in answers.items():
        say(f"control plane      {address} {'answers' if is_there else 'does not answer'}")
    return 0


def _answers(address: str, tls: Tls | None) -> bool:
    with open_channel(address, options=[("grpc.enable_http_proxy", 0)], tls=tls) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=ANSWER_BOUND_S)
        except grpc.FutureTimeoutError:
            return False
    return True


def add_unit(parser: argparse.ArgumentParser) -> None:
    """The words of ``unit``."""
    parser.add_argument("--user", default=None, help="who the agent and its workers run as (you)")
    parser.add_argument(
        "--environment-file",
        type=Path,
        default=ENVIRONMENT_FILE,
        help="where HEADWAY_JOIN_TOKEN_FILE is set (%(default)s)",
    )


def unit(settings: AgentSettings, *, user: str | None, environment_file: Path) -> int:
    """Print a systemd unit for the agent as it would run here."""
    program = Path(sys.argv[0]).absolute()
    if not (program.is_file() and os.access(program, os.X_OK)):
        found = shutil.which("headway")
        if found is None:
            raise Misconfigured("the program headway is not on PATH: call it by its whole path, the unit will, too")
        program = Path(found).absolute()
    say_text(
        unit_text(
            Unit(
                program=program,
                host_file=settings.host_file.absolute(),
                control=",".join(settings.control),
                user=user or getpass.getuser(),
                environment_file=environment_file,
            )
        )
    )
    return 0
