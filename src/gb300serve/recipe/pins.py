"""The pinned command beside a recipe: `<release>.command`."""

from pathlib import Path

SUFFIX = ".command"


def pin_path(recipe: Path) -> Path:
    return recipe.with_suffix(SUFFIX)


def read_pin(recipe: Path) -> str | None:
    """Its text; None where the release is not pinned. Bytes that are not UTF-8 differ from any command."""
    try:
        return pin_path(recipe).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def write_pin(recipe: Path, text: str) -> Path:
    """Written whole or not at all."""
    path = pin_path(recipe)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    return path
