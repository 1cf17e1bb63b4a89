"""What a role of Postgres lacks a right for: that part is left out, logged once and shown, and the others go on."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.errors import InsufficientPrivilege

from headway.store.engine import first_line

log = logging.getLogger(__name__)


class MissingRights:
    """The parts of a program's writing that Postgres refuses, by what it says. Serves any thread."""

    def __init__(self) -> None:
        self._why: dict[str, str] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Leave what follows where a right for it is missing; where it is a transaction, nothing of it is kept."""
        try:
            yield
        except InsufficientPrivilege as error:
            why = first_line(error)
            if self._why.get(name) != why:
                log.warning("%s: left out: %s: docs/how-to/postgres-role.md says what a role needs", name, why)
            self._why[name] = why
        else:
            if self._why.pop(name, None) is not None:
                log.info("%s: done again", name)

    @property
    def text(self) -> str | None:
        """A part and what it lacks, each; ``None`` where nothing is left out."""
        return "; ".join(f"{name}: {why}" for name, why in sorted(self._why.copy().items())) or None
