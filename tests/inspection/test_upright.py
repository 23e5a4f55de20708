"""Mirror symmetry of mean images, and the agreement of classes on it."""

import numpy as np
import pytest

from raysel.study.inspection.arrangement import is_known, symmetry

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


def test_symmetry_is_above_one_upright_and_its_inverse_on_the_side():
    images = draw()
    upright = symmetry(images.reshape(40, -1), SHAPE)
    assert upright > 3
    assert symmetry(on_side(images).reshape(40, -1), SHAPE[::-1]) == pytest.approx(1 / upright)


def test_mean_images_that_are_noise_tell_nothing():
    images = draw()
    noise = images - images.mean(axis=0)
    for X in (noise, np.ones_like(images)):
        assert symmetry(X.reshape(40, -1), SHAPE) == 1
        assert not known(X, np.arange(40) % 5)


def test_side_is_known_where_five_classes_of_four_samples_agree():
    for images in (draw(), on_side(draw())):
        assert known(images, np.arange(40) % 5)
        assert known(images, np.arange(40) % 10)
        for y in (None, np.arange(40) % 4, np.arange(40) % 11 * (np.arange(40) % 11 > 6), np.arange(40)):
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
