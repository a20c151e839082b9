"""Correct recipes: what a finding is certain about is written into the file."""

from collections.abc import Iterator
from difflib import unified_diff
from errno import EACCES, ESTALE
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from gb300serve.app.causes import FindingKey, key_of
from gb300serve.app.lint import FileLinter, Target, is_recipe, targets_of
from gb300serve.app.workspace import Workspace
from gb300serve.core.errors import MachineError
from gb300serve.core.files import is_file, write_atomically
from gb300serve.core.redaction import redact, redact_line
from gb300serve.core.text import printable
from gb300serve.document.read import replace_scalar
from gb300serve.lint.rules.image import pinned_arguments
from gb300serve.plan.check import literal_secrets
from gb300serve.recipe.catalog import RecipeFile
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.write import SUFFIX, read_pin

# More corrections of one file are made by the next call.
MOST_FIXES = 200


class FileKeptError(MachineError):
    """A recipe's file stays as it is: it cannot be written, or a pinned command would change."""


class Correction(NamedTuple):
    """What was changed in a file, as a diff, or why it was left as it is."""

    text: str
    refused: bool = False


def fix_paths(space: Workspace, paths: list[str]) -> Iterator[Correction]:
    """Write what is certain into the files: the spelling of keys and options, letter case, and quotes."""
    for target in chain.from_iterable(targets_of(space, paths).values()):
        loader = space.loader_of({})
        loaded = loader.load_file(target.file) if isinstance(target, Target) else None
        if loaded is None or not is_recipe(loaded):
            continue
        fixed = _fixed(FileLinter(space, loader), loaded)
        if fixed == loaded.source.text:
            continue
        try:
            yield Correction(write_recipe(space, loaded, fixed))
        except FileKeptError as error:
            yield Correction(error.message, refused=True)


def write_recipe(space: Workspace, loaded: LoadedRecipe, text: str) -> str:
    """Replace the text of a recipe's file; returns the diff. Raises FileKeptError."""
    path, pinned = loaded.file.path, _changed_pins(space, loaded.file, text)
    if pinned:
        reason = f"the corrections would change the pinned command of {', '.join(pinned)}"
        raise FileKeptError(f"{path}: not changed, because {reason}; write a new release")
    try:
        replace_text(path, loaded.source.text, text)
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise FileKeptError(f"{path}: not changed: {cause}") from error
    return "\n".join(_diff(loaded, text))


def _fixed(linter: FileLinter, loaded: LoadedRecipe) -> str:
    """The text after all corrections; one that does not remove its finding, or repeats a key, is left out."""
    text, tried = loaded.source.text, set[FindingKey]()
    found = linter.lint(loaded).found
    for _ in range(MOST_FIXES):
        finding = next((d for d in found if d.fix and d.file == loaded.source.name and key_of(d) not in tried), None)
        if finding is None or finding.fix is None:
            break
        tried.add(key_of(finding))
        changed = replace_scalar(text, finding.line or 0, finding.column or 0, finding.fix)
        loader = linter.space.loader_of({loaded.file.path: changed})
        after = FileLinter(linter.space, loader).lint(loader.load_file(loaded.file)).found
        if key_of(finding) not in map(key_of, after) and not any(d.code == "YAML002" for d in after):
            text, found = changed, after
    return text


def _changed_pins(space: Workspace, file: RecipeFile, text: str) -> list[str]:
    """The pinned releases of the lane whose command would change with this text of a file."""
    before = FileLinter(space, space.loader_of({}))
    after = FileLinter(space, space.loader_of({file.path: text}))
    changed = []
    for pin in sorted(file.path.parent.glob(f"*{SUFFIX}")):
        release = RecipeFile(pin.with_suffix(file.path.suffix), file.directory)
        command = after.command(release) if is_file(release.path) else None
        pinned = pinned_arguments(read_pin(release.path) or "")
        if command is not None and command not in (pinned, before.command(release)):
            changed.append(pin.stem)
    return changed


def replace_text(path: Path, before: str, text: str) -> None:
    """Replace the content of a file; line ends stay as they were. Raises OSError."""
    path = path.resolve()
    mode = path.stat().st_mode & 0o777
    if not mode & 0o222:  # the directory may be writable, so that the file could be replaced
        raise PermissionError(EACCES, "the file is read-only")
    content = path.read_bytes()
    if content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n") != before:
        raise OSError(ESTALE, "another program changed the file meanwhile; run the command again")
    data = text.replace("\n", "\r\n") if b"\r\n" in content else text
    write_atomically(path, data.encode("utf-8"), mode)


def _diff(loaded: LoadedRecipe, text: str) -> Iterator[str]:
    name, secrets = loaded.source.name, [literal.value for literal in literal_secrets(loaded.root)]
    before, after = loaded.source.text.split("\n"), text.split("\n")
    for line in unified_diff(before, after, name, name, n=1, lineterm=""):
        yield redact_line(redact(printable(line), secrets))
