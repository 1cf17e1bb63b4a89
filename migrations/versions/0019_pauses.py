"""Why a pool was paused beside its profile, and until when.

Revision ID: 0019
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("profiles", sa.Column("pause_reason", sa.Text(), nullable=True))
    op.add_column("profiles", sa.Column("pause_until_s", sa.Double(), nullable=True))
