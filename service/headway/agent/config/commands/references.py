"""Texts of the form ``$(NAME)`` in a template, which the agent replaces at each start of a worker. Pure.

They are written as Kubernetes writes a variable in a container's arguments. A name without a value here stays as it is:
a shell that the template starts may read it.
"""

import re
from collections.abc import Collection, Iterable, Mapping

_OWN = re.compile(r"\$\((HEADWAY_\w*)\)")


def reference_to(name: str) -> str:
    """How a template refers to the value of ``name``."""
    return f"$({name})"


def filled(text: str, values: Mapping[str, str]) -> str:
    """``text`` with the value in the place of each reference to one of ``values``."""
    return _OWN.sub(lambda found: values.get(found[1], found[0]), text)


def unknown_references(texts: Iterable[str], known: Collection[str]) -> list[str]:
    """The references in ``texts`` that have the agent's prefix and no ``known`` name: mistyped ones, most likely."""
    return [found[0] for text in texts for found in _OWN.finditer(text) if found[1] not in known]
