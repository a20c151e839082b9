from gb300serve.core.diagnostics import Diagnostic
from gb300serve.document.nodes import Source
from gb300serve.document.read import parse
from gb300serve.plan.secrets import literal_secrets, redact_diagnostics, secrets_in_comments

TEXT = """\
title: hf_PlUmTrEeAnDpEaRtReE42
container:
  env: {DB_PASSWORD: plum-tree, LEVEL: INFO, PIN_TOKEN: 123456}
  secrets: {HF_TOKEN: {env: HF_TOKEN}}
  labels: {hf_PlUmTrEeAnDpEaRtReE43: x}
engine:
  launcher: [vllm, --api-key, pear-tree]
  options:
    api_key: [quince-tree, "${secret:HF_TOKEN}"]
    hf_token: true
    speculative_config: {signing_key: q1w2e3r4t5y6u7i8, pad_token: q1w2e3r4t5y6u7i9}
  extra_args: [--api-key, $KEY, --api-key, /srv/key]
"""
ROOT = parse(Source("recipe.yaml", TEXT)).root


def test_every_literal_secret_with_its_place() -> None:
    assert [(".".join(map(str, found.path)), found.value, found.in_key) for found in literal_secrets(ROOT)] == [
        ("title", "hf_PlUmTrEeAnDpEaRtReE42", False),
        ("container.env.DB_PASSWORD", "plum-tree", False),
        ("engine.launcher.2", "pear-tree", False),
        ("engine.options.api_key.0", "quince-tree", False),
        ("engine.options.speculative_config.signing_key", "q1w2e3r4t5y6u7i8", False),
        ("container.env.PIN_TOKEN", "123456", False),
        ("container.labels.hf_PlUmTrEeAnDpEaRtReE43", "hf_PlUmTrEeAnDpEaRtReE43", True),
    ]


def test_numbers_of_other_sections_are_not_secrets() -> None:
    memory = "memory: {kv_cache: {bytes_per_token: 33792.5, session_token: 123456}}\n"
    text = memory + "engine: {options: {api_key: 7654321}}\n"
    literals = literal_secrets(parse(Source("recipe.yaml", text)).root)
    assert [(literal.path, literal.value) for literal in literals] == [(("engine", "options", "api_key"), "7654321")]


def test_kinds_never_hold_the_text() -> None:
    assert [found for found in literal_secrets(ROOT) if found.value in found.kind] == []


def test_diagnostics_lose_the_texts() -> None:
    said = Diagnostic(
        "X001", "x", "error", "`plum-tree` is wrong", 'write "123456"', "f", 1, 1, "a.hf_PlUmTrEeAnDpEaRtReE43"
    )
    plain = Diagnostic("X002", "y", "error", "nothing", None, "f", 1, 1, None)
    assert redact_diagnostics([said, plain], ROOT) == (
        Diagnostic("X001", "x", "error", "`[secret]` is wrong", 'write "[secret]"', "f", 1, 1, "a.[secret]"),
        plain,
    )
    assert redact_diagnostics([], None) == ()


def test_comments() -> None:
    text = "a: 1\nb: 2 # ghp_9aZbYcXdWeVfUgThSiRjQkPl\n# plain\nc: '#ghp_9aZbYcXdWeVfUgThSiRjQkPl'\n"
    assert list(secrets_in_comments(text)) == [(2, "a GitHub token")]
    assert list(secrets_in_comments("a: ghp_9aZbYcXdWeVfUgThSiRjQkPl\n")) == []


def test_a_section_that_is_a_text_itself() -> None:
    root = parse(Source("recipe.yaml", "engine: hf_PlUmTrEeAnDpEaRtReE42\n")).root
    assert [(found.path, found.value) for found in literal_secrets(root)] == [(("engine",), "hf_PlUmTrEeAnDpEaRtReE42")]
