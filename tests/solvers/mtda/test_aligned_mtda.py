"""Tasks mapped into one space against dense scatter matrices; files of maps, read by name and
never unpickled.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from small_studies import make_study, run_serially
from task_sets import (
    assert_same_spaces,
    best_ratio,
    concatenate,
    dense_scatters,
    make_task,
    small_but_telling,
    write_tasks,
)

from raysel.core.errors import ConfigError, DataError
from raysel.solvers.mtda.aligned_mtda import (
    AlignedMTDA,
    check_maps,
    read_maps,
)
from raysel.solvers.mtda.mtda import MTDA

MAPS = {"faces": np.arange(6.0).reshape(3, 2), "digits": np.eye(4, 2, dtype=np.float32)}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("maps.npz", **MAPS)
    return "maps.npz"


def test_maps_are_read_in_the_order_of_the_tasks(path):
    digits, faces = read_maps(path, ["digits", "faces"])
    np.testing.assert_array_equal(faces, MAPS["faces"])
    np.testing.assert_array_equal(digits, MAPS["digits"])
    assert digits.dtype == np.float64


def test_a_file_of_one_map_needs_no_name(path):
    np.savez("one.npz", W=MAPS["faces"])
    (found,) = read_maps("one.npz", [""])
    np.testing.assert_array_equal(found, MAPS["faces"])
    with pytest.raises(
        ConfigError, match=r"has 2 maps for one task without a name; it holds faces, digits"
    ):
        read_maps(path, [""])


@pytest.mark.usefixtures("path")
def test_invalid_files_of_maps_are_refused():
    Path("broken.npz").write_bytes(b"PK no maps")
    np.savez("pickled.npz", faces=np.array([{"code": "that would run"}], dtype=object))
    np.savez("words.npz", faces=np.array([["a"]]))
    np.save("plain.npy", np.eye(2))
    for file, said in {
        "maps.npz": r"aligned='maps\.npz' has no map of task 'wine'; it holds faces, digits\. A",
        "gone.npz": r"no data file gone(?s:.*)A file of maps is \.npz with",
        "broken.npz": r"broken\.npz is not a complete \.npz archive",
        "pickled.npz": r"pickled\.npz: the array faces holds pickled Python objects",
        "words.npz": r"words\.npz cannot be read as a file of maps",
        "plain.npy": r"plain\.npy is not a complete \.npz archive",
    }.items():
        with pytest.raises(ConfigError, match=said):
            read_maps(file, ["faces", "wine"])


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ([np.eye(5)], "aligned has 1 maps for 2 tasks"),
        (
            [np.eye(5), np.eye(4)],
            r"aligned maps b by an array of shape \(4, 4\); give one of shape \(4, 5\)",
        ),
        (
            [np.eye(4), np.eye(4)],
            r"aligned maps a by an array of shape \(4, 4\); give one of shape \(5, 4\)",
        ),
        ([np.ones(5), np.eye(4, 5)], r"aligned maps a by an array of shape \(5,\)"),
        ([np.ones((5, 0)), np.ones((4, 0))], r"aligned maps a by an array of shape \(5, 0\)"),
        (
            [np.eye(5), np.full((4, 5), np.inf)],
            "aligned maps b by an array that holds NaN or infinity",
        ),
    ],
)
def test_maps_that_do_not_fit_are_refused(maps, message):
    with pytest.raises(ConfigError, match=message):
        check_maps(maps, ["a", "b"], [5, 4])
    assert [
        W.shape for W in check_maps([np.eye(5).tolist(), np.eye(4, 5)], ["a", "b"], [5, 4])
    ] == [(5, 5), (4, 5)]


def aligned_tasks():
    tasks = [make_task(5), make_task(6, n=40, D=8, c=3)]
    rng = np.random.default_rng(7)
    return tasks, [rng.standard_normal((10, 6)), rng.standard_normal((8, 6))]


def mapped_scatters(tasks, maps):
    """S_b, S_w and S_t of the mapped tasks."""
    found = [dense_scatters(X @ W, y) for (X, y), W in zip(tasks, maps, strict=True)]
    return [(B, T - B, T) for B, T in found]


def test_a_shared_projection_is_one_trace_ratio_of_the_weighted_sums():
    tasks, maps = aligned_tasks()
    parts = mapped_scatters(tasks, maps)
    B = sum(B / np.trace(T) for B, _, T in parts)
    T = sum(T / np.trace(T) for _, _, T in parts)
    ratio, (P,) = best_ratio([(B, T)], [3], [1.0])
    model = AlignedMTDA(aligned=maps).fit_tasks(tasks)
    assert model.objective_path_[-1] == pytest.approx(ratio, abs=1e-10)
    for W, U in zip(maps, model.projections_, strict=True):
        np.testing.assert_allclose(U @ U.T, W @ P @ P.T @ W.T, atol=1e-8)
    np.testing.assert_allclose(
        model.denominators_, [np.trace(P.T @ T @ P) for _, _, T in parts], atol=1e-9
    )
    np.testing.assert_allclose(
        model.numerators_, [np.trace(P.T @ B @ P) for B, _, _ in parts], atol=1e-9
    )
    np.testing.assert_allclose(
        model.embeddings_[0], model.transform_task(0, tasks[0][0]), atol=1e-9
    )


@pytest.mark.parametrize("shrinkage", [0.0, 0.2])
def test_a_pooled_within_class_scatter_serves_every_task(shrinkage):
    tasks, maps = aligned_tasks()
    parts = mapped_scatters(tasks, maps)
    within = (60 * parts[0][1] + 40 * parts[1][1]) / 100
    within = (1 - shrinkage) * within + shrinkage * np.trace(within) / 6 * np.eye(6)
    weights = [1 / np.trace(T) for _, _, T in parts]
    ratio, expected = best_ratio([(B, B + within) for B, _, _ in parts], [3, 2], weights)
    model = AlignedMTDA(aligned=maps, share="within", shrinkage=shrinkage).fit_tasks(tasks)
    assert model.objective_path_[-1] == pytest.approx(ratio, abs=1e-10)
    for W, U, V in zip(maps, model.projections_, expected, strict=True):
        np.testing.assert_allclose(U @ U.T, W @ V @ V.T @ W.T, atol=1e-8)


@pytest.mark.parametrize("share", ["projection", "within"])
def test_without_maps_the_tasks_have_the_same_features(share):
    tasks = [make_task(5), make_task(6)]
    plain = AlignedMTDA(share=share).fit_tasks(tasks)
    given = AlignedMTDA(aligned=[np.eye(10)] * 2, share=share).fit_tasks(tasks)
    assert_same_spaces(plain.projections_, given.projections_)
    one = AlignedMTDA(share=share).fit(*tasks[0])
    assert one.objective_path_[-1] == pytest.approx(
        MTDA().fit(*tasks[0]).objective_path_[-1], abs=1e-10
    )
    message = r"aligned=None is for tasks with the same features, but these have \[10, 8\]"
    with pytest.raises(ConfigError, match=message):
        AlignedMTDA(tasks={"a": 10, "b": 8}).check(18)
    with pytest.raises(ConfigError):
        AlignedMTDA().fit_tasks([tasks[0], make_task(1, D=8)])


@pytest.mark.parametrize("scale", [1e-5, 1e-9])
@pytest.mark.parametrize("share", ["projection", "within"])
def test_a_telling_feature_of_small_scale_is_found(share, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AlignedMTDA(share=share).fit_tasks(
            [small_but_telling(seed, scale) for seed in (0, 1)]
        )
    assert model.ranks_.tolist() == [4, 4]
    for i in (0, 1):
        X, y = small_but_telling(i + 2, scale)
        assert (model.predict_task(i, X) == y).mean() > 0.9
    with pytest.warns(LinAlgWarning, match="the mapped tasks: rank 3 of 4 directions that vary"):
        AlignedMTDA(share=share).fit_tasks([small_but_telling(seed, 1e-17) for seed in (0, 1)])


def test_maps_of_a_file_are_those_given(tmp_path, monkeypatch):
    tasks, maps = aligned_tasks()
    X, y, widths = concatenate(tasks)
    np.savez(tmp_path / "maps.npz", t1=maps[1], t0=maps[0])
    given = AlignedMTDA(tasks=widths, aligned=maps).fit(X, y)
    monkeypatch.chdir(tmp_path)
    for path in ("maps.npz", str(tmp_path / "maps.npz")):
        read = AlignedMTDA(tasks=widths, aligned=path)
        read.check(18)
        np.testing.assert_array_equal(read.fit(X, y).transform(X), given.transform(X))
    np.testing.assert_array_equal(clone(given).fit(X, y).transform(X), given.transform(X))
    np.savez(tmp_path / "one.npz", W=maps[0])
    one = AlignedMTDA(aligned="one.npz")
    one.check(10)
    assert_same_spaces(
        one.fit(*tasks[0]).projections_, AlignedMTDA(aligned=maps[:1]).fit(*tasks[0]).projections_
    )


def test_a_study_from_yaml_reads_its_maps_and_refuses_others_unrun(tmp_path):
    tasks, maps = aligned_tasks()
    np.savez(tmp_path / "maps.npz", t0=maps[0], t1=maps[1])
    settings = {
        "dataset": write_tasks(tmp_path, tasks),
        "evaluation": {"classifier": "native"},
        "solver": {
            "name": "aligned_mtda",
            "params": {"aligned": str(tmp_path / "maps.npz")},
            "space": {"share": ["projection", "within"]},
        },
    }
    study = make_study(tmp_path, **settings)
    trials, refits, _ = run_serially(study, tmp_path / "run")
    assert len(trials) == 2
    record, model = refits[0]
    fold = study.plan.folds[0]
    alone = AlignedMTDA({"t0": 10, "t1": 8}, maps, share=record.params["share"])
    alone.fit(study.dataset.X[fold.train], study.dataset.y[fold.train])
    np.testing.assert_array_equal(model[-1].scores_, alone.scores_)
    np.savez(tmp_path / "maps.npz", t0=maps[0].T, t1=maps[1])
    with pytest.raises(
        ConfigError,
        match=(
            r"aligned maps task 't0' by an array of shape \(6, 10\); give one of shape \(10, 10\)"
        ),
    ):
        make_study(tmp_path, **settings)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"aligned": [np.eye(10), np.eye(8)]},
            r"maps task 't1' by .* shape \(8, 8\); give one of shape \(8, 10\)",
        ),
        (
            {"aligned": [np.eye(10), np.eye(8, 10)], "n_components": [2, 3]},
            "'n_components' parameter of AlignedMTDA",
        ),
        (
            {"aligned": [np.eye(10), np.eye(8, 10)], "n_components": 11},
            "n_components=11 exceeds the 10 features",
        ),
        ({"aligned": "no-such-maps.npz"}, "aligned='no-such-maps.npz': there is no data file"),
    ],
)
def test_parameters_that_do_not_fit_the_layout_are_refused_before_the_fit(params, message):
    with pytest.raises(ConfigError, match=message):
        AlignedMTDA(tasks={"t0": 10, "t1": 8}, **params).check(18)


def test_maps_and_sizes_that_the_data_do_not_allow_are_refused():
    tasks, _ = aligned_tasks()
    with pytest.raises(DataError, match="task 'task1': aligned maps all samples to one point"):
        AlignedMTDA(aligned=[np.eye(10), np.zeros((8, 10))]).fit_tasks(tasks)
    flat = [np.eye(10, 6)[:, :3] @ np.eye(3, 6), np.eye(8, 6)[:, :3] @ np.eye(3, 6)]
    with pytest.raises(ConfigError, match="n_components=4 exceeds the rank 3 of the mapped tasks"):
        AlignedMTDA(aligned=flat, n_components=4).fit_tasks(tasks)
