import pytest

from gb300serve.core.errors import CompileError
from gb300serve.document.nodes import Source
from gb300serve.document.read import parse
from gb300serve.plan.compile import UnsetVariableError, VariableError, expand

SITE = {"models": "/models", "cache": "/cache dir"}
RECIPE = parse(
    Source(
        "f",
        'release: v1\nmodel: {revision: df42, path: "${models}/${model.revision}"}\nlimits: [a]\n'
        "engine: {options: {port: 30006, gpu_memory_utilization: 0.90, trust_remote_code: true, x: null}}\n"
        'container: {secrets: {K: {file: "${model.path}/key"}, L: {file: "${container.secrets.L.file}"}}}\n',
    )
).root


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("/plain", "/plain"),
        ("${models}/a", "/models/a"),
        ("${cache}", "/cache dir"),
        ("${models}${cache}", "/models/cache dir"),
        ("/a-${model.revision}-${release}", "/a-df42-v1"),
        ("${engine.options.port}", "30006"),
        ("${engine.options.gpu_memory_utilization}", "0.90"),
        ("${engine.options.trust_remote_code}", "true"),
        ("${model.path}/sub", "/models/df42/sub"),
        ("${container.secrets.K.file}", "/models/df42/key"),
        ("$${models}", "${models}"),
        ("a$${b}$c$$d$", "a${b}$c$$d$"),
        ("$$${models}", "$${models}"),
    ],
)
def test_variables_are_replaced(text: str, expanded: str) -> None:
    assert expand(text, SITE, RECIPE) == expanded


NOTHING_LIKE_IT = "a site gives models, cache, patches; a recipe its own keys, as model.revision"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("${modls}", "there is no variable `modls`", "write ${models}"),
        ("${model.revison}", "there is no variable `model.revison`", "write ${model.revision}"),
        ("${HOME}", "there is no variable `HOME`", NOTHING_LIKE_IT),
        ("${}", "there is no variable ``", None),
        ("${ models }", "there is no variable ` models `", "write ${models}"),
        ("${limits.0}", "there is no variable `limits.0`", None),
        ("${model}", "`model` is not a single value", "name one text or number of the recipe"),
        ("${limits}", "`limits` is not a single value", None),
        ("${engine.options.x}", "`engine.options.x` is not a single value", None),
        ("${models", "`${` is not closed", "add }, or write $${ for a literal ${"),
        ("/a/${", "`${` is not closed", None),
        ("${container.secrets.L.file}", "`container.secrets.L.file` stands for itself", "write the path here"),
    ],
)  # fmt: skip
def test_what_no_site_can_give(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(VariableError) as error:
        expand(text, SITE, RECIPE)
    assert error.value.message.endswith(f"`: {message}")
    assert hint is None or error.value.hint == hint


def test_what_this_site_does_not_say() -> None:
    with pytest.raises(UnsetVariableError) as error:
        expand("${patches}/hook", SITE, RECIPE)
    assert isinstance(error.value, CompileError)
    assert error.value.exit_code == 4
    assert error.value.message == "`${patches}/hook`: the site does not say where `patches` is"
    assert error.value.hint == "add `patches: /a/directory` to site.yaml"
