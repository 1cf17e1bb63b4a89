"""Every row that an earlier version wrote is there, as it was, once the tables are those of this version.

These are the tables that a new database gets.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headway.store import migrate
from headway.store.embedded import dump
from support.catalogue import catalogue
from upgrade.recorded import State, states

GONE = frozenset({"idempotency_keys"})
"""Tables that a migration has dropped on purpose, each named in the changelog's Removed."""


@pytest.mark.parametrize("state", states(), ids=lambda state: state.folder.name)
def test_migrations_change_no_row(state: State, database_url: str, migrated_url: str, tmp_path: Path) -> None:
    state.unpack(tmp_path)
    dump.load(database_url, state.dump(tmp_path))
    before = _rows(database_url)
    migrate.upgrade(database_url)
    assert catalogue(database_url) == catalogue(migrated_url)
    after = _rows(database_url)
    assert sum(map(len, before.values())) > 100
    assert sorted(before.keys() - after.keys() - GONE) == []
    for table in before.keys() & after.keys():
        known = _columns(before[table]) & (_columns(after[table]) or _columns(before[table]))
        left, found = (Counter(_text(row, known) for row in rows) for rows in (before[table], after[table]))
        assert left <= found, table


def _rows(url: str) -> dict[str, list[dict[str, Any]]]:
    """Table -> its rows, those of partitions with their parent's."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') "
            "and not relispartition and relname <> 'alembic_version'"
        ).fetchall()
        return {
            name: [row for (row,) in connection.execute(f"select to_jsonb(each) from {name} as each").fetchall()]
            for (name,) in tables
        }


def _columns(rows: list[dict[str, Any]]) -> frozenset[str]:
    return frozenset(rows[0]) if rows else frozenset()


def _text(row: dict[str, Any], columns: frozenset[str]) -> str:
    return json.dumps({name: value for name, value in row.items() if name in columns}, sort_keys=True)
