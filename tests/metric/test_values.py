"""Metrics of several uneven batches are what NumPy and scikit-learn compute of all rows at once; by plans and interpreted."""

import itertools
import math

import numpy
import pytest
from sklearn import metrics as theirs

import oarlock as ol

SIZES = (5, 0, 13, 1, 7)  # rows of the batches
EXECUTORS = [pytest.param(False, id="plan"), pytest.param(True, id="interpreter")]


def rows(*arrays):
    """The arrays, cut into batches of SIZES rows."""
    cuts = numpy.cumsum((0, *SIZES))
    return [[array[start:stop] for array in arrays] for start, stop in itertools.pairwise(cuts)]


def run(build, inputs, batches, *, interpret=False):
    """The values after the last batch, of metrics that `build` makes of inputs: name -> (shape, dtype)."""
    with ol.Program() as program:
        values = build(*(ol.layer.data(name, shape, dtype=dtype) for name, (shape, dtype) in inputs.items()))
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor(interpret=interpret)
    for batch in batches:
        found = executor.run(program, dict(zip(inputs, batch, strict=True)), values, scope=scope)
    return [value if value.ndim else float(value) for value in found]


CLASSES = {"predict": ([4], "float32"), "label": ([], "int64")}


@pytest.fixture
def told():
    """Scores of four classes, of which the last is never true nor told, and labels."""
    random = numpy.random.default_rng(0)
    scores = random.normal(size=(sum(SIZES), 4)).astype("float32")
    scores[:, 3] = -9.0
    return scores, random.integers(0, 3, sum(SIZES))


@pytest.mark.parametrize("interpret", EXECUTORS)
def test_classes_are_judged_as_scikit_learn_judges_them(told, interpret):
    def build(predict, label):
        averages = ("macro", "micro", "weighted", None)
        kinds = (ol.metric.precision, ol.metric.recall, ol.metric.f1)
        return [
            ol.metric.accuracy(predict, label),
            ol.metric.top_k_accuracy(predict, label, 2),
            ol.metric.confusion_matrix(predict, label),
            *(kind(predict, label, average=average) for average in averages for kind in kinds),
        ]

    scores, label = told
    right, among_two, matrix, *scored = run(build, CLASSES, rows(scores, label), interpret=interpret)
    best = scores.argmax(1)
    assert right == theirs.accuracy_score(label, best)
    assert among_two == pytest.approx(theirs.top_k_accuracy_score(label, scores, k=2, labels=range(4)))
    numpy.testing.assert_array_equal(matrix, theirs.confusion_matrix(label, best, labels=range(4)))
    for number, average in enumerate(("macro", "micro", "weighted", None)):
        labels = range(4) if average is None else None
        wanted = theirs.precision_recall_fscore_support(label, best, average=average, labels=labels, zero_division=0)[:3]
        for value, expected in zip(scored[3 * number : 3 * number + 3], wanted, strict=True):
            numpy.testing.assert_allclose(value, expected, rtol=1e-12, atol=0)


def test_labels_that_are_ignored_are_as_if_they_were_not_there(told):
    def build(predict, label):
        return [
            ol.metric.accuracy(predict, label, ignore_index=2),
            ol.metric.top_k_accuracy(predict, label, 2, ignore_index=2),
            ol.metric.confusion_matrix(predict, label, ignore_index=2),
            ol.metric.perplexity(predict, label, ignore_index=2),
        ]

    scores, label = told
    kept = label != 2
    right, among_two, matrix, perplexity = run(build, CLASSES, rows(scores, label))
    assert right == theirs.accuracy_score(label[kept], scores[kept].argmax(1))
    assert among_two == pytest.approx((numpy.argsort(-scores[kept], axis=1)[:, :2] == label[kept, None]).any(1).mean())
    numpy.testing.assert_array_equal(matrix, theirs.confusion_matrix(label[kept], scores[kept].argmax(1), labels=range(4)))
    logs = scores[kept].astype("float64") - numpy.log(numpy.exp(scores[kept].astype("float64")).sum(1, keepdims=True))
    assert perplexity == pytest.approx(numpy.exp(-logs[numpy.arange(kept.sum()), label[kept]].mean()), rel=1e-6)


@pytest.mark.parametrize("interpret", EXECUTORS)
def test_one_number_for_two_classes_is_told_by_a_threshold(interpret):
    random = numpy.random.default_rng(1)
    score, label = random.random(sum(SIZES)), random.integers(0, 2, sum(SIZES))

    def build(predict, label):
        kinds = (ol.metric.precision, ol.metric.recall, ol.metric.f1)
        return [
            ol.metric.binary_accuracy(predict, label, threshold=0.3),
            ol.metric.confusion_matrix(predict, label, threshold=0.3),
            *(kind(predict, label, threshold=0.3) for kind in kinds),
            ol.metric.auc(predict, label, bins=100_000),
        ]

    inputs = {"predict": ([], "float64"), "label": ([], "int64")}
    right, matrix, *scored, area = run(build, inputs, rows(score, label), interpret=interpret)
    best = (score > 0.3).astype("int64")
    assert right == theirs.accuracy_score(label, best)
    numpy.testing.assert_array_equal(matrix, theirs.confusion_matrix(label, best))
    numpy.testing.assert_allclose(scored, theirs.precision_recall_fscore_support(label, best, average="binary")[:3], rtol=1e-12)
    assert area == pytest.approx(theirs.roc_auc_score(label, score), abs=1e-12)


def test_scores_that_fall_into_one_part_count_as_ties():
    score = numpy.array([0.0, 0.24, 0.26, 0.5, 0.74, 1.0])
    label = numpy.array([0, 1, 1, 0, 1, 0])
    (area,) = run(
        lambda predict, label: [ol.metric.auc(predict, label, bins=4)],
        {"predict": ([], "float64"), "label": ([], "int64")},
        [[score, label]],
    )
    assert area == pytest.approx(theirs.roc_auc_score(label, numpy.minimum(numpy.floor(score * 4), 3)))


@pytest.mark.parametrize("interpret", EXECUTORS)
def test_means_are_over_all_elements(interpret):
    random = numpy.random.default_rng(2)
    predict, target = random.normal(size=(2, sum(SIZES), 3)).astype("float32")

    def build(predict, target):
        kinds = (ol.metric.mean_absolute_error, ol.metric.mean_squared_error, ol.metric.root_mean_squared_error)
        return [ol.metric.mean(predict), *(kind(predict, target) for kind in kinds)]

    found = run(build, {"predict": ([3], "float32"), "target": ([3], "float32")}, rows(predict, target), interpret=interpret)
    error = predict.astype("float64") - target.astype("float64")
    wanted = [predict.astype("float64").mean(), abs(error).mean(), (error**2).mean(), math.sqrt((error**2).mean())]
    numpy.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_perplexity_is_that_of_all_labels_of_all_batches(told):
    scores, label = told
    (found,) = run(lambda predict, label: [ol.metric.perplexity(predict, label)], CLASSES, rows(scores, label))
    assert found == pytest.approx(
        math.exp(theirs.log_loss(label, numpy.exp(scores) / numpy.exp(scores).sum(1, keepdims=True), labels=range(4))), rel=1e-6
    )


def test_the_classes_of_images_lie_along_the_axis_that_is_given():
    random = numpy.random.default_rng(3)
    logits, label = random.normal(size=(6, 3, 4, 5)).astype("float32"), random.integers(0, 3, (6, 4, 5))

    def build(predict, label):
        return [
            ol.metric.mean_iou(predict, label, axis=1),
            ol.metric.accuracy(predict, label, axis=1),
            ol.metric.f1(predict, label, axis=1),
        ]

    inputs = {"predict": ([3, 4, 5], "float32"), "label": ([4, 5], "int64")}
    iou, right, f1 = run(build, inputs, [[logits[:1], label[:1]], [logits[1:], label[1:]]])
    best = logits.argmax(1)
    assert iou == pytest.approx(theirs.jaccard_score(label.ravel(), best.ravel(), average="macro"))
    assert right == theirs.accuracy_score(label.ravel(), best.ravel())
    assert f1 == pytest.approx(theirs.f1_score(label.ravel(), best.ravel(), average="macro"))


def test_a_class_that_is_neither_there_nor_told_has_no_part_in_the_mean_iou(told):
    scores, label = told
    (iou,) = run(lambda predict, label: [ol.metric.mean_iou(predict, label)], CLASSES, rows(scores, label))
    assert iou == pytest.approx(theirs.jaccard_score(label, scores.argmax(1), average="macro"))


def test_where_there_is_nothing_to_divide_by_values_are_those_that_are_documented():
    def build(predict, label):
        kinds = (ol.metric.precision, ol.metric.recall, ol.metric.f1)
        shares = [kind(predict, label) for kind in (ol.metric.accuracy, ol.metric.mean_iou, ol.metric.perplexity)]
        return [
            *shares,
            ol.metric.mean(predict),
            *(kind(predict, label, average=average) for average in ("macro", "micro", "weighted") for kind in kinds),
        ]

    found = run(build, CLASSES, [[numpy.zeros((0, 4), "float32"), numpy.zeros(0, "int64")]])
    assert all(map(math.isnan, found[:4]))
    assert found[4:] == [0.0] * 9
    one_class = [numpy.array([0.2, 0.9]), numpy.array([1, 1])]
    (area,) = run(lambda predict, label: [ol.metric.auc(predict, label)], {"predict": ([], "float64"), "label": ([], "int64")}, [one_class])
    assert math.isnan(area)
