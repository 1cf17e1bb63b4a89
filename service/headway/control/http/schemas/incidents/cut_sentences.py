"""What was cut, as a sentence: how many jobs, which one, and by what."""

from collections.abc import Mapping, Sequence

from headway.scaling.explain import counted
from headway.scaling.model import CutCause
from headway.store.hosts.job_cuts import CutRow

BY_CAUSE: Mapping[CutCause, str] = {
    CutCause.DRAIN_DEADLINE: "its worker had not ended by the drain deadline of its template and was killed",
    CutCause.KILLED: "a person had its worker killed",
    CutCause.SIGNAL: "its worker was killed by a signal that Headway did not send, as where memory is short",
    CutCause.VANISHED: "its worker ended, and the agent of its host could not see how",
    CutCause.ENDED: "its worker, or the process that ran it, ended first, as where each gets the signal to stop",
    CutCause.REBOOT: "its host rebooted",
}
NOBODY_KNOWS: Mapping[CutCause, str] = {
    cause: f"{why}, and it is unknown whether it cut a job".replace("its worker", "a worker", 1).replace(
        "its host rebooted", "the host of a worker rebooted"
    )
    for cause, why in BY_CAUSE.items()
}


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


def _job(cut: CutRow) -> str:
    """The job's id and class; empty where no worker has reported it, as RQ's do not."""
    if cut.job_id is None:
        return ""
    return f"{cut.job_id}" + (f" of {cut.job_class}" if cut.job_class else "")
