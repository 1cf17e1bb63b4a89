"""Which queues and producers are known, and by whom, so that they can be counted and bounded.

Revision ID: 0022
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "queues",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("sent_by", sa.Text(), nullable=False, server_default=""),
        sa.Column("seen_at", moment, nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("queue", name=op.f("pk_queues")),
    )
    op.create_table(
        "producers",
        sa.Column("producer", sa.Text(), nullable=False),
        sa.Column("sent_by", sa.Text(), nullable=False),
        sa.Column("owner_sha256", sa.Text(), nullable=True),
        sa.Column("seen_at", moment, nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("producer", name=op.f("pk_producers")),
    )
    # What was known before counts for nobody, but for all together.
    op.execute(
        "insert into queues (queue) select queue from queue_samples union select queue from queue_buckets "
        "union select queue from rollup_minutes"
    )
