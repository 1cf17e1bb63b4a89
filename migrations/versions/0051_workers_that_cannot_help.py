"""Why starts of workers fail, by a code of a fixed list, how many workers get the jobs of a queue at a time, and which
worker moves jobs that are due into their queue."""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("queue_samples", sa.Column("useful_workers", sa.BigInteger(), nullable=True))
    op.add_column("workers", sa.Column("start_failure", sa.Text(), nullable=True))
    op.add_column("workers", sa.Column("moves_due_jobs", sa.Boolean(), nullable=False, server_default="false"))
