"""How workers and the control plane behave live, out of a file of JSON."""

import json
from pathlib import Path

from headway.errors import Invalid, Misconfigured
from headway.scaling.behaviour import Behaviour, behaviour_from_mapping


def read_behaviour(path: Path | None) -> Behaviour | None:
    """The behaviour in the file at ``path``; ``None`` without a file.

    Raises:
        Misconfigured: it cannot be read.
        Invalid: it holds no behaviour.
    """
    if path is None:
        return None
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
