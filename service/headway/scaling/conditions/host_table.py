"""The conditions of hosts: one row each, what is said where one is true, and the worst that is so with a host.

Health counts hosts and names none: it is shown without a token. A pool names those that run its workers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import MappingProxyType

from headway.scaling.arithmetic import DAY_S
from headway.scaling.conditions.condition import Alert, Condition, Severity, Subject
from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.pool_facts import PoolFacts
from headway.scaling.explanations.phrases import counted, duration
from headway.scaling.model import HostProblem, HostProblemKind, HostState

CERTIFICATE_DAYS = 7
NAMES_SHOWN = 3
SEE_HOSTS = "see `headway get hosts`"
DISK = (HostProblemKind.STATE_FOLDER, HostProblemKind.LOG_FOLDER)
FILE = (HostProblemKind.HOST_FILE,)
PROBLEM_SAYS: Mapping[HostProblemKind, str] = MappingProxyType(
    {
        HostProblemKind.STATE_FOLDER: "cannot write to its state folder ({why}), so no worker is started there",
        HostProblemKind.LOG_FOLDER: "cannot write to its log folder ({why}), so what workers print there is lost",
        HostProblemKind.HOST_FILE: "goes by the host file from before: the changed one has mistakes, which the agent's "
        "log names",
    }
)


def silent_hosts(hosts: Sequence[HostRow]) -> Iterator[str]:
    """How many hosts do not report, or report what they may not."""
    if away_s := [row.host.silent_s for row in hosts if row.is_away and row.host.silent_s is not None]:
        yield f"{are(len(away_s), 'host')} unreachable, the last report {ago(min(away_s))}: {SEE_HOSTS}"
    if cut_s := [row.hung_up_s for row in hosts if row.has_hung_up and row.hung_up_s is not None]:
        whose = f"{counted(len(cut_s), 'host')} {'has' if len(cut_s) == 1 else 'have'} lost the connection"
        yield f"{whose}, {ago(max(cut_s))}, and not reported since: {SEE_HOSTS}"
    if late_s := [row.host.silent_s for row in hosts if row.is_overdue and row.host.silent_s is not None]:
        yield f"{are(len(late_s), 'host')} overdue with a report, the last one {ago(max(late_s))}: {SEE_HOSTS}"
    if refused := sum(1 for row in hosts if row.refused):
        who = f"{counted(refused, 'host')} {'reports' if refused == 1 else 'report'}"
        yield f"{who} labels or templates that no join token allowed there: {SEE_HOSTS}"


def silent_hosts_of(pool: PoolFacts) -> Iterator[str]:
    """Which hosts of a pool do not report."""
    if pool.counts.unknown:
        yield f"{counted(pool.counts.unknown, 'worker')} may still run on unreachable hosts: {away(pool.hosts)}"
    if cut := [row for row in pool.hosts if row.has_hung_up]:
        yield f"hosts of its workers have lost the connection: {reporters(cut)}"
    if late := [row for row in pool.hosts if row.is_overdue]:
        yield f"its workers have not been reported in time by {reporters(late)}"


def problems(hosts: Sequence[HostRow], *, kinds: Sequence[HostProblemKind]) -> Iterator[str]:
    """How many agents are kept from their work by each kind of problem."""
    for names, text in _by_kind(hosts, kinds):
        yield f"{_agents(names)} {counted(len(names), 'host')} {text}: {SEE_HOSTS}"


def problems_of_pool(pool: PoolFacts, *, kinds: Sequence[HostProblemKind]) -> Iterator[str]:
    """Which agents are, of hosts that run workers of the pool."""
    for names, text in _by_kind(pool.hosts, kinds):
        yield f"{_agents(names)} {listed(names)} {text}"


def problems_of(row: HostRow) -> list[str]:
    """A sentence for each thing that keeps the agent of a host from its work, as it last reported."""
    return [f"its agent {_problem_text(row, each)}" for each in row.host.problems]


def expired_certificates(hosts: Sequence[HostRow]) -> Iterator[str]:
    """Of how many hosts that do not report the certificate has expired."""
    if since_s := [row.expired_s for row in hosts if row.expired_s is not None]:
        whose = f"the certificates of {len(since_s)} hosts that do not report have expired, the last one"
        if len(since_s) == 1:
            whose = "the certificate of a host that does not report expired"
        yield f"{whose} {ago(min(since_s))}: `headway keys client NAME` makes another; {SEE_HOSTS}"


def away(hosts: Iterable[HostRow]) -> str:
    """The names of those that are unreachable, and when each last reported."""
    return reporters([row for row in hosts if row.is_away])


def reporters(hosts: Iterable[HostRow]) -> str:
    """The names of hosts, and when each last reported."""
    return listed([f"{row.host.name} (last report {ago(row.host.silent_s)}{_expired(row)})" for row in hosts])


def _expired(row: HostRow) -> str:
    return "" if row.expired_s is None else f"; its certificate expired {ago(row.expired_s)}"


def _by_kind(hosts: Sequence[HostRow], kinds: Iterable[HostProblemKind]) -> Iterator[tuple[list[str], str]]:
    """The names of the hosts that report a problem of each kind, and what is said of one of them."""
    for kind in kinds:
        having = [(row, each) for row in hosts if row.host.is_known for each in row.host.problems if each.kind is kind]
        if having:
            yield [row.host.name for row, _ in having], _problem_text(*having[0])


def _problem_text(row: HostRow, problem: HostProblem) -> str:
    why = row.error_texts.get(problem.error_number, f"error {problem.error_number}")
    return PROBLEM_SAYS[problem.kind].format(why=why)


def _agents(names: Sequence[str]) -> str:
    return "the agent of" if len(names) == 1 else "the agents of"


def are(number: int, noun: str) -> str:
    """``1 host is``, ``2 hosts are``."""
    return f"{counted(number, noun)} {'is' if number == 1 else 'are'}"


def ago(age_s: float | None) -> str:
    """How long ago something was, in words."""
    return "at a time that is not known" if age_s is None else f"{duration(float(round(age_s)))} ago"


def listed(names: Sequence[str]) -> str:
    """Names in a row, the first few of many."""
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"


def _has_problem(pool: PoolFacts, kinds: Sequence[HostProblemKind]) -> bool:
    return any(each.kind in kinds for row in pool.hosts if row.host.is_known for each in row.host.problems)


_has = partial(Condition, subject=Subject.HOST, verb="has")
_page_has = partial(_has, severity=Severity.PAGE)
_ticket_has = partial(_has, severity=Severity.TICKET)
OF_HOSTS: Sequence[Condition] = (
    _page_has(
        name="host_unreachable",
        what="not reported within its lease: what it runs is unknown and counts as running",
        cure="see `headway get hosts` and the agent's log there",
        own_rule="host_unreachable",
        alert=Alert(
            "HeadwayHostSilent",
            'headway_hosts{state="silent"} > 0',
            for_s=120,
            summary="{{ $value }} hosts have not reported for a lease: headway get hosts",
        ),
    ),
    _page_has(
        name="host",
        what="lost the connection and not reported since, is overdue with a report, or is unreachable",
        cure="start the agent on that host, or read its log there; if the host is gone for good: "
        "`headway host forget HOST --reason TEXT`",
        seen_after="3 s, or 13 s where its agent hangs or is partitioned; 25 s; its lease, 45 s",
        of_hosts=silent_hosts,
        is_true=lambda pool: pool.counts.unknown > 0 or any(row.has_hung_up or row.is_overdue for row in pool.hosts),
        says=silent_hosts_of,
    ),
    _page_has(
        name="host_disk",
        what="an agent that cannot write to its state folder, and starts no worker; or to its log folder",
        cure="make room on that host, or correct the owner of the agent's folder; the agent tries again every 5 s",
        seen_after="10 s",
        of_hosts=partial(problems, kinds=DISK),
        is_true=lambda pool: _has_problem(pool, DISK),
        says=partial(problems_of_pool, kinds=DISK),
    ),
    _page_has(
        name="host_file",
        what="a changed `host.toml` with mistakes, and the one before is in force",
        cure="`headway agent check` on that host names the mistakes; a corrected host.toml is read by itself",
        seen_after="15 s",
        of_hosts=partial(problems, kinds=FILE),
        is_true=lambda pool: _has_problem(pool, FILE),
        says=partial(problems_of_pool, kinds=FILE),
    ),
    _ticket_has(
        name="host_certificate",
        what=f"a certificate that ends within {CERTIFICATE_DAYS} days",
        cure="`headway keys client NAME` makes another",
        alert=Alert(
            "HeadwayCertificateEnds",
            f"headway_host_certificate_left_seconds < {CERTIFICATE_DAYS * DAY_S:g}",
            for_s=3600,
            summary="the certificate of host {{ $labels.host }} ends in {{ $value | humanizeDuration }}: "
            "headway keys client",
            is_composed=True,
        ),
    ),
    _ticket_has(
        name="workers_forced",
        what="ended workers by force, because they had not finished by their drain deadline",
        cure="see the `drain_timeout_s` of the template, and the worker's log",
        alert=Alert(
            "HeadwayWorkersForced",
            "increase(headway_host_forced_workers_total[15m]) > 0",
            for_s=0,
            summary="workers of pool {{ $labels.pool }} on {{ $labels.host }} did not finish by their drain deadline",
        ),
    ),
)


class HostStatusName(StrEnum):
    """What may be so with a host, the worst first."""

    UNREACHABLE = "unreachable"
    CONNECTION_LOST = "connection_lost"
    CANNOT_WRITE = "cannot_write"
    DRAINING = "draining"
    DRAINED = "drained"
    CORDONED = "cordoned"
    FAILING = "failing"
    REPORTING = "reporting"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus:
    """The worst that is so with a host."""

    name: HostStatusName
    meaning: str
    """A sentence."""

    @property
    def word(self) -> str:
        """The name for people."""
        return self.name.replace("_", " ")


def status_of(row: HostRow) -> HostStatus:
    """The worst of all that is so with the host of ``row``."""
    host, name = row.host, HostStatusName
    if row.is_away:
        meaning = "Its agent does not report: what it runs is not known, and may still run."
        return HostStatus(name=name.UNREACHABLE, meaning=meaning)
    if row.has_hung_up:
        meaning = "Its agent has ended, hangs, or is partitioned: what it runs may have changed since its last report."
        return HostStatus(name=name.CONNECTION_LOST, meaning=meaning)
    if not host.can_write:
        return HostStatus(name=name.CANNOT_WRITE, meaning=f"It gets nothing new: {'; '.join(problems_of(row))}.")
    if host.state is HostState.DRAINING and host.workers:
        return HostStatus(name=name.DRAINING, meaning="Its workers leave as what replaces them runs elsewhere.")
    if host.state is HostState.DRAINING:
        return HostStatus(name=name.DRAINED, meaning="Nothing runs here any more, and nothing new comes.")
    if host.state is HostState.CORDONED:
        return HostStatus(name=name.CORDONED, meaning="It keeps what runs and gets nothing new.")
    if host.failing:
        return HostStatus(name=name.FAILING, meaning=f"Workers of {', '.join(sorted(host.failing))} crash here.")
    return HostStatus(name=name.REPORTING, meaning="Its agent reports.")
