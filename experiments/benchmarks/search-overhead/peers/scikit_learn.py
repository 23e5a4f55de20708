"""scikit-learn and joblib: ``cross_validate`` of a ``GridSearchCV``, and the search on all
samples.
"""

from __future__ import annotations

from sklearn.model_selection import GridSearchCV, cross_val_score
from task import INNER, OUTER, VALUES, X, pipeline, tell, y

if __name__ == "__main__":
    scores = cross_val_score(
        GridSearchCV(pipeline(), {"svm__C": VALUES}, cv=INNER), X, y, cv=OUTER, n_jobs=2
    )
    GridSearchCV(pipeline(), {"svm__C": VALUES}, cv=INNER, n_jobs=2).fit(X, y)
    tell(scores)
