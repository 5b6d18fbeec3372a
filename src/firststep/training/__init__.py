"""Meta-training: configuration, recipes, the outer loop, checkpoints and run folders."""

from firststep.training.config import TrainConfig
from firststep.training.loop import train
from firststep.training.recipes import RECIPES, recipe
from firststep.training.run import Run, open_run
from firststep.training.setup import Setup, set_up

__all__ = ["RECIPES", "Run", "Setup", "TrainConfig", "open_run", "recipe", "set_up", "train"]
