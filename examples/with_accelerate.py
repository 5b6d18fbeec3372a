"""MetaLearner with Hugging Face Accelerate: ``prepare``, ``backward`` and clipping as for any model.

Run: python examples/with_accelerate.py, or accelerate launch examples/with_accelerate.py
"""

from __future__ import annotations

import torch
from accelerate import Accelerator

import firststep as fs
from task_loader import accuracies, make_learner, task_loader


def meta_train(updates: int, accelerator: Accelerator) -> fs.MetaLearner:
    meta = make_learner()
    optimiser = torch.optim.Adam(meta.parameters(), 3e-3)
    wrapped, optimiser = accelerator.prepare(meta, optimiser)
    for number, tasks in enumerate(task_loader("train", 4 * updates)):
        # A task is a named tuple of tensors: give each process its share, and move it yourself.
        mine = tasks[accelerator.process_index :: accelerator.num_processes]
        optimiser.zero_grad()
        loss = wrapped([task.to(accelerator.device) for task in mine])
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(wrapped.parameters(), 10.0)
        optimiser.step()
        if accelerator.is_main_process and number % 20 == 0:
            print(f"update {number}: {loss.item():.2f}")
    learner: fs.MetaLearner = accelerator.unwrap_model(wrapped)
    return learner


def main(updates: int = 30) -> torch.Tensor:
    accelerator = Accelerator(cpu=True)
    meta = meta_train(updates, accelerator)
    (tasks,) = task_loader("val", 20, batch=20)
    found = accuracies(meta, tasks)
    print("accuracy after 0, 1, ... steps:", ", ".join(f"{100 * value:.0f} %" for value in found))
    return found


if __name__ == "__main__":
    main()
