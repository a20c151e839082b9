"""Secrets known by their shape or by the name they stand under, and texts without them."""

import re
from collections.abc import Iterable
from functools import lru_cache

HIDDEN = "[secret]"

# What issuers print: the prefix names the issuer, the rest is random. A letter run alone (`hf_transfer`) is no token:
# each pattern asks for a digit or a capital where the alphabet has them. Looks ahead are bounded: a megabyte of `sk-`
# would take minutes otherwise. Beside each stand the texts without one of which it cannot occur: looking those up costs
# 3 us for a whole recipe, the patterns 300.
_PREFIXED = (
    ("a Hugging Face token", ("hf_",), r"hf_(?=[a-z]{0,40}[A-Z0-9])[A-Za-z0-9]{12,}"),
    ("an API key", ("sk-",), r"sk-(?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{14,}"),
    (
        "a GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"(?:gh[pousr]_(?=[a-z]{0,40}[A-Z0-9])[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})",
    ),
    ("a GitLab token", ("glpat-",), r"glpat-[A-Za-z0-9_-]{16,}"),
    ("an AWS access key", ("AKIA", "ASIA"), r"(?:AKIA|ASIA)[0-9A-Z]{14,}"),
    ("a Google API key", ("AIza",), r"AIza[A-Za-z0-9_-]{30,}"),
    ("a Slack token", ("xox",), r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("an NVIDIA API key", ("nvapi-",), r"nvapi-[A-Za-z0-9_-]{16,}"),
    ("a Docker token", ("dckr_",), r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}"),
    (
        "a package registry's token",
        ("npm_", "pypi-"),
        r"(?:npm_(?=[a-z]{0,40}[A-Z0-9])[A-Za-z0-9]{24,}|pypi-[A-Za-z0-9_-]{24,})",
    ),
    ("a JSON Web Token", ("eyJ",), r"(?<!-)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    ("a bearer token", ("earer ",), r"[Bb]earer\s+(?=[^\s\"']{0,80}\d)[A-Za-z0-9._~+/=-]{12,}"),
)
_OPEN = (
    ("a private key", ("PRIVATE KEY",), r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    ("a password in a URL", ("://",), r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s/:@\"']*:(?![$<])[^\s/@\"']+@"),
    (
        "a token in a URL",
        ("token=", "key=", "sig=", "signature=", "secret=", "password="),
        r"[?&](?:access_?token|token|api_?key|key|sig(?:nature)?|secret|password)=(?![$<])[^&\s\"']{8,}",
    ),
    (
        "a secret in a shell word",
        ("TOKEN=", "SECRET=", "PASSWORD=", "KEY="),
        r"(?<![A-Z0-9_])[A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|API_?KEY|ACCESS_KEY)=(?![$<\"'/])[^\s\"';&|]{8,}",
    ),
    (
        "a secret in a shell word",
        ("--api-key", "--hf-token", "--token", "--password"),
        r"--(?:api-key|hf-token|token|password)[= ](?![-$<\"'/])[^\s\"',;&|]{6,}",
    ),
)
# Patterns are compiled when first used (re keeps them): most commands meet no text that could hold a secret.
_SHAPES = (
    *((what, hints, rf"(?<![A-Za-z0-9_]){pattern}") for what, hints, pattern in _PREFIXED),
    *_OPEN,
)

# The last words of a name that holds a secret whatever it looks like.
_TELLING = r"(?i)(?:^|[_.-])(?:token|secret|password|passwd|passphrase|(?:api|access|secret|private)[_-]?key)$"
# A `…_KEY` may as well name a cache entry or a public key: its value must look random too.
_MAYBE_TELLING = r"(?i)(?:^|[_.-])(?:key|token|auth|credentials?|pat|pwd)$"
_HARMLESS_NAME = (
    r"(?i)(?:cache|public|sort|primary|group|routing|bos|eos|pad|unk|sep|cls|mask|image|video|audio|per)"
    r"[_.-]?(?:key|token)$"
)
_HARMLESS = r"(?i)|empty|none|null|true|false|yes|no|auto|dummy|x+|[~./].*|.*[$<{].*"
_RANDOM = r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9+/_=.-]{16,}"

_LINE = (
    r"(?i)((?<![a-z])(?<!per_)(?:token|secret|password|passwd|passphrase|key|apikey)[\"']?\s*[:=]\s*[\"']?)"
    r"(?![\[{$<\s\"'/~])([^\s,\"'}\]]{6,})"
)

_FLAG = r"(?i)(--(?:api-key|hf-token|token|password)[\"']?\s*[,=\s]\s*[\"']?)(?![\[{$<\s\"'/~-])([^\s,\"'}\]]{4,})"


def secret_kind(text: str) -> str | None:
    """What a text holds that looks like a secret, such as `a Hugging Face token`; None for the ordinary."""
    return next((what for what, pattern in _possible(text) if re.search(pattern, text)), None)


def _possible(text: str) -> list[tuple[str, str]]:
    """The shapes that the text could hold."""
    found = []
    without = tuple(sign for sign in ("=", "--") if sign not in text)
    for what, hints, pattern in _SHAPES:
        if without and any(sign in hints[0] for sign in without):
            continue  # all hints of a shape have the sign of its first one
        for hint in hints:
            if hint in text:
                found.append((what, pattern))
                break
    return found


@lru_cache(maxsize=4096)
def holds_secret(name: str) -> bool:
    """Whether `name` says that its value is a secret: `HF_TOKEN`, `api_key`, `DB_PASSWORD`."""
    return re.search(_TELLING, name) is not None and re.search(_HARMLESS_NAME, name) is None


@lru_cache(maxsize=4096)
def may_hold_secret(name: str) -> bool:
    """Whether a random-looking value under `name` is a secret."""
    if re.search(_HARMLESS_NAME, name):
        return False
    return re.search(_TELLING, name) is not None or re.search(_MAYBE_TELLING, name) is not None


def literal_secret(name: str, value: str, *, strict: bool = False) -> str | None:
    """What `value` is when it stands under `name` as a literal secret, else None. Never part of the value itself.

    `strict`: the name alone does not convict, the value must look random too.
    """
    if (kind := secret_kind(value)) is not None:
        return kind
    return named_secret(name, value, strict=strict)


def named_secret(name: str, value: str, *, strict: bool = False) -> str | None:
    """As `literal_secret`, for a value whose shape tells nothing."""
    if not may_hold_secret(name) or re.fullmatch(_HARMLESS, value):
        return None
    if re.fullmatch(_RANDOM, value) and len(set(value)) >= 8:
        return f"the value of {name}"
    return f"the value of {name}" if not strict and holds_secret(name) else None


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with everything that looks like a secret replaced, and `secrets` too, also where they were cut short."""
    for secret in filter(None, secrets):
        for said in (secret, repr(secret)[1:-1]):  # engines print their arguments as Python writes them
            text = text.replace(said, HIDDEN)
        if secret[:8] in text:
            text = re.sub(re.escape(secret[:8]) + r"[^\s'\"`,]*", HIDDEN, text)
    for _, pattern in _possible(text):
        text = re.sub(pattern, HIDDEN, text)
    return text


def redact_line(line: str) -> str:
    """A line of a file, with the value of every name that says secret replaced as well."""
    return re.sub(_FLAG, rf"\1{HIDDEN}", re.sub(_LINE, rf"\1{HIDDEN}", redact(line)))
