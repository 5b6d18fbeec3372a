"""The loss without its gradient: the same numbers, under no_grad too."""

from __future__ import annotations

import pytest
import torch

from firststep import METHODS, Conditioning, build_method, log_condition_number
from firststep.conditioning import CONDITIONING_LOSSES
from firststep.functional import FunctionalModule, Learner, MetaGradient, meta_gradient
from firststep.metagradient import ENGINES, EngineOptions
from networks import perturbed_rule_params, small_conv, small_task

TASKS = [small_task(), tuple(small_task(seed=6))]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("subset", [None, "cls", "emb"])
def test_the_loss_and_its_reports_are_those_of_the_gradient(name: str, subset: str | None) -> None:
    method = build_method(name, 0.2, steps=2)
    model = FunctionalModule(method.prepare(small_conv(), None))
    rule_params = perturbed_rule_params(method, model)
    conditioning = None if subset is None else Conditioning(subset=subset, weight=0.7)
    for engine in ENGINES:
        compute = MetaGradient(
            model, method.rule, steps=3, conditioning=conditioning, options=EngineOptions(engine=engine)
        )
        for weights in (None, (0.2, 0.0, 0.5)):
            expected = compute(model.params(), rule_params, TASKS, query_weights=weights)
            with torch.no_grad():
                result = compute.loss(model.params(), rule_params, TASKS, query_weights=weights)
            assert result.params == result.rule_params == {}
            assert result.loss.item() == pytest.approx(expected.loss.item(), rel=1e-14)
            for got, report in zip(result.tasks, expected.tasks, strict=True):
                torch.testing.assert_close(got, report, rtol=1e-12, atol=1e-14)
                assert not any(value.requires_grad for value in got)


def own_loss(gram: torch.Tensor) -> torch.Tensor:
    return log_condition_number(gram, check_finite=False)


def test_a_conditioning_loss_of_one_s_own_by_itself_and_by_name() -> None:
    model = FunctionalModule(small_conv())
    rule = build_method("maml", 0.2).rule

    def gradient(loss: object) -> dict[str, torch.Tensor]:
        conditioning = Conditioning(loss=loss)  # type: ignore[arg-type]
        return meta_gradient(Learner(model, rule), TASKS, steps=2, conditioning=conditioning).params

    expected = gradient("log-kappa")
    CONDITIONING_LOSSES.register("own", own_loss)
    try:
        for found in (gradient(own_loss), gradient("own")):
            assert all(torch.equal(found[name], value) for name, value in expected.items())
    finally:
        CONDITIONING_LOSSES.unregister("own")
    with pytest.raises(ValueError, match="loss must be a name or a function of the Gram matrix, not 3"):
        Conditioning(loss=3)  # type: ignore[arg-type]
