"""What keeps workers from taking jobs of a queue, by the word of its broker, and which pools start nobody for it."""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("queue_samples", sa.Column("suspension", sa.Text(), nullable=True))
    op.add_column("assignments", sa.Column("is_suspended", sa.Boolean(), nullable=False, server_default="false"))
