"""What `headway init` says of what it found, what it could not see and what it wrote. No password is in it."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.cli.setup.broker_candidates import VARIABLES_OF
from headway.cli.setup.found_connections import FoundConnection
from headway.cli.setup.ownership import MachineWorkers, Stranger
from headway.cli.setup.running_workers import RunningWorker
from headway.cli.setup.scaffold import Draft
from headway.cli.setup.worker_environment import is_secret
from headway.cli.setup.worker_templates import ENVIRONMENTS, NO_APP
from headway.cli.terminal.figure_accuracy import accuracy_lines
from headway.connections import shown

PROCESSES_NAMED = 5
OTHERS_NAMED = 50
QUEUES_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything there is to say."""

    connections: Sequence[FoundConnection]
    draft: Draft
    strays: Sequence[RunningWorker]
    """Workers whose broker is none of those that were read."""
    machine: MachineWorkers
    others: Sequence[RunningWorker]
    """Workers of libraries that no collector reads."""
    others_queues: Sequence[FoundConnection]
    """The brokers that have queues of others."""
    unseen: Sequence[str]
    left_out: Sequence[tuple[int, str]]
    """What of a worker its template has not: the process and a sentence."""
    files: tuple[Path, Path]


def report(findings: Findings) -> Iterator[str]:
    """The lines."""
    for connection in findings.connections:
        yield from _connection_lines(connection)
    yield from _worker_lines(findings.connections)
    unseen = [*findings.unseen, *_worker_problems(findings)]
    if unseen:
        yield "not seen:"
        yield from (f"  {each}" for each in unseen)
    yield from others_lines(findings.machine, findings.others_queues)
    yield from _file_lines(findings)


def others_lines(machine: MachineWorkers, others_queues: Sequence[FoundConnection]) -> Iterator[str]:
    """What also runs here and is not taken: workers of other applications, and queues that nobody here names."""
    workers = [(each.worker.pid, _stranger(each)) for each in machine.strangers]
    for each in machine.unread_strangers:
        where = f" in {each.folder}" if each.folder else ""
        workers.append((each.pid, f"{each.library}{where} ({each.why})"))
    lines = [*_by_process(workers), *map(_others, others_queues)]
    if lines:
        yield "also runs here, and is not taken (--all takes it):"
    yield from (f"  {each}" for each in lines[:OTHERS_NAMED])
    if len(lines) > OTHERS_NAMED:
        yield f"  and {len(lines) - OTHERS_NAMED} more"


def _stranger(found: Stranger) -> str:
    command = found.worker.command
    queues = f", queues {', '.join(command.queues[:QUEUES_NAMED])}" if command.queues else ""
    why = f" ({found.why})" if found.why else ""
    return f"{command.library} in {found.worker.folder}{queues}{why}"


def _others(connection: FoundConnection) -> str:
    queues = connection.others_queues
    more = f" and {len(queues) - QUEUES_NAMED} more" if len(queues) > QUEUES_NAMED else ""
    title, url = connection.broker.library.title, shown(connection.broker.candidate.url)
    return f"queues of {title} in {url}: {', '.join(queues[:QUEUES_NAMED])}{more}"


def _connection_lines(connection: FoundConnection) -> Iterator[str]:
    broker = connection.broker
    source = "" if broker.candidate.source == "--broker" else f" ({broker.candidate.source})"
    in_broker = {each.name: each for each in broker.queues}
    queues = connection.queues
    yield f"queues of {broker.library.title} in {shown(broker.candidate.url)}{source}: {len(queues)}"
    for queue in queues:
        found = in_broker.get(queue)
        here = sum(connection.serves(each, queue) for each in connection.workers)
        workers = f"workers: {found.workers}" if found and found.workers is not None else f"workers here: {here}"
        is_served = here or (found is not None and found.workers)
        waiting = found.waiting_jobs if found else "none yet"
        yield f"  {connection.name}/{queue}  waiting jobs: {waiting}  {workers}{'' if is_served else '  unserved'}"
    for queue in connection.queues_aside:
        yield f"  {connection.name}/{queue}  waiting jobs: {in_broker[queue].waiting_jobs}  dead letters: no pool"
    yield from accuracy_lines(broker.library)


def _worker_lines(connections: Iterable[FoundConnection]) -> Iterator[str]:
    lines = []
    for connection in connections:
        for worker in connection.workers:
            queues = ", ".join(worker.command.queues) or "the queues of its application"
            by = "  started by Headway" if worker.is_headways else ""
            title = connection.broker.library.title
            lines.append((worker.pid, f"{title}  {connection.name}: {queues}  in {worker.folder}{by}"))
    if lines:
        yield f"workers that run here: {len(lines)}"
    yield from (f"  {line}" for line in _by_process(lines, separator="  "))


def _worker_problems(findings: Findings) -> Iterator[str]:
    """Workers that run here and are in no template, a sentence each."""
    lines = [(worker.pid, _stray(worker)) for worker in findings.strays]
    lines += [
        (each.pid, f"{each.library}: {each.why}; write its template into host.toml") for each in findings.machine.unread
    ]
    lines += [
        (each.pid, f"{each.command.library}: Headway does not read the queues of this library")
        for each in findings.others
    ]
    yield from _by_process(lines)


def _stray(worker: RunningWorker) -> str:
    library = worker.command.library
    names = [name for name in VARIABLES_OF[library] if is_secret(worker.environment.get(name, "redis://"))]
    why = f"; {names[0]} in its environment may hold a password, and is not copied from there" if names else ""
    where = f"{library} in {worker.folder}"
    return f"{where}: its broker is none of those that were read: name it with --broker URL{why}"


def _by_process(lines: Iterable[tuple[int, str]], *, separator: str = ": ") -> Iterator[str]:
    """Each sentence once, behind the processes that it holds for."""
    pids: dict[str, list[int]] = {}
    for pid, line in lines:
        pids.setdefault(line, []).append(pid)
    for line, each in pids.items():
        more = f" and {len(each) - PROCESSES_NAMED} more" if len(each) > PROCESSES_NAMED else ""
        named = ", ".join(map(str, sorted(each)[:PROCESSES_NAMED]))
        yield f"process{'es' if len(each) > 1 else ''} {named}{more}{separator}{line}"


def _file_lines(findings: Findings) -> Iterator[str]:
    draft = findings.draft
    profiles, host = findings.files
    secret = ", readable by you only: a URL holds a password" if draft.has_password else ""
    yield f"wrote {profiles} and {host}{secret}"
    programs = {pool.template.argv[0] for pool in draft.pools}
    for name in sorted(programs & {"celery", "rq"}):
        yield f"no program `{name}` was found: put its whole path into host.toml"
    if own := sorted(_own_programs(programs) - _running_programs(findings)):
        why = f"because this folder has no other virtualenv ({', '.join(ENVIRONMENTS)}) with that program"
        yield (
            f"host.toml starts {', '.join(own)}, of Headway's own environment, {why}: if it lacks your application's "
            "packages, put the whole path of your application's program there"
        )
    if any(NO_APP in pool.template.argv for pool in draft.pools):
        yield f"no Celery application was found here: put its module in the place of {NO_APP} in host.toml"
    yield from (f"host.toml: {each}" for each in _by_process(findings.left_out))
    strangers = any(
        not worker.is_headways for connection in findings.connections for worker in connection.workers
    ) or any(queue.workers for connection in findings.connections for queue in connection.broker.queues)
    if strangers:
        yield "workers that run already go on beside Headway's: end them when Headway's do the work"
    if draft.is_example:
        yield "a queue is known when its first job enters it; until then both files hold a commented example"


def _own_programs(programs: Iterable[str]) -> set[str]:
    """Those in the environment that this program runs in."""
    return {each for each in programs if Path(each).parent == Path(sys.executable).absolute().parent}


def _running_programs(findings: Findings) -> set[str]:
    """Those of workers that run here: they have the application's packages."""
    return {worker.command.program[0] for connection in findings.connections for worker in connection.workers}
