import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gb300serve.importers.report import NotImportableError
from tests.importers.shell.test_expand import words
from tests.support.imports import read
from tests.support.shells import Shell


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell("bash", tmp_path_factory.mktemp("bash"))


FORMS = [
    "${A#*/}", "${A##*/}", "${A%/*}", "${A%%/*}", "${A%:*}", '"${A%%[:@]*}"', "${A#?}", "${A%'*'}", '"${A%"0"}"',
    "${A#$B}", "${A/v0/v1}", "${A//\\//_}", "${A//o/0}", "${A^^}", "${A^}", "${A,,}", "${A,}", "${#A}", "${A:3}",
    "${A:3:4}", "${A: -3}", "${A:0:-4}", "${A:200}", "${A#none}", "${A##*}", "${A%%*}", "${A#[!v]}", "${A#[a-v]}",
    "${A/v*/y}", "${A/#vllm/x}", "${A/%[0-9]/x}", "${A/[.-]}", "${A//[.-]/+}", "${A[0]}", "${A[1]}",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_value_is_computed_as_bash_does(bash: Shell, form: str) -> None:
    text = f"A=vllm/vllm-openai:v0.30.0 B=vll\ndocker run x{form}\n"
    assert ("docker", "run", *words(text)) == bash.words(text)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.text("ab/:", max_size=8),
    operator=st.sampled_from(["#", "##", "%", "%%"]),
    glob=st.lists(st.sampled_from(["*", "?", "a", "b", "/", "[ab]", "[!a]"]), min_size=1, max_size=5),
)
def test_any_trimmed_value_is_that_of_bash(bash: Shell, value: str, operator: str, glob: list[str]) -> None:
    text = f'A={value}\ndocker run "x${{A{operator}{"".join(glob)}}}"\n'
    assert ("docker", "run", *words(text)) == bash.words(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("docker run i:1 ${A##*/}\n", "${A##*/} depends on A, which the text does not set"),
        ("A=$(cat /k)\ndocker run i:1 ${A%x}\n", "${A%x} depends on A, which the text does not set"),
        ("A=x\ndocker run i:1 ${A/x*a*/y}\n", "${A/x*a*/y} cannot be evaluated without bash"),
        ("A=x\ndocker run i:1 ${A:B}\n", "${A:B} cannot be evaluated without bash"),
        ("A=x\ndocker run i:1 ${!A}\n", "${!A} cannot be evaluated without bash"),
    ],
)
def test_expansions_that_need_bash(text: str, reason: str) -> None:
    with pytest.raises(NotImportableError) as caught:
        read(text)
    assert reason in caught.value.message


def test_a_long_value_costs_no_time() -> None:
    with pytest.raises(NotImportableError):
        read(f"A={'a' * 5000}\ndocker run i:1 ${{A%{'*a' * 40}b}}\n")
