"""A batch that the prepared columns of held-out training samples still tell is remarked on, any
other is not.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from raysel.run.api import prepare_study
from raysel.study.definition import Study

N, D = 120, 1000
WORDS = np.array(["b0", "b1"])


def shifted(
    seed: int = 0, values: np.ndarray = WORDS, scale: float = 2.0, d: int = D
) -> pd.DataFrame:
    """Noise of which a tenth of the columns is shifted by batches."""
    rng = np.random.default_rng(seed)
    batch = rng.permutation(np.arange(N) % len(values))
    X = rng.normal(size=(N, d))
    X[:, : d // 10] += scale * rng.normal(size=(len(values), d // 10))[batch]
    return pd.DataFrame(X, columns=[f"g{i}" for i in range(d)]).assign(batch=values[batch])


def study_of(frame: pd.DataFrame, prepare: list[Any], confounds: tuple[str, ...] = ()) -> Study:
    raw = {
        "name": "batches",
        "dataset": {"prepare": prepare, "confounds": list(confounds), "drop": ["batch"]},
        "solver": {"name": "fisher_score"},
        "evaluation": {"estimator": "linear_svm", "C": [1.0], "n_features": [5]},
        "search": {"executor": "serial"},
        "cv": {"outer": 3, "inner": 3},
    }
    return prepare_study(raw, X=frame, y=np.arange(N) % 2)


def the_remark(study: Study) -> tuple[str, float]:
    (remark,) = [text for text in chain(*study.data_remarks) if "held-out" in text]
    return remark, float(re.search(r"balanced accuracy (\d\.\d\d) on held-out", remark)[1])


def test_a_shift_that_shrunken_estimates_leave_is_told_and_exact_centring_leaves_none():
    frame = shifted()
    harmonised = study_of(frame, [{"harmonise": "batch"}])
    remark, score = the_remark(harmonised)
    assert "After harmonise, a linear SVM still tells batch" in remark
    assert "by residualise with dataset.confounds: [batch] instead" in remark
    assert remark in harmonised.data_remarks.questioning
    fold, found = harmonised.plan.folds[0], []
    for inner in fold.inner:  # the same by another linear classifier
        assert not {*inner.train, *inner.validation} & {*fold.test}
        preparation = harmonised.preparation().fit(harmonised.dataset.X[inner.train])
        train, test = (
            preparation.transform(harmonised.dataset.X[part])
            for part in (inner.train, inner.validation)
        )
        model = LogisticRegression(C=0.01).fit(train, frame.batch[inner.train])
        found.append(balanced_accuracy_score(frame.batch[inner.validation], model.predict(test)))
    assert np.mean(found) == pytest.approx(score, abs=0.15)
    assert score > 0.6

    centred = study_of(frame, ["residualise"], ("batch",))
    remark, score = the_remark(centred)
    assert "After residualise, a linear SVM does not clearly tell batch" in remark
    assert score < 0.6
    assert remark in centred.data_remarks.others


def test_a_number_of_the_batch_takes_out_no_more_than_its_slope_unless_it_is_encoded():
    frame = shifted(values=np.array([1, 2, 3]))
    remark, score = the_remark(study_of(frame, ["residualise"], ("batch",)))
    assert "put {encode: {}, columns: [batch]} before it" in remark
    assert score > 0.6
    encoded = [{"encode": {}, "columns": ["batch"]}, "residualise"]
    assert "does not clearly tell batch" in the_remark(study_of(frame, encoded, ("batch",)))[0]


def test_batches_without_an_effect_are_rarely_said_to_be_told():
    told = [
        "still tells"
        in the_remark(study_of(shifted(seed, scale=0.0, d=100), [{"harmonise": "batch"}]))[0]
        for seed in range(5)
    ]
    assert sum(told) <= 1


def test_a_confound_that_is_no_batch_is_not_remarked_on():
    frame = shifted(d=20).assign(age=np.random.default_rng(1).normal(60, 9, N).round())
    study = study_of(frame, ["residualise"], ("age",))
    assert not [text for text in chain(*study.data_remarks) if "held-out" in text]
