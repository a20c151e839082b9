"""Secrets known by their shape or by the name they stand under, and texts without them."""

import re
from collections.abc import Iterable

HIDDEN = "[secret]"

# What issuers print: the prefix names the issuer, the rest is random. A letter run alone (`hf_transfer`) is no token:
# each pattern asks for a digit or a capital where the alphabet has them. Looks ahead are bounded: a megabyte of `sk-`
# would take minutes otherwise.
_SHAPES = (
    ("a Hugging Face token", r"hf_(?=[a-z]{0,40}[A-Z0-9])[A-Za-z0-9]{12,}"),
    ("an API key", r"sk-(?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{14,}"),
    ("a GitHub token", r"gh[pousr]_(?=[a-z]{0,40}[A-Z0-9])[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"),
    ("a GitLab token", r"glpat-[A-Za-z0-9_-]{16,}"),
    ("an AWS access key", r"(?:AKIA|ASIA)[0-9A-Z]{14,}"),
    ("a Google API key", r"AIza[A-Za-z0-9_-]{30,}"),
    ("a Slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("an NVIDIA API key", r"nvapi-[A-Za-z0-9_-]{16,}"),
    ("a Docker token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}"),
    ("a package registry's token", r"npm_(?=[a-z]{0,40}[A-Z0-9])[A-Za-z0-9]{24,}|pypi-[A-Za-z0-9_-]{24,}"),
    ("a JSON Web Token", r"(?<!-)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    ("a bearer token", r"[Bb]earer\s+(?=[^\s\"']{0,80}\d)[A-Za-z0-9._~+/=-]{12,}"),
)
_OPEN = (
    ("a private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    ("a password in a URL", r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s/:@\"']*:(?![$<])[^\s/@\"']+@"),
    (
        "a token in a URL",
        r"[?&](?:access_?token|token|api_?key|key|sig(?:nature)?|secret|password)=(?![$<])[^&\s\"']{8,}",
    ),
    (
        "a secret in a shell word",
        r"(?<![A-Z0-9_])[A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|API_?KEY|ACCESS_KEY)=(?![$<\"'/])[^\s\"';&|]{8,}",
    ),
    ("a secret in a shell word", r"--(?:api-key|hf-token|token|password)[= ](?![-$<\"'/])[^\s\"',;&|]{6,}"),
)
_KINDS = tuple(what for what, _ in (*_SHAPES, *_OPEN))
_ANY = re.compile(
    "|".join([f"(?<![A-Za-z0-9_])({pattern})" for _, pattern in _SHAPES] + [f"({pattern})" for _, pattern in _OPEN])
)
# None of the shapes can occur in a text without one of these: most texts are settled by the lookup alone.
_HINTS = (
    "hf_", "sk-", "gh", "glpat-", "AKIA", "ASIA", "AIza", "xox", "nvapi-", "dckr_", "npm_", "pypi-", "eyJ", "earer",
    "PRIVATE", "://", "=", "--",
)  # fmt: skip

# The last words of a name that holds a secret whatever it looks like.
_HOLDS_SECRET = re.compile(
    r"(?i)(?:^|[_.-])(?:token|secret|password|passwd|passphrase|(?:api|access|secret|private)[_-]?key)$"
)
# A `…_KEY` may as well name a cache entry or a public key: its value must look random too.
_MAY_HOLD_SECRET = re.compile(r"(?:^|[_.-])(?:key|token|auth|credentials?|pat|pwd)$", re.IGNORECASE)
_HARMLESS_NAME = re.compile(
    r"(?i)(?:cache|public|sort|primary|group|routing|bos|eos|pad|unk|sep|cls|mask|image|video|audio)[_.-]?(?:key|token)$"
)
_HARMLESS = re.compile(r"(?i)|empty|none|null|true|false|yes|no|auto|dummy|x+|[~./].*|.*[$<{].*")
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9+/_=.-]{16,}")

_LINE = re.compile(
    r"(?i)((?<![a-z])(?:token|secret|password|passwd|passphrase|key|apikey)[\"']?\s*[:=]\s*[\"']?)"
    r"(?![\[{$<\s\"'/~])([^\s,\"'}\]]{6,})"
)


def secret_kind(text: str) -> str | None:
    """What a text holds that looks like a secret, such as `a Hugging Face token`; None for the ordinary."""
    if not any(hint in text for hint in _HINTS):
        return None
    match = _ANY.search(text)
    return _KINDS[match.lastindex - 1] if match and match.lastindex else None


def holds_secret(name: str) -> bool:
    """Whether `name` says that its value is a secret: `HF_TOKEN`, `api_key`, `DB_PASSWORD`."""
    return _HOLDS_SECRET.search(name) is not None and _HARMLESS_NAME.search(name) is None


def literal_secret(name: str, value: str, *, strict: bool = False) -> str | None:
    """What `value` is when it stands under `name` as a literal secret, else None. Never part of the value itself.

    `strict`: the name alone does not convict, the value must look random too.
    """
    if (kind := secret_kind(value)) is not None:
        return kind
    if _HARMLESS.fullmatch(value) or _HARMLESS_NAME.search(name):
        return None
    if _RANDOM.fullmatch(value) and len(set(value)) >= 8 and (holds_secret(name) or _MAY_HOLD_SECRET.search(name)):
        return f"the value of {name}"
    return f"the value of {name}" if not strict and holds_secret(name) else None


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with everything that looks like a secret replaced, and `secrets` too, also where they were cut short."""
    for secret in secrets:
        if secret[:8] in text:
            text = re.sub(re.escape(secret[:8]) + r"[^\s'\"`,]*", HIDDEN, text)
    return _ANY.sub(HIDDEN, text) if secret_kind(text) else text


def redact_line(line: str) -> str:
    """A line of a file, with the value of every name that says secret replaced as well."""
    return _LINE.sub(lambda match: match[1] + HIDDEN, redact(line))
