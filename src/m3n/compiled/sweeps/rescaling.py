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

from m3n.compiled.jit import compiled
from m3n.compiled.maps.costs import SlackCosts, add_costs, margin_base
from m3n.compiled.maps.kinds import gather
from m3n.compiled.oracles.hooks import best, slack, slack_workspace, workspace
from m3n.compiled.sweeps.visits import add_parts


def _slack(costs):
    kind = costs.instance_class if isinstance(costs, types.BaseNamedTuple) else type(costs)
    return kind is SlackCosts


def label_costs(costs):
    """The losses of labels."""
    return costs.label if _slack(costs) else costs


def rescaled(costs, score, base, loss):
    """The value of an output with this score and loss; ``base`` as ``base_of`` gives it."""
    return loss * (base + score) if _slack(costs) else score


def factor(costs, loss):
    """How often the features of an output with this loss count."""
    return loss if _slack(costs) else 1.0


def base_of(costs, i, theta):
    """1 - s(gold) of example i under slack rescaling."""
    return margin_base(costs, i, theta) if _slack(costs) else 0.0


def add_loss(costs, i, theta):
    """theta += loss of example i, where the objective adds it."""
    if not _slack(costs):
        add_costs(costs, i, theta, 1.0)


def add_gold(costs, i, delta, marked, touched, size, amount):
    """``add_parts`` of the gold output where features are counted from gold; else they cancel."""
    if _slack(costs):
        size = add_parts(delta, marked, touched, size, costs.gold[i], costs.gold_counts[i], amount)
    return size


def workspace_for(space, costs):
    """Scratch memory for one sweep of ``most_violated``."""
    return slack_workspace(space, costs) if _slack(costs) else workspace(space)


def most_violated(space, costs, i, theta, parts, work):
    """The largest value of an output, and the number of its parts; ``theta`` as ``objective_scores`` gives it."""
    return slack(space, costs, i, theta, parts, work) if _slack(costs) else best(space, i, theta, parts, work)


@overload(label_costs)
def _label_costs(costs):
    return (lambda costs: costs.label) if _slack(costs) else (lambda costs: costs)


@overload(rescaled)
def _rescaled(costs, score, base, loss):
    if _slack(costs):
        return lambda costs, score, base, loss: loss * (base + score)
    return lambda costs, score, base, loss: score


@overload(factor)
def _factor(costs, loss):
    return (lambda costs, loss: loss) if _slack(costs) else (lambda costs, loss: 1.0)


@overload(base_of)
def _base_of(costs, i, theta):
    if _slack(costs):
        return lambda costs, i, theta: margin_base(costs, i, theta)
    return lambda costs, i, theta: 0.0


@overload(add_loss)
def _add_loss(costs, i, theta):
    if _slack(costs):
        return lambda costs, i, theta: None
    return lambda costs, i, theta: add_costs(costs, i, theta, 1.0)


@overload(add_gold)
def _add_gold(costs, i, delta, marked, touched, size, amount):
    def from_gold(costs, i, delta, marked, touched, size, amount):
        return add_parts(delta, marked, touched, size, costs.gold[i], costs.gold_counts[i], amount)

    return from_gold if _slack(costs) else (lambda costs, i, delta, marked, touched, size, amount: size)


@overload(workspace_for)
def _workspace_for(space, costs):
    if _slack(costs):
        return lambda space, costs: slack_workspace(space, costs)
    return lambda space, costs: workspace(space)


@overload(most_violated)
def _most_violated(space, costs, i, theta, parts, work):
    if _slack(costs):
        return lambda space, costs, i, theta, parts, work: slack(space, costs, i, theta, parts, work)
    return lambda space, costs, i, theta, parts, work: best(space, i, theta, parts, work)


@compiled
def objective_scores(rows, costs, i, w, theta):
    """Scores of all parts of example i, with the loss where the objective adds it: a part of ``theta``, filled."""
    local = theta[: rows.sizes[i]]
    gather(rows, i, w, local)
    add_loss(costs, i, local)
    return local
