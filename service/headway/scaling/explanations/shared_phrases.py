"""Jobs that workers of one pool run from a queue of another, in words."""

from headway.scaling.explanations.phrases import counted, joined
from headway.scaling.model import Decision, SharedJobs


def shared_sentences(decision: Decision) -> tuple[str, ...]:
    """How many jobs of its queues run on workers of other pools, and how many of its workers help others; none if none
    do.
    """
    return (*(sentence for each in decision.helped if (sentence := _helped(each))), *_helping(decision))


def _helped(shared: SharedJobs) -> str:
    run = "runs" if shared.jobs == 1 else "run"
    where = f"on workers of pool {shared.pool}"
    perhaps_jobs = shared.most_jobs - shared.jobs
    perhaps = f"up to {counted(perhaps_jobs, 'job')} of those in flight may run there without a report"
    if shared.jobs:
        more = f", and {perhaps}" if perhaps_jobs else ""
        return f"{counted(shared.jobs, 'more job')} of {shared.queue} {run} {where}{more}."
    if perhaps_jobs:
        jobs = counted(perhaps_jobs, "job")
        return f"Up to {jobs} of those in flight in {shared.queue} may run {where}, which is not reported."
    return ""


def _helping(decision: Decision) -> tuple[str, ...]:
    if not decision.helping_workers:
        return ()
    jobs = joined([f"{counted(each.jobs, 'job')} of {each.queue}{_owner(each)}" for each in decision.helping])
    helping_workers, there = decision.helping_workers, max(decision.helping_workers, decision.running_workers)
    helps = "helps: it runs" if helping_workers == 1 else "help: they run"
    return (f"{helping_workers} of {counted(there, 'worker')} {helps} {jobs}.",)


def _owner(shared: SharedJobs) -> str:
    return "" if shared.pool is None else f" (pool {shared.pool})"
