"""What each upload to MLflow imports and makes, once for all that are forked: the libraries and an
empty store.

A store that another program has locked is waited for in short turns, not in those of twenty seconds
that MLflow takes.
"""

import mlflow.sklearn  # noqa: F401
import skops.io  # noqa: F401

import raysel.tracking.mlflow_runs  # noqa: F401
from raysel.tracking import mlflow_client, mlflow_store

CONTENT = mlflow_store._new_content()
mlflow_store._new_content = lambda: CONTENT
mlflow_client._TIMEOUT = 1
