"""What each upload to MLflow imports and makes, once for all that are forked: the libraries and an empty store."""

import mlflow.sklearn
import mlflow.store.tracking.sqlalchemy_store  # noqa: F401
import skops.io  # noqa: F401

import raysel.tracking.mlflow_runs  # noqa: F401
from raysel.tracking import mlflow_store

CONTENT = mlflow_store._new_content()
mlflow_store._new_content = lambda: CONTENT
