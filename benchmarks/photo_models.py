"""Write the run folders of `builtin:photos` and `builtin:photos-small`, which nothing was trained for.

    python benchmarks/photo_models.py --data-path CIFAR

Both are a frozen EfficientNet-Lite with a zero head. What is stored beside the empty head is the background:
the network's features of two CIFAR-100 images of each of the 64 CIFAR-FS training classes, for "none of
these". The inner rate serves the step-by-step view alone; photo_choices.py compares it with others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from firststep.data import FeatureSplit
from firststep.training import Checkpoint, Run, TrainConfig, build_meta_learner, open_data

MODELS = {"photos": ("efficientnet-lite2", 260), "photos-small": ("efficientnet-lite0", 224)}
OF_EACH_CLASS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-path", required=True, type=Path)
    parser.add_argument("--cache", type=Path, help="folder for pixels and features")
    parser.add_argument("--out", type=Path, default=Path("src/firststep/models"))
    options = parser.parse_args()
    for name, (backbone, size) in MODELS.items():
        config = TrainConfig(
            data="cifar-fs",
            image_size=size,
            backbone=backbone,
            method="anil",
            head="zero",
            rate=0.02,
            conditioning="none",
            partial=True,
            updates=1,
        )
        here = TrainConfig.from_json(
            {**config.to_json(), "data_path": str(options.data_path), "cache": _text(options.cache)}, "here"
        )
        data = open_data(here)
        split = data.split("train")
        assert isinstance(split, FeatureSplit)
        starts = np.concatenate([[0], np.cumsum(split.counts)[:-1]])
        rows = (starts[:, None] + np.arange(OF_EACH_CLASS)).ravel()
        run = Run(options.out / name)
        run.record_path.unlink(missing_ok=True)
        run.make_folder()
        run.create(config, data)
        meta = build_meta_learner(config, data.preprocessing, device=torch.device("cpu"))
        best = {"accuracy": 0.0, "update": 0}
        checkpoint = Checkpoint(update=0, model=meta.state_dict(), optimizer={}, best=best)  # type: ignore[arg-type]
        checkpoint.save(run.checkpoint_path("best"))
        features = torch.from_numpy(split.inputs(rows)).half()
        save_file({"features": features}, run.background_path)
        print(run.folder, list(features.shape))


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


if __name__ == "__main__":
    main()
