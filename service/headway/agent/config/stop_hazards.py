"""What of a template cuts jobs at the signal to stop, hides its workers, or sends jobs twice. Pure."""

import signal
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from headway.agent.config.templates import Template
from headway.agent.config.worker_programs import celery_words

_REMAP = "REMAP_SIGTERM"
_ONE_CHILD: Mapping[str, frozenset[str]] = {
    "dumb-init": frozenset({"--single-child", "-c"}),
    "timeout": frozenset({"--foreground"}),
}
"""Program -> the options without which it passes a signal on to each process of the worker."""


def stop_hazards(template: Template, *, inherited: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each, without its full stop. ``inherited`` is the agent's environment, as far as it is known."""
    words = celery_words(template.argv)
    remapped = {**inherited, **template.environment}.get(_REMAP, "")
    if words and remapped == signal.SIGQUIT.name and template.stop.stop_signal == signal.SIGTERM:
        yield (
            f"{_REMAP} = {remapped} makes Celery cut its jobs at the signal TERM, with which Headway asks a worker to "
            f'finish them: set {_REMAP} = "" in its environment'
        )
    program = PurePath(template.argv[0]).name if template.argv else ""
    cures = _ONE_CHILD.get(program)
    if cures is not None and cures.isdisjoint(template.argv):
        yield (
            f"{program} passes the signal to stop on to each process of a worker, and processes that run jobs end at "
            f"once: give it {max(cures)}, or leave it out"
        )
    if not {"-D", "--detach"}.isdisjoint(words) or "multi" in words[1:2]:
        yield "it goes to the background, where its agent cannot watch it: remove --detach, and start `celery … worker`"
    if not {"-B", "--beat"}.isdisjoint(words):
        yield (
            "each of its workers sends all jobs of Celery's schedule (--beat), and without a worker nobody sends them: "
            "run `celery beat` as a service of its own, once"
        )
