"""Whether a template's ``slots`` are the jobs that its command line lets a worker run at once. Pure."""

from headway.agent.config.templates import Template
from headway.agent.config.worker_programs import celery_words, option_number


def slots_doubt(template: Template, *, cores: int) -> str | None:
    """What is wrong, without its full stop; ``None``: nothing that the command line shows.

    Celery runs a job per core of the host at once where nobody says otherwise.
    """
    words = celery_words(template.argv)
    if "worker" not in words or "multi" in words[1:2]:
        return None
    given = option_number(words, "--concurrency", "-c")
    grown = next((word.partition("=")[2] for word in words if word.startswith("--autoscale=")), None)
    if grown is None and "--autoscale" in words:
        grown = next(iter(words[words.index("--autoscale") + 1 :]), "")
    if grown is not None:
        given = option_number(("-c", grown.partition(",")[0]), "-c")
    if "solo" in words or "--pool=solo" in words:
        given = 1.0
    if given is not None and given != template.slots:
        return f"its workers run {given:g} jobs at once by their command line, and slots = {template.slots}"
    if given is None and template.slots != cores:
        return (
            f"without --concurrency its workers run a job per core at once, {cores} here, unless worker_concurrency "
            f"says otherwise, and slots = {template.slots}: write the same number in both"
        )
    return None
