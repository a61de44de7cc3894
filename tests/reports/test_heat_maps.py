import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import scipy.sparse

matplotlib.use("Agg")
from matplotlib.figure import Figure

import m3n
from m3n.reports import plot_transitions, plot_weights, weights_size
from m3n.structures import Transitions

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model():
    X = [np.eye(7)[:3], np.eye(7)[2:6]]
    return m3n.SequenceTagger(n_jobs=1).fit(X, [["a", "b", "c"], ["c", "a", "b", "c"]])


@pytest.fixture
def figure():
    return Figure(layout="constrained")


@pytest.mark.parametrize("sparse", [False, True])
def test_every_label_is_an_image_of_its_weights(sparse, model, figure):
    copy = m3n.SequenceTagger()
    copy.classes_ = model.classes_
    copy.coef_ = scipy.sparse.csr_array(model.coef_) if sparse else model.coef_
    plot_weights(copy, (3, 2), figure)
    drawn = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in drawn] == ["a", "b", "c"]
    for k, axes in enumerate(drawn):
        (image,) = axes.images
        np.testing.assert_array_equal(image.get_array(), model.coef_[:6, k].reshape(3, 2))  # the constant is left out
        low, high = image.get_clim()
        assert low == -high  # white is zero
        assert high == drawn[0].images[0].get_clim()[1]
    figure.draw_without_rendering()


def test_labels_may_be_chosen(model, figure):
    plot_weights(model, (2, 3), figure, labels=["c", "a"])
    drawn = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title() for axes in drawn] == ["c", "a"]
    np.testing.assert_array_equal(drawn[0].images[0].get_array(), model.coef_[:6, 2].reshape(2, 3))


def test_a_few_huge_weights_do_not_make_the_others_pale(figure):
    model = m3n.SequenceTagger()
    model.classes_, model.coef_ = np.array(["a", "b"]), np.ones((200, 2))
    model.coef_[0, 0] = -50.0
    plot_weights(model, (10, 20), figure)
    assert figure.axes[0].images[0].get_clim() == (-1.0, 1.0)
    model.coef_[:] = 0.0  # nothing learnt: still a picture
    plot_weights(model, (10, 20), Figure())


def test_mistakes(model, figure):
    with pytest.raises(ValueError, match="an image of 16 x 8 pixels has 128, but the model has 7 attributes"):
        plot_weights(model, (16, 8), figure)
    with pytest.raises(ValueError, match="does not know the label 'z'"):
        plot_weights(model, (2, 3), figure, labels=["z"])
    with pytest.raises(ValueError, match="a model with a kernel, or before fit, has none"):
        plot_weights(m3n.SequenceTagger(), (2, 3), figure)
    with pytest.raises(ValueError, match="has no transitions"):
        plot_transitions(m3n.GraphLabeler(), figure.subplots())


@pytest.mark.parametrize(("labels", "shape"), [(1, (8, 8)), (10, (8, 8)), (26, (16, 8)), (26, (4, 20))])
def test_the_grid_has_room_for_all(labels, shape):
    model = m3n.SequenceTagger()
    model.classes_, model.coef_ = np.arange(labels), np.ones((128, labels))
    width, height = weights_size(model, shape)
    figure = Figure(figsize=(width, height), layout="constrained")
    plot_weights(model, shape, figure)
    figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == labels
    assert width > height / 2
    for axes in panels:
        box = axes.get_window_extent()
        assert box.height / box.width == pytest.approx(shape[0] / shape[1], rel=0.05)  # pixels are square
        assert box.width > 30


def test_transitions_show_scores_and_what_is_forbidden(figure):
    X, y = [[["a"], ["b"], ["c"]]], [["A", "B", "C"]]
    model = m3n.SequenceTagger(n_jobs=1, constraints=Transitions.forbid("ABC", [("B", "A")])).fit(X, y)
    axes = figure.subplots()
    plot_transitions(model, axes)
    np.testing.assert_array_equal(axes.images[0].get_array(), model.transitions_)
    assert axes.images[0].get_clim()[0] == -axes.images[0].get_clim()[1]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["A", "B", "C"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("label", "next label")
    numbers = {text.get_position(): float(text.get_text()) for text in axes.texts}
    assert numbers[1, 0] == pytest.approx(model.transitions_[0, 1], rel=0.1)  # column, row
    (crosses,) = axes.collections
    np.testing.assert_array_equal(crosses.get_offsets(), [[0, 1]])  # from B, in row 1, to A, in column 0
    figure.draw_without_rendering()


def test_many_labels_have_no_numbers(figure):
    model = m3n.SequenceTagger()
    model.classes_, model.transitions_ = np.arange(30), np.zeros((30, 30))
    axes = figure.subplots()
    plot_transitions(model, axes)
    assert len(axes.texts) == 0


def test_the_example_draws_digits(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("M3N_DATA", raising=False)
    monkeypatch.setattr("sys.argv", ["letter_weights.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "letter_weights.py"), run_name="__main__")
    assert "tolerance reached" in capsys.readouterr().out
    for name in ("weights.png", "transitions.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"


def test_the_example_reads_letters(data_folder):
    example = runpy.run_path(str(ROOT / "examples" / "letter_weights.py"))
    X, y, shape = example["letters"](data_folder / "ocr" / "letter.data.gz", folds=[0])
    assert shape == (16, 8)
    assert {x.shape[1] for x in X} == {129}
    assert [len(x) for x in X] == [len(word) for word in y]
