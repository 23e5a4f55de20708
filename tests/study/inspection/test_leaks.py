"""What tells the label is refused, and nothing else is."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_leaks import REFUSED, REMARKED, subjects, table, with_columns
from sklearn import datasets
from small_studies import make_study, raw_config, run_offline

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset, join_tasks
from raysel.data.layouts import Matrix, Modalities, Tensor
from raysel.data.loading import load_dataset
from raysel.run.api import prepare_study
from raysel.study.inspection.leaks import refuse_leaks
from raysel.study.inspection.remarks import constant_remarks, data_remarks

WINE = load_dataset("wine")
REAL = ["ORL", "UMIST", "USPS", "PIE_68x42_32x32", "LSP_sift_128x85", "ORL_28x23", "AR100_32x32"]
REAL += ["MSRCv1_6v", "Handwritten_mfeat", "MSRCv2_6v_multilabel", "Scene_multilabel"]


def refusal(data: Dataset, keep: tuple[str, ...] = ()) -> str:
    with pytest.raises(DataError) as caught:
        refuse_leaks(data, keep)
    return str(caught.value)


@pytest.mark.parametrize("what", REFUSED)
def test_what_tells_the_label_is_refused_with_its_name_and_both_remedies(what):
    plant, words = REFUSED[what]
    planted = plant(table(WINE.X, WINE.y), np.random.default_rng(0))
    message = refusal(planted)
    assert re.search(words, message)
    new = [name for name in planted.feature_names if not re.fullmatch(r"c\d+", name)]
    assert all(name in message for name in new)
    assert "dataset.drop" in message
    assert "dataset.keep" in message
    refuse_leaks(planted, new)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["wine", "breast_cancer", "digits", "Handwritten_mfeat.npz", "MSRCv1_6v.npz"]
)
def test_planted_leaks_of_real_data_are_refused_or_remarked_on(name, real_data):
    data = load_dataset(real_data(name) if name.endswith(".npz") else name)
    for what, (plant, words) in REFUSED.items():
        planted = plant(table(data.X, data.y), np.random.default_rng(1))
        assert re.search(words, refusal(planted)), what
    for what, (plant, words) in REMARKED.items():
        planted = plant(table(data.X, data.y), np.random.default_rng(1))
        refuse_leaks(planted)
        assert any(words in remark for remark in data_remarks(planted)), what


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_data_are_accepted_and_their_remarks_are_true(name, real_data):
    data = load_dataset(real_data(f"{name}.npz"))
    refuse_leaks(data)
    remarks = " ".join(data_remarks(data))
    copies = data.n_samples - len(np.unique(data.X, axis=0)) if data.n_features < 5000 else None
    assert ("equal to another" in remarks) == (copies != 0)
    assert not re.search(r"Column '|columns? (\(|is |are )", remarks)


@pytest.mark.parametrize("name", ["digits", "iris", "wine", "breast_cancer"])
@pytest.mark.parametrize("order", ["as stored", "by class"])
def test_no_false_alarm_on_the_data_of_scikit_learn(name, order):
    data = load_dataset(name)
    rows = np.arange(data.n_samples) if order == "as stored" else np.argsort(data.y, kind="stable")
    data = Dataset(data.X[rows], data.y[rows], data.layout, name, feature_names=data.feature_names)
    refuse_leaks(data)
    kinds = {"digits": ["constant"], "iris": ["equal to another"]}.get(name, [])
    remarks = [*data_remarks(data), *constant_remarks(data)]
    assert len(remarks) == len(kinds)
    assert all(kind in remark for kind, remark in zip(kinds, remarks, strict=True))


def generated(seed: int, sizes: tuple[int, ...]):
    for n in sizes:
        for make in (datasets.make_classification, datasets.make_moons, datasets.make_circles):
            yield make(n_samples=n, random_state=seed)
        yield datasets.make_blobs(n_samples=n, random_state=seed)
        yield datasets.make_gaussian_quantiles(n_samples=n, random_state=seed)
        X, y = datasets.make_classification(n_samples=n, n_features=500, random_state=seed)
        yield X, y
        yield X > 1, y
        yield np.round(3 * X), y
        yield X.argsort(axis=0).argsort(axis=0), y
        yield np.random.default_rng(seed).negative_binomial(2, 0.001, size=(n, 500)), y


@pytest.mark.parametrize(
    ("seed", "sizes"),
    [
        (0, (25,)),
        *(pytest.param(seed, (25, 80, 300), marks=pytest.mark.slow) for seed in (1, 2, 3)),
    ],
)
def test_no_false_alarm_on_generated_data(seed, sizes):
    for X, y in generated(seed, sizes):
        data = table(np.asarray(X, dtype=float), y)
        refuse_leaks(data)
        # Both are true: bits that no sample has, and blobs that a threshold separates.
        assert all(re.search("constant|by thresholds", remark) for remark in data_remarks(data))


def some_digits(classes: tuple[int, ...], each: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == label)[:each] for label in classes])
    return X[rows], y[rows]


def test_a_measurement_or_pixel_that_separates_two_classes_is_accepted_and_remarked_on():
    iris = load_dataset("iris")
    setosa = table(iris.X, (iris.y == 0).astype(int), iris.feature_names)
    refuse_leaks(setosa)
    assert "petal length (cm), petal width (cm)) separate the classes" in " ".join(
        data_remarks(setosa)
    )
    X, y = some_digits((0, 2), 20)
    assert any(
        "x36" in remark and "separate" in remark
        for remark in data_remarks(Dataset(X, y, Tensor((64,))))
    )
    for grey in (X, X // 4, X > 7):
        refuse_leaks(table(np.asarray(grey, dtype=float), y))


@pytest.mark.slow
@pytest.mark.parametrize("each", [11, 20, 40])
def test_pixels_of_any_two_digits_are_accepted(each):
    for a in range(10):
        for b in range(a):
            X, y = some_digits((b, a), each)
            for grey in (X, X // 4, X > 7):
                refuse_leaks(table(np.asarray(grey, dtype=float), y))


def test_a_gene_that_defines_two_classes_is_accepted_and_a_copy_of_many_samples_is_refused():
    rng = np.random.default_rng(0)
    genotypes = rng.binomial(2, 0.3, size=(300, 40)).astype(float)
    y = (genotypes[:, 7] > 0).astype(int)
    for n in (60, 300):
        data = table(genotypes[:n], y[:n])
        refuse_leaks(data)
        assert any(
            re.search("'c7' separates the classes alone", remark) for remark in data_remarks(data)
        )
    present = table((genotypes > 0).astype(float), y)
    assert "equals the label" in refusal(present)
    refuse_leaks(table(present.X[:60], y[:60]))
    # One measurement of few values among others of many is no feature like them.
    assert "equals the label" in refusal(
        table(np.column_stack([y[:60], rng.normal(size=(60, 40))]), y[:60])
    )


def test_a_word_of_one_text_is_no_copy_of_a_label_of_one_text():
    rng = np.random.default_rng(0)
    words, Y = (rng.random((60, 400)) < 0.02).astype(float), rng.integers(2, size=(60, 3))
    Y[:, 2] = words[:, 0] = np.arange(60) == 3
    refuse_leaks(Dataset(words, Y, Tensor((400,))))
    words[:, 1] = Y[:, 1]
    copied = Dataset(words, Y, Tensor((400,)))
    refuse_leaks(copied)
    assert "Column 'x1' tells one label alone" in " ".join(data_remarks(copied))
    assert "x1" in refusal(Dataset(np.tile(words, (4, 1)), np.tile(Y, (4, 1)), Tensor((400,))))


def test_samples_that_are_stored_ten_times_are_no_recoding():
    iris = load_dataset("iris")
    refuse_leaks(table(np.tile(iris.X, (10, 1)), np.tile(iris.y, 10)))


def test_an_index_of_chosen_classes_is_refused_and_numbers_in_another_order_are_remarked_on():
    order = np.argsort(WINE.y, kind="stable")
    chosen = np.flatnonzero(WINE.y[order] != 1)  # an index with gaps
    data = with_columns(table(WINE.X[order][chosen], WINE.y[order][chosen]), {"row": chosen})
    assert "'row' numbers the samples" in refusal(data)
    numbers = np.random.default_rng(0).permutation(WINE.n_samples)
    data = with_columns(table(WINE.X, WINE.y), {"sample": numbers})
    refuse_leaks(data)
    (remark,) = data_remarks(data)
    assert "'sample'" in remark
    assert "dataset.drop" in remark


def test_every_layout_and_each_task_alone_is_checked():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)), np.arange(40) % 2
    X[:, 4] = 7 - y
    views, names = Modalities({"a": 3, "b": 3}), ("a.x", "a.y", "a.z", "b.x", "b.y", "b.z")
    for data, words in (
        (Dataset(X, y, Matrix(2, 3)), ["'r1c1'", "remove it from the file"]),
        (Dataset(X, y, views), ["'b[1]'"]),
        (Dataset(X, y, views, feature_names=names), ["[b.y]"]),
    ):
        assert all(word in refusal(data) for word in words)
    both = join_tasks({"one": table(X[:, :3], y), "two": with_columns(table(X[:, :2], y), {"": y})})
    message = refusal(both)
    assert "task two" in message
    assert "dataset.tasks.drop: ['']" in message
    refuse_leaks(both, ["two/"])
    assert "did you mean `alcohol`?" in refusal(WINE, ("alcohl",))


def test_a_column_that_equals_one_of_several_labels_is_refused():
    rng = np.random.default_rng(0)
    Y = rng.integers(2, size=(60, 3))
    for copy in (Y[:, 1], 1 - Y[:, 1], 5 * Y[:, 1]):
        X = np.column_stack([rng.normal(size=(60, 2)), copy])
        data = Dataset(
            X, Y, Tensor((3,)), feature_names=("a", "b", "c"), label_names=("sky", "sea", "sand")
        )
        assert "'c' tells the label 'sea'" in refusal(data)
    refuse_leaks(Dataset(rng.normal(size=(60, 2)), Y, Tensor((2,))))


def test_a_column_that_gives_one_of_several_quantities_names_it_as_a_quantity():
    """Those of an array are named by their number."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    Y = np.column_stack([np.exp(X[:, 0] + X[:, 1]), 3 * X[:, 2] + 1])
    data = Dataset(X, Y, Tensor((3,)), feature_names=("a", "b", "c"), label_names=("0", "1"))
    assert "'c' is quantity '1' in another unit" in refusal(data)


def test_a_study_refuses_a_leak_unless_it_is_kept_and_resumes_whatever_it_holds(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{i},{i % 2},{a:.4f},{b:.4f}" for i, (a, b) in enumerate(rng.normal(size=(24, 2)))]
    (tmp_path / "t.csv").write_text("row,y,a,b\n" + "\n".join(lines), encoding="utf-8")
    changes = {
        "solver": {"name": "fisher_score"},
        "evaluation__n_features": [1, 2],
        "cv": {"outer": 2, "inner": 2},
    }
    with pytest.raises(DataError, match="column 'row' numbers the samples"):
        make_study(tmp_path / "t.csv", **changes)
    result = run_offline(
        raw_config(tmp_path / "t.csv", dataset__keep=["row"], **changes), tmp_path / "study"
    )
    assert any("'row' numbers the samples" in remark for remark in result.remarks())
    # As a study of a version that knew no such check: its configuration names no column to keep.
    prepared = prepare_study(raw_config(tmp_path / "t.csv", **changes), resumed=result.directory)
    assert prepared.dataset.feature_names == ("row", "a", "b")


@st.composite
def labelled(draw):
    n = draw(st.integers(22, 60))
    n_classes = draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = np.concatenate(
        [np.repeat(np.arange(n_classes), 2), rng.integers(n_classes, size=n - 2 * n_classes)]
    )
    X = rng.normal(size=(n, draw(st.integers(1, 4))))
    if draw(st.booleans()):
        X[:, 0] = np.round(X[:, 0])
    if draw(st.booleans()):
        X[:, 0] = 10 * y + rng.integers(2, size=n)
    return X, y, rng


def outcome(data: Dataset) -> str:
    try:
        refuse_leaks(data)
    except DataError as error:
        return str(error)
    return "accepted"


@settings(max_examples=15)
@given(labelled())
def test_every_bijection_of_the_label_is_refused(sample):
    X, y, rng = sample
    codes = rng.permutation(50)[: y.max() + 1] - 20.5
    order = rng.permutation(len(y))
    assert "label" in refusal(table(np.column_stack([X, codes[y]])[order], y[order]))


@settings(max_examples=15)
@given(labelled())
def test_the_order_of_the_samples_and_the_names_of_the_classes_change_nothing(sample):
    X, y, rng = sample
    order = rng.permutation(len(y))
    expected = outcome(table(X, y))
    assert outcome(table(X[order], y[order])) == expected
    names = np.array(["d", "a", "c", "b"])
    assert outcome(table(X, names[y])) == expected.replace(
        "equals the label", "is the label in other values"
    )


@settings(max_examples=15)
@given(labelled())
def test_measurements_are_never_refused(sample):
    _, y, rng = sample
    refuse_leaks(table(rng.normal(size=(len(y), 30)), y))
    refuse_leaks(
        table(rng.normal(size=(len(y), 5)) + 20 * y[:, None], y)
    )  # each separates the classes


def test_subjects_of_many_samples_each_are_refused_with_groups_as_a_remedy():
    codes = np.random.default_rng(0).permutation(1000)
    data = load_dataset("breast_cancer")
    message = refusal(with_columns(table(data.X, data.y), {"s": codes[subjects(data.y, 12)]}))
    assert "cv.groups" in message


def test_nothing_warns_on_columns_of_any_size():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = np.arange(30) % 2
        extremes = np.stack(
            [np.full(30, 1e308), np.arange(30) * 1e300, np.where(y, -0.0, 1e-320)], axis=1
        )
        data = table(np.column_stack([extremes, np.random.default_rng(0).normal(size=30)]), y)
        refusal(data)
        data_remarks(data)


@pytest.mark.parametrize(
    ("names", "refused"), [(("time", "event"), True), (("exercise_time", "event"), False)]
)
def test_the_time_to_the_event_that_is_the_label_is_refused_as_a_feature(names, refused):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame[names[0]], frame[names[1]] = rng.exponential(500, 60), np.arange(60) % 2
    data = Dataset.from_frame(frame, label=names[1])
    if refused:
        with pytest.raises(
            DataError, match=r"time to the event 'event'.*dataset\.drop.*dataset\.keep"
        ):
            refuse_leaks(data)
    refuse_leaks(data, [names[0]])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["row", "col"], "row and col may tell where"),
        (["lat"], "lat may tell where a sample was measured, and is a feature: drop it"),
        (["well_row", "well_col"], "well_row and well_col may tell where"),
        (["sample_weight"], "how much each sample counts"),
        (["row_1", "col_sum"], None),
    ],
)
def test_places_and_weights_among_the_features_are_said(columns, words):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame[columns] = rng.normal(size=(60, len(columns)))
    frame["y"] = np.arange(60) % 2
    said = [
        remark
        for remark in data_remarks(Dataset.from_frame(frame))
        if "may tell where" in remark or "counts" in remark
    ]
    assert (len(said) == 1 and words in said[0]) if words else said == []
