"""Which parts of its writing a pipeline leaves out for want of a right in Postgres.

Revision ID: 0027
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("pipeline_health", sa.Column("lacks", sa.Text(), nullable=True))
