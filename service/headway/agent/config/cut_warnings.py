"""Which jobs the templates of a host file cut: by deadlines, by the bounds of the libraries, and by how they stop."""

from collections.abc import Iterable, Mapping

from headway.agent.config.own_limits import OwnLimit, own_limits
from headway.agent.config.stop_hazards import stop_hazards
from headway.agent.config.templates import Template

_NOTHING: Mapping[str, str] = {}


def cut_warnings(templates: Iterable[Template], *, inherited: Mapping[str, str] = _NOTHING) -> list[str]:
    """A sentence for whatever cuts jobs, without its full stop. ``inherited`` is the environment of the agent."""
    return [sentence for each in templates for sentence in _of_one(each, inherited)]


def _of_one(template: Template, inherited: Mapping[str, str]) -> list[str]:
    own = own_limits(template.argv)
    deadline_s = template.stop.drain_timeout_s
    found = [f"template {template.name}: {each.sentence} ({each.option})" for each in own]
    found += [f"template {template.name}: {each}" for each in stop_hazards(template, inherited=inherited)]
    if deadline_s is not None:
        found += [_too_early(template.name, deadline_s, each) for each in own if deadline_s < each.after_s]
    return found


def _too_early(name: str, deadline_s: float, limit: OwnLimit) -> str:
    early = f"drain_timeout_s = {deadline_s:g} kills a worker before the {limit.after_s:g} s of {limit.option} are over"
    return f"template {name}: {early}: make it longer, or leave it out"
