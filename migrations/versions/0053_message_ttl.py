"""How long a job may wait before its broker drops it by itself, as its queue is configured."""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("queue_samples", sa.Column("message_ttl_s", sa.Double(), nullable=True))
