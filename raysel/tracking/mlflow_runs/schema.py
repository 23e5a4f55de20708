"""Lock while a client of MLflow creates the tables of an empty database, because two at once would break them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy

from raysel.tracking.locks import schema_lock

#: Key of the lock in a PostgreSQL database; any number that other programs do not use.
_KEY = 0x7261_7973_656C  # "raysel"


@contextmanager
def tables_lock(uri: str) -> Iterator[None]:
    """Let one client of raysel at a time create or upgrade the tables of a store.

    Parameters
    ----------
    uri : str
        Tracking URI of MLflow with its credentials; sqlite files and PostgreSQL databases are locked.

    Yields
    ------
    None
        While the lock is held.
    """
    if not uri.startswith("postgresql"):
        with schema_lock(uri):
            yield
        return
    engine = sqlalchemy.create_engine(uri, poolclass=sqlalchemy.pool.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:  # the end of the session releases the lock
        connection.execute(sqlalchemy.text("SELECT pg_advisory_lock(:key)"), {"key": _KEY})
        yield
