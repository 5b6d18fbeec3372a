"""The data room: datasets in every layout people have, cached pixels, and seeded episodes."""

from firststep.data.augmentation import Augmentation
from firststep.data.dataset import Dataset, DifferentError, Split, open_dataset
from firststep.data.episodes import Episode, Episodes, Plan
from firststep.data.preprocessing import Preprocessing, load_picture
from firststep.data.registry import ENTRIES
from firststep.data.sheet import write_class_sheet, write_episode_sheet

DATASETS = tuple(ENTRIES)
"""Names that ``open_dataset`` knows."""

__all__ = [
    "DATASETS",
    "Augmentation",
    "Dataset",
    "DifferentError",
    "Episode",
    "Episodes",
    "Plan",
    "Preprocessing",
    "Split",
    "load_picture",
    "open_dataset",
    "write_class_sheet",
    "write_episode_sheet",
]
