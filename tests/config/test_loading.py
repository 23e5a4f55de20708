"""Reading a configuration: every mistake gets one message that names it; nothing else ever
escapes.
"""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raysel.config import builtin_configs, config_from_dict, dump_config, is_comparison, load_config
from raysel.config.space import domain_from_yaml
from raysel.core.errors import ConfigError

STUDY = """\
name: demo
seed: 3
dataset: {source: digits, exclude_labels: [sky], scaling: zscore}
solver:
  name: smr
  params: {max_iter: 20, tol: 1e-4}
  space: {alpha: {logspace: [0.01, 1, 3]}, rank: [1, 2]}
evaluation: {estimator: knn, n_neighbors: 3, n_features: [4, 8], choose_n: best, metric: accuracy,
  references: false}
cv: {outer: 3, inner: 4, repeats: 2, groups: subject, plan: plan.json}
search:
  {method: sobol, num_samples: 16, early_stopping: asha, grace_period: 2, reduction_factor: 4, synchronous: true,
   batch_size: 3, executor: ray, max_concurrent: 2, cpus_per_trial: 2, time_budget: 60.0,
   trial_timeout: 9.5, max_failures: 1}
tracking: {uri: "sqlite:///a.db", experiment: trying}
output: somewhere
pictures: [svg]
"""


def read(tmp_path: Path, text: str, *overrides: str):
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, overrides)


def refusal(tmp_path: Path, text: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text, *overrides)
    return str(refused.value)


def test_every_key_of_the_face_is_read(tmp_path):
    config = read(tmp_path, STUDY)
    assert config.to_dict() == yaml.safe_load(STUDY.replace("1e-4", "1.0e-4"))
    assert config.solver.params["tol"] == 0.0001
    other = read(tmp_path, STUDY, "dataset={path: faces.npz, shape: [4, 16]}")
    assert (other.dataset.path, other.dataset.shape, other.dataset.scaling) == (
        "faces.npz",
        (4, 16),
        None,
    )


@pytest.mark.parametrize(
    "written",
    [
        "{source: digits}",
        "{path: a.npz}",
        "{tasks: [{name: c, source: iris}, {name: d, source: wine}]}",
    ],
)
def test_an_override_of_the_origin_unsets_the_other_origins_and_nothing_else(tmp_path, written):
    text = re.sub(r"dataset: .*", f"dataset: {written[:-1]}, scaling: zscore}}", STUDY)
    for overrides, kept in (
        (["dataset.path=x.npz"], {"path": "x.npz"}),
        (["dataset.source=wine"], {"source": "wine"}),
        (["dataset.path=x.npz", "dataset.label=kind"], {"path": "x.npz", "label": "kind"}),
    ):
        expected = {**kept, "scaling": "zscore", "exclude_labels": []}
        assert read(tmp_path, text, *overrides).to_dict()["dataset"] == expected
    tasks = read(
        tmp_path, text, "dataset.tasks=[{name: a, source: iris}, {name: b, path: b.npz}]"
    ).to_dict()["dataset"]
    assert set(tasks) == {"tasks", "scaling", "exclude_labels"}


def test_an_override_of_the_origin_is_not_lost_by_one_that_unsets_it(tmp_path):
    assert read(tmp_path, STUDY, "dataset.path=null").dataset.source == "digits"


def test_two_origins_that_are_both_overridden_are_refused(tmp_path):
    assert "exactly one" in refusal(tmp_path, STUDY, "dataset.path=x.npz", "dataset.source=digits")
    both = {"dataset.path": "x.npz", "dataset.source": "wine"}
    with pytest.raises(ConfigError, match="exactly one"):
        load_config("digits-smr", both)


def test_the_builtin_studies_validate_and_survive_a_dump(tmp_path):
    found = {name: path for name, path in builtin_configs().items() if not is_comparison(path)}
    assert "digits-smr" in found
    for name, path in found.items():
        config = load_config(path)
        assert config == load_config(name) == read(tmp_path, dump_config(config))
        assert config.name == name


def test_a_builtin_study_is_found_by_name_whatever_directory_has_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = load_config(builtin_configs()["digits-smr"])
    (tmp_path / "digits-smr").mkdir()  # e.g. the output of an earlier study
    assert load_config("digits-smr") == load_config("conf/digits-smr.yaml") == expected
    (tmp_path / "digits-smr").rmdir()
    (tmp_path / "digits-smr").write_text(STUDY)
    assert load_config("digits-smr").name == "demo"


def test_a_misspelt_key_or_kind_of_domain_is_named_with_the_near_one(tmp_path):
    for key, near in (
        ("nam", "name"),
        ("evalution", "evaluation"),
        ("dataset.pth", "path"),
        ("solver.spaces", "space"),
        ("search.num_sample", "num_samples"),
    ):
        assert f"{key}: unknown key; did you mean `{near}`?" in refusal(tmp_path, STUDY, f"{key}=1")
    assert (
        "cv.zzz: unknown key; known here: outer, inner, repeats, train_per_class, groups, blocks,"
        " plan" in refusal(tmp_path, STUDY, "cv.zzz=1")
    )
    message = refusal(tmp_path, STUDY, "solver.space.alpha={logunifrom: [0.1, 1]}")
    assert "solver.space.alpha" in message
    assert "did you mean `loguniform`?" in message


WRONG_VALUES = [
    ("name=7", "name", "7"),
    ("name=a/b", "name", "a/b"),
    ("seed=-1", "seed", "-1"),
    ("seed=4294967296", "seed", "4294967296"),
    ("seed=true", "seed", "True"),
    ("seed='3'", "seed", "'3'"),
    ("seed=1.5", "seed", "1.5"),
    ("seed=.nan", "seed", "nan"),
    ("dataset.shape=8", "dataset.shape", "8"),
    ("dataset.shape=[]", "dataset.shape", ""),
    ("dataset.shape=[8, 0]", "dataset.shape.1", "0"),
    ("dataset.scaling=unti", "dataset.scaling", "unti"),
    ("dataset={path: x.npz, source: wine}", "dataset", "exactly one"),
    ("dataset.source=null", "dataset", "exactly one"),
    ("solver=smr", "solver", "name, params, space"),
    ("solver.params=3", "solver.params", "3"),
    ("solver.params.rank=2", "solver", "rank"),
    ("solver.params.tol=[1, x]", "solver.params.tol", "[1, 'x']"),
    ("solver.params.tol=[]", "solver.params.tol", "[]"),
    ("solver.params.tol=[1, [2]]", "solver.params.tol", "[1, [2]]"),
    ("solver.params.tol=.inf", "solver.params.tol", "inf"),
    ("solver.space.alpha=0.1", "solver.space.alpha", "0.1"),
    ("solver.space.alpha=[]", "solver.space.alpha", "empty"),
    ("solver.space.alpha=[.nan]", "solver.space.alpha", "nan"),
    ("solver.space.alpha=[[x]]", "solver.space.alpha", "['x']"),
    ("solver.space.alpha=[[1, 2], [1, 2]]", "solver.space.alpha", "twice"),
    ("solver.space.alpha=[1, 1.0]", "solver.space.alpha", "twice"),
    ("solver.space.alpha={uniform: [1, 0]}", "solver.space.alpha", "[1, 0]"),
    ("solver.space.alpha={uniform: [0, 1e308]}", "solver.space.alpha", "1e+308"),
    ("solver.space.alpha={uniform: 1, randint: 2}", "solver.space.alpha", "not a valid domain"),
    ("solver.space.alpha={loguniform: [0, 1]}", "solver.space.alpha", "positive"),
    ("solver.space.rank={randint: [1, 2.5]}", "solver.space.rank", "whole"),
    ("solver.space.alpha={logspace: [0.1, 1]}", "solver.space.alpha", "3 finite numbers"),
    ("solver.space.alpha={logspace: [0.1, 0.1, 4]}", "solver.space.alpha", "twice"),
    ("solver.space.alpha={logspace: [0.1, 1, 1e9]}", "solver.space.alpha", "10000"),
    ("evaluation.classifier=svm", "evaluation.estimator", "svm"),
    ("evaluation.n_features=[8, 4]", "evaluation", "[8, 4]"),
    ("evaluation.n_features=[0, 8]", "evaluation.n_features.0", "0"),
    ("evaluation.n_features=[]", "evaluation", "n_features"),
    ("cv.inner=two", "cv.inner", "two"),
    ("cv=3", "cv", "outer, inner, repeats, train_per_class, groups, blocks, plan"),
    ("cv={train_per_class: 3}", "cv", "repeats"),
    ("search.cpus_per_trial=0.5", "search.cpus_per_trial", "0.5"),
    ("tracking.uri=[1]", "tracking.uri", ""),
    ("output=3", "output", "3"),
    ("name=null", "name", "required"),
    ("dataset=null", "dataset", "required"),
    ("solver.name=null", "solver.name", "required"),
]


def test_a_wrong_type_or_range_is_named(tmp_path):
    for override, where, value in WRONG_VALUES:
        message = refusal(tmp_path, STUDY, override)
        assert f"  {where}: " in message
        assert value in message
        assert "pydantic" not in message
    assert (
        len(refusal(tmp_path, STUDY, "cv.outer=1", "cv.iner=3", "seed=x").splitlines()) == 4
    )  # each on a line


def test_null_unsets_a_key(tmp_path):
    config = read(
        tmp_path,
        STUDY,
        "cv.outer=null",
        "search=null",
        "solver.space.rank=null",
        "output=null",
        "seed=",
    )
    assert (config.cv.outer, config.cv.inner, config.search.method) == (5, 4, "grid")
    assert list(config.solver.space) == ["alpha"]
    assert config.output is None
    assert config.seed == 0


def test_overrides_reach_any_depth_and_make_sections(tmp_path):
    short = "name: demo\ndataset: {source: digits}\nsolver: {name: smr}\ncv:\n"
    config = read(
        tmp_path,
        short,
        "cv.outer=7",
        "evaluation.n_features=[1, 2]",
        "solver.space.alpha={uniform: [0, 1]}",
        "solver.params.init=random",
        "dataset.source=null",
        "dataset.path=a=b.npz",
    )
    assert config.cv.outer == 7
    assert config.evaluation.n_features == (1, 2)
    assert config.solver.space["alpha"].to_yaml() == {"uniform": [0.0, 1.0]}
    assert config.solver.params == {"init": "random"}
    assert config.dataset.path == "a=b.npz"
    assert read(tmp_path, short, "seed=1", "seed=2").seed == 2


def test_an_override_that_cannot_be_read_is_named(tmp_path):
    for override in (
        "cv.outer",
        "=3",
        "cv..outer=3",
        ".=1",
        "name.first=1",
        "seed=[1",
        "seed={a: 1, a: 2}",
    ):
        assert f"override {override.split('=')[0]}" in refusal(tmp_path, STUDY, override)


@pytest.mark.parametrize("name", ["some data.csv", "X.npz", "images", "notes.txt", "study"])
def test_what_holds_data_is_sent_to_the_command_that_takes_it(tmp_path, name):
    path = tmp_path / name
    if "." in name:
        path.write_bytes(b"a,b,label\n1,2,x\n" if name.endswith("csv") else b"\xff\xfe\x00")
    else:
        path.mkdir()
    command = f"raysel init {shlex.quote(str(path))}"
    if name == "study":
        (path / "config.yaml").write_text("name: a")
        command = f"raysel tune --resume {path}"
    with pytest.raises(ConfigError, match=re.escape(command) + "$"):
        load_config(path)


def test_a_study_in_a_file_of_another_name_is_read(tmp_path):
    (tmp_path / "study.txt").write_text(STUDY)
    (tmp_path / "study.yaml").write_text(STUDY)
    assert load_config(tmp_path / "study.txt") == load_config(tmp_path / "study.yaml")


NO_CONFIGURATION = [
    ("", "holds no configuration"),
    ("# nothing\n", "holds no configuration"),
    ("[1, 2]", "holds no configuration"),
    ("just words", "holds no configuration"),
    ("name: a\nname: b\n", "line 2: the key `name` is written twice"),
    ("cv:\n  outer: 3\n  outer: 3\n", "line 3: the key `outer` is written twice"),
    ("on: 1\n", "line 1: the key True is not a word"),
    ("? [a, b]\n: 1\n", "line 1"),
    ("name: [a\n", "not valid YAML"),
    ("name: a\n---\nname: b\n", "not valid YAML"),
    ("name: a\0b\n", "not valid YAML"),
    ("cv: &cv {outer: 3}\nsearch: *cv\n", "line 2: aliases are not allowed"),
    ("cv: &cv {outer: *cv}\n", "line 1: aliases are not allowed"),
    ("cv:\n  <<: {outer: 3}\n", "line 2: merge keys (<<) are not allowed"),
    ("a: 1\nseed: !!int many\n", "line 2: tags are not allowed; leave out tag:yaml.org,2002:int"),
    ("seed: !!set {a}\n", "line 1: tags are not allowed"),
    ("seed: 0x_\n", "line 1: `0x_` cannot be read"),
    ("seed: 010\n", "line 1: YAML takes `010` for a number to the base 8"),
    ("seed: 1:30\n", "line 1: YAML takes `1:30` for a number to the base 60"),
    (f"seed: 1{':1' * 300000}\n", "line 1: YAML takes `1:1"),
    ("seed: 1e999\n", "line 1: `1e999` is too large"),
    ("name: =\n", "put it in quotes"),
    (f"name: {'a' * 2**20}\n", "more than 1048576 characters"),
    ("a: [" + "[" * 31 + "]" * 31 + "]", "line 1: nested too deeply; at most 32 levels"),
    (f"seed: {'9' * 5000}\n", "line 1"),
    (f"name: a\nseed: 0x{'f' * 5000}\n", "line 2: whole numbers must lie between"),
    ("a: " + "[" * 500 + "]" * 500, "nested too deeply"),
    ('a: 1\noutput: "a\\0b"\n', "line 2: 'a\\x00b' has a control character"),
    ('output: "\\ud800"\n', "has a control character"),
    ("output: |\n  a\n  b\n", "line 1: 'a\\nb\\n' has a control character or line break"),
    ("name: !!python/name:os.system\n", "line 1: tags are not allowed"),
    ("name: !unheard-of x\n", "leave out !unheard-of"),
]


def test_a_file_that_is_no_configuration_is_refused(tmp_path):
    for text, fragment in NO_CONFIGURATION:
        message = refusal(tmp_path, text)
        assert fragment in message
        assert str(tmp_path / "study.yaml") in message


def test_nothing_in_a_file_is_ever_executed(tmp_path):
    mark = tmp_path / "mark"
    for tag in ("python/object/apply:pathlib.Path.touch", "python/object/new:pathlib.Path.touch"):
        refusal(tmp_path, f"name: !!{tag} ['{mark}']\n")
    refusal(tmp_path, STUDY, f"name=!!python/object/apply:os.mkdir ['{mark}']")
    assert not mark.exists()


def test_paths_that_lead_nowhere_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"Did you mean `digits-smr`\?"):
        load_config("digit-smr")
    with pytest.raises(ConfigError):
        load_config(tmp_path / "digits-smr.yaml")
    for path in (tmp_path, tmp_path / ("a" * 5000), "a\0b"):
        with pytest.raises(ConfigError):
            load_config(path)
    binary = tmp_path / "model.yaml"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(ConfigError, match=r"model\.yaml cannot be read"):
        load_config(binary)


def test_numbers_and_words_are_told_apart(tmp_path):
    text = (
        "{a: 1e-3, b: -2E+4, c: .5e1, d: 3e2, e: '1e-3', f: 2001-01-01, g: e3, h: 0.1, i: 7, j:"
        " true}"
    )
    params = read(tmp_path, STUDY, f"solver.params={text}").solver.params
    numbers = {"a": 0.001, "b": -20000.0, "c": 5.0, "d": 300.0, "h": 0.1, "i": 7, "j": True}
    assert params == {**numbers, "e": "1e-3", "f": "2001-01-01", "g": "e3"}
    assert [type(params[key]) for key in "adij"] == [float, float, int, bool]
    assert read(tmp_path, STUDY, "name=2024-05-01").name == "2024-05-01"


# --- the hash ---

DIFFERENT = re.split(
    r"\s{2,}",
    """\
seed=4  dataset={path: a.npz}  dataset={tasks: [{name: a, source: iris}, {name: b, source: wine}]}
dataset={tasks: [{name: a, source: iris}, {name: b, source: iris}]}  dataset.scaling=unit  dataset.shape=[8, 8]
dataset.modalities={hog: 4, lbp: 60}  dataset.modalities={lbp: 60, hog: 4}  dataset.exclude_labels=null
dataset.label=class  dataset.labels=y.npy  dataset.drop=[id]  dataset.confounds=[age]
dataset.classes=[0, 1]  dataset.exclude_classes=[0]
dataset.drop_unlabelled=true  dataset.prepare=[impute]  dataset.prepare=[{impute: mean}]
dataset.prepare=[{impute: median, columns: numbers}]  dataset.prepare=[impute, encode]
dataset.modes=[row, col]  dataset.params={noise: 2}  dataset.in_memory=false
dataset.delimiter=;  dataset.order=F  dataset.task=regression  dataset.only=[hog]  dataset.only=[hog, lbp]
solver.name=smml  solver.params.tol=1e-5  solver.params.max_iter=21  solver.params.p=1
solver.space.alpha={logspace: [0.01, 1, 4]}  solver.space.alpha={loguniform: [0.01, 1]}
solver.space.alpha={uniform: [0.01, 1]}  solver.space.rank=[1, 2, 3]  solver.space.rank={randint: [1, 2]}
solver.importance=permutation  evaluation.estimator=linear_svm  evaluation.estimator=sklearn.svm.SVC
evaluation.estimator={name: sklearn.svm.SVC, params: {C: 2}}
evaluation.estimator={name: sklearn.svm.SVC, space: {C: [1, 2]}}
evaluation.n_neighbors=1  evaluation.n_features=[4]  evaluation.choose_n=mean
evaluation.references=true  evaluation.references=chance  evaluation.metric=balanced_accuracy
evaluation.report=[macro_f1]
evaluation.report=[macro_f1, mean_average_precision]
cv.outer=4  cv.inner=3  cv.repeats=1  cv={outer: 5, blocks: {size: 30, gap: 2}}  cv.train_per_class=3
cv.groups=null  cv.plan=null  cv.final=false
search.method=random  search.num_samples=15  search.cpus_per_trial=1  search.early_stopping=null
search.grace_period=3  search.reduction_factor=2  search.synchronous=false  search.batch_size=4""".replace(
        "\n", "  "
    ),
)
#: The C is of a classifier that is not used.
SAME = re.split(
    r"\s{2,}",
    """\
name=other  output=null  pictures=[]  dataset.background=brain.png  dataset.keep=[time]
dataset.feature_groups=groups.csv  dataset.feature_groups={correlated: 0.7}  dataset.feature_groups={m: [a, b]}
tracking=null  tracking.uri=x
tracking.mlflow=false
tracking.register=digits model  search.max_concurrent=null  search.resources={GPU: 1}  search.executor=serial
search.executor=auto  evaluation.C=[1.0]  evaluation.classifier=knn  evaluation.estimator=knn
search.time_budget=61  search.trial_timeout=null  search.max_failures=0""".replace("\n", "  "),
)


def test_the_hash_changes_with_all_that_can_change_a_number(tmp_path):
    hashes = [
        read(tmp_path, STUDY).hash,
        *(read(tmp_path, STUDY, override).hash for override in DIFFERENT),
    ]
    assert len(set(hashes)) == len(hashes)


def test_the_hash_does_not_change_with_names_and_places(tmp_path):
    expected = read(tmp_path, STUDY).hash
    assert [override for override in SAME if read(tmp_path, STUDY, override).hash != expected] == []


def test_the_two_lists_above_name_every_key(tmp_path):
    config = read(tmp_path, STUDY)
    keys = set()
    for name in type(config).model_fields:
        section = getattr(config, name)
        inside = getattr(type(section), "model_fields", None)
        keys |= {f"{name}.{key}" for key in inside} if inside else {name}
    named = {re.split("[=]", override)[0] for override in DIFFERENT + SAME}
    covered = {key for key in keys if any(n == key or n.startswith(f"{key}.") for n in named)}
    whole_sections = {
        "dataset.source",
        "dataset.path",
        "dataset.tasks",
        "dataset.mask",
        "dataset.table",  # beside confounds
        "tracking.experiment",
        "cv.blocks",
    }  # replaced with their section above
    whole_sections.add("search.configurations")  # not with the early stopping of this study
    assert keys - covered <= whole_sections


def test_keys_at_their_defaults_are_not_part_of_the_hash_nor_of_what_is_stored(tmp_path):
    """A study from before there were these keys has the hash that it was stored with."""
    config = read(tmp_path, STUDY, "pictures=null")
    explicit = read(tmp_path, STUDY, "cv.final=true", "evaluation.report=[]", "pictures=null")
    assert explicit.hash == config.hash
    assert explicit.to_dict() == config.to_dict()
    assert not {"final", "report", "only"} & {
        key for section in ("cv", "evaluation", "dataset") for key in config.to_dict()[section]
    }


def test_each_form_of_a_step_is_the_same(tmp_path):
    for forms in (
        [
            "impute",
            "{impute: median}",
            "{impute: {strategy: median, n_neighbors: 5}}",
            "{impute: true}",
        ],
        ["encode", "{encode: 0.01}", "{encode: {min_frequency: 0.01}}"],
        ["clip", "{clip: [0.01, 0.99]}", "{clip: {quantiles: [0.01, 0.99]}}"],
        ["{impute: mean, columns: age}", "{impute: {strategy: mean}, columns: [age]}"],
    ):
        read_forms = [read(tmp_path, STUDY, f"dataset.prepare=[{form}]") for form in forms]
        assert len({config.hash for config in read_forms}) == 1
        assert read(tmp_path, dump_config(read_forms[-1])) == read_forms[0]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("dataset.prepare=[imptue]", "unknown step `imptue`; did you mean `impute`?"),
        (
            "dataset.prepare=[{impute: modus}]",
            "strategy of impute is 'modus': give one of median, mean",
        ),
        ("dataset.prepare=[{impute: {k: 3}}]", "impute has no parameter k; known: strategy"),
        (
            "dataset.prepare=[{impute: {n_neighbors: 3}}]",
            "n_neighbors of impute is for strategy knn",
        ),
        ("dataset.prepare=[{encode: 2.5}]", "min_frequency of encode is 2.5"),
        (
            "dataset.prepare=[{clip: [0.9, 0.1]}]",
            "quantiles of clip is [0.9, 0.1]: give a lower and an upper",
        ),
        ("dataset.prepare=[{log1p: 3}]", "log1p has no parameter 3; it takes none"),
        ("dataset.prepare=[harmonise]", "harmonise needs the column that names the site"),
        (
            "dataset.prepare=[parcels]",
            "give one, e.g. {parcels: 200}, or numbers to search, solver.space: {parcels: [50",
        ),
        ("dataset.prepare=[{clusters: 1.5}]", "correlation of clusters is 1.5: give the absolute"),
        (
            "dataset.prepare=[{impute: mean, clip: [0, 1]}]",
            "a step names impute and clip: give one name a step",
        ),
        ("dataset.prepare=[{impute: mean, columns: {task: a}}]", "give names, or {modality: NAME}"),
        (
            "dataset.prepare=[{sklearn.impute.KNNImputer: [1]}]",
            "the parameters of sklearn.impute.KNNImputer are [1]",
        ),
        ("dataset.prepare=[residualise]", "needs `confounds`, e.g. confounds: [age, sex]"),
        ("dataset.table=people.csv", "`table` holds columns of `confounds`, and none is named"),
        ("dataset.only=[hog, hog]", "`only` names the modality hog twice"),
        ("dataset.only=[]", "dataset.only: list should have at least 1 item"),
        (
            "dataset={tasks: [{name: a, source: iris}, {name: b, source: wine}], only: [hog]}",
            "is for one file",
        ),
        ("pictures=[gif]", "`pictures` names gif: give some of png, svg and pdf"),
        (
            "evaluation.report=[macro_f1, macro_f1]",
            "`report` names macro_f1, which is `metric` or named before",
        ),
        (
            "evaluation={n_features: [4], metric: accuracy, report: [accuracy]}",
            "`report` names accuracy, which is `metric`",
        ),
        ("cv.final=0", "cv.final"),
        ("tracking.register=a/b", "tracking.register"),
        ("tracking.register=it's", "tracking.register"),
        ("tracking.register=''", "tracking.register"),
    ],
)
def test_values_that_contradict_each_other_or_say_nothing_are_refused(tmp_path, override, message):
    assert message in refusal(tmp_path, STUDY, override)


def test_a_model_to_register_needs_a_final_fold(tmp_path):
    message = refusal(tmp_path, STUDY, "tracking.register=m", "cv.final=false")
    assert re.search(
        r"tracking.register. m registers the final model, .* set .cv.final: true", message
    )


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return value


def test_the_hash_does_not_see_the_order_of_keys(tmp_path):
    config = read(tmp_path, STUDY)
    turned = config_from_dict(reordered(config.to_dict()))
    assert list(turned.solver.space) != list(config.solver.space)
    assert turned.hash == config.hash


# --- round trips and fuzz ---

finite = st.floats(-1e300, 1e300)
words = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=12)
scalars = st.one_of(st.booleans(), st.integers(-(2**60), 2**60), finite, words)
values = scalars | st.lists(st.integers(-(2**60), 2**60) | finite, min_size=1, max_size=3)
bounds = st.lists(finite, min_size=2, max_size=2, unique=True).map(sorted)
positive = st.floats(1e-200, 1e200)
domains = st.one_of(
    st.lists(
        values,
        min_size=1,
        max_size=4,
        unique_by=lambda v: (isinstance(v, bool), tuple(v) if isinstance(v, list) else v),
    ),
    bounds.map(lambda b: {"uniform": b}),
    st.lists(positive, min_size=2, max_size=2, unique=True).map(
        lambda b: {"loguniform": sorted(b)}
    ),
    st.lists(st.integers(-(2**53), 2**53), min_size=2, max_size=2, unique=True).map(
        lambda b: {"randint": sorted(b)}
    ),
    st.tuples(st.floats(1e-9, 1e-3), st.floats(1e-2, 1e9), st.integers(2, 9)).map(
        lambda b: {"logspace": list(b)}
    ),
)
keys = words.filter(bool)
studies = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,12}\Z"),
        "seed": st.integers(0, 2**32 - 1),
        "dataset": st.fixed_dictionaries(
            {"path": words.filter(bool)},
            optional={"shape": st.lists(st.integers(1, 99), min_size=1, max_size=3)},
        ),
        "solver": st.fixed_dictionaries(
            {
                "name": words,
                "params": st.dictionaries(keys.map(lambda k: f"p{k}"), values, max_size=3),
            },
            optional={"space": st.dictionaries(keys.map(lambda k: f"s{k}"), domains, max_size=3)},
        ),
    },
    optional={
        "evaluation": (
            st.sets(st.integers(1, 99), min_size=1).map(lambda n: {"n_features": sorted(n)})
        ),
        "cv": st.fixed_dictionaries({"groups": words}, optional={"outer": st.integers(2, 9)}),
        "output": words,
    },
)


@pytest.fixture(scope="module")
def one_file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("round") / "config.yaml"


@given(raw=studies)
@example(
    raw={
        "name": "1e5",
        "dataset": {"path": "2001-01-01"},
        "solver": {"name": "on", "params": {"p": "1e-3"}},
    }
)
@example(
    raw={
        "name": "a",
        "dataset": {"path": "\u00fc \u3000.npz"},
        "solver": {"name": "=", "params": {"p": 1e-300}},
    }
)
@settings(max_examples=20)
def test_what_is_dumped_is_read_back_the_same(one_file, raw):
    config = config_from_dict(raw)
    one_file.write_text(dump_config(config), encoding="utf-8")
    again = load_config(one_file)
    assert again == config
    assert again.hash == config.hash
    assert dump_config(again) == dump_config(config)


nested = st.recursive(
    st.one_of(
        st.none(),
        scalars,
        st.just(float("nan")),
        st.just(float("inf")),
        st.dates(),
        st.binary(max_size=4),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)
sections = st.sampled_from(
    [
        *("name", "seed", "dataset", "solver", "evaluation", "cv", "search", "tracking", "output"),
        *(
            "solver.params",
            "solver.space",
            "solver.space.alpha",
            "solver.params.tol",
            "evaluation.n_features",
        ),
        *("dataset.shape", "cv.outer", "cv.groups", "search.method", "nonsense"),
    ]
)


@given(section=sections, value=nested)
@settings(max_examples=100)
def test_any_value_anywhere_is_taken_or_refused_in_words(section, value):
    raw = yaml.safe_load(STUDY)
    place = raw
    *above, last = section.split(".")
    for key in above:
        place = place[key]
    place[last] = value
    try:
        config = config_from_dict(raw)
    except ConfigError as error:
        assert str(error)  # noqa: PT017
    else:
        assert re.fullmatch("[0-9a-f]{64}", config.hash)


@given(
    text=st.one_of(
        st.text(
            alphabet=st.sampled_from(list("abe019.-+_:,?!&*|>'\"%@`[]{}#~<= \n\t")), max_size=40
        ),
        st.text(max_size=30),
        st.tuples(
            st.sampled_from(
                [
                    "int",
                    "float",
                    "bool",
                    "null",
                    "timestamp",
                    "binary",
                    "set",
                    "omap",
                    "pairs",
                    "str",
                ]
            ),
            st.sampled_from(["x", "''", "[1]", "{a: 1}", "[{a: 1}]", "1", "2001-99-99"]),
        ).map(lambda p: f"a: !!{p[0]} {p[1]}"),
    )
)
@settings(max_examples=200)
def test_no_text_escapes_as_anything_but_a_config_error(one_file, text):
    try:
        one_file.write_text(text, encoding="utf-8")
    except UnicodeEncodeError:
        return
    with pytest.raises(ConfigError):
        load_config(one_file)
    with pytest.raises(ConfigError):
        load_config(one_file, [text])


@given(raw=domains)
@settings(max_examples=60)
def test_a_domain_is_written_as_it_is_read(raw):
    domain = domain_from_yaml(raw)
    assert domain_from_yaml(domain.to_yaml()) == domain == domain_from_yaml(domain)


@given(low=st.floats(1e-12, 1e12), high=st.floats(1e-12, 1e12), n=st.integers(2, 40))
@settings(max_examples=60)
def test_logspace_is_geometric_with_its_bounds_exact(low, high, n):
    try:
        values = domain_from_yaml({"logspace": [low, high, n]}).values
    except ValueError as error:
        assert "twice" in str(error)  # noqa: PT017
        assert abs(high / low - 1) < 1e-7
        return
    assert (values[0], values[-1], len(values)) == (low, high, n)
    ratio = (high / low) ** (1 / (n - 1))
    for before, after in itertools.pairwise(values):
        assert after / before == pytest.approx(ratio, rel=1e-8)


TABLE = "{name: a, dataset: {path: a.csv}, solver: {name: fisher_score}}"


def test_what_changes_no_number_changes_no_hash(tmp_path):
    for change in ("keep=[id]", "background=a.png", "order=C", "drop=[]"):
        assert read(tmp_path, TABLE).hash == read(tmp_path, TABLE, f"dataset.{change}").hash, change
    for one, other in (("classes=[1, 2]", "classes=['2', 1.0]"), ("drop=[a, b]", "drop=[b, a]")):
        assert (
            read(tmp_path, TABLE, f"dataset.{one}").hash
            == read(tmp_path, TABLE, f"dataset.{other}").hash
        )
    hashes = {
        read(tmp_path, STUDY, f"dataset.only={only}").hash for only in ("[hog, lbp]", "[lbp, hog]")
    }
    assert len(hashes) == 1  # the file has the order
    tasks = (
        "{name: a, dataset: {tasks: [{name: b, path: b.csv%s}, {name: c, source: iris}]}, solver:"
        " {name: mtda}}"
    )
    assert read(tmp_path, tasks % "").hash == read(tmp_path, tasks % ", keep: [id]").hash
    assert read(tmp_path, tasks % "").hash != read(tmp_path, tasks % ", classes: [1, 2]").hash


def test_source_nifti_keeps_the_path_of_the_table(tmp_path):
    mask = "dataset.mask=m.nii"
    kept = read(tmp_path, TABLE, "dataset.source=nifti", mask).dataset
    assert (kept.source, kept.path) == ("nifti", "a.csv")
    for both in (
        ("dataset.source=nifti", "dataset.path=b.csv"),
        ("dataset.path=b.csv", "dataset.source=nifti"),
    ):
        assert read(tmp_path, TABLE, *both, mask).dataset.path == "b.csv"
    assert read(tmp_path, TABLE, "dataset.source=digits").dataset.path is None
    nifti = TABLE.replace("path: a.csv", "source: nifti, path: a.csv, mask: m.nii")
    moved = read(tmp_path, nifti, "dataset.path=b.csv").dataset
    assert (moved.source, moved.path, moved.mask) == ("nifti", "b.csv", "m.nii")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("3", "3 forms no groups"),
        ("{}", "forms no groups"),
        ("{correlated: 2}", "above 0 and at most 1"),
        ("{correlated: true}", "above 0 and at most 1"),
        ("{module: []}", "the group module is"),
        ("{module: G01}", "list its features"),
    ],
)
def test_what_forms_no_feature_groups_is_refused(tmp_path, given, told):
    with pytest.raises(ConfigError, match=told):
        read(tmp_path, STUDY, f"dataset.feature_groups={given}")


def test_feature_groups_come_back_as_they_were(tmp_path):
    text = "{module: [G01, 7], other: [G02]}"
    config = read(tmp_path, STUDY, f"dataset.feature_groups={text}")
    assert config.dataset.feature_groups == {"module": ["G01", "7"], "other": ["G02"]}
    assert config_from_dict(config.to_dict()) == config
