"""Studies that rank groups of features: what is planted, what is written, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import LinearSVC
from small_studies import raw_config, run_offline, shown

import raysel
from raysel.cli.main import main as run_command
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, RayselError, StudyError
from raysel.results.export import export_result
from raysel.results.result import StudyResult
from raysel.study.definition import Study

#: Modules of four columns with a common factor; the first two tell the classes.
N_MODULES, SIZE = 12, 4


def planted() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    factors = rng.normal(size=(80, N_MODULES))
    factors[:, :2] += 1.5 * y[:, None]
    X = np.repeat(factors, SIZE, axis=1) + 0.5 * rng.normal(size=(80, N_MODULES * SIZE))
    frame = pd.DataFrame(X, columns=[f"G{number:02d}" for number in range(X.shape[1])])
    return frame.assign(label=np.array(["a", "b"])[y])


def config(folder: Path, **dataset: Any) -> dict[str, Any]:
    planted().to_csv(folder / "genes.csv", index=False)
    return raw_config(
        folder / "genes.csv",
        dataset={"path": str(folder / "genes.csv"), "label": "label", **dataset},
        solver={"name": "linear_svm", "params": {"penalty": "l1"}, "space": {"C": [0.1]}},
        evaluation={"estimator": "linear_svm", "n_features": [4]},
        cv={"outer": 4, "inner": 2},
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    folder = tmp_path_factory.mktemp("grouped")
    return run_offline(config(folder, feature_groups={"correlated": 0.5}), folder / "study")


def test_planted_modules_stand_first_and_all_folds_select_them(study: StudyResult) -> None:
    groups = study.group_ranking()
    best = [set(groups.members[i].tolist()) for i in groups.order[:2]]
    assert set.union(*best) == set(range(2 * SIZE))
    assert groups.selection_frequency[groups.order[:2]].tolist() == [1, 1]
    assert groups.n_groups == N_MODULES
    assert groups.stability.value > study.stability().value


def test_the_groups_change_no_number(study: StudyResult, tmp_path: Path) -> None:
    plain = run_offline(config(tmp_path), tmp_path / "study")
    assert plain.test_scores == study.test_scores
    np.testing.assert_array_equal(plain.ranking().fold_ranks, study.ranking().fold_ranks)
    with pytest.raises(StudyError, match=r"dataset\.feature_groups"):
        plain.group_ranking()


def test_a_study_that_is_read_again_has_its_groups(study: StudyResult) -> None:
    again = raysel.open_study(study.path).group_ranking()
    assert again.to_table() == study.group_ranking().to_table()


def test_files_hold_each_member_beside_its_group(study: StudyResult, tmp_path: Path) -> None:
    export_result(study, tmp_path)
    table = pd.read_csv(tmp_path / "groups.csv")
    pd.testing.assert_frame_equal(table, pd.read_parquet(tmp_path / "groups.parquet"))
    ranking = pd.read_csv(tmp_path / "ranking.csv").set_index("feature")
    shares = ranking["selection_frequency"][table["feature"]]
    assert shares.tolist() == table["selection_frequency"].tolist()
    assert len(table) == len(ranking)


def test_the_terminal_names_the_best_member(study: StudyResult) -> None:
    label = study.group_ranking().labels[study.group_ranking().order[0]]
    assert label.endswith(f" +{SIZE - 1}")
    assert any(line.startswith("groups") and label in line for line in shown(study, False, False))
    assert label in "\n".join(shown(study, False))


def test_a_forged_group_is_refused(study: StudyResult, tmp_path: Path) -> None:
    journal = study.directory.journal.read_text().splitlines()
    record = json.loads(journal[0])
    for forged in ({"m": [10**6]}, {"m": [0, 0]}, {"m": []}):
        line = json.dumps({**record, "feature_groups": forged})
        (tmp_path / "journal.jsonl").write_text("\n".join([line, *journal[1:]]))
        with pytest.raises(RayselError):
            raysel.open_study(tmp_path)


def test_an_unknown_feature_is_refused_before_any_fit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="G99"):
        Study.prepare(config_from_dict(config(tmp_path, feature_groups={"m": ["G99"]})))


def test_nested_search_ranks_groups() -> None:
    frame = planted()
    X, y = frame.drop(columns="label"), frame["label"]
    model = LinearSVC(penalty="l1", C=0.1)
    modules = {f"m{i}": list(X.columns[SIZE * i : SIZE * (i + 1)]) for i in range(N_MODULES)}
    search = raysel.NestedSearch(model, outer=3, feature_groups=modules).fit(X, y)
    groups = search.study_.group_ranking(top=2)
    assert {groups.names[i] for i in groups.order[:2]} == {"m0", "m1"}


def test_stability_selection_counts_the_halves_that_select_a_member(
    study: StudyResult, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the best features of each half, as the journal holds them."""
    assert study.group_selection is None
    command = ["stability", str(study.path), "--subsamples", "12", "--threshold", "0.9"]
    assert run_command([*command, "--executor", "serial"]) == 0
    again = raysel.open_study(study.path)
    features, groups = again.stability_selection, again.group_selection
    journal = study.path / "stability" / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    best = {line["number"]: line["value"]["best"] for line in lines if line["kind"] == "piece"}
    # The correlated groups are the modules, named by their first members.
    selected = [{feature // SIZE for feature in best[half][: features.top]} for half in range(12)]
    counts = [sum(module in half for half in selected) for module in range(N_MODULES)]
    pairs = list(zip(selected[::2], selected[1::2], strict=True))
    both = [sum(module in one & other for one, other in pairs) for module in range(N_MODULES)]
    assert groups.counts.tolist() == counts
    assert groups.pair_counts.tolist() == both
    assert groups.n_selected.tolist() == [len(half) for half in selected]
    assert groups.selected.tolist() == [count >= 0.9 * 12 - 1e-9 for count in counts]
    assert groups.selected[:2].all()
    assert groups.p == N_MODULES
    assert (groups.probability.repeat(SIZE) >= features.probability).all()
    assert groups.short_sentence() in " ".join(capsys.readouterr().out.split())
    table = pd.read_csv(study.path / "stability" / "groups" / "selection.csv")
    assert table["selection_probability"].tolist() == sorted(groups.probability, reverse=True)
