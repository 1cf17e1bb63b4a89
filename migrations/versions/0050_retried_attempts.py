"""Attempts that failed and are followed by another one, apart from jobs that failed."""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"

TABLES = ("queue_buckets", "rollup_minutes", "rollup_hours", "queue_totals")


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    for table in TABLES:
        op.add_column(table, sa.Column("retried_attempts", sa.BigInteger(), nullable=False, server_default="0"))
