"""Which behaviour a rehearsal is given: that of a file, what the control plane has learned, or none."""

import json
from pathlib import Path

from headway.cli.api_client import Api, path_of
from headway.errors import HeadwayError, Invalid, Misconfigured
from headway.scaling.metrics.behaviour import Behaviour, behaviour_from_mapping

LEARNED, PLAIN = "learned", "plain"


def given_behaviour(text: str | None) -> Behaviour | None:
    """The behaviour in the file that ``text`` names; ``None`` where it names none.

    Raises:
        Misconfigured: it cannot be read.
        Invalid: it holds no behaviour.
    """
    if text in {None, LEARNED, PLAIN}:
        return None
    path = Path(str(text))
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misconfigured(f"--behaviour={path} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Invalid(f"--behaviour={path} is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise Invalid(f'--behaviour={path}: expected an object, as in {{"exit": {{"p50_s": 0.7, "p95_s": 1.2}}}}')
    try:
        return behaviour_from_mapping(body)
    except Invalid as error:
        raise Invalid(*(f"--behaviour={path}: {breach}" for breach in error.breaches)) from error


def learned_behaviour(api: Api, pool: str) -> Behaviour | None:
    """What the control plane has learned of ``pool``; ``None`` where it has seen no worker of it start, or is older."""
    try:
        found = behaviour_from_mapping(api.get(path_of("pools", pool, "behaviour")))
    except HeadwayError:
        return None  # of before it was learned; who has no such pool was refused when its history was asked for
    return known(found)


def known(behaviour: Behaviour) -> Behaviour | None:
    """``behaviour``, if it is one to go by: without a start-up it would be a guess that passes for a measurement."""
    return behaviour if behaviour.start_up is not None else None
