"""The inner loop: one step as a pure function, the trajectory of K steps, and their Gram matrices."""

from firststep.adaptation.auto_steps import (
    LONGEST_AUTO,
    MOST_FOLDS,
    StepChoice,
    choose_steps,
    held_out_folds,
)
from firststep.adaptation.gram import gram_of, support_gram
from firststep.adaptation.learner import Learner
from firststep.adaptation.stateless import check_stateless
from firststep.adaptation.step import Aux, detached, inner_step
from firststep.adaptation.trajectory import Trajectory, adapt, iterate_steps, start_task, steps_from

__all__ = [
    "LONGEST_AUTO",
    "MOST_FOLDS",
    "Aux",
    "Learner",
    "StepChoice",
    "Trajectory",
    "adapt",
    "check_stateless",
    "choose_steps",
    "detached",
    "gram_of",
    "held_out_folds",
    "inner_step",
    "iterate_steps",
    "start_task",
    "steps_from",
    "support_gram",
]
