"""Of which queue the jobs are that workers run, where their broker says it."""

import sqlalchemy as sa
from alembic import op

revision = "0057"
down_revision = "0056"


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.add_column("worker_activities", sa.Column("busy_queue", sa.Text(), nullable=True))
