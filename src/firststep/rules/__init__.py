"""Update rules: the inner gradient goes in, the step comes out. One file a rule."""

from firststep.rules.gradient_descent import anil, boil, fomaml, maml
from firststep.rules.registry import RULES, build_rule
from firststep.rules.rule import Rule

__all__ = ["RULES", "Rule", "anil", "boil", "build_rule", "fomaml", "maml"]
