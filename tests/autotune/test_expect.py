import pytest

from gb300serve.autotune.sets import price, same_identity, short


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("9ac7b387", "9ac7b387d41c", True),
        ("08c89d94…4796", "08c89d94aa", True),
        ("9ac7b387", "9ac7b388", False),
        ("9ac7", "9ac7b387", False),
    ],
)
def test_identities_are_compared_by_their_beginning(one: str, other: str, *, same: bool) -> None:
    assert same_identity(one, other) is same


def test_what_people_write() -> None:
    assert short("9ac7b387d41c") == "9ac7b387"
    assert price(4440.0) == "about 74 minutes"
    assert price(None) == "16 to 81 minutes on a Station"
