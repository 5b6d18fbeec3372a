"""Datasets in the layouts that people have on disk, cached pixels, and seeded episodes."""

from firststep.utils.extras import extra

with extra("cli", "firststep.data"):
    from firststep.data import datasets as _datasets  # noqa: F401 registers them
    from firststep.data import sinusoid as _sinusoid  # noqa: F401 registers itself
    from firststep.data.arrays import from_arrays
    from firststep.data.augmentation import Augmentation
    from firststep.data.cache import ProgressCallback, user_cache
    from firststep.data.contact_sheet import require_png, write_class_sheet, write_episode_sheet
    from firststep.data.dataset import CachedDataset, Dataset, Split
    from firststep.data.dataset_info import (
        DATASETS,
        DatasetInfo,
        GeneratedImages,
        PublishedFile,
        get_dataset_info,
        register_dataset,
    )
    from firststep.data.download import download_files
    from firststep.data.draws import Draws
    from firststep.data.episodes import Episode, EpisodeRows, Episodes
    from firststep.data.features import FeatureDataset, FeatureSplit, FeatureStore, FrozenBody
    from firststep.data.layouts.csv_list import read_columns
    from firststep.data.layouts.layout import IMAGE_ENDINGS, Layout
    from firststep.data.official_splits import OfficialSplits
    from firststep.data.opening import DatasetMismatchError, open_dataset
    from firststep.data.preprocessing import NORMALISATIONS, Preprocessing, decode, load_image
    from firststep.data.regular_files import entries, require_regular
    from firststep.data.source import ArrayImages, ClassImages, EncodedImages, FileImages, Source
    from firststep.data.task_source import TASKS, TaskSource, open_tasks, register_tasks
    from firststep.data.tasks import Tasks, tasks_of

__all__ = [
    "DATASETS",
    "IMAGE_ENDINGS",
    "NORMALISATIONS",
    "TASKS",
    "ArrayImages",
    "Augmentation",
    "CachedDataset",
    "ClassImages",
    "Dataset",
    "DatasetInfo",
    "DatasetMismatchError",
    "Draws",
    "EncodedImages",
    "Episode",
    "EpisodeRows",
    "Episodes",
    "FeatureDataset",
    "FeatureSplit",
    "FeatureStore",
    "FileImages",
    "FrozenBody",
    "GeneratedImages",
    "Layout",
    "OfficialSplits",
    "Preprocessing",
    "ProgressCallback",
    "PublishedFile",
    "Source",
    "Split",
    "TaskSource",
    "Tasks",
    "decode",
    "download_files",
    "entries",
    "from_arrays",
    "get_dataset_info",
    "load_image",
    "open_dataset",
    "open_tasks",
    "read_columns",
    "register_dataset",
    "register_tasks",
    "require_png",
    "require_regular",
    "tasks_of",
    "user_cache",
    "write_class_sheet",
    "write_episode_sheet",
]
