"""The sampler of a list."""

from __future__ import annotations

from raysel.evaluation.configurations import Configuration
from raysel.evaluation.samplers import ListSampler


def test_a_list_is_proposed_in_its_order_whatever_it_is_told():
    listed = [Configuration({"rank": rank}, ("rank",)) for rank in (3, 1, 2)]
    sampler = ListSampler(listed)
    for number, configuration in enumerate(listed):
        assert sampler.ask(number) == configuration.params
        sampler.tell(number, -number)
        sampler.observe({"rank": 9}, 1.0)
