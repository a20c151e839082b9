from gb300serve.core.values import WrittenFloat
from gb300serve.engines.base import flag, is_list, is_whole, length, number, si_length, text

VALUES = (True, 3, WrittenFloat("0.5"), "1M", "x", [1], {"a": 1}, None)


def test_each_reads_its_own_type_only() -> None:
    assert [is_whole(value) for value in VALUES] == [False, True, False, False, False, False, False, False]
    assert [is_list(value) for value in VALUES] == [False, False, False, False, False, True, False, False]
    assert [text(value) for value in VALUES] == [None, None, None, "1M", "x", None, None, None]
    assert [flag(value) for value in VALUES] == [True, None, None, None, None, None, None, None]
    assert [number(value) for value in VALUES] == [None, 3.0, 0.5, None, None, None, None, None]
    assert [length(value) for value in VALUES] == [None, 3, None, 1048576, None, None, None, None]
    assert [si_length(value) for value in VALUES] == [None, 3, None, 1000000, None, None, None, None]


def test_a_number_that_no_option_can_have_counts_as_not_given() -> None:
    assert [number(value) for value in (10**400, -(10**400), 2**62)] == [None, None, float(2**62)]
    assert [length(value) for value in (10**400, "9" * 400, "99999999999G", -1)] == [None, None, None, -1]
