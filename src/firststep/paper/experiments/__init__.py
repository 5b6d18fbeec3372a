"""The experiments: importing this package registers them, the paper's first and in its order."""

# isort: off
from firststep.paper.experiments import main_paper, supplementary, further
from firststep.paper.experiment import EXPERIMENTS

__all__ = ["EXPERIMENTS", "further", "main_paper", "supplementary"]
