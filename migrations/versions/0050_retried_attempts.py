"""Attempts that failed and are followed by another one, apart from jobs that failed.

Revision ID: 0050
"""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None

TABLES = ("queue_buckets", "rollup_minutes", "rollup_hours", "queue_totals")


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    for table in TABLES:
        op.add_column(table, sa.Column("retried_attempts", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    for table in TABLES:
        op.drop_column(table, "retried_attempts")
