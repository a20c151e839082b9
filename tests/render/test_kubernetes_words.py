import pytest

from gb300serve.render.kubernetes.volumes import annotations, object_name, quantity, user_ids
from tests.support.targets import with_container


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dsv41-vllm", "dsv41-vllm"),
        ("deepseek-v4.1-flash", "deepseek-v4-1-flash"),
        ("A__b.", "a-b"),
        ("41", "lane-41"),
        ("a" * 49 + "-" + "b" * 40, "a" * 49),
        ("", "bench"),
    ],
)
def test_names_of_objects(name: str, said: str) -> None:
    assert object_name(with_container(name=name)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [("16g", "16Gi"), ("16G", "16Gi"), ("16GiB", "16Gi"), ("16gb", "16Gi"), ("64 m", "64Mi"), ("1k", "1Ki"),
     ("123", "123"), ("123b", "123"), ("1t", "1Ti"), ("1.5g", None), ("lots", None), ("", None), ("\u0661g", None)],
)  # fmt: skip
def test_quantities(text: str, said: str | None) -> None:
    assert quantity(text) == said


@pytest.mark.parametrize(
    ("user", "ids"),
    [
        ("1000:100", (1000, 100)),
        ("0", (0, None)),
        ("root", (None, None)),
        ("1:staff", (None, None)),
        (None, (None, None)),
    ],
)
def test_users(user: str | None, ids: tuple[int | None, int | None]) -> None:
    assert user_ids(user) == ids


def test_labels_of_dockers_are_annotations_where_their_keys_may_be() -> None:
    container = with_container(labels={"team": "a b", "org.x/y": "", "a b": "c", "/x": "c", "-a": "c"}).container
    assert annotations(container) == {"team": "a b", "org.x/y": ""}
