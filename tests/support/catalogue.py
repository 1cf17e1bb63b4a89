"""The tables of a database, without their rows and partitions, to be compared with those of another."""

import psycopg

# What Alembic's comparison passes over: checks, partitioning, sequences, names.
CATALOGUE = """
    select 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' '
           || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
      from pg_attribute a join pg_class c on c.oid = a.attrelid
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0 and not c.relispartition
    union all
    select 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(k.oid)
      from pg_constraint k join pg_class c on c.oid = k.conrelid
     where c.relnamespace = 'public'::regnamespace and not c.relispartition
    union all
    select 'index', i.tablename, i.indexname, i.indexdef
      from pg_indexes i join pg_class c on c.oid = (quote_ident(i.tablename))::regclass
     where i.schemaname = 'public' and not c.relispartition
    union all
    select 'partitioned', c.relname, '', pg_get_partkeydef(c.oid)
      from pg_class c where c.relkind = 'p' and c.relnamespace = 'public'::regnamespace
    union all
    select 'sequence', '', sequencename, data_type::text || start_value from pg_sequences where schemaname = 'public'
"""


def catalogue(url: str) -> set[tuple[str, ...]]:
    """A row per column, constraint, index, partitioned table and sequence."""
    with psycopg.connect(url) as connection:
        return {row for row in connection.execute(CATALOGUE).fetchall() if "alembic_version" not in row}
