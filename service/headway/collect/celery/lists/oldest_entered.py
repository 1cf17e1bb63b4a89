"""When the oldest job entered one list of Celery's in Redis that is due. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from headway.collect.celery.celery_message import Message, message_from
from headway.collect.celery.lists.list_contents import StandingJobs
from headway.collect.list_marks import Entered


def is_timed(text: str) -> bool:
    """Whether ``text`` is a message with a time of its own, which says nothing of how long those behind it wait."""
    return message_from(text).due_s is not None


def oldest_entered(
    next_messages: Sequence[Message],
    put_back: Mapping[str, Entered],
    jobs: StandingJobs,
    entered: Entered,
    *,
    at_s: float,
) -> Iterator[Entered]:
    """When those jobs entered of which one is the oldest that is due.

    Args:
        next_messages: those that are taken next, the first of them first.
        put_back: tag -> when a message entered that a worker has put back: it stands before older ones.
        jobs: all that is known to stand there.
        entered: when the oldest job entered that was not put back and has no time of its own.
        at_s: now.
    """
    if jobs.due_s and jobs.due_s[0] <= at_s:
        yield Entered(after_s=jobs.due_s[0], until_s=jobs.due_s[0])
    at_once = [each for each in next_messages if each.due_s is None]
    for each in at_once:
        yield put_back.get(each.tag, entered)
        if each.tag not in put_back:
            return
    if jobs.is_whole and jobs.jobs - len(jobs.due_s) <= len(at_once):
        return
    # Where all of them were put back, others may stand behind them that were.
    yield replace(entered, after_s=None) if at_once else entered
