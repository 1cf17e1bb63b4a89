"""How many jobs a worker has ended, as its broker counts them.

Revision ID: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("worker_activities", sa.Column("ended_jobs", sa.BigInteger()))
