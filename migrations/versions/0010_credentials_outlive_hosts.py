"""A credential outlives its host: one that was forgotten and is back is known by it.

Revision ID: 0010
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.drop_constraint("fk_credentials_host_id", "credentials", type_="foreignkey")
