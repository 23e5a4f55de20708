"""Claims of regions of images and volumes: planted regions, files, levels, what is refused."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from report_pages import Page
from scipy.ndimage import gaussian_filter, label
from small_studies import raw_config, run_offline
from small_volumes import write_volumes

import raysel
from raysel.cli.main import main as run_command
from raysel.core.errors import ConfigError, DirectoryError, StudyError
from raysel.results.feature_claims import FeatureClaims
from raysel.results.page.contents import render_page
from raysel.results.page.report import make_page
from raysel.results.region_claims import RegionClaims

QUIET = {"progress": False, "executor": "serial"}
FAST = {
    "solver": {"name": "fisher_score"},
    "cv": {"outer": 2, "inner": 2},
    "evaluation": {"classifier": "knn", "n_features": [9], "references": False},
}
#: Regions of each clustering of the images.
FEW = 12


def planted_squares():
    """Where images of 12 x 10 cells tell the classes: two squares of nine cells."""
    squares = np.zeros((12, 10), dtype=bool)
    squares[1:4, 1:4] = squares[8:11, 6:9] = True
    return squares


def image_study(folder, y=None, **changes):
    """A finished study of smooth images, with a class that is brighter in both squares."""
    rng = np.random.default_rng(0)
    X = gaussian_filter(rng.standard_normal((80, 12, 10)), (0, 0.8, 0.8))
    X /= X.std()
    truth = np.arange(80) % 2
    X += truth[:, None, None] * planted_squares()
    X[:, 0, 9] = 1.0  # constant
    np.savez(folder / "images.npz", X=X, y=truth if y is None else y, age=20.0 + truth)
    return run_offline(raw_config(folder / "images.npz", **FAST, **changes), folder / "study")


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """The study of images, with its claims."""
    result = image_study(tmp_path_factory.mktemp("images"))
    return result.path, raysel.claim_features(result.path, fwer=0.05, regions=FEW, **QUIET)


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    """A study of volumes in a mask, and what they were made of."""
    pytest.importorskip("nibabel")
    folder = tmp_path_factory.mktemp("volumes")
    made = write_volumes(folder, n=60)
    path = run_offline(raw_config(dataset=made.dataset, **FAST), folder / "study").path
    return made, path, raysel.claim_features(path, **QUIET)


def test_both_squares_are_claimed_as_regions_of_their_own(images):
    _, claims = images
    claimed, squares = claims.claimed_features.reshape(12, 10), planted_squares()
    assert len(claims.regions) == 2
    near = gaussian_filter(squares.astype(float), 1.5) > 0.02
    assert not (claimed & ~near).any()
    for region in claims.regions:
        assert squares.ravel()[region.peak]
        rows, columns = np.unravel_index(region.cells, (12, 10))
        assert region.centre == pytest.approx((rows.mean(), columns.mean()))
        assert region.p_value == claims.adjusted[region.cells].min() <= 0.05
    sets, n = label(claimed)
    assert n == 2
    for number in (1, 2):
        assert len(np.unique(sets.ravel()[claims.region == number])) == 1
    assert claims.p_value[9] == claims.adjusted[9] == 1  # the constant cell
    assert "2 regions of" in claims.short_sentence()


def test_another_level_computes_nothing_again(images):
    path, claims = images
    journal = path / "claims" / f"regions-{FEW}" / "journal.jsonl"
    before = journal.read_bytes()
    loose = raysel.claim_features(path, fdr=0.2, regions=FEW, **QUIET)
    assert journal.read_bytes() == before
    np.testing.assert_array_equal(loose.p_value, claims.p_value)
    assert (loose.adjusted <= claims.adjusted).all()


def test_the_files_hold_what_is_returned(images):
    path, _ = images
    claims = raysel.claim_features(path, fwer=0.05, regions=FEW, **QUIET)
    read = raysel.open_study(path).claims
    assert isinstance(read, RegionClaims)
    for name in ("p_value", "adjusted", "region"):
        np.testing.assert_array_equal(getattr(read, name), getattr(claims, name))
    assert read.sentences() == claims.sentences()
    cells = pd.read_csv(path / "claims" / "claims.csv").set_index("index").sort_index()
    np.testing.assert_array_equal(cells["region"], claims.region)
    np.testing.assert_array_equal(cells["row"] * 10 + cells["column"], np.arange(120))
    regions = pd.read_csv(path / "claims" / "regions.csv")
    assert list(regions["n_cells"]) == [(claims.region == i).sum() for i in regions["region"]]
    assert list(regions["peak_row"] * 10 + regions["peak_column"]) == list(regions["peak_index"])
    ranking = pd.read_parquet(path / "ranking" / "ranking.parquet").set_index("feature")
    np.testing.assert_array_equal(
        ranking.loc[list(claims.feature_names), "p_value_claim_covariance"], claims.adjusted
    )


def test_the_command_prints_the_table_of_regions(images, capsys):
    path, claims = images
    words = ["claims", str(path), "--executor", "serial", "--fwer", "0.05", "--regions", str(FEW)]
    assert run_command(words) == 0
    printed = capsys.readouterr().out
    for number, region in enumerate(claims.regions, start=1):
        row = [str(number), str(len(region.cells)), claims.feature_names[region.peak]]
        assert row in [line.split()[:3] for line in printed.splitlines()]
    assert "regions.csv" in printed


def test_the_report_outlines_the_regions_on_the_mean_image(images):
    path, _ = images
    claims = raysel.claim_features(path, fwer=0.05, regions=FEW, **QUIET)
    ax = raysel.open_study(path).plot_claimed_regions(Figure().subplots())
    mean = np.load(path.parent / "images.npz")["X"].mean(axis=0)
    np.testing.assert_allclose(ax.images[-1].get_array().filled(np.nan), mean)
    claimed = np.pad(claims.claimed_features.reshape(12, 10).astype(int), 1)
    n_sides = sum(int(np.abs(np.diff(claimed, axis=axis)).sum()) for axis in (0, 1))
    assert len(ax.collections[-1].get_segments()) == n_sides
    numbers = {text.get_text(): text.get_position() for text in ax.texts}
    for number, region in enumerate(claims.regions, start=1):
        row, column = divmod(region.peak, 10)
        assert numbers[str(number)] == (column, row)
    page = Page(render_page(make_page(raysel.open_study(path))))
    assert "claimed at a family-wise error rate of 0.05" in page.text
    table = page.downloads["regions.csv"].decode().splitlines()
    assert len(table) == 1 + len(claims.regions)


def test_volumes_have_positions_in_space_and_a_map(volumes):
    import nibabel  # noqa: PLC0415 - tests are skipped without it

    made, path, claims = volumes
    assert claims.regions
    indices = np.argwhere(made.mask)
    assert made.region[tuple(indices[claims.regions[0].peak])]
    table = pd.read_csv(path / "claims" / "regions.csv").iloc[0]
    centre = indices[claims.regions[0].cells].mean(axis=0)
    expected = made.affine @ [*centre, 1]
    found = [table[f"centre_{axis}_mm"] for axis in "xyz"]
    np.testing.assert_allclose(found, expected[:3])
    assert table["volume_mm3"] == pytest.approx(2 * 2.5 * 3 * table["n_cells"], rel=1e-5)
    side = "L" if expected[0] < 0 else "R"
    shown = claims.figures()
    assert shown.header == ["region", "voxels", "mm3", "peak", "centre", "adjusted p"]
    assert shown.rows[0][4].endswith(f"mm {side}")
    image = nibabel.load(path / "claims" / "claimed.nii.gz")
    np.testing.assert_array_equal(image.get_fdata()[made.mask], claims.region)
    assert np.isnan(image.get_fdata()[~made.mask]).all()
    np.testing.assert_array_equal(image.affine, made.affine)
    header = image.header
    assert (float(header["cal_min"]), float(header["cal_max"])) == (0, len(claims.regions))
    assert header["descrip"].item().startswith(b"raysel: number of the region claimed")
    values = nibabel.load(path / "claims" / "neg_log10_p_value_claim.nii.gz").get_fdata()
    np.testing.assert_allclose(values[made.mask], -np.log10(claims.adjusted), rtol=1e-5, atol=1e-7)


def test_no_region_of_a_volume_lies_outside_of_the_mask_or_far_from_the_truth(volumes):
    made, _, claims = volumes
    positions = np.argwhere(made.mask) @ made.affine[:3, :3].T
    truth = positions[made.region[made.mask]]
    for region in claims.regions:
        apart = np.linalg.norm(positions[region.cells][:, None] - truth, axis=2)
        assert apart.min() <= claims.largest_extent


def test_zero_regions_are_single_features(images, tmp_path):
    path, _ = images
    copy = tmp_path / "study"
    shutil.copytree(path, copy)
    claims = raysel.claim_features(copy, regions=0, **QUIET)
    assert isinstance(claims, FeatureClaims)
    assert isinstance(raysel.open_study(copy).claims, FeatureClaims)
    assert not (copy / "claims" / "regions.csv").exists()


def test_an_interrupted_call_goes_on_with_the_same_numbers(images, tmp_path):
    path, claims = images
    copy = tmp_path / "study"
    shutil.copytree(path, copy)
    journal = copy / "claims" / f"regions-{FEW}" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:4]))
    again = raysel.claim_features(copy, fwer=0.05, regions=FEW, **QUIET)
    np.testing.assert_array_equal(again.p_value, claims.p_value)
    np.testing.assert_array_equal(again.adjusted, claims.adjusted)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_ray_computes_the_same(images, tmp_path):
    path, claims = images
    copy = tmp_path / "study"
    shutil.copytree(path, copy)
    shutil.rmtree(copy / "claims")
    by_ray = raysel.claim_features(copy, fwer=0.05, regions=FEW, executor="ray", progress=False)
    np.testing.assert_array_equal(by_ray.p_value, claims.p_value)


def test_labels_without_meaning_claim_no_region(tmp_path):
    y = np.random.default_rng(5).permutation(np.arange(80) % 2)
    result = image_study(tmp_path, y)
    claims = raysel.claim_features(result.path, fwer=0.05, regions=FEW, **QUIET)
    assert not claims.regions
    assert claims.short_sentence().startswith("No region is claimed")
    assert raysel.open_study(result.path).claims.sentences() == claims.sentences()
    with pytest.raises(StudyError, match="claims no regions"):
        raysel.open_study(result.path).plot_claimed_regions()


@pytest.mark.parametrize("named", [False, True])
def test_what_tells_the_label_through_a_confound_only_is_not_claimed(named, tmp_path):
    """Squares are brighter with age, and so is one class older; age takes all of that away."""
    rng = np.random.default_rng(1)
    age = rng.normal(60, 8, 200)
    X = gaussian_filter(rng.standard_normal((200, 12, 10)), (0, 0.8, 0.8)) * 3
    X += ((age - 60) / 8)[:, None, None] * planted_squares()
    y = (age + rng.normal(0, 4, 200) > 60).astype(int)
    np.savez(tmp_path / "images.npz", X=X, y=y)
    table = pd.DataFrame({"sample": np.arange(200), "age": age})
    table.to_csv(tmp_path / "ages.csv", index=False)
    beside = {"dataset__table": str(tmp_path / "ages.csv"), "dataset__confounds": ["age"]}
    raw = raw_config(tmp_path / "images.npz", **FAST, **(beside if named else {}))
    result = run_offline(raw, tmp_path / "study")
    claims = raysel.claim_features(result.path, fwer=0.05, regions=FEW, **QUIET)
    assert len(claims.p_value) == 120
    assert bool(claims.regions) != named


def test_confounds_that_are_the_label_are_refused(tmp_path):
    result = image_study(tmp_path, dataset__confounds=["age"])
    with pytest.raises(StudyError, match="tell the label exactly"):
        raysel.claim_features(result.path, regions=FEW, **QUIET)


def test_damaged_files_are_refused_by_name(images, tmp_path):
    copy = tmp_path / "study"
    shutil.copytree(images[0], copy)
    (copy / "claims" / "result.json").write_text('{"n_regions": "many"}')
    with pytest.raises(DirectoryError, match="cannot be read as claims"):
        _ = raysel.open_study(copy).claims


@pytest.mark.parametrize("given", [{"regions": -1}, {"regions": 1}, {"regions": "few"}])
def test_numbers_of_regions_are_checked_before_anything_is_read(given, tmp_path):
    with pytest.raises(ConfigError, match="regions="):
        raysel.claim_features(tmp_path / "no study", **given, **QUIET)


def test_regions_beside_correlated_groups_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="regions and correlated"):
        raysel.claim_features(tmp_path / "no study", regions=4, correlated=0.5, **QUIET)


def test_regions_of_a_table_are_refused(tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 6))
    np.savez(tmp_path / "table.npz", X=X, y=np.arange(40) % 2)
    changes = {**FAST, "evaluation": {**FAST["evaluation"], "n_features": [2]}}
    result = run_offline(raw_config(tmp_path / "table.npz", **changes), tmp_path / "study")
    with pytest.raises(ConfigError, match="no feature has neighbours"):
        raysel.claim_features(result.path, regions=4, **QUIET)
