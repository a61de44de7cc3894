"""Margin and slack rescaling, as block methods see them.

The value of an output in the two objectives, for a gold output of score s(gold),

    margin   ell(y) + s(y)                   its features count once
    slack    ell(y) (1 + s(y) - s(gold))     its features minus gold's count ell(y) times

differs in a few small functions. They pick their implementation by the type of the costs when a sweep is compiled, so
the margin's sweeps carry no trace of the slack's. ``Costs`` mean the margin, ``SlackCosts`` the slack.

Weights of examples enter the slack objective through the losses alone: c ell (1 + s - s(gold)).
"""

from numba import types
from numba.extending import overload

from m3n.compiled.jit import CHOSEN, compiled
from m3n.compiled.maps.costs import SlackCosts, add_costs, margin_base
from m3n.compiled.maps.kinds import gather
from m3n.compiled.oracles.hooks import best, slack, slack_workspace, workspace
from m3n.compiled.sweeps.visits import add_parts


def _either(margin, slack):
    """A function that is ``slack`` if one of its arguments is ``SlackCosts``, and ``margin`` otherwise."""

    def choose(*arguments):
        kinds = (x.instance_class if isinstance(x, types.BaseNamedTuple) else type(x) for x in arguments[:2])
        return slack if SlackCosts in kinds else margin

    def function(*arguments):
        return choose(*arguments)(*arguments)

    overload(function, jit_options=CHOSEN, strict=False)(choose)
    return function


# The losses of labels.
label_costs = _either(lambda costs: costs, lambda costs: costs.label)

# The value of an output with this score and loss; ``base`` as ``base_of`` gives it.
rescaled = _either(
    lambda costs, score, base, loss: score,
    lambda costs, score, base, loss: loss * (base + score),
)

# How often the features of an output with this loss count.
factor = _either(lambda costs, loss: 1.0, lambda costs, loss: loss)

# 1 - s(gold) of example i under slack rescaling.
base_of = _either(lambda costs, i, theta: 0.0, lambda costs, i, theta: margin_base(costs, i, theta))

# theta += loss of example i, where the objective adds it.
add_loss = _either(lambda costs, i, theta: add_costs(costs, i, theta, 1.0), lambda costs, i, theta: None)

# ``add_parts`` of the gold output where features are counted from gold; else they cancel.
add_gold = _either(
    lambda costs, i, delta, marked, touched, size, amount: size,
    lambda costs, i, delta, marked, touched, size, amount: add_parts(
        delta, marked, touched, size, costs.gold[i], costs.gold_counts[i], amount
    ),
)

# Scratch memory for one sweep of ``most_violated``.
workspace_for = _either(
    lambda space, costs: workspace(space),
    lambda space, costs: slack_workspace(space, costs),
)

# The largest value of an output, and the number of its parts; ``theta`` as ``objective_scores`` gives it.
most_violated = _either(
    lambda space, costs, i, theta, parts, work: best(space, i, theta, parts, work),
    lambda space, costs, i, theta, parts, work: slack(space, costs, i, theta, parts, work),
)


@compiled
def objective_scores(rows, costs, i, w, theta):
    """Scores of all parts of example i, with the loss where the objective adds it: a part of ``theta``, filled."""
    local = theta[: rows.sizes[i]]
    gather(rows, i, w, local)
    add_loss(costs, i, local)
    return local
