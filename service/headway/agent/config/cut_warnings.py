"""What of a template cuts jobs, hides its workers, sends jobs twice, never runs some, or names what is not there.

By deadlines, by the bounds of the libraries, and by how workers stop.
"""

import signal
from collections.abc import Iterable, Iterator, Mapping

from headway.agent.config.commands.ending_options import idle_end_options
from headway.agent.config.commands.queue_arguments import QUEUES
from headway.agent.config.commands.references import reference_to, unknown_references
from headway.agent.config.commands.worker_commands import understood
from headway.agent.config.own_limits import own_limits
from headway.agent.config.templates import REFERENCES, Template
from headway.agent.config.worker_programs import celery_words
from headway.agent.config.wrappers import wrapper_of

_NOTHING: Mapping[str, str] = {}
_REMAP = "REMAP_SIGTERM"


def cut_warnings(templates: Iterable[Template], *, inherited: Mapping[str, str] = _NOTHING) -> list[str]:
    """A sentence for whatever cuts jobs, without its full stop. ``inherited`` is the environment of the agent."""
    found = []
    for template in templates:
        own = own_limits(template.argv)
        known = REFERENCES | {QUEUES} if template.fills_queues else REFERENCES
        sentences = [f"{each.sentence} ({each.option})" for each in own]
        sentences += stop_hazards(template, inherited=inherited)
        deadline_s = template.stop.drain_timeout_s
        sentences += [
            f"drain_timeout_s = {deadline_s:g} kills a worker before the {each.after_s:g} s of {each.option} are over: "
            "make it longer, or leave it out"
            for each in own
            if deadline_s is not None and deadline_s < each.after_s
        ]
        sentences += [
            f"{each} stays as it is: the agent replaces {' and '.join(map(reference_to, sorted(REFERENCES)))}"
            for each in unknown_references(template.texts, known)
        ]
        found += [f"template {template.name}: {each}" for each in sentences]
    return found


def stop_hazards(template: Template, *, inherited: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each, without its full stop. ``inherited`` is the agent's environment, as far as it is known."""
    words = celery_words(template.argv)
    remapped = {**inherited, **template.environment}.get(_REMAP, "")
    if words and remapped == signal.SIGQUIT.name and template.stop.stop_signal == signal.SIGTERM:
        yield (
            f"{_REMAP} = {remapped} makes Celery cut its jobs at the signal TERM, with which Headway asks a worker to "
            f'finish them: set {_REMAP} = "" in its environment'
        )
    if (wrapper := wrapper_of(template.argv)) is not None:
        yield f"{wrapper.hazard}: {wrapper.cure}"
    if "multi" in words[1:2]:
        yield "`celery multi` starts workers in the background, where no agent can watch them: start `celery … worker`"
    for option in idle_end_options(template.argv):
        yield (
            f"remove {option}: each worker ends when it finds no job, and the agent starts the next one; Headway "
            "itself ends workers that are idle"
        )
    if (command := understood(words or template.argv)) is not None:
        yield from (f"remove {each.option}: {each.reason}" for each in command.hazards)
        yield from (f"add {each.option}: {each.reason}" for each in command.lacks)
