"""Jobs that left their queues without a start, as their workers reported: expired or revoked."""

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"

TABLES = ("queue_buckets", "rollup_minutes", "rollup_hours")


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    for table in TABLES:
        op.add_column(table, sa.Column("revoked_jobs", sa.BigInteger(), nullable=False, server_default="0"))
