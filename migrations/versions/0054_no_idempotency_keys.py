"""No write takes an idempotency key."""

from alembic import op

revision = "0054"
down_revision = "0053"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.drop_table("idempotency_keys")
