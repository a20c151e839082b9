"""What libyaml's messages mean to somebody who edits by hand: what stands there, and what to write instead."""

from gb300serve.document.nodes import YamlMark

Explained = tuple[str, str | None, YamlMark | None]
"""A message behind `this is not YAML:`, what to do, and where to look."""


def explained(text: str, problem: str, context: str, mark: YamlMark | None, opened: YamlMark | None) -> Explained:
    """The mistakes of a hand, by their usual causes; libyaml's own words for everything else.

    `problem` and `context` are these, `mark` is where (from 0), `opened` where the construct began that is not whole.
    """
    before, sign = "", ""
    if mark is not None:
        line = "".join(text.split("\n")[mark.line : mark.line + 1])
        before, sign = line[: mark.column], line[mark.column : mark.column + 1]
    message, hint = _meant(problem, before, sign) or _unclosed(problem, context, opened)
    at = opened if "could not find expected ':'" in problem else None
    return message, hint, at or mark or opened


def _meant(problem: str, before: str, sign: str) -> tuple[str, str | None] | None:
    if sign == "\t" or "tab character" in problem:
        return "a tab stands where the line is indented", "indent with blanks"
    if "cannot start any token" in problem:
        return f"no plain text begins with `{sign}`", "write the value between quotes"
    if "mapping values are not allowed" in problem:
        if ": " in before:
            return (
                "a second `: ` stands on this line",
                "write the value between quotes, or a key a line",
            )
        return (
            "this line is a key, and the line above it has a value already",
            "indent it as the keys above; a key is followed by `:` and a blank",
        )
    if "expected key" in problem or "expected '-' indicator" in problem:
        return _stray(before, sign, in_list="'-'" in problem)
    return None


def _stray(before: str, sign: str, *, in_list: bool) -> tuple[str, str | None]:
    if before.strip(" -"):
        return (
            "the value ends before this",
            "check quotes and brackets before it, or write all of it between quotes",
        )
    if in_list:
        return "this line stands among the entries of a list and has no `-`", "indent it as the key that it belongs to"
    if sign == "-":
        return "this entry is in no list above it", "indent it as the other entries of its list"
    return "this line is indented as none above it", "indent it as the keys that it belongs to"


def _unclosed(problem: str, context: str, opened: YamlMark | None) -> tuple[str, str | None]:
    where = f"on line {opened.line + 1}" if opened is not None else "here"
    if "expected ',' or '" in problem:
        return f"the `{'{' if '}' in problem else '['}` that opens {where} is not closed", f"write `{problem[-2]}`"
    if "unexpected end of stream" in problem and "quoted" in context:
        return f"the quote that opens {where} is not closed", "close it; an apostrophe between single quotes is doubled"
    if "could not find expected ':'" in problem:
        return "this line is neither `key: value` nor a value", "a key is followed by `:` and a blank"
    return " ".join(filter(None, (context, problem))), None
