"""Names of ``firststep.evaluation`` for our other packages alone. They may change without notice."""

from firststep.evaluation.calibration import FEWEST_TO_CALIBRATE
from firststep.evaluation.comparison import describe_tasks
from firststep.evaluation.cross_validation import STEPS
from firststep.evaluation.diagnosis import SUBSETS
from firststep.evaluation.evaluate import DEFAULT_EPISODES, DEFAULT_STEPS, TEST_SEED
from firststep.evaluation.first_step import UNSTABLE
from firststep.evaluation.frozen_network import blank_network, check_independent, frozen_network, logits_of
from firststep.evaluation.image_folders import class_numbers, load_pixels, support_files
from firststep.evaluation.metrics import MAIN
from firststep.evaluation.page_style import PAGE_STYLE
from firststep.evaluation.probes import nearest_means_accuracy

__all__ = [
    "DEFAULT_EPISODES",
    "DEFAULT_STEPS",
    "FEWEST_TO_CALIBRATE",
    "MAIN",
    "PAGE_STYLE",
    "STEPS",
    "SUBSETS",
    "TEST_SEED",
    "UNSTABLE",
    "blank_network",
    "check_independent",
    "class_numbers",
    "describe_tasks",
    "frozen_network",
    "load_pixels",
    "logits_of",
    "nearest_means_accuracy",
    "support_files",
]
