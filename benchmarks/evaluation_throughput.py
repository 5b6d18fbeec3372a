"""Test episodes a second of the shipped model after 5 and after 100 inner steps; prints JSON."""

from __future__ import annotations

import json
import time

from firststep.training import data_for, load_trained

EPISODES = {5: 40, 100: 4}


def main() -> dict[int, float]:
    trained = load_trained("builtin:glyphs")
    data = data_for(trained)
    found = {}
    for steps, episodes in EPISODES.items():
        trained.evaluate(data, steps=(steps,), episodes=2)
        start = time.perf_counter()
        trained.evaluate(data, steps=(steps,), episodes=episodes)
        found[steps] = episodes / (time.perf_counter() - start)
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
