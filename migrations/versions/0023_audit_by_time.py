"""The audit log is read by its time, newest first.

Revision ID: 0023
"""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.create_index("ix_audit_log_acted_at", "audit_log", ["acted_at", "audit_id"])
