"""sinusoid: the regression tasks of Finn, Abbeel and Levine, "Model-agnostic meta-learning" (ICML 2017)."""

from __future__ import annotations

import numpy as np

from firststep.data.task_source import register_tasks


@register_tasks
def sinusoid(
    generator: np.random.Generator, shots: int, queries: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """y = A sin(x - φ) with A from [0.1, 5], φ from [0, π] and x from [-5, 5], all uniform."""
    amplitude, phase = generator.uniform(0.1, 5.0), generator.uniform(0.0, np.pi)
    x = generator.uniform(-5.0, 5.0, size=(shots + queries, 1))
    y = amplitude * np.sin(x - phase)
    return x[:shots], y[:shots], x[shots:], y[shots:]
