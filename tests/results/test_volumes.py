"""A study of volumes from files to maps: the maps lie on the planted region, in the place of the
mask.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_studies import raw_config, run_offline
from small_volumes import write_volumes

from raysel import select
from raysel.base.models import load_model
from raysel.cli.main import main as run_command
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError
from raysel.data.layouts import MaskedVolume
from raysel.run.api import open_study
from raysel.study.definition import Study

nibabel = pytest.importorskip("nibabel")


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    return write_volumes(tmp_path_factory.mktemp("volumes"))


def config(volumes, **changes):
    n = int(volumes.region.sum())
    return raw_config(
        **{
            "dataset": volumes.dataset,
            "solver": {"name": "fisher_score"},
            "evaluation": {"classifier": "knn", "n_features": [n], "references": False},
            **changes,
        }
    )


@pytest.fixture(scope="module")
def finished(volumes, tmp_path_factory):
    return run_offline(config(volumes), tmp_path_factory.mktemp("studies") / "study")


def test_the_maps_lie_on_the_planted_region_with_the_masks_affine(volumes, finished):
    mask_affine = nibabel.load(volumes.mask_file).affine
    maps = {}
    for name in ("scores", "selected"):
        image = nibabel.load(finished.directory.ranking / f"{name}.nii.gz")
        assert image.shape == volumes.mask.shape
        np.testing.assert_array_equal(image.affine, mask_affine)
        maps[name] = image.get_fdata()
    assert np.isnan(maps["scores"][~volumes.mask]).all()
    assert (maps["selected"][~volumes.mask] == 0).all()
    chosen, n = maps["selected"] > 0, int(volumes.region.sum())
    assert chosen.sum() == n
    assert (chosen & volumes.region).sum() >= 0.9 * n
    # The ratio of variances that fisher_score is, by the values themselves.
    x = volumes.values.astype(np.float64)
    classes = [x[volumes.y == label] for label in np.unique(volumes.y)]
    between = sum(len(c) * (c.mean(axis=0) - x.mean(axis=0)) ** 2 for c in classes)
    within = sum(len(c) * c.var(axis=0) for c in classes)
    np.testing.assert_allclose(
        maps["scores"][volumes.mask], (between / within)[volumes.mask], rtol=1e-4
    )
    assert np.mean(finished.test_scores) > 0.8


@pytest.mark.slow
def test_a_method_of_arrays_takes_the_box_around_the_mask(volumes, tmp_path):
    solver = {"name": "smr", "params": {"alpha": 0.3, "max_iter": 20}}
    study = run_offline(config(volumes, solver=solver), tmp_path / "study")
    chosen = nibabel.load(study.directory.ranking / "selected.nii.gz").get_fdata() > 0
    assert (chosen & volumes.region).sum() >= 0.8 * volumes.region.sum()
    model = load_model(study.path / "model.skops")
    assert np.mean(model.predict(volumes.values[:, volumes.mask]) == volumes.y) > 0.8


def test_the_opened_study_knows_the_layout_and_selects(volumes, finished, tmp_path, capsys):
    result = open_study(finished.path)
    assert result.layout == MaskedVolume(volumes.mask, volumes.affine)
    target = tmp_path / "top4.nii.gz"
    status = select.main(
        [str(finished.path), "--top", "4", "--mask", str(target), "--output", str(tmp_path / "out")]
    )
    assert status == 0
    assert "affine: of the data's mask" in capsys.readouterr().out
    image = nibabel.load(target)
    np.testing.assert_array_equal(image.affine, nibabel.load(volumes.mask_file).affine)
    found = image.get_fdata() > 0
    assert found.sum() == 4
    assert set(result.ranking(4).top()) == set(np.flatnonzero(found[volumes.mask]))
    assert {"scores.nii.gz", "selected.nii.gz"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }


@pytest.mark.parametrize("solver", ["two_dimensional_lda", "bilinear_mtda"])
def test_methods_of_whole_arrays_are_refused_by_name(volumes, solver):
    raw = config(volumes, solver={"name": solver}, evaluation={"classifier": "native"})
    with pytest.raises(ConfigError):
        Study.prepare(config_from_dict(raw))


@pytest.mark.slow
def test_pictures_and_report_of_volumes_over_a_background(volumes, tmp_path):
    head = tmp_path / "head.nii.gz"
    nibabel.save(nibabel.Nifti1Image(volumes.values[0], volumes.affine), head)
    raw = config(
        volumes, pictures=["png", "svg"], dataset={**volumes.dataset, "background": str(head)}
    )
    result = run_offline(raw, tmp_path / "study")
    head.unlink()  # an opened study needs no data file
    assert run_command(["report", str(result.path)]) == 0
    page = result.directory.report.read_text(encoding="utf-8")
    assert "over the image head.nii.gz" in page
    assert "axis" in (result.directory.ranking / "ranking.svg").read_text(encoding="utf-8")
    described = json.loads((result.directory.ranking / "manifest.json").read_text(encoding="utf-8"))
    assert described["config"]["dataset"]["mask"] == str(volumes.mask_file)
