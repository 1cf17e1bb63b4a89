"""How many workers were ended by force at their drain deadline.

Revision ID: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.create_table(
        "forced_ends",
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("workers", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("host_id", "pool", name=op.f("pk_forced_ends")),
        sa.ForeignKeyConstraint(
            ["host_id"], ["hosts.host_id"], name=op.f("fk_forced_ends_host_id"), ondelete="CASCADE"
        ),
    )
