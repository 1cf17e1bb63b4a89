"""Engines of tests. Each test has its own, which would compile every statement anew: they share what is compiled."""

from collections.abc import Hashable
from typing import Any

from headway.store.engine import Engine, create_engine


class Compiled(dict[tuple[Hashable, ...], Any]):
    """Statements by all that SQLAlchemy knows them by, but for the dialect: all engines have the same."""

    def get(self, key: tuple[Hashable, ...], default: Any = None) -> Any:
        return super().get(key[1:], default)

    def __setitem__(self, key: tuple[Hashable, ...], compiled: Any) -> None:
        super().__setitem__(key[1:], compiled)


COMPILED = Compiled()


def engine_to(database_url: str) -> Engine:
    """An engine as the product makes it."""
    return create_engine(database_url).execution_options(compiled_cache=COMPILED)
