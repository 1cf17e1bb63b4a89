"""Decisions that changed something, and those for a reason, without reading the others.

Revision ID: 0041
"""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.create_index(
        "ix_decisions_changed",
        "decisions",
        ["decided_at", "decision_id"],
        postgresql_where=sa.text("target_workers is distinct from previous_workers"),
    )
    op.create_index(
        "ix_decisions_binding_decided_at_decision_id", "decisions", ["binding", "decided_at", "decision_id"]
    )
