from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.core.values import changed_words


def test_words_that_differ() -> None:
    assert changed_words(["a", "b", "c"], ["a", "x", "c"]) == (["b"], ["x"])
    assert changed_words(["a"], ["a", "b", "c"]) == ([], ["b", "c"])
    assert changed_words(["a", "b"], []) == (["a", "b"], [])
    assert changed_words(["--a", "1", "--b", "1"], ["--b", "1"]) == (["--a", "1"], [])


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
@settings(derandomize=True, max_examples=100)
def test_nothing_is_lost(before: list[str], after: list[str]) -> None:
    removed, added = changed_words(before, after)
    assert (removed == [] and added == []) == (before == after)
    assert sorted([*before, *added]) == sorted([*after, *removed])
