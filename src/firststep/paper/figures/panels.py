"""Group curves into panels: one per scenario, with the paper's numbers beside ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from firststep.paper.figures.curves import Curve, Log, Scenario, in_order

Named = Callable[[Sequence[Curve | Log]], list[str]]
"""Return the names that distinguish the curves or logs of a panel."""
NO_RESULTS = "all test results of runs here"
METHOD_NAMES = {"maml": "MAML", "conditioned": "conditioned"}


@dataclass(frozen=True)
class Panel:
    """The curves and logs of one scenario."""

    scenario: Scenario
    curves: list[Curve]
    """Ours, and the paper's beside them."""
    logs: list[Log]


def panels(curves: Sequence[Curve], logs: Sequence[Log] = ()) -> list[Panel]:
    """Return a panel per scenario that was run here, then one per other scenario of the paper."""
    paper = [curve for curve in curves if not curve.is_ours]
    printed = {curve.scenario for curve in paper}
    here = in_order([c.scenario for c in curves if c.is_ours] + [log.scenario for log in logs])
    beside = {scenario: _beside(scenario, printed) for scenario in here}
    found = []
    for scenario in [*here, *in_order(s for s in (c.scenario for c in paper) if s not in beside.values())]:
        own = [curve for curve in curves if curve.is_ours and curve.scenario == scenario]
        theirs = [curve for curve in paper if curve.scenario == beside.get(scenario, scenario)]
        found.append(Panel(scenario, own + theirs, [log for log in logs if log.scenario == scenario]))
    return found


def _beside(scenario: Scenario, printed: set[Scenario]) -> Scenario | None:
    """Return the paper's scenario to compare with: the same one, or else the only one with the same task.

    If several have the same task, none is returned: they would crowd the panel.
    """
    agreements: list[Callable[[Scenario], bool]] = [
        lambda other: other == scenario,
        lambda other: other[1:] == scenario[1:],
        lambda other: other[2:] == scenario[2:],
    ]
    for agrees in agreements:
        found = [other for other in printed if agrees(other)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def method_names(items: Sequence[Curve | Log]) -> list[str]:
    """Return the method of each, or its row if one source has the method several times."""
    keys = [(getattr(item, "source", "ours"), item.method) for item in items]
    often = Counter(keys)
    return [
        item.method if often[key] == 1 or not item.row else item.row
        for key, item in zip(keys, items, strict=True)
    ]


def subset_names(items: Sequence[Curve | Log]) -> list[str]:
    """Return the parameters that each constrains; plain MAML constrains none."""
    return ["none" if item.method == "maml" else item.subset or "cls" for item in items]


def label(name: str, item: Curve | Log, scenario: Scenario) -> str:
    """Return the legend's text: name, source, and data and network if they are not the panel's."""
    who = "run here" if isinstance(item, Log) or item.is_ours else "paper"
    of = "" if item.scenario[:2] == scenario[:2] else f": {item.scenario.dataset}, {item.scenario.network}"
    return f"{METHOD_NAMES.get(name, name)} ({who}{of})"


def missing(shown: Sequence[Panel], named: Named) -> list[str]:
    """Return the missing accuracies: models without any, and steps that models lack."""
    if not any(curve.is_ours and curve.present for panel in shown for curve in panel.curves):
        return [NO_RESULTS]
    gaps = []
    for panel in shown:
        ours = [curve for curve in panel.curves if curve.is_ours]
        steps = {int(step) for curve in ours for step in curve.steps}
        there: dict[str, set[int]] = {name: set() for name in [*named(panel.curves), *named(panel.logs)]}
        for name, curve in zip(named(ours), ours, strict=True):
            there[name] |= curve.present
        if not any(there.values()):
            gaps.append(f"{panel.scenario} (not tested here)")
            continue
        for name, present in there.items():
            what = f"{METHOD_NAMES.get(name, name)} on {panel.scenario}"
            if not present:
                gaps.append(what)
            elif steps - present:
                gaps.append(f"{what} after {', '.join(map(str, sorted(steps - present)))} steps")
    return gaps


def missing_logs(shown: Sequence[Panel], named: Named) -> list[str]:
    """Return the models that have accuracies but no training log."""
    return [
        f"training log of {METHOD_NAMES.get(name, name)} on {panel.scenario}"
        for panel in shown
        for name in dict.fromkeys(named([curve for curve in panel.curves if curve.is_ours]))
        if name not in named(panel.logs)
    ]
