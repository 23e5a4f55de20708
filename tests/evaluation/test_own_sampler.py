"""A sampler of another package, named by its entry point or dotted name: `HillClimb` is a whole
one.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from small_studies import make_study, run_serially, write_digits

from raysel.config import config_from_dict
from raysel.config.space import Choices, LogSpace
from raysel.core.errors import ConfigError
from raysel.core.files import make_instance
from raysel.evaluation.configurations import Configuration
from raysel.evaluation.nested_search import last_score
from raysel.evaluation.plan import derived_seed
from raysel.evaluation.records import TrialRecord
from raysel.evaluation.sampler_registry import OWN, sampler_class, search_names
from raysel.evaluation.samplers import Sampler
from raysel.run.recording import code_versions
from raysel.study.checks import imported_code
from raysel.testing import parametrize, sampler_checks


class HillClimb(Sampler):
    """Sampler that changes one parameter of the best configuration so far, of lists of values."""

    def __init__(self, params, space, seed):
        self._params = dict(params)
        self._values = {key: space[key].values for key in sorted(space)}
        self._random = random.Random(seed)
        self._asked = {}
        self._best = -np.inf, {key: values[0] for key, values in self._values.items()}

    def ask(self, number):
        key = self._random.choice(list(self._values))
        point = {**self._best[1], key: self._random.choice(self._values[key])}
        self._asked[number] = {**self._params, **point}
        return self._asked[number]

    def tell(self, number, score):
        self.observe(self._asked[number], score)

    def observe(self, params, score):
        if score > self._best[0]:
            self._best = score, {key: params[key] for key in self._values}


class Unfinished(Sampler):
    def ask(self, number):
        return {}


SPACE = {
    "choices": Choices(("a", "b", 3)),
    "logspace": LogSpace(1e-3, 1.0, 7),
    "whole": Choices(tuple(range(8))),
}
SEARCH = {"num_samples": 6, "synchronous": True, "batch_size": 2, "executor": "serial"}
DOTTED = f"{__name__}.HillClimb"


@parametrize(sampler_checks("hill_climb", HillClimb, SPACE))
def test_conformance(check):
    check()


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """An installed package that registers the sampler, and two things that are none."""
    info = tmp_path / "packages" / "climbing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: climbing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[raysel.samplers]\nhill_climb = {__name__}:HillClimb\n"
        f"unfinished = {__name__}:Unfinished\nno_sampler = collections:OrderedDict\n"
    )
    monkeypatch.syspath_prepend(info.parent)


@pytest.fixture
def digits(tmp_path):
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


def proposed(config, fold, scores):
    """Ids of the configurations that the sampler proposes on a fold, asked by hand in batches."""
    seed = derived_seed(config.seed, "sampler", fold.repeat, fold.index, 0)
    sampler = HillClimb(config.solver.params, config.solver.space, seed)
    asked = []
    for start in range(0, config.search.num_samples, config.search.batch_size):
        batch = range(start, start + config.search.batch_size)
        asked += [Configuration(sampler.ask(number), ()).id for number in batch]
        for number in batch:
            sampler.tell(number, scores[asked[number]])
    return asked


@pytest.mark.usefixtures("registered")
def test_a_study_searches_by_it(digits, tmp_path):
    named = make_study(digits, search={"method": "hill_climb", **SEARCH})
    dotted = make_study(digits, search={"method": DOTTED, **SEARCH})
    trials, _, journal = run_serially(named, tmp_path / "named")
    assert run_serially(dotted, tmp_path / "dotted")[0] == trials
    records = [make_instance(TrialRecord, line) for line in journal if line["kind"] == "trial"]
    for fold in named.plan.folds:
        of_fold = [record for record in records if record.fold == fold.name]
        scores = {
            Configuration(record.params, ()).id: last_score(record, named.evaluation.choose_n)
            for record in of_fold
        }
        asked = proposed(named.config, fold, scores)
        assert list(scores) == list(dict.fromkeys(asked))
    assert imported_code(named.config) == []
    assert imported_code(dotted.config) == [("search.method", DOTTED)]
    assert code_versions(named)["numbers"] != code_versions(make_study(digits))["numbers"]


@pytest.mark.usefixtures("registered")
def test_names_without_a_sampler_are_refused():
    assert search_names() == [
        "grid",
        "path",
        "random",
        "sobol",
        "tpe",
        "hill_climb",
        "no_sampler",
        "unfinished",
    ]
    assert sampler_class("hill_climb") is sampler_class(DOTTED) is HillClimb
    assert sampler_class("tpe") is OWN["tpe"]
    for name, message in {
        "hill": "unknown search 'hill'; did you mean `hill_climb`",
        "hyperband": "unknown search 'hyperband'; known: grid, path, random",
        "no_sampler": "no_sampler is no sampler; write the dotted name",
        "collections.OrderedDict": "is no sampler",
        "unfinished": "lacks __init__, observe, tell; implement them",
        "no_such_package.Search": "cannot be imported",
    }.items():
        with pytest.raises(ConfigError, match=f"search.method: .*{message}"):
            sampler_class(name)


def test_a_stored_study_is_read_where_the_package_is_not():
    config = {"name": "s", "dataset": {"path": "x.npz"}, "solver": {"name": "smr"}}
    read = config_from_dict({**config, "search": {"method": "hill_climb", "num_samples": 3}})
    assert read.search.adaptive
