"""raysel's ``NestedSearch``: in ``memory``, in a ``directory`` with journal, report and MLflow,
or that on ``ray``.
"""

from __future__ import annotations

import sys
import tempfile

from task import INNER, OUTER, VALUES, X, pipeline, tell, y

from raysel import NestedSearch

if __name__ == "__main__":
    way = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        kept = {"path": f"{folder}/study", "tracking": f"sqlite:///{folder}/mlflow.db"}
        options = {
            "memory": {"n_jobs": 2},
            "directory": kept,
            "ray": {**kept, "executor": "ray"},
        }[way]
        search = NestedSearch(pipeline(), {"svm__C": VALUES}, outer=OUTER, inner=INNER, **options)
        tell(search.fit(X, y).scores_)
