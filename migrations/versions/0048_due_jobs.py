"""When the delayed jobs of a queue are due, by its newest reading."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("queue_samples", sa.Column("due", JSONB, nullable=False, server_default="[]"))
