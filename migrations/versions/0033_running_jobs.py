"""How many jobs a worker runs, by its broker.

Revision ID: 0033
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("worker_activities", sa.Column("running_jobs", sa.BigInteger(), nullable=True))
