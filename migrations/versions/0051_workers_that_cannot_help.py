"""Why starts of workers fail, by a code of a fixed list.

Revision ID: 0051
"""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("workers", sa.Column("start_failure", sa.Text(), nullable=True))
