"""Each check of samplers and readers fails on a subject that is broken as the check means."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from failing_checks import failures

from raysel.data import loading
from raysel.data.formats.files import ReadOptions
from raysel.data.formats.tables import read_table
from raysel.data.layouts import Tensor
from raysel.data.loading import save_dataset
from raysel.evaluation.samplers import TPESampler
from raysel.testing import reader_checks, sampler_checks


class Outside(TPESampler):
    def ask(self, number):
        return {**super().ask(number), "uniform": 9.0}


class Unseeded(TPESampler):
    def ask(self, number):
        return {**super().ask(number), "uniform": random.uniform(-2, 2)}


class Forgets(TPESampler):
    def observe(self, params, score):
        raise NotImplementedError


class Counts(TPESampler):
    def ask(self, number):
        return {**super().ask(number), "choices": number}


@pytest.mark.parametrize(
    ("sampler", "wanted"),
    [
        (Outside, "proposals_are_in_the_space"),
        (Unseeded, "a_seed_decides"),
        (Unseeded, "order_within_a_batch"),
        (Forgets, "earlier_points_are_understood"),
        (Counts, "a_small_space_is_tried_once"),
    ],
)
def test_a_broken_sampler_is_found(sampler, wanted):
    assert wanted in failures(c for c in sampler_checks("broken", sampler) if wanted in c.name)


@pytest.mark.parametrize(
    ("spoil", "wanted"),
    [
        (lambda data: replace(data, X=data.X + 1), "comes_back[vectors]"),
        (lambda data: replace(data, y=data.y[::-1]), "comes_back[text labels]"),
        (lambda data: replace(data, layout=Tensor((data.n_features,))), "comes_back[modalities]"),
        (lambda data: replace(data, groups=None), "comes_back[groups]"),
    ],
)
def test_a_broken_reader_is_found(spoil, wanted):
    def write(dataset, path):
        save_dataset(spoil(dataset), path)

    checks = reader_checks(".arrow", write, groups=None)
    assert wanted in failures(check for check in checks if wanted in check.name)


def test_a_reader_that_takes_what_is_cut_short_is_found(monkeypatch):
    whole = {}

    def careless(path, groups):  # noqa: ARG001
        if path.read_bytes()[:4] != b"PAR1":
            raise ValueError("not mine")
        return whole[path.name]

    def write(dataset, path):
        save_dataset(dataset, path)
        whole[path.name] = read_table(path, ReadOptions())

    monkeypatch.setitem(loading._READERS, ".parquet", careless)
    assert failures(reader_checks(".parquet", write, groups=None)) >= {
        "cut_short",
        "empty_file",
        "another_kind",
    }
