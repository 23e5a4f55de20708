"""A training set of several tasks, scaled and prepared without padded columns."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

from raysel.data.loading import load_dataset
from raysel.data.scaling import make_scaler
from raysel.data.task_blocks import TaskBlocks
from raysel.data.tasks import join_tasks
from raysel.evaluation.lockstep import make_fold_data
from raysel.solvers.mtda.mtda import MTDA


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
def test_the_training_set_alone_tells_the_scaling_of_each_task(joined, scaling):
    train, held_out = np.flatnonzero(np.arange(joined.n_samples) % 3 > 0), np.arange(0, joined.n_samples, 3)
    solver, scaler = MTDA(dict(joined.layout.tasks)), make_scaler(scaling, joined.layout)
    data = make_fold_data(joined.X, joined.y, train, held_out, scaler=scaler, solver=solver)
    expected = make_scaler(scaling, joined.layout).fit(joined.X[train].dense())
    for samples, rows in ((data.X_train, train), (data.X_test, held_out)):
        assert isinstance(samples, TaskBlocks)
        np.testing.assert_array_equal(samples.tasks, joined.tasks[rows])
        np.testing.assert_array_equal(samples.dense(), expected.transform(joined.X[rows].dense()))
    whole = make_fold_data(joined.X, joined.y, train, train[:0], scaler=scaler, solver=solver)
    assert whole.X_test.shape == (0, 77)


def test_its_bytes_are_those_of_the_blocks_and_of_what_is_prepared(joined):
    rows = np.arange(joined.n_samples)
    solver = MTDA(dict(joined.layout.tasks))
    data = make_fold_data(
        joined.X, joined.y, rows[::2], rows[1::2], scaler=make_scaler("unit", joined.layout), solver=solver
    )
    held = {id(array): array.nbytes for array in arrays(data)}
    assert data.nbytes == sum(held.values())
    blocks = sum(block.nbytes for block in (*data.X_train.blocks, *data.X_test.blocks))
    assert blocks == (1797 * 64 + 178 * 13) * 8 < data.X_train.dense().nbytes + data.X_test.dense().nbytes
    assert data.nbytes > blocks + sum(array.nbytes for array in arrays(data.prepared))
    # Ray keeps what stands outside the pickle in memory that its workers share.
    buffers: list[pickle.PickleBuffer] = []
    pickle.dumps((data.X_train, data.X_test, data.prepared), protocol=5, buffer_callback=buffers.append)
    assert sum(buffer.raw().nbytes for buffer in buffers) >= blocks
