"""`gb300serve pin`."""

from pathlib import Path
from typing import Annotated

import typer

from gb300serve.app.workspace import Workspace
from gb300serve.cli.parameters import RecipeDirs, open_workspace
from gb300serve.core.errors import Gb300Error
from gb300serve.core.values import changed_items
from gb300serve.lint.rules.image import pinned_arguments
from gb300serve.recipe.write import pin_path, read_pin, write_pin
from gb300serve.render.docker_run import pinned_text


class PinDiffersError(Gb300Error):
    """The release is pinned to another command."""

    exit_code = 5

    def __init__(self, ref: str, removed: list[str], added: list[str]) -> None:
        words = "; ".join(f"{name} {' '.join(w)}" for name, w in (("removes", removed), ("adds", added)) if w)
        super().__init__(
            f"{ref} is pinned to another command ({words})",
            hint="a pinned release is the measured one: put the change into a new release that extends it; "
            "use --force only if nobody has launched it",
        )


def run(
    ctx: typer.Context,
    refs: Annotated[list[str], typer.Argument(metavar="REF...", help="Releases or files.", show_default=False)],
    recipes: RecipeDirs = None,
    force: Annotated[bool, typer.Option("--force", help="Rewrite a pin that differs.")] = False,
) -> int:
    """Write the command of a release to a file next to it, so that lint reports later changes."""
    workspace, console = open_workspace(ctx, recipes, None)
    # All of them are compiled and compared before the first is written.
    for path, ref, text in [_compiled(workspace, ref, force=force) for ref in refs]:
        if read_pin(path) == text:
            console.message(f"{ref} is pinned already: {pin_path(path)}")
        else:
            console.message(f"pinned {ref}: {write_pin(path, text)}")
    workspace.print_notes()
    return 0


def _compiled(workspace: Workspace, ref: str, *, force: bool) -> tuple[Path, str, str]:
    loaded, recipe = workspace.shareable(ref)
    text = pinned_text(workspace.pinned_plan(loaded, recipe))
    before = read_pin(loaded.file.path)
    if before is not None and not force:
        removed, added = changed_items(pinned_arguments(before), pinned_arguments(text))
        if removed or added:
            raise PinDiffersError(recipe.ref, removed, added)
    return loaded.file.path, recipe.ref, text
