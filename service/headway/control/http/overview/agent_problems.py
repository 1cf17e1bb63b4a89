"""What keeps agents from their work, of several hosts together."""

from collections.abc import Iterable, Iterator, Mapping

from headway.control.http.schemas.host_problems import problem_text
from headway.scaling.conditions.pool_sentences import listed
from headway.scaling.explain import counted
from headway.scaling.model import HostProblem, HostProblemKind
from headway.store.overview import HostRow

REASONS: Mapping[HostProblemKind, str] = {
    HostProblemKind.STATE_FOLDER: "host_disk",
    HostProblemKind.LOG_FOLDER: "host_disk",
    HostProblemKind.HOST_FILE: "host_file",
}


def counted_problems(rows: Iterable[HostRow]) -> Iterator[tuple[str, str]]:
    """A condition and a sentence for each kind of problem, that names no host."""
    for names, problem in _by_kind(rows):
        whose = f"{_agents(len(names))} {counted(len(names), 'host')}"
        yield REASONS[problem.kind], f"{whose} {problem_text(problem)}: see `headway get hosts`"


def named_problems(rows: Iterable[HostRow]) -> Iterator[tuple[str, str]]:
    """A condition and a sentence for each kind of problem, with the names of the hosts."""
    for names, problem in _by_kind(rows):
        yield REASONS[problem.kind], f"{_agents(len(names))} {listed(names)} {problem_text(problem)}"


def _by_kind(rows: Iterable[HostRow]) -> Iterator[tuple[list[str], HostProblem]]:
    """The names of the hosts that report a problem of each kind, and what one of them says of it."""
    reporting = [row.host for row in rows if row.host.is_known]
    for kind in HostProblemKind:
        found = [(host.name, each) for host in reporting for each in host.problems if each.kind is kind]
        if found:
            yield [name for name, _ in found], found[0][1]


def _agents(number: int) -> str:
    return "the agent of" if number == 1 else "the agents of"
