"""What a decision notes of queues that several pools take from."""

from collections.abc import Iterable, Iterator

from headway.scaling.explanations.phrases import duration
from headway.scaling.model import Note, NoteKind, QueueMetrics, SharedJobs


def shared_notes(
    helped: Iterable[SharedJobs], helped_queues: Iterable[QueueMetrics], *, target_s: float
) -> Iterator[Note]:
    """A note for each pool whose help is no figure, and for each queue whose jobs keep workers from the pool's own.

    Args:
        helped: Jobs of the pool's queues that workers of other pools run.
        helped_queues: The queues of other pools that its workers take from.
        target_s: The shortest objective of the pool.
    """
    for each in helped:
        if not each.is_reported:
            yield Note(
                kind=NoteKind.UNREPORTED_HELP,
                text=f"workers of pool {each.pool} do not report their jobs: all jobs of {each.queue} in flight count "
                "as this pool's, and some may run there",
                about=(each.queue, str(each.pool)),
            )
    for queue in helped_queues:
        if queue.service_time_s is not None and queue.service_time_s > target_s:
            yield Note(
                kind=NoteKind.LONG_HELP,
                text=f"a job of {queue.queue} takes {duration(queue.service_time_s)}, and the pool's own jobs are to "
                f"start within {duration(target_s)}: a worker that helps is not free in time",
                about=(queue.queue,),
            )
