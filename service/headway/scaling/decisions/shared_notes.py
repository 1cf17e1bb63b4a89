"""What a decision notes of queues that several pools take from."""

from collections.abc import Iterator

from headway.scaling.explanations.phrases import duration
from headway.scaling.model import Note, NoteKind
from headway.scaling.view import PoolView


def shared_notes(view: PoolView) -> Iterator[Note]:
    """A note for each pool whose help is no figure, and for each queue whose jobs keep workers from the pool's own."""
    for each in view.helped:
        if not each.is_reported:
            yield Note(
                kind=NoteKind.UNREPORTED_HELP,
                text=f"workers of pool {each.pool} do not report their jobs: all jobs of {each.queue} in flight count "
                "as this pool's, and some may run there",
                about=(each.queue, str(each.pool)),
            )
    target_s = view.profile.shortest_target_s
    for queue in view.helped_queues:
        if queue.service_time_s is not None and queue.service_time_s > target_s:
            yield Note(
                kind=NoteKind.LONG_HELP,
                text=f"a job of {queue.queue} takes {duration(queue.service_time_s)}, and the pool's own jobs are to "
                f"start within {duration(target_s)}: a worker that helps is not free in time",
                about=(queue.queue,),
            )
