"""Mirror symmetry of mean images."""

import numpy as np
import pytest

from raysel.inspection.upright import is_known, symmetry


def draw(n=40, noise=0.3):
    """Noisy images, 12 x 10, that are mirrored left to right: two dark spots above a bar."""
    image = np.zeros((12, 10))
    image[3, [2, 7]] = image[8, 3:7] = 1.0
    return image + noise * np.random.default_rng(0).standard_normal((n, 12, 10))


def test_symmetry_is_above_one_upright_and_its_inverse_on_the_side():
    images = draw()
    upright = symmetry(images.reshape(40, -1), (12, 10))
    turned = symmetry(images.transpose(0, 2, 1).reshape(40, -1), (10, 12))
    assert is_known(upright)
    assert upright > 1
    assert turned == pytest.approx(1 / upright)


def test_mean_images_that_are_noise_tell_nothing():
    images = draw()
    noise = images - images.mean(axis=0)
    for X in (noise, np.ones_like(images)):
        assert symmetry(X.reshape(40, -1), (12, 10)) == 1
    assert not is_known(1.0)
