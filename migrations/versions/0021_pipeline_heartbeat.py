"""When the pipeline last answered, whether or not it had anything to write.

Revision ID: 0021
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("pipeline_health", sa.Column("beat_at", sa.DateTime(timezone=True)))
