"""A split: scaled by its training set alone, and shared without what trials do not ask for."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from splits import trial_split

from raysel.data.dataset import join_tasks
from raysel.data.loading import load_dataset
from raysel.data.scaling import make_scaler
from raysel.data.task_blocks import TaskBlocks
from raysel.evaluation.split import Split, SplitRows
from raysel.solvers.mtda.mtda import MTDA
from raysel.solvers.smr.smr import SMR


@pytest.fixture(scope="module")
def rows():
    X, y = load_digits(return_X_y=True, n_class=3)
    train, test = np.arange(0, 60, 2), np.arange(1, 60, 2)
    return SplitRows(X=X[:60], y=y[:60], train=train, test=test, groups=np.arange(60) // 2)


def test_the_test_samples_are_prepared_when_they_are_asked_for(rows):
    """A fit holds the training samples alone, and the scaler knows them alone."""
    split = Split.fit(rows, make_scaler("zscore"), random_state=5, name="outer1")
    assert split.X_test is None
    whole = split.with_test()
    assert whole.X_train is split.X_train
    expected = StandardScaler().fit(rows.X[rows.train])
    np.testing.assert_array_equal(whole.X_train, expected.transform(rows.X[rows.train]))
    np.testing.assert_array_equal(whole.X_test, expected.transform(rows.X[rows.test]))
    np.testing.assert_array_equal(whole.y_test, rows.y[rows.test])
    np.testing.assert_array_equal(whole.constant, np.ptp(rows.X[rows.train], axis=0) == 0)
    assert (whole.random_state, whole.name) == (5, "outer1")


def test_test_samples_keep_their_group_or_stand_alone(rows):
    np.testing.assert_array_equal(rows.test_groups, np.arange(30))
    alone = dataclasses.replace(rows, groups=None)
    np.testing.assert_array_equal(alone.test_groups, rows.test)


def test_what_trials_share_holds_neither_all_samples_nor_the_fitted_steps(rows):
    shared = Split.fit(rows, make_scaler("unit")).for_trials(SMR(shape=(8, 8)))
    assert (shared.rows, shared.scaler, shared.preparation) == (None, None, None)
    assert shared.known == {}
    with pytest.raises(ValueError, match="does not hold"):
        shared.with_test()
    assert len(pickle.dumps(shared)) < 1.1 * shared.nbytes + 5000


def arrays(value):
    """Every array that a value holds."""
    if isinstance(value, np.ndarray):
        yield value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from arrays(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from arrays(part)


@pytest.fixture(scope="module")
def joined():
    return join_tasks({name: load_dataset(name) for name in ("digits", "wine")})


@pytest.mark.parametrize("scaling", ["unit", "zscore", "none"])
def test_each_task_is_scaled_by_its_training_set_alone(joined, scaling):
    train, held_out = (
        np.flatnonzero(np.arange(joined.n_samples) % 3 > 0),
        np.arange(0, joined.n_samples, 3),
    )
    solver, scaler = MTDA(dict(joined.layout.tasks)), make_scaler(scaling, joined.layout)
    data = trial_split(joined.X, joined.y, train, held_out, scaler, solver)
    expected = make_scaler(scaling, joined.layout).fit(joined.X[train].dense())
    for samples, rows in ((data.X_train, train), (data.X_test, held_out)):
        assert isinstance(samples, TaskBlocks)
        np.testing.assert_array_equal(samples.tasks, joined.tasks[rows])
        np.testing.assert_array_equal(samples.dense(), expected.transform(joined.X[rows].dense()))
    whole = trial_split(joined.X, joined.y, train, train[:0], scaler, solver)
    assert whole.X_test.shape == (0, 77)


def test_its_bytes_are_those_of_the_blocks_and_of_the_preparation(joined):
    rows = np.arange(joined.n_samples)
    solver = MTDA(dict(joined.layout.tasks))
    scaler = make_scaler("unit", joined.layout)
    data = trial_split(joined.X, joined.y, rows[::2], rows[1::2], scaler, solver)
    held = {id(array): array.nbytes for array in arrays(data)}
    assert data.nbytes == sum(held.values())
    blocks = sum(block.nbytes for block in (*data.X_train.blocks, *data.X_test.blocks))
    assert (
        blocks
        == (1797 * 64 + 178 * 13) * 8
        < data.X_train.dense().nbytes + data.X_test.dense().nbytes
    )
    assert data.nbytes > blocks + sum(array.nbytes for array in arrays(data.prepared))
    # Ray keeps what stands outside the pickle in memory that its workers share.
    buffers: list[pickle.PickleBuffer] = []
    pickle.dumps(
        (data.X_train, data.X_test, data.prepared), protocol=5, buffer_callback=buffers.append
    )
    assert sum(buffer.raw().nbytes for buffer in buffers) >= blocks
