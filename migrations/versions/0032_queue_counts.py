"""The last report of the counters of sources that count jobs and do not name them.

Revision ID: 0032
"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.create_table(
        "queue_counts",
        sa.Column("producer", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.Text(), nullable=False),
        sa.Column("received_at_s", sa.Double(), nullable=False),
        sa.Column("arrived_jobs", sa.BigInteger(), nullable=True),
        sa.Column("started_jobs", sa.BigInteger(), nullable=True),
        sa.Column("finished_jobs", sa.BigInteger(), nullable=True),
        sa.Column("failed_jobs", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("producer", "queue", name=op.f("pk_queue_counts")),
    )
