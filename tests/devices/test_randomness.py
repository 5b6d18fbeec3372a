"""Networks that draw random numbers leave the generators of a device as they were."""

from __future__ import annotations

import torch
from torch import nn

from firststep import MetaLearner, maml
from firststep.network.randomness import drawing_from, generator_states, same_states
from networks import generator
from second_device import SECOND
from zoo import task_of, vectors


def test_seeding_a_block_leaves_the_device_s_generator_as_it_was() -> None:
    before = generator_states(SECOND)
    with drawing_from(7, SECOND):
        inside = generator_states(SECOND)
    assert len(before) == 2
    assert not same_states(before, inside)
    assert same_states(before, generator_states(SECOND))
    with drawing_from(7, SECOND):
        assert same_states(inside, generator_states(SECOND))


def test_meta_has_no_generator_of_its_own() -> None:
    assert len(generator_states(torch.device("meta"))) == 1


def test_dropout_draws_the_same_numbers_in_all_evaluations_of_a_task() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 6), nn.Dropout(0.5), nn.Linear(6, 3)).double().to(SECOND)
    meta = MetaLearner(network, maml(0.1), steps=2, randomness="same", generator=generator(1))
    task = task_of(vectors).to(SECOND)
    torch.manual_seed(3)
    first = meta([task])
    first.backward()
    torch.manual_seed(3)
    assert meta([task]).item() == first.item()
