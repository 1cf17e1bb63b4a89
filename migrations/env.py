"""How Alembic runs the migrations: over the connection it is handed, each in a transaction of its own."""

from alembic import context

connection = context.config.attributes.get("connection")
if connection is None:
    raise RuntimeError("migrations run through `headway migrate`, which hands them their connection")
context.configure(connection=connection, transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
