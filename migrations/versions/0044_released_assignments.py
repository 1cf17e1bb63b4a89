"""Which pools a host ran before: its draining workers still report jobs of their queues."""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.create_table(
        "released_assignments",
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("released_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.ForeignKeyConstraint(
            ["host_id"], ["hosts.host_id"], name="fk_released_assignments_host_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("pool", "host_id", name="pk_released_assignments"),
    )
    op.create_index("ix_released_assignments_host_id", "released_assignments", ["host_id"])
