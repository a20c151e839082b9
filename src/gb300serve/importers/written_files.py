"""Files that the text writes itself before it names them: `cat > .env <<EOF`."""

import re
from posixpath import join, normpath

from gb300serve.importers.syntax import Command

# What bash replaces in a here-document whose word is not quoted.
_COMPUTED = re.compile(r"[$`\\]")


def write_file(command: Command, directory: str, files: dict[str, str | None]) -> None:
    """What a file holds from here on, by its whole path; None where bash would have to compute it."""
    kinds = {each.kind: each.target for each in command.redirections}
    to, word = kinds.get(">") or kinds.get(">>"), kinds.get("<<") or kinds.get("<<-")
    if [each.plain for each in command.words] != ["cat"] or to is None or word is None or "\0" in to.plain:
        return
    if len(command.redirections) != 2 or len(command.documents) != 1:
        return
    path, (body,) = normpath(join(directory, to.plain)), command.documents
    before = files.get(path) if ">>" in kinds else ""
    computed = not any(part.quoted for part in word.parts) and _COMPUTED.search(body) is not None
    files[path] = None if computed or before is None else before + body
