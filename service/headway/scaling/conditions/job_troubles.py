"""Jobs that ends of workers have cut, and jobs that end their workers: as they are recorded, and as sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from headway.scaling.explanations.phrases import counted
from headway.scaling.model import CutCause

DEATHS = (CutCause.SIGNAL, CutCause.ENDED)
"""What a job may do to its worker. A person, a deadline, or a host did the others."""
BY_CAUSE: Mapping[CutCause, str] = MappingProxyType(
    {
        CutCause.DRAIN_DEADLINE: "its worker had not ended by the drain deadline of its template and was killed",
        CutCause.KILLED: "a person had its worker killed",
        CutCause.SIGNAL: "its worker was killed by a signal that Headway did not send, as where memory is short",
        CutCause.VANISHED: "its worker ended, and the agent of its host could not see how",
        CutCause.ENDED: "its worker, or the process that ran it, ended first, as where each gets the signal to stop",
        CutCause.REBOOT: "its host rebooted",
    }
)
NOBODY_KNOWS: Mapping[CutCause, str] = MappingProxyType(
    {
        cause: f"{why}, and it is unknown whether it cut a job".replace("its worker", "a worker", 1).replace(
            "its host rebooted", "the host of a worker rebooted"
        )
        for cause, why in BY_CAUSE.items()
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRow:
    """One cut, and where it was."""

    host: str
    pool: str
    template: str
    worker_id: str
    cause: CutCause
    is_certain: bool
    job_id: str | None
    queue: str | None
    job_class: str | None
    attempt: int | None
    job_started_at_s: float | None
    cut_at_s: float
    recorded_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonRow:
    """One job, and how often its workers died with it."""

    pool: str
    job_id: str
    queue: str | None
    job_class: str | None
    deaths: int
    last_at_s: float


def cut_sentence(cuts: Sequence[CutRow]) -> str:
    """What ends of workers have cut, the newest of them with its job and its cause; without its full stop."""
    certain = [each for each in cuts if each.is_certain]
    newest = (certain or cuts)[0]
    if not certain:
        number = f"{counted(len(cuts), 'worker')} may have lost a job: the newest, on {newest.host}"
        return f"{number}: {NOBODY_KNOWS[newest.cause]}"
    perhaps = len(cuts) - len(certain)
    more = f", and {counted(perhaps, 'worker')} may have lost one" if perhaps else ""
    verb = "was" if len(certain) == 1 else "were"
    number = f"{counted(len(certain), 'job')} {verb} cut{more}"
    where = f"on {newest.host}: {BY_CAUSE[newest.cause]}"
    job = _job(newest)
    if len(cuts) == 1:
        return f"{number}: {job} {where}" if job else f"{number} {where}"
    which = "" if len(certain) == 1 and job else "the newest, "
    return f"{number}: {which}{job and f'{job} '}{where}"


def poison_sentence(poison: Sequence[PoisonRow]) -> str:
    """Which job its workers die of, without its full stop; of several the newest."""
    newest = poison[0]
    of_class = f" of {newest.job_class}" if newest.job_class else ""
    more = f", and {counted(len(poison) - 1, 'other job')} of this kind" if len(poison) > 1 else ""
    return f"job {newest.job_id}{of_class} is poisonous: its workers died with it {newest.deaths} times{more}"


def _job(cut: CutRow) -> str:
    """The job's id and class; empty where no worker has reported it, as RQ's do not."""
    if cut.job_id is None:
        return ""
    return f"{cut.job_id}" + (f" of {cut.job_class}" if cut.job_class else "")
