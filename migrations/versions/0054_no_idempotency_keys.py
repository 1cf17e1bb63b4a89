"""No write takes an idempotency key.

Revision ID: 0054
"""

from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.drop_table("idempotency_keys")
