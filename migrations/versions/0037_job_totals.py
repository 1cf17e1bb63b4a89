"""What each queue did since it was first counted, and how many jobs of each pool were late.

Revision ID: 0037
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("rollup_progress", sa.Column("totals_until_s", sa.Double(), server_default="0", nullable=False))
    op.create_table(
        "queue_totals",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("arrived_jobs", sa.BigInteger(), nullable=False),
        sa.Column("started_jobs", sa.BigInteger(), nullable=False),
        sa.Column("finished_jobs", sa.BigInteger(), nullable=False),
        sa.Column("failed_jobs", sa.BigInteger(), nullable=False),
        sa.Column("service_sum_s", sa.Double(), nullable=False),
        sa.Column("service_sketch", JSONB(), nullable=False),
        sa.Column("pickup_sketch", JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("queue", name="pk_queue_totals"),
    )
    op.create_table(
        "pool_attainment",
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("from_s", sa.Double(), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.Column("late_jobs", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["pool"], ["profiles.pool"], name="fk_pool_attainment_pool", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("pool", "from_s", name="pk_pool_attainment"),
    )
    op.create_index("ix_pool_attainment_from_s", "pool_attainment", ["from_s"])
