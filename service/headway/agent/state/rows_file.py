"""A file with a row for each worker, or for each template, for the agent that goes on after this one."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Generic, TypeVar

from headway.agent.state.state_dir import StateFolder
from headway.errors import Invalid
from headway.scaling.mapping import Reading

Row = TypeVar("Row")


def read_row(kind: type[Row], body: Any) -> Row:
    """The dataclass ``kind`` that ``asdict`` made ``body`` of. Raises ``Invalid`` if ``kind`` has no such value."""
    reading = Reading()
    taken, _ = reading.fields_of(kind, body, where="row")
    if reading.breaches:
        raise Invalid(*reading.breaches)
    return kind(**taken)


class RowsFile(Generic[Row]):
    """The file. It is written when rows have changed, and may be seconds old."""

    def __init__(
        self,
        folder: StateFolder,
        name: str,
        *,
        from_json: Callable[[Any], Row],
        is_durable: bool = False,
        to_json: Callable[[Row], Any] = asdict,  # type: ignore[assignment]  # whose rows are dataclasses
    ) -> None:
        """Read and write ``name`` in ``folder``. ``from_json`` raises what it likes of a row that is not its own.

        If it is to be durable, what ``keep`` has written is there also if the power goes.
        """
        self._folder = folder
        self._name = name
        self._is_durable = is_durable
        self._to_json = to_json
        self._from_json = from_json
        self._written: Mapping[str, Any] = {}

    def read(self) -> dict[str, Row]:
        """Worker id or template -> its row. What is not as ``keep`` writes it is left out."""
        self._written = self._folder.read(self._name) or {}
        found = {}
        for name, row in self._written.items():
            with suppress(ValueError, TypeError, KeyError, Invalid):
                found[name] = self._from_json(row)
        return found

    def keep(self, rows: Mapping[str, Row]) -> None:
        """Write down these rows, by worker id or template."""
        body = {name: self._to_json(row) for name, row in rows.items()}
        if body == self._written:
            return
        with suppress(OSError):  # a disk that takes nothing: then the next agent goes by what it sees itself
            self._folder.write(self._name, body, is_durable=self._is_durable)
            self._written = body
