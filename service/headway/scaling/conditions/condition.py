"""A condition: what it is about, how urgent it is, its sentence, its cure, and the rule of Prometheus that finds it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from types import MappingProxyType

from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.installation_facts import InstallationFacts
from headway.scaling.conditions.pool_facts import PoolFacts

CONFIRMED_S = 60.0  # what ends by itself within a minute is no incident
DEGRADED = "degraded"
"""The incident rule of conditions that have none of their own: health names them, and the incident has their name."""
OF_SEVERAL: Mapping[str, str] = MappingProxyType(
    {"has": "have", "is": "are", "needs": "need", "may have": "may have", "alone is": "alone are"}
)
"""Verb of one pool or host -> verb of several."""


class Subject(StrEnum):
    """What a condition is about."""

    INSTALLATION = "installation"
    HOST = "host"
    POOL = "pool"


class Severity(StrEnum):
    """How soon a person has to act, the most urgent first."""

    PAGE = "page"
    TICKET = "ticket"
    NOTE = "note"
    """Worth knowing: no incident."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule of Prometheus. Several conditions may share one."""

    name: str
    expression: str
    _: KW_ONLY
    for_s: float = 60.0
    summary: str = ""
    """With the labels of the series, as Prometheus's templates name them; empty: the sentence of its condition."""
    is_composed: bool = False
    """Whether it takes several series, or a difference, rather than one series and a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """How health counts a condition of pools: ``2 pools have a bottleneck``. It names none: no token is needed."""

    one: str = ""
    """What follows the number 1; empty: pools are counted, and the sentence of the condition follows."""
    several: str = ""
    """What follows another number."""
    number: Callable[[PoolFacts], int] = lambda _: 1
    """How many are counted of one pool."""
    details: Callable[[PoolFacts], Iterable[str]] = lambda _: ()
    """If any, pools are counted for each of these."""
    see: str = "headway top"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Something that can be true of an installation, a host or a pool."""

    name: str
    """The kind of a reason of health, or the state of a pool, or both."""
    subject: Subject
    verb: str = ""
    """Of a host or pool, what follows its name: a key of ``OF_SEVERAL``."""
    what: str
    """What is true, without its full stop: ``a bottleneck``; of the installation a whole sentence."""
    severity: Severity | None = None
    """``None`` of what is in order."""
    cure: str = ""
    """What to do, without its full stop; never empty of what a person has to act on.

    ``POOL`` stands for the name of the pool.
    """
    word: str = ""
    """The state of a pool in a word or two; empty: no state."""
    counted_as: str = ""
    """The words after the number of pools that are in this state, or in another that is counted with it; empty: they
    are not counted.
    """
    is_momentary: bool = False
    """Of a state: a pool is in it for moments, and moves to no other place among pools for it."""
    seen_after: str = ""
    """How long it takes until health is degraded by it; empty: health does not name it."""
    own_rule: str = ""
    """The rule of its incident, if it is not ``degraded``. Several conditions may share one."""
    confirmed_after_s: float = CONFIRMED_S
    """For how long it must hold before its incident opens: what was done to a job is not undone by itself."""
    is_measured: bool = False
    """Whether it is read off a pool's queues: while these are not read, nobody knows whether it has ended."""
    alert: Alert | None = None
    is_true: Callable[[PoolFacts], bool] = lambda _: False
    """Of a condition of pools, or of the hosts of a pool: whether it is true of that pool."""
    says: Callable[[PoolFacts], Iterable[str | None]] = lambda _: ()
    """What is then said of the pool, with names and figures: sentences without their full stop, and ``None``."""
    counting: Counting = Counting()
    of_installation: Callable[[InstallationFacts], Iterable[str]] = lambda _: ()
    """What health says where it is true of the installation; nothing where it is not."""
    of_hosts: Callable[[Sequence[HostRow]], Iterable[str]] = lambda _: ()
    """What health says where it is true of any host; nothing where it is of none."""

    def __post_init__(self) -> None:
        assert self.cure or self.severity in {None, Severity.NOTE}, self.name
        assert not self.verb or self.verb in OF_SEVERAL, self.verb

    @property
    def sentence(self) -> str:
        """Without its full stop. Of a host or pool it is what follows the name: ``has a bottleneck``."""
        return f"{self.verb} {self.what}" if self.verb else self.what

    @property
    def is_in_health(self) -> bool:
        """Whether health is degraded by it, and names it as a kind of reason."""
        return bool(self.seen_after)

    @property
    def rule(self) -> str:
        """The rule of its incident; empty if it opens none."""
        return self.own_rule or (DEGRADED if self.is_in_health else "")

    def cure_for(self, pool: str = "POOL") -> str:
        """What to do about it in one pool, as a sentence."""
        text = self.cure.replace("POOL", pool)
        return f"{text[0].upper()}{text[1:]}."

    def counted(self, number: int) -> str:
        """``2 pools have a bottleneck``, or how many jobs or workers of pools it is true of."""
        if number == 1:
            return f"1 {self.counting.one or f'pool {self.sentence}'}"
        return f"{number} {self.counting.several or f'pools {OF_SEVERAL[self.verb]} {self.what}'}"
