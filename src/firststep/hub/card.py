"""Model cards: what a model was trained on, how it was tested, and how to use it, from its own records."""

from __future__ import annotations

from collections.abc import Sequence

from huggingface_hub import ModelCard, ModelCardData

from firststep.deployment import ModelCard as Adapted
from firststep.evaluation import Evaluation
from firststep.training import RunRecord, TrainConfig

TAGS = ["few-shot-learning", "meta-learning", "maml", "firststep"]
UNSTATED = "unknown"
"""The Hub's own word for a licence that the author did not state."""

LEARNER = """# {network}, meta-trained on {config.data} by {method}

A few gradient steps on a few labelled images per class make this model a classifier of new classes. It was
trained with firststep, for tasks of {config.ways} classes with {config.shots} images each{any_ways}.

## Use

It needs firststep with its extra `hub`.

```python
from firststep.hub import HubLearner

meta = HubLearner.from_pretrained("OWNER/NAME").meta
classifier = meta.adapt(images, labels)  # float {shape}, as firststep.data.Preprocessing makes them
```

The folder is also that of a run: `firststep evaluate` and `firststep adapt` take it.

## Accuracy after every inner step

{tests}

## Training

{training}

One training run: other seeds give other numbers.
"""

CLASSIFIER = """# A classifier of {count} classes from {card.support_images} images

Classes: {classes}. Adapted with firststep from the model `{run}`.

## Use

It needs firststep with its extra `hub`.

```python
from firststep.hub import HubClassifier

model = HubClassifier.from_pretrained("OWNER/NAME").model
model.probabilities(pixels)  # uint8 {shape}
```

`firststep predict` takes the folder.

## How it was made

{made}

Few images tell little: test it on images of your own before you rely on it.
"""


def learner_card(record: RunRecord, evaluations: Sequence[Evaluation], licence: str | None) -> ModelCard:
    """Return the card of a meta-learner."""
    config, images = record.config, record.preprocessing
    loss = f"{config.conditioning} on {config.subset}, weight {config.gamma:g}"
    training = {
        "data": f"{config.tasks or config.data}, fingerprint `{record.data_fingerprint}`"
        + (f", {images.image_size} px" if images else ""),
        "inner loop": f"{config.method_label}, {config.steps} steps, rate {_or(config.rate, 'its own')}",
        "conditioning loss": "none" if config.conditioning_loss is None else loss,
        "meta-updates": f"{config.total_updates} of {config.meta_batch} tasks, seed {config.seed}",
        "outer optimiser": f"{config.optimizer}, rate {config.outer_rate:g}, {config.schedule}",
        "chosen by": f"accuracy after step {config.selected_step}, {config.validation_episodes} val episodes",
        "versions": f"firststep {record.firststep}, torch {record.torch}",
        "commit": _or(record.commit, "not of a checkout"),
    }
    text = LEARNER.format(
        network=_network(config),
        method=config.describe(),
        config=config,
        any_ways=""
        if config.head == "per-class"
        else f"; its {config.head} head takes any number of classes",
        shape=f"[n, {images.channels}, {images.image_size}, {images.image_size}]"
        if images
        else "as its tasks give them",
        tests="\n\n".join(map(_test, evaluations)) or "Not tested. `firststep evaluate` tests it.",
        training=_table(training),
    )
    return _card(text, licence)


def classifier_card(card: Adapted, licence: str | None) -> ModelCard:
    """Return the card of an adapted classifier."""
    accuracy, size = card.cross_validated_accuracy, card.preprocessing.image_size
    of_steps = "the network, adapted"
    made = {
        "classifier": of_steps
        if card.classifier == "steps"
        else f"{card.classifier} on the network's features",
        "inner steps": str(card.steps),
        "cross-validated accuracy": "not measured" if accuracy is None else f"{100 * accuracy:.1f} %",
        "measured on": f"the {card.support_images} support images, each held out once",
        "temperature": "not calibrated" if card.temperature is None else f"{card.temperature:.3g}",
    }
    text = CLASSIFIER.format(
        count=len(card.classes),
        card=card,
        classes=", ".join(card.classes),
        run=card.run or "unnamed",
        shape=f"[n, {size}, {size}, {card.preprocessing.channels}]",
        made=_table(made),
    )
    return _card(text, licence)


def _card(text: str, licence: str | None) -> ModelCard:
    data = ModelCardData(
        license=licence or UNSTATED, library_name="firststep", tags=TAGS, pipeline_tag="image-classification"
    )
    stated = f"The weights: {licence}." if licence else "The author has stated no licence of the weights."
    end = f"## Licence\n\n{stated} The training images have a licence of their own.\n"
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}\n{end}")


def _test(evaluation: Evaluation) -> str:
    settings = evaluation.settings
    title = (
        f"{evaluation.data}, split {settings.split}, {settings.ways}-way {settings.shots}-shot, "
        f"{settings.episodes} episodes, {settings.queries} queries per class, seed {settings.seed}. "
        "Mean and 95 % half-width over the episodes:"
    )
    rows = [f"| {row['step']} | {row['accuracy']:.1f} ± {row['ci95']:.1f} |" for row in evaluation.rows()]
    return "\n".join([title, "", "| inner steps | accuracy in % |", "|---:|---:|", *rows])


def _table(rows: dict[str, str]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def _network(config: TrainConfig) -> str:
    if config.network is not None:
        return config.network
    return config.backbone if config.filters is None else f"{config.backbone} with {config.filters} filters"


def _or(value: object, otherwise: str) -> str:
    return otherwise if value is None else str(value)
