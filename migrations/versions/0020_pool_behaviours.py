"""What the leader has learned of each pool, and when the state of a worker was known.

Revision ID: 0020
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    moment = sa.DateTime(timezone=True)
    op.add_column("workers", sa.Column("state_reported_at", moment))
    op.create_table(
        "pool_behaviours",
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("body", JSONB(), nullable=False),
        sa.Column("summary", JSONB(), nullable=False),
        sa.Column("written_at", moment, nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("pool", name=op.f("pk_pool_behaviours")),
        sa.ForeignKeyConstraint(["pool"], ["profiles.pool"], name=op.f("fk_pool_behaviours_pool"), ondelete="CASCADE"),
    )
