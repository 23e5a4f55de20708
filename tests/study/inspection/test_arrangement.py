"""Mirror symmetry of mean images, and the agreement of classes on it."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter
from sklearn import datasets
from sklearn.feature_extraction.image import extract_patches_2d

from raysel import Dataset
from raysel.data.layouts import Matrix, Modalities, Tensor
from raysel.study.inspection.arrangement import (
    arrangement_remark,
    find_arrangement,
    is_known,
    symmetry,
)

SHAPE = (20, 16)


def draw(n=40, noise=0.3):
    """Noisy images, 20 x 16, that are mirrored left to right: two dark spots above a bar."""
    image = np.zeros(SHAPE)
    image[5, [3, 12]] = image[13, 5:11] = 1.0
    return image + noise * np.random.default_rng(0).standard_normal((n, *SHAPE))


def on_side(images):
    return images.transpose(0, 2, 1)


def known(images, y):
    X, shape = images.reshape(len(images), -1), images.shape[1:]
    return is_known(symmetry(X, shape), X, y, shape)


def test_symmetry_is_above_one_upright_and_its_inverse_on_the_side_and_one_of_noise():
    images = draw()
    upright = symmetry(images.reshape(40, -1), SHAPE)
    assert upright > 3
    assert symmetry(on_side(images).reshape(40, -1), SHAPE[::-1]) == pytest.approx(1 / upright)
    for X in (images - images.mean(axis=0), np.ones_like(images)):
        assert symmetry(X.reshape(40, -1), SHAPE) == 1
        assert not known(X, np.arange(40) % 5)


def test_side_is_known_where_five_classes_of_four_samples_agree():
    for images in (draw(), on_side(draw())):
        assert known(images, np.arange(40) % 5)
        assert known(images, np.arange(40) % 10)
        for y in (
            None,
            np.arange(40) % 4,
            np.arange(40) % 11 * (np.arange(40) % 11 > 6),
            np.arange(40),
        ):
            assert not known(images, y)
        assert not known(images[:, 2:-2, 2:-2], np.arange(40) % 5)  # 12 cells


def test_one_class_in_five_that_disagrees_leaves_the_side_unknown():
    images = np.random.default_rng(0).normal(scale=0.1, size=(40, 20, 20))
    images[:, 4, [4, 15]] += 1.0
    y = np.arange(40) % 5
    assert known(images, y)
    images[y == 2] = on_side(images[y == 2])
    assert symmetry(images.reshape(40, -1), (20, 20)) > 3
    assert not known(images, y)


def smooth_fields(height, width, seed, n=60):
    """Draw independent smooth random fields of one shape, with unit variance on average."""
    noise = np.random.default_rng(seed).standard_normal((n, height, width))
    fields = gaussian_filter(noise, (0, 1, 1))
    return fields / fields.std() + 0.3 * np.random.default_rng(seed + 1).standard_normal(
        fields.shape
    )


def remark(X, layout, order="C", y=None):
    """The remark on rows that a study declares to have the layout and order."""
    columns = np.arange(X.shape[1])
    if order == "F":
        columns = columns.reshape(layout.shape, order="F").ravel()
    return arrangement_remark(
        Dataset(X[:, columns], np.arange(len(X)) % 2 if y is None else y, layout)
    )


SIDES, SEEDS = st.integers(6, 24), st.integers(0, 2**20)


@settings(max_examples=10)
@given(height=SIDES, width=SIDES, seed=SEEDS)
def test_shape_of_smooth_fields_is_found(height, width, seed):
    fields = smooth_fields(height, width, seed)
    found = find_arrangement(fields.reshape(60, -1))
    assert (found.shape, found.order, found.order_known) == ((height, width), "C", False)
    by_columns = find_arrangement(fields.transpose(0, 2, 1).reshape(60, -1), column_major=True)
    assert (by_columns.shape, by_columns.order) == ((height, width), "F")
    assert by_columns.row_length == height


# With fewer cells, some permutations put many neighbours side by side by chance.
@settings(max_examples=10)
@given(height=st.integers(10, 24), width=st.integers(10, 24), seed=SEEDS)
def test_permuted_columns_have_no_shape(height, width, seed):
    X = smooth_fields(height, width, seed).reshape(60, -1)
    X = X[:, np.random.default_rng(seed).permutation(X.shape[1])]
    assert find_arrangement(X) is None
    assert "not in the order of an image" in remark(X, Matrix(height, width))


@settings(max_examples=10)
@given(height=SIDES, width=SIDES, seed=SEEDS)
def test_right_shape_is_not_remarked_and_the_other_way_round_is(height, width, seed):
    X = smooth_fields(height, width, seed).reshape(60, -1)
    assert remark(X, Matrix(height, width)) is None
    if height != width:
        wrong = f"[{width}, {height}]"
        for text in (remark(X, Matrix(width, height)), remark(X, Matrix(height, width), "F")):
            first = text.partition("\n")[0]
            assert f"set [{height}, {width}] and order C, or {wrong} and order F if" in first
            assert len(first.split()) <= 25


@settings(max_examples=10)
@given(n_features=st.integers(4, 400), seed=SEEDS)
def test_spectra_and_noise_have_no_shape(n_features, seed):
    noise = np.random.default_rng(seed).standard_normal((60, n_features))
    assert find_arrangement(noise) is None
    assert find_arrangement(gaussian_filter(noise, (0, 3))) is None
    assert find_arrangement(noise.cumsum(axis=1)) is None


def test_figures_are_those_of_the_correlation_matrix():
    X = datasets.load_digits().data[:400]
    found = find_arrangement(X)
    cells = np.arange(64).reshape(8, 8)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = np.corrcoef(X.T)
    pairs = [
        correlations[cells[:, :-1], cells[:, 1:]].ravel(),
        correlations[cells[:-1], cells[1:]].ravel(),
    ]
    assert found.correlation == pytest.approx(np.nanmean(np.concatenate(pairs)))
    assert found.n_pairs == (~np.isnan(np.concatenate(pairs))).sum()
    assert found.n_samples == 400


def test_digits_are_found_in_either_order_and_neither_is_claimed():
    X = datasets.load_digits().data
    turned = X.reshape(-1, 8, 8).transpose(0, 2, 1).reshape(-1, 64)
    for rows in (X, turned):
        for column_major in (False, True):
            found = find_arrangement(rows, column_major=column_major)
            assert (found.shape, found.order) == ((8, 8), "CF"[column_major])
            assert not found.order_known
            assert "cannot be told" in found.describe()
        assert remark(rows, Matrix(8, 8)) is None


def test_images_on_their_side_are_turned_where_all_classes_are_mirrored():
    spots = np.zeros((20, 16))
    spots[5, [3, 12]] = spots[13, 5:11] = 6.0
    images, y = smooth_fields(20, 16, 0) + spots, np.arange(60) % 5
    X, turned = images.reshape(60, -1), images.transpose(0, 2, 1).reshape(60, -1)
    for column_major in (False, True):
        upright = find_arrangement(X, y, column_major=column_major)
        assert (upright.shape, upright.order, upright.order_known) == ((20, 16), "C", True)
        found = find_arrangement(turned, y, column_major=column_major)
        assert (found.shape, found.order, found.order_known) == ((20, 16), "F", True)
        assert "upright, because" in found.describe()
        assert not find_arrangement(turned, column_major=column_major).order_known
    assert remark(X, Matrix(20, 16), y=y) is None
    assert "shape [20, 16] with order F" in remark(turned, Matrix(16, 20), y=y)
    assert "shape [20, 16] and order F." in remark(turned, Matrix(20, 16), y=y)
    assert remark(turned, Matrix(16, 20)) is None


def test_few_digits_that_are_symmetric_top_to_bottom_do_not_lie_on_their_side():
    X, y = datasets.load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == label)[:20] for label in range(4)])
    assert arrangement_remark(Dataset(X[rows], y[rows], Matrix(8, 8))) is None
    assert not find_arrangement(X[rows], y[rows]).order_known


def test_tables_and_layouts_that_are_not_of_order_two_have_no_shape():
    for load in (datasets.load_wine, datasets.load_breast_cancer, datasets.load_iris):
        X, y = load(return_X_y=True)
        assert find_arrangement(X) is None
        assert arrangement_remark(Dataset(X, y, Tensor((X.shape[1],)))) is None
    X = smooth_fields(8, 12, 0).reshape(60, -1)
    for layout in (
        Tensor((96,)),
        Tensor((4, 8, 3)),
        Tensor((2, 48)),
        Modalities({"a": 90, "b": 6}),
    ):
        assert remark(X, layout) is None
    assert remark(X[:9], Matrix(12, 8)) is None


@pytest.mark.parametrize("name", ["china.jpg", "flower.jpg"])
def test_gray_patches_of_photographs_are_found_and_coloured_ones_are_not(name):
    photograph = datasets.load_sample_image(name)[::2, ::2]
    for size in ((16, 15), (20, 20)):
        patches = extract_patches_2d(photograph, size, max_patches=200, random_state=0).astype(
            np.float64
        )
        assert find_arrangement(patches.mean(axis=-1).reshape(200, -1)).shape == size
        assert find_arrangement(patches.reshape(200, -1)) is None
        assert find_arrangement(np.moveaxis(patches, -1, 1).reshape(200, -1)) is None


def test_samples_with_missing_values_do_not_count():
    for value in (np.nan, np.inf):
        X = smooth_fields(8, 12, 0).reshape(60, -1)
        X[3, 5] = value
        arrangement = find_arrangement(X)
        assert (arrangement.shape, arrangement.n_samples) == ((8, 12), 59)
        X[:] = value
        assert find_arrangement(X) is None


def test_too_little_or_constant_data_have_no_shape():
    for shape in ((0, 64), (9, 64), (20, 0), (20, 1), (20, 25), (20, 64)):
        assert find_arrangement(np.ones(shape)) is None


#: Sets of upright images, and whether their mean images tell which side is up.
REAL = [
    ("ORL.npz", True),
    ("ORL_28x23.npz", True),
    ("AR100_32x32.npz", True),
    ("PIE_68x42_32x32.npz", True),
    ("UMIST.npz", False),
    ("USPS.npz", False),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "side_known"), REAL)
def test_real_images_are_found_upright_on_their_side_and_scrambled(real_data, name, side_known):
    with np.load(real_data(name)) as file:
        images, y = file["X"].astype(np.float64), file["y"]
    n, h, w = images.shape
    upright, on_side = images.reshape(n, -1), images.transpose(0, 2, 1).reshape(n, -1)
    # Where the values do not tell the order, it is the usual one of the kind of file.
    for rows, order in ((upright, "C"), (on_side, "F")):
        for column_major in (False, True) if side_known else (order == "F",):
            found = find_arrangement(rows, y, column_major=column_major)
            assert (found.shape, found.order, found.order_known) == ((h, w), order, side_known)
    assert remark(upright, Matrix(h, w), y=y) is None
    text = remark(on_side, Matrix(w, h), y=y)
    assert f"shape [{h}, {w}] with order F" in text if side_known else text is None
    scrambled = upright[:, np.random.default_rng(0).permutation(h * w)]
    assert find_arrangement(scrambled) is None
    assert "not in the order of an image" in remark(scrambled, Matrix(h, w))
    for side in range(5, h * w // 5 + 1):
        if h * w % side == 0 and side != h:
            assert f"[{h}, {w}] and order C" in remark(upright, Matrix(side, h * w // side), y=y)


@pytest.mark.slow
def test_no_few_digits_lie_on_their_side(real_data):
    with np.load(real_data("USPS.npz")) as file:
        X, y = file["X"].reshape(-1, 256).astype(np.float64), file["y"]
    rows = np.concatenate([np.flatnonzero(y == label)[:30] for label in range(10)])
    X, y = X[rows], y[rows]
    for size in range(2, 7):
        for labels in combinations(range(10), size):
            part = np.isin(y, labels)
            ratio = symmetry(X[part], (16, 16))
            assert ratio > 1 or not is_known(ratio, X[part], y[part], (16, 16))


@pytest.mark.slow
def test_real_tables_have_no_shape(real_data):
    for name in (
        "Handwritten_mfeat.npz",
        "MSRCv1_6v.npz",
        "MSRCv2_6v_multilabel.npz",
        "Scene_multilabel.npz",
    ):
        with np.load(real_data(name)) as file:
            views = {str(view): file[f"view_{i}"] for i, view in enumerate(file["view_names"])}
        assert find_arrangement(np.hstack(list(views.values()))) is None
        for view, X in views.items():
            found = find_arrangement(X)
            # The only ones that are pictures: pixels, and Scene's moments of 7 x 7 blocks.
            picture = (16, 15) if view == "pix" else (7, 7)
            assert found is None or (found.shape == picture and X.shape[1] == np.prod(picture)), (
                view
            )
    lsp = np.load(real_data("LSP_sift_128x85.npz"))["X"].reshape(-1, 128 * 85)
    assert find_arrangement(lsp) is None
    assert remark(lsp[::9].astype(np.float64), Matrix(128, 85)) is None
