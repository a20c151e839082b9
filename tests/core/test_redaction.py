import pytest

from gb300serve.core.redaction import (
    holds_secret,
    is_placeholder,
    literal_secret,
    may_hold_secret,
    redact,
    redact_line,
    secret_kind,
)

SHAPED = {
    "hf_qQwWeErRtTyYuUiIoOpP12": "a Hugging Face token",
    "sk-proj-4f5g6h7j8k9l0z1x2c3v": "an API key",
    "sk-ant-api03-4f5g6h7j8k9l": "an API key",
    "ghp_9aZbYcXdWeVfUgThSiRjQkPl": "a GitHub token",
    "github_pat_11ABCDEFG0abcdefghij": "a GitHub token",
    "glpat-9aZbYcXdWeVfUgThSiRj": "a GitLab token",
    "AKIAQWERTYUIOP123456": "an AWS access key",
    "AIzaSyQWERTYUIOPASDFGHJKLZXCVBNM1234567": "a Google API key",
    "xoxb-123456789012-abcdefGHIJ": "a Slack token",
    "nvapi-9aZbYcXdWeVfUgThSiRj": "an NVIDIA API key",
    "dckr_pat_9aZbYcXdWeVfUgThSiRj": "a Docker token",
    "npm_9aZbYcXdWeVfUgThSiRjQkPlMnOp": "a package registry's token",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.c2lnbmF0dXJl": "a JSON Web Token",
    "Authorization: Bearer q1w2e3r4t5y6": "a bearer token",
    "-----BEGIN RSA PRIVATE KEY-----": "a private key",
    "https://robot:p4ssphrase@registry.example/v2": "a password in a URL",
    "https://hub.example/model?token=q1w2e3r4t5": "a token in a URL",
    "export HF_TOKEN=q1w2e3r4t5 && vllm": "a secret in a shell command",
    "--api-key q1w2e3r4": "a secret in a shell command",
}
PLAIN = (
    "hf_transfer",
    "hf_overrides",
    "task-based-3000-tokens-long",
    "sk-learn",
    "Bearer tokens are checked by the proxy",
    "https://registry.example:5000/v2",
    "https://robot:$PASSWORD@registry.example",
    "https://hub.example/model?revision=q1w2e3r4t5",
    "sha256:00d577a6a63281e15336029d5bcee4e9a2cf182214a4f20ba6111b1c8e79893d",
    "--api-key /srv/keys/lane",
    "API_KEY=$API_KEY",
    "MAX_TOKENS=4096",
)


@pytest.mark.parametrize("text", SHAPED)
def test_shapes(text: str) -> None:
    assert secret_kind(text) == SHAPED[text]
    assert secret_kind(f"before {text} after") == SHAPED[text]
    assert text not in redact(f"before {text} after")


@pytest.mark.parametrize("text", PLAIN)
def test_what_only_looks_alike(text: str) -> None:
    assert secret_kind(text) is None
    assert redact(text) == text


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "VLLM_API_KEY", "api-key", "DB_PASSWORD", "client.secret", "AWS_SECRET_ACCESS_KEY"]
)
def test_names_that_hold_a_secret(name: str) -> None:
    assert holds_secret(name)
    assert literal_secret(name, "plum tree") == f"the value of {name}"
    assert literal_secret(name, "plum tree", strict=True) is None
    assert literal_secret(name, "q1w2e3r4t5y6u7i8", strict=True) == f"the value of {name}"


@pytest.mark.parametrize(
    "name",
    [
        "TOKENIZERS_PARALLELISM",
        "max_num_batched_tokens",
        "VLLM_AUTOTUNE_CACHE_KEY",
        "pad_token",
        "bytes_per_token",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN",
        "max_tokens",
        "tokenizer",
        "think_end_token",
        "NCCL_BYPASS",
        "num_pass",
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert not holds_secret(name)
    assert literal_secret(name, "q1w2e3r4t5y6u7i8") is None


@pytest.mark.parametrize(
    "value", ["", "EMPTY", "none", "/run/secrets/key", "~/key", "${KEY}", "<your token>", "xxxxxxxx"]
)
def test_values_that_are_no_secret_anywhere(value: str) -> None:
    assert literal_secret("API_KEY", value) is None


def test_a_key_that_may_hold_one_needs_a_random_value() -> None:
    assert may_hold_secret("SIGNING_KEY")
    assert literal_secret("SIGNING_KEY", "q1w2e3r4t5y6u7i8") == "the value of SIGNING_KEY"
    assert literal_secret("SIGNING_KEY", "production") is None


def test_known_secrets_are_hidden_also_where_they_were_cut() -> None:
    assert redact("is 'plum-tree-and-pe...', not", ("plum-tree-and-pear",)) == "is '[secret]', not"
    assert redact("nothing of it", ("plum-tree-and-pear",)) == "nothing of it"


def test_lines_hide_the_values_of_names() -> None:
    assert redact_line("    DB_PASSWORD: plum-tree") == "    DB_PASSWORD: [secret]"
    assert redact_line('  api_key: ["plum-tree"]') == '  api_key: ["plum-tree"]'
    assert redact_line("    VLLM_API_KEY: {file: /srv/key}") == "    VLLM_API_KEY: {file: /srv/key}"
    assert redact_line("  extra_args: [--api-key, plum-tree]") == "  extra_args: [--api-key, [secret]]"
    for plain in ("    max_num_batched_tokens: 8192000", "    bytes_per_token: 33792.5"):
        assert redact_line(plain) == plain


@pytest.mark.parametrize("filler", ["sk-", "eyJ", "a://", "Bearer ", "a=", " "])
def test_a_long_text_is_redacted_to_its_end(filler: str) -> None:
    """What it costs is measured by scripts/bench."""
    long = filler * 100_000
    token = "hf_" + "Ab1" * 8
    assert redact(f"{long} {token}") == f"{long} [secret]"


def test_a_long_value_is_redacted_whole() -> None:
    assert redact("API_KEY=" + "A" * 900_000) == "[secret]"


def test_a_known_secret_goes_whole_and_as_python_writes_it() -> None:
    blanks = "two words and more"
    quoted = """it's a "key" \\ of mine"""
    assert redact(f"key: {blanks}.", (blanks,)) == "key: [secret]."
    assert redact(f"api_key={quoted!r}, port=1", (quoted,)) == "api_key='[secret]', port=1"
    assert redact("nothing is hidden by nothing", ("",)) == "nothing is hidden by nothing"


@pytest.mark.parametrize(
    "name",
    ["PGPASSWORD", "MYSQL_PWD", "SMTP_PASS", "BASIC_AUTH", "splunk-token", "owner.token", "remote_password", "apikey"],
)
def test_names_whose_short_values_are_secrets(name: str) -> None:
    assert literal_secret(name, "Winter31") == f"the value of {name}"


@pytest.mark.parametrize(
    "text",
    [
        "***", "<redacted>", "[REDACTED]", "[secret]", "xxxx", "hf_***", "hf_xxxx", "sk-...", "YOUR_HF_TOKEN",
        "REDACTED", "your-api-key", "change-me", "{{ token }}", "…",
    ],
)  # fmt: skip
def test_placeholders(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("text", ["", "xx", "Winter2031", "hf_transfer", "/run/key", "abc", "-" * 200])
def test_texts_that_are_no_placeholder(text: str) -> None:
    assert not is_placeholder(text)
