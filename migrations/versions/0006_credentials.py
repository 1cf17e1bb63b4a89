"""Who may call: tokens of people and programs, join tokens, and the credential of each host.

Revision ID: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.create_table(
        "credentials",
        sa.Column("credential_id", sa.Uuid(), server_default=sa.func.gen_random_uuid()),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text()),
        sa.Column("host_name", sa.Text()),
        sa.Column("uses_left", sa.Integer()),
        sa.Column("joined_by", sa.Uuid()),
        sa.Column("agent_id", sa.Text(), nullable=False, server_default=""),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("used_at", sa.DateTime(timezone=True)),
        sa.Column("renew_at", sa.DateTime(timezone=True)),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.Column("changed", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("credential_id", name="pk_credentials"),
        sa.ForeignKeyConstraint(
            ["host_id"], ["hosts.host_id"], name=op.f("fk_credentials_host_id"), ondelete="CASCADE"
        ),
        sa.CheckConstraint("(role = 'host') = (host_id is not null)", name=op.f("ck_credentials_host")),
        sa.CheckConstraint("(role = 'join') = (uses_left is not null)", name=op.f("ck_credentials_join")),
    )
    op.create_index("uq_credentials_sha256", "credentials", ["sha256"], unique=True)
    op.create_index("ix_credentials_host_id", "credentials", ["host_id"])
    op.create_index("ix_credentials_changed", "credentials", ["changed"])
    op.create_index(
        "uq_credentials_name",
        "credentials",
        ["name"],
        unique=True,
        postgresql_where=sa.text("role <> 'host' and revoked_at is null"),
    )
    op.create_table(
        "credential_changes",
        sa.Column("is_only", sa.Boolean(), server_default="true"),
        sa.Column("revision", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("is_only", name="pk_credential_changes"),
        sa.CheckConstraint("is_only", name=op.f("ck_credential_changes_one_row")),
    )
    op.execute("insert into credential_changes default values")
