"""Which bounds of a template cut jobs that take no longer than many of its pool's jobs do."""

from headway.scaling.explanations.phrases import duration


def early_cuts(
    template: str,
    *,
    service_p99_s: float | None,
    drain_timeout_s: float | None,
    job_limit_s: float | None,
    job_limit: str,
) -> tuple[str, ...]:
    """A sentence for each bound that is below what 99 % of a pool's jobs take; none where that is not known.

    Args:
        template: Its name.
        service_p99_s: What 99 % of the jobs took at most; ``None``: not known.
        drain_timeout_s: The deadline of workers that drain; ``None``: there is none.
        job_limit_s: After how long the workers' library cuts a job by itself; ``None``: never, or not known.
        job_limit: The option that says so.
    """
    if service_p99_s is None:
        return ()
    jobs = f"one job in a hundred takes longer than {duration(round(service_p99_s, 1))}"
    found = []
    if drain_timeout_s is not None and drain_timeout_s < service_p99_s:
        found.append(
            f"template {template} kills workers that drain after {duration(drain_timeout_s)} (drain_timeout_s), and "
            f"{jobs}: make it longer, or leave it out of host.toml"
        )
    if job_limit_s is not None and job_limit_s < service_p99_s:
        found.append(
            f"the library of template {template} cuts jobs by itself after {duration(job_limit_s)} ({job_limit}), and "
            f"{jobs}: make it longer"
        )
    return tuple(found)
