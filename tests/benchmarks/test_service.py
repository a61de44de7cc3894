"""What the suite ``service`` counts."""

from threading import get_ident

from benchmarks import service


def test_other_answers_of_threads_are_counted():
    alone = get_ident()

    def mixed_up(sentences):
        if get_ident() != alone and sentences[0] == ["c"]:
            raise ValueError("what another thread asked for")
        return [["A" if get_ident() == alone or sentence == ["a"] else "B"] for sentence in sentences]

    figures = service._side_by_side(mixed_up, [["a"], ["b"], ["c"]])
    assert figures["threads, other answers"] == 2 * service.THREADS
    right = service._side_by_side(lambda sentences: [["A"] for _ in sentences], [["a"], ["b"]])
    assert right["threads, other answers"] == 0


def test_times_are_of_single_sentences():
    asked = []
    figures = service._one_by_one(asked.append, [["a"], ["b"]])
    assert asked == [[["a"]], [["b"]]] * service.ROUNDS
    assert 0.0 < figures["one, p50 ms"] <= figures["one, p99 ms"]
