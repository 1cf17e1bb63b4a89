"""A new database gets the tables of ``store/tables.py``; migrations wait for no lock, and say what does not fit.

``tests/upgrade/test_rows.py`` proves that they lead a database of 0043 to the same tables.
"""

import io
import threading

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from headway.__main__ import main
from headway.errors import Misconfigured, Unavailable
from headway.store.engine import connect_parameters
from headway.store.migrate import check, migrations_folder, revisions, upgrade
from headway.store.tables import metadata
from support.catalogue import catalogue

HEAD = ScriptDirectory(str(migrations_folder())).get_current_head()
REVISIONS = [script.revision for script in ScriptDirectory(str(migrations_folder())).walk_revisions()]


def connect(url: str) -> sa.Connection:
    return sa.create_engine(
        "postgresql+psycopg://", connect_args=connect_parameters(url), poolclass=sa.NullPool
    ).connect()


def is_no_partition(_item: object, name: str | None, kind: str, *_: object) -> bool:
    return not (kind == "table" and (name or "").startswith(("decisions_", "alembic_version")))


def test_the_names_of_their_files_have_the_revisions_in_order() -> None:
    assert revisions() == REVISIONS[::-1]


def test_a_new_database_has_exactly_the_tables_of_the_code(migrated_url: str) -> None:
    with connect(migrated_url) as connection:
        context = MigrationContext.configure(
            connection,
            opts={"compare_type": True, "compare_server_default": True, "include_object": is_no_partition},
        )
        assert compare_metadata(context, metadata) == []


def test_checks_partitions_and_sequences_agree_as_well(migrated_url: str, database_url: str) -> None:
    with connect(database_url) as connection:
        metadata.create_all(connection)
        connection.commit()
    assert catalogue(migrated_url) == catalogue(database_url)


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_migration_limits_its_wait_for_locks_before_anything_else(revision: str) -> None:
    said = io.StringIO()
    script = ScriptDirectory(str(migrations_folder())).get_revision(revision)
    context = MigrationContext.configure(
        dialect_name="postgresql", opts={"as_sql": True, "output_buffer": said, "literal_binds": True}
    )
    with Operations.context(context):
        script.module.upgrade()
    assert said.getvalue().lstrip().lower().startswith("set local lock_timeout = ")


def test_a_new_database_has_a_cluster_id_and_the_single_rows(database_url: str) -> None:
    upgrade(database_url)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select count(*), count(cluster_id) from cluster").fetchone() == (1, 1)
        assert connection.execute("select epoch, leader from leader_epoch").fetchall() == [(0, "")]
        assert connection.execute("select epoch from leader_heartbeat").fetchall() == [(0,)]


def test_decisions_of_today_and_of_the_days_ahead_find_their_partitions(migrated_url: str) -> None:
    with psycopg.connect(migrated_url) as connection:
        connection.execute(
            "insert into decisions (pool, epoch, target_workers, binding, body, decided_at) "
            "select 'mail', 1, 1, 'floor', '{}', now() + day * interval '1 day' from generate_series(0, 7) as day"
        )
        assert connection.execute("select count(distinct tableoid) from decisions").fetchone() == (8,)


def test_processes_that_upgrade_at_once_do_it_one_after_another(database_url: str) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            upgrade(database_url)
        except BaseException as error:  # noqa: BLE001 - a thread's error is told below
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    check(database_url)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select version_num from alembic_version").fetchall() == [(HEAD,)]
        assert connection.execute("select count(*) from cluster").fetchone() == (1,)


def test_an_empty_database_is_older_than_the_code(database_url: str) -> None:
    with pytest.raises(Misconfigured, match="has no tables of Headway yet: run `headway migrate`"):
        check(database_url)


def test_a_database_of_a_newer_headway_is_left_alone(database_url: str) -> None:
    upgrade(database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    for inspect_schema in (check, upgrade):
        with pytest.raises(Misconfigured, match="at migration 9999, which this Headway does not know"):
            inspect_schema(database_url)


def test_a_database_of_before_the_first_migration_is_left_alone(database_url: str, monkeypatch, capsys) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("create table alembic_version as select '0024'::varchar(32) as version_num")
    said = "the database is at migration 0024, and this Headway upgrades from 0043 on: migrate it to that"
    for inspect_schema in (check, upgrade):
        with pytest.raises(Misconfigured, match=said):
            inspect_schema(database_url)
    monkeypatch.setenv("HEADWAY_DATABASE_URL", database_url)
    assert main(["migrate"]) == 2
    assert said in capsys.readouterr().err
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select version_num from alembic_version").fetchall() == [("0024",)]


def test_a_migration_that_meets_a_lock_gives_up_and_changes_nothing(database_url: str, monkeypatch) -> None:
    """Here the lock is the one that serialises upgrades; its holder is a stranger who never lets go."""
    from headway.store import migrate

    monkeypatch.setattr(migrate, "UPGRADE_WAIT_S", 0.05)
    with psycopg.connect(database_url) as other:
        other.execute("select pg_advisory_lock(%s)", [migrate.UPGRADE_LOCK])
        with pytest.raises(Unavailable, match="could not be upgraded now, try again"):
            upgrade(database_url)


def test_the_command_upgrades_and_checks(database_url: str, monkeypatch, capsys) -> None:
    monkeypatch.delenv("HEADWAY_DATABASE_URL", raising=False)
    assert main(["migrate"]) == 2
    assert "HEADWAY_DATABASE_URL is not set" in capsys.readouterr().err
    monkeypatch.setenv("HEADWAY_DATABASE_URL", database_url)
    assert main(["migrate", "--check"]) == 2
    assert "run `headway migrate`" in capsys.readouterr().err
    assert main(["migrate"]) == 0
    assert main(["migrate", "--check"]) == 0
