"""The pipeline's signs of life beside its batches. On a connection of their own, so that no batch holds them up."""

import logging
from typing import Any, LiteralString

import psycopg

from headway.store.engine import connect_parameters, first_line
from headway.store.metrics.metrics_sink import PIPELINE

STOPPED, CRASHED = "stopped", "crashed"
CONNECT_WITHIN_S = 2

_BEAT: LiteralString = "update pipeline_health set beat_at = now() where pipeline = %(pipeline)s"
_END: LiteralString = """
update pipeline_health set stage = %(stage)s, is_ready = false, written_at = now(), beat_at = now()
where pipeline = %(pipeline)s
"""

log = logging.getLogger(__name__)


class PipelineHeartbeat:
    """Writes when the pipeline last answered, and how it ended. Each is tried once: the next beat comes in a second."""

    def __init__(self, database_url: str) -> None:
        self._parameters: dict[str, Any] = {**connect_parameters(database_url), "connect_timeout": CONNECT_WITHIN_S}
        self._connection: psycopg.Connection | None = None

    def write(self) -> None:
        """The pipeline answers."""
        self._execute(_BEAT, {"pipeline": PIPELINE})

    def ended(self, stage: str) -> None:
        """The pipeline ends: ``stopped`` as it was asked to, or ``crashed``."""
        self._execute(_END, {"pipeline": PIPELINE, "stage": stage})

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _execute(self, statement: LiteralString, given: dict[str, object]) -> None:
        try:
            if self._connection is None:
                self._connection = psycopg.connect(**self._parameters, autocommit=True)
            self._connection.execute(statement, given)
        except psycopg.Error as error:
            log.debug("no sign of life: %s", first_line(error))
            self.close()
