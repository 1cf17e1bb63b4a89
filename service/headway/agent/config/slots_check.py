"""Whether a template's ``slots`` are the jobs that its command line lets a worker run at once. Pure."""

from headway.agent.config.commands.worker_commands import understood
from headway.agent.config.templates import Template
from headway.agent.config.worker_programs import celery_words


def slots_doubt(template: Template, *, cores: int) -> str | None:
    """What is wrong, without its full stop; ``None``: nothing that the command line shows.

    Celery runs a job per core of the host at once where nobody says otherwise.
    """
    command = understood(celery_words(template.argv))
    if command is None:
        return None
    given = 1 if command.is_single else command.concurrency
    if given is not None and given != template.slots:
        return f"its workers run {given:g} jobs at once by their command line, and slots = {template.slots}"
    if given is None and template.slots != cores:
        return (
            f"without --concurrency its workers run a job per core at once, {cores} here, unless worker_concurrency "
            f"says otherwise, and slots = {template.slots}: write the same number in both"
        )
    return None
