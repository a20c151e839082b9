"""Find secrets by their pattern or by the name of their key, and remove them from texts."""

import re
from collections.abc import Iterable
from functools import lru_cache

HIDDEN = "[secret]"

# Tokens: the prefix names the issuer, the rest is random. Letters alone (`hf_transfer`) are not a token, so patterns
# require a digit or a capital if the issuer uses them. Lookaheads are bounded, because a megabyte of `sk-` would take
# minutes otherwise. The second field has texts of which at least one occurs in every match: to search them in a recipe
# takes 3 us, to search the patterns 300 us.
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
        "a secret in a shell command",
        ("TOKEN=", "SECRET=", "PASSWORD=", "KEY="),
        r"(?<![A-Z0-9_])[A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|API_?KEY|ACCESS_KEY)=(?![$<\"'/])[^\s\"';&|]{8,}",
    ),
    (
        "a secret in a shell command",
        ("--api-key", "--hf-token", "--token", "--password"),
        r"--(?:api-key|hf-token|token|password)[= ](?![-$<\"'/])[^\s\"',;&|]{6,}",
    ),
)
# Patterns are compiled on first use (re caches them): most commands read no text that could contain a secret.
_PATTERNS = (*((what, hints, rf"(?<![A-Za-z0-9_]){pattern}") for what, hints, pattern in _PREFIXED), *_OPEN)

# Endings of names whose value is always a secret.
_DECISIVE_NAME = (
    r"(?i)(?:(?:^|[_.-])(?:token|secret|pass|(?:api|access|secret|private)[_-]?key)|password|passwd|passphrase|"
    r"[a-z0-9][_.-]pwd|basic[_.-]?auth)$"
)
# A `…_KEY` may also name a cache entry or a public key, so its value must look random.
_AMBIGUOUS_NAME = r"(?i)(?:^|[_.-])(?:key|token|auth|credentials?|pat|pwd)$"
_HARMLESS_NAME = (
    r"(?i)(?:^|[_.-])(?:cache|public|sort|primary|group|routing|bos|eos|pad|unk|sep|cls|mask|image|video|audio|per|start|end|stop|"
    r"begin|special|think|next|first|last|draft)[_.-]?(?:key|token)$|"
    r"(?:^|[_.-])(?:disable|enable|allow|require|skip|bypass|num|max|min)[_.-].*(?:token|key|pass)$|"
    r"(?:^|[_.-])(?:num|max|min|one|single|multi|each)[_.-]?pass$"
)
_HARMLESS = r"(?i)|[01]|empty|none|null|true|false|yes|no|auto|dummy|x+|[~./].*|.*[$<{].*"
_RANDOM = r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9+/_=.-]{16,}"

_LINE = (
    r"(?i)((?<![a-z])(?<!per_)(?:token|secret|password|passwd|passphrase|key|apikey)[\"']?\s*[:=]\s*[\"']?)"
    r"(?![\[{$<\s\"'/~])([^\s,\"'}\]]{6,})"
)

_FLAG = r"(?i)(--(?:api-key|hf-token|token|password)[\"']?\s*[,=\s]\s*[\"']?)(?![\[{$<\s\"'/~-])([^\s,\"'}\]]{4,})"


def secret_kind(text: str) -> str | None:
    """The kind of a secret in the text, such as `a Hugging Face token`; None if there is none."""
    return next((kind for kind, pattern in _possible(text) if re.search(pattern, text)), None)


def _possible(text: str) -> list[tuple[str, str]]:
    possible = []
    absent = tuple(sign for sign in ("=", "--") if sign not in text)
    for kind, hints, pattern in _PATTERNS:
        if absent and any(sign in hints[0] for sign in absent):
            continue  # all hints of a pattern contain the same sign
        for hint in hints:
            if hint in text:
                possible.append((kind, pattern))
                break
    return possible


@lru_cache(maxsize=4096)
def holds_secret(name: str) -> bool:
    """Whether every value under `name` is a secret: `HF_TOKEN`, `api_key`, `DB_PASSWORD`."""
    return re.search(_DECISIVE_NAME, name) is not None and re.search(_HARMLESS_NAME, name) is None


@lru_cache(maxsize=4096)
def may_hold_secret(name: str) -> bool:
    """Whether a random-looking value under `name` is a secret."""
    if re.search(_HARMLESS_NAME, name):
        return False
    return re.search(_DECISIVE_NAME, name) is not None or re.search(_AMBIGUOUS_NAME, name) is not None


# What an author writes in the place of a secret before publishing a text.
_PLACEHOLDER = (
    r"(?i)<[^<>]*>|\{+[^{}]+\}+|"
    r"[\[(]?(?:[a-z]+[ _-])?(?:redacted|hidden|masked|removed|secret|scrubbed)(?:[ _-][a-z]+)?[\])]?|"
    r"(?:hf_|sk-|ghp_|glpat-|nvapi-)?(?:x{3,}|\*{2,}|•{2,}|\.{3,}|…|_{3,}|-{3,})(?:[a-z0-9]{0,4})?|"
    r"(?:hf_|sk-)?(?:your|insert|put|paste|replace|change|my)[ _-](?:[a-z_-]+[ _-])?"
    r"(?:token|key|secret|password|me|it|here|this)(?:[ _-]?here)?|change_?me"
)
_LONGEST_PLACEHOLDER = 100


def is_placeholder(text: str) -> bool:
    """Whether a text stands for a secret that was struck out: `***`, `<redacted>`, `hf_***`, `[secret]`."""
    return len(text) <= _LONGEST_PLACEHOLDER and re.fullmatch(_PLACEHOLDER, text) is not None


def literal_secret(name: str, value: str, *, strict: bool = False) -> str | None:
    """The kind of the literal secret `value` under `name`, else None. It never contains the value.

    `strict`: the name is not sufficient, the value must look random too.
    """
    return secret_kind(value) or named_secret(name, value, strict=strict)


def named_secret(name: str, value: str, *, strict: bool = False) -> str | None:
    """Like `literal_secret`, for a value that matches no pattern."""
    if not may_hold_secret(name) or re.fullmatch(_HARMLESS, value):
        return None
    is_random = re.fullmatch(_RANDOM, value) and len(set(value)) >= 8
    return f"the value of {name}" if is_random or (not strict and holds_secret(name)) else None


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace everything in `text` that looks like a secret, and `secrets`, also if they are cut short."""
    for secret in filter(None, secrets):
        for spelling in (secret, repr(secret)[1:-1]):  # engines print their arguments with `repr`
            text = text.replace(spelling, HIDDEN)
        if secret[:8] in text:
            text = re.sub(re.escape(secret[:8]) + r"[^\s'\"`,]*", HIDDEN, text)
    for _, pattern in _possible(text):
        text = re.sub(pattern, HIDDEN, text)
    return text


def redact_line(line: str) -> str:
    """Redact a line of a file, including the value of every name that denotes a secret."""
    return re.sub(_FLAG, rf"\1{HIDDEN}", re.sub(_LINE, rf"\1{HIDDEN}", redact(line)))
