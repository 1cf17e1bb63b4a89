"""Poisonous jobs as they are given."""

from headway.control.http.schemas.schema_base import Given


class PoisonJobOut(Given):
    """A job whose workers died with it three times or more in the last day."""

    job_id: str
    queue: str | None
    job_class: str | None
    deaths: int
    """Workers, or their processes for the job, that ended with it."""
    last_at_s: float
    """When the last death was reported."""
