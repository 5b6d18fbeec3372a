"""Names of ``firststep.evaluation`` for our other packages alone. They may change without notice."""

from firststep.evaluation._few_shot import AVERAGE, PROBES, FewShot, fit_few_shot
from firststep.evaluation._few_shot_head import NONE_LIMIT, FewShotHead, HeadForm
from firststep.evaluation._promise import Promise
from firststep.evaluation._support_checks import Pair, SupportReport, examined, same_images, support_report
from firststep.evaluation.adapted_model import has_fixed_features
from firststep.evaluation.calibration import FEWEST_TO_CALIBRATE
from firststep.evaluation.comparison import describe_test
from firststep.evaluation.cross_validation import STEPS
from firststep.evaluation.diagnosis import SUBSETS
from firststep.evaluation.first_step import UNSTABLE
from firststep.evaluation.frozen_network import blank_network, check_independent, frozen_network, logits_of
from firststep.evaluation.image_folders import (
    class_numbers,
    load_pixels,
    support_classes,
    support_files,
    to_support,
)
from firststep.evaluation.metrics import MAIN
from firststep.evaluation.page_style import PAGE_STYLE
from firststep.evaluation.probes import nearest_means_accuracy
from firststep.evaluation.settings import DEFAULT_EPISODES, DEFAULT_STEPS, DEFAULTS, TEST_SEED

__all__ = [
    "AVERAGE",
    "DEFAULTS",
    "DEFAULT_EPISODES",
    "DEFAULT_STEPS",
    "FEWEST_TO_CALIBRATE",
    "MAIN",
    "NONE_LIMIT",
    "PAGE_STYLE",
    "PROBES",
    "STEPS",
    "SUBSETS",
    "TEST_SEED",
    "UNSTABLE",
    "FewShot",
    "FewShotHead",
    "HeadForm",
    "Pair",
    "Promise",
    "SupportReport",
    "blank_network",
    "check_independent",
    "class_numbers",
    "describe_test",
    "examined",
    "fit_few_shot",
    "frozen_network",
    "has_fixed_features",
    "load_pixels",
    "logits_of",
    "nearest_means_accuracy",
    "same_images",
    "support_classes",
    "support_files",
    "support_report",
    "to_support",
]
