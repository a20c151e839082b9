"""Names of files as people write them. Pure but for the user's home directory."""

from pathlib import Path


def expanded(text: str) -> Path:
    """The path with `~` and `~user` replaced; as written where there is no such user."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)
