"""What is to be posted of incidents, to whom.

Revision ID: 0042
"""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.create_table(
        "notifications",
        sa.Column("alert_id", sa.Uuid(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("at_s", sa.Double(), nullable=False),
        sa.Column("state", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_at_s", sa.Double(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alerts.alert_id"], name="fk_notifications_alert_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("alert_id", "phase", "receiver", name="pk_notifications"),
    )
    op.create_index(
        "ix_notifications_waiting",
        "notifications",
        ["receiver", "pool", "sequence"],
        postgresql_where=sa.text("state = 'waiting'"),
    )
