"""Poisonous jobs as they are given, and in words."""

from collections.abc import Sequence

from headway.control.http.schemas.schema_base import Given
from headway.scaling.explain import counted
from headway.store.hosts.poison_jobs import PoisonRow

REMOVE = (
    "Remove it in its library: `celery -A APP control revoke ID`, or `Job.fetch(ID, connection).delete()` of RQ. "
    "Headway removes no job."
)


class PoisonJobOut(Given):
    """A job whose workers died with it three times or more in the last day."""

    job_id: str
    queue: str | None
    job_class: str | None
    deaths: int
    """Workers, or their processes for the job, that ended with it."""
    last_at_s: float
    """When the last death was reported."""


def poison_sentence(poison: Sequence[PoisonRow] | Sequence[PoisonJobOut]) -> str:
    """Which job its workers die of, without its full stop; of several the newest."""
    newest = poison[0]
    of_class = f" of {newest.job_class}" if newest.job_class else ""
    more = f", and {counted(len(poison) - 1, 'other job')} of this kind" if len(poison) > 1 else ""
    return f"job {newest.job_id}{of_class} is poisonous: its workers died with it {newest.deaths} times{more}"
