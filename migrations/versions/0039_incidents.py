"""Incidents, and what silences them.

Revision ID: 0039
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.create_table(
        "alerts",
        sa.Column("alert_id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("since_s", sa.Double(), nullable=False),
        sa.Column("until_s", sa.Double(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("alert_id", name="pk_alerts"),
    )
    op.create_index("ix_alerts_opened_at_alert_id", "alerts", ["opened_at", "alert_id"])
    op.create_index(
        "uq_alerts_rule_pool_host_kind",
        "alerts",
        ["rule", "pool", "host", "kind"],
        unique=True,
        postgresql_where=sa.text("until_s is null"),
    )
    op.create_table(
        "silences",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("matchers", JSONB(), nullable=False),
        sa.Column("until_s", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_silences"),
    )
