"""By which pattern of its pool's profile a queue was matched, and which profiles were made for such queues."""

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0055"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("profile_queues", sa.Column("pattern", sa.Text(), nullable=True))
    op.add_column("profiles", sa.Column("made_of", sa.Text(), nullable=True))
