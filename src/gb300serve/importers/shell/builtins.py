"""The builtins of bash: `test` and `[[`, whose result may be unknown, and those that print."""

import re
from collections.abc import Callable, Sequence
from posixpath import basename, dirname, join, normpath
from typing import NamedTuple

from gb300serve.importers.report import TextPosition, UnresolvedError, shorten
from gb300serve.importers.shell.expand import Expander
from gb300serve.importers.shell.words import (
    OPEN,
    ShellArray,
    SimpleCommand,
    SourceText,
    Variable,
    Word,
    reference_mark,
)

_FORMAT = re.compile(
    r"%(?:(?P<percent>%)|(?P<flags>[-0]?)(?P<width>\d{0,4})(?P<kind>[sd]))|\\(?P<escape>[nt\\\"'])|[%\\]"
)


def format_text(arguments: Sequence[str]) -> str | None:
    """The output of `printf`; None for a format that is not supported."""
    if not arguments:
        return None
    template, values, out = arguments[0], list(arguments[1:]), list[str]()
    while True:
        count = len(values)
        text = _format_once(template, values)
        if text is None or any(OPEN in value for value in values):
            return None
        out.append(text)
        if not values or len(values) == count:
            return "".join(out)


def _format_once(template: str, values: list[str]) -> str | None:
    """The template with the next values, which are taken from the list."""
    out: list[str] = []
    at = 0
    for match in _FORMAT.finditer(template):
        out.append(template[at : match.start()])
        at = match.end()
        if match["percent"]:
            out.append("%")
        elif match["escape"]:
            out.append({"n": "\n", "t": "\t"}.get(match["escape"], match["escape"]))
        elif match["kind"] is None:
            return None
        else:
            value = values.pop(0) if values else "0" if match["kind"] == "d" else ""
            if match["kind"] == "d":
                if not re.fullmatch(r"[-+]?(?:0|[1-9]\d{0,17})", value):
                    return None
                value = str(int(value))
            elif match["flags"] == "0":
                return None
            width = int(match["width"] or 0)
            if match["flags"] == "-":
                out.append(value.ljust(width))
            else:
                out.append(value.zfill(width) if match["flags"] == "0" else value.rjust(width))
    out.append(template[at:])
    return "".join(out)


def _echo(arguments: Sequence[str], _directory: str) -> str | None:
    options = 0
    while options < len(arguments) and re.fullmatch(r"-[neE]+", arguments[options]):
        options += 1
    flags = "".join(arguments[:options])
    text = " ".join(arguments[options:])
    if "e" in flags and "\\" in text:
        return None
    return text if "n" in flags else f"{text}\n"


def _printf(arguments: Sequence[str], _directory: str) -> str | None:
    return format_text(arguments[1:] if arguments[:1] == ["--"] else arguments)


def _pwd(arguments: Sequence[str], directory: str) -> str | None:
    return f"{directory}\n" if all(argument in ("-P", "-L") for argument in arguments) else None


def _dirname(arguments: Sequence[str], _directory: str) -> str | None:
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    if len(arguments) != 1 or not arguments[0]:
        return None
    path = arguments[0].rstrip("/") or "/"
    return f"{(dirname(path).rstrip('/') or '/') if '/' in path else '.'}\n"


def _basename(arguments: Sequence[str], _directory: str) -> str | None:
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not 1 <= len(arguments) <= 2 or arguments[0][:1] in ("-", ""):
        return None
    name = basename(arguments[0].rstrip("/")) or "/"
    suffix = arguments[1] if len(arguments) == 2 else ""
    return f"{name.removesuffix(suffix) if name != suffix else name}\n"


def _realpath(arguments: Sequence[str], directory: str) -> str | None:
    paths = [argument for argument in arguments if argument not in ("-f", "-e", "-m", "-s", "--")]
    if len(paths) != 1 or paths[0][:1] in ("-", ""):
        return None
    return f"{normpath(join(directory, paths[0]))}\n"


PRINTING: dict[str, Callable[[Sequence[str], str], str | None]] = {
    "echo": _echo, "printf": _printf, "pwd": _pwd, "dirname": _dirname, "basename": _basename, "realpath": _realpath,
    "readlink": _realpath,
}  # fmt: skip
"""The output of commands, from their arguments and the working directory; None if it is not known."""


UNKNOWN = "\ue002"
"""The text of a word that is not known. `mend` removes the character from the text."""
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[(?P<index>[^\]]*)\])?(?P<append>\+?)=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_ELEMENTS = 2_000
_MAX_LENGTH = 200_000
# A value that is extended with blanks, not a path such as PATH, which the caller always has.
_EXTENDED = r"(?:^|(?<=\s)){}(?=\s|$)"


class Call(NamedTuple):
    """A command with its arguments: as words, and expanded (UNKNOWN for those that are not known)."""

    name: str
    words: tuple[Word, ...]
    arguments: tuple[str, ...]
    error: UnresolvedError | None
    node: SimpleCommand
    separators: str | None = None
    """The IFS of this command alone."""


def match_assignment(word: Word) -> re.Match[str] | None:
    """The match of an assignment: its name (1), `index` and `append`; the value follows."""
    return _ASSIGNMENT.match(word.parts[0].text) if word.bare else None


def assign(expander: Expander, word: Word, match: re.Match[str], *, exported: bool = False) -> None:
    """Carry out an assignment; a value that cannot be known is stored with its reason."""
    name, variables = match[1], expander.variables
    outer, expander.assumed = expander.assumed, set()
    before = variables.get(name)
    try:
        value = _assigned(expander, word, match, before)
    except UnresolvedError as error:
        value = error
    assumed = frozenset(expander.assumed | (before.assumed if before and match["append"] else frozenset()))
    expander.assumed |= outer
    variables[name] = Variable(value, exported or (before is not None and before.exported), assumed)


def _assigned(
    expander: Expander, word: Word, match: re.Match[str], before: Variable | None
) -> str | ShellArray | UnresolvedError:
    first, *others = expander.with_homes(word.parts, match.end())
    parts = (first._replace(text=first.text[match.end() :]), *others)
    earlier = before.value if before is not None else None
    if isinstance(earlier, UnresolvedError) and (match["append"] or match["index"] is not None):
        return earlier
    if parts[-1].kind == "array":
        known = (
            earlier if isinstance(earlier, ShellArray) else ShellArray({0: earlier} if isinstance(earlier, str) else {})
        )
        known = known if match["append"] else ShellArray({}, known.is_associative)
        return _with_elements(expander, known, parts[-1].words, word.place)
    text = _without_itself(expander, match[1], expander.text(parts, word.place), before)
    if isinstance(earlier, ShellArray) or match["index"] is not None:
        array = (
            earlier if isinstance(earlier, ShellArray) else ShellArray({0: earlier} if isinstance(earlier, str) else {})
        )
        key = expander.subscript(array, match["index"] or "0", word.place)
        text = array.items.get(key, "") + text if match["append"] else text
        return _limited(ShellArray({**array.items, key: text}, array.is_associative), word.place)
    if match["append"] and before is None:
        expander.assumed.add(match[1])
    text = earlier + text if match["append"] and isinstance(earlier, str) else text
    if len(text) > _MAX_LENGTH:
        raise UnresolvedError(f"{match[1]} is longer than {_MAX_LENGTH:,} characters", word.place)
    return text


def _without_itself(expander: Expander, name: str, text: str, before: Variable | None) -> str:
    """`ARGS="$ARGS --x"`: bash reads a variable that was never set as nothing."""
    own = (n for n, one in enumerate(expander.references) if (one.kind, one.name) == ("env", name))
    mark = next(map(reference_mark, own), "")
    if before is not None or not mark or text == mark:
        return text
    expander.assumed.add(name)
    return re.sub(_EXTENDED.format(mark), "", text)


def _with_elements(expander: Expander, array: ShellArray, words: Sequence[Word], place: TextPosition) -> ShellArray:
    """The array with the elements of `(…)` appended."""
    items = dict(array.items)
    following = max((key for key in items if isinstance(key, int)), default=-1) + 1
    for word in words:
        match = re.match(r"\[([^\]]*)\]=", word.parts[0].text) if word.bare else None
        if match is not None:
            key = expander.subscript(ShellArray(items, array.is_associative), match[1], word.place)
            first, *others = word.parts
            items[key] = expander.text((first._replace(text=first.text[match.end() :]), *others), word.place)
            following = key + 1 if isinstance(key, int) else following
            continue
        if array.is_associative:
            raise UnresolvedError("an element of an associative array has no key", word.place)
        for field in expander.fields(word):
            items[following] = field.text
            following += 1
    return _limited(ShellArray(items, array.is_associative), place)


def _limited(array: ShellArray, place: TextPosition) -> ShellArray:
    if len(array.items) > _MAX_ELEMENTS:
        raise UnresolvedError(f"the array has more than {_MAX_ELEMENTS:,} elements", place)
    return array


def set_arguments(expander: Expander, arguments: Sequence[str], error: UnresolvedError | None = None) -> None:
    """Set `$1`, `$2` and so on."""
    array = ShellArray(dict(enumerate(arguments, 1)))
    unknown = error if any(UNKNOWN in argument for argument in arguments) else None
    expander.variables["@"] = Variable(unknown or array, assumed=frozenset(expander.assumed))


def _declare(expander: Expander, call: Call) -> bool | None:
    """`export`, `readonly`, `declare`, `typeset`, `local`."""
    flags = {flag for word in call.words if word.plain[:1] in "-+" for flag in word.plain[1:]}
    exported = call.name == "export" or "x" in flags
    for word in call.words:
        if word.plain[:1] in ("-", "+"):
            continue
        if (match := match_assignment(word)) is not None:
            if "A" in flags:
                expander.variables[match[1]] = Variable(ShellArray({}, is_associative=True))
            assign(expander, word, match, exported=exported)
        elif _NAME.fullmatch(word.plain):
            _declare_name(expander, word.plain, flags, is_new=call.name in ("local", "declare", "typeset"))
            if (known := expander.variables.get(word.plain)) is not None and exported:
                expander.variables[word.plain] = known._replace(exported=True)
        else:
            _export_fields(expander, word, exported=exported)
        name = match[1] if match is not None else word.plain
        if kinds := flags & set("inul"):
            reason = f"`{call.name} -{min(kinds)}` changes how bash assigns {name}"
            expander.variables[name] = Variable(UnresolvedError(reason, word.place), exported)
    return True


def _declare_name(expander: Expander, name: str, flags: set[str], *, is_new: bool) -> None:
    if is_new and "A" in flags:
        expander.variables[name] = Variable(ShellArray({}, is_associative=True))
    elif is_new and ("a" in flags or name not in expander.variables):
        expander.variables[name] = Variable(ShellArray({}) if "a" in flags else None)


def _export_fields(expander: Expander, word: Word, *, exported: bool) -> None:
    """`export "$NAME=x"` and `export $(…)`: the assignments are known only after the expansion."""
    try:
        fields = expander.fields(word)
    except UnresolvedError as error:
        forget(expander, f"an `export` whose names are not known ({error.reason})", word.place)
        return
    for field in fields:
        name, equals, value = field.text.partition("=")
        if OPEN in name:
            forget(expander, "an `export` whose names are not known", word.place)
        elif equals and _NAME.fullmatch(name):
            expander.variables[name] = Variable(value, exported)


def forget(expander: Expander, cause: str, place: TextPosition) -> None:
    """Every variable so far may have changed."""
    expander.count_forgotten(place)
    expander.variables.forget(f"may be changed on line {place.line} by {cause}", place)


def forget_by_file(expander: Expander, file: str, place: TextPosition, *, guarded: bool | None) -> None:
    """By a file that is not here; `guarded`: `[ -f FILE ] && . FILE`. None: its directory is not known."""
    number = None if guarded is None else len(expander.absent)
    expander.absent.append((file, place))
    reason = f"may be changed on line {place.line} by {shorten(file)}, which is not here"
    expander.variables.forget(reason, place, number, guarded=bool(guarded))


def _unset(expander: Expander, call: Call) -> bool | None:
    if call.error is not None:
        forget(expander, "an `unset` whose names are not known", call.node.place)
    for argument in call.arguments:
        name, bracket, index = argument.partition("[")
        known = expander.variables.get(name)
        if "-f" in call.arguments:
            expander.variables[f"{name}()"] = Variable(None)
        elif bracket and known is not None and isinstance(known.value, ShellArray):
            key = expander.subscript(known.value, index.rstrip("]"), call.node.place)
            items = {other: value for other, value in known.value.items.items() if other != key}
            expander.variables[name] = known._replace(value=ShellArray(items, known.value.is_associative))
        elif _NAME.fullmatch(name):
            expander.variables[name] = Variable(None)
    return True


def _set(expander: Expander, call: Call) -> bool | None:
    arguments, at = call.arguments, 0
    while at < len(arguments) and re.fullmatch(r"[-+][A-Za-z]+", arguments[at]):
        at += 2 if arguments[at][-1] == "o" else 1
    if arguments[at : at + 1] in (("--",), ("-",)) or at < len(arguments):
        set_arguments(expander, arguments[at + (arguments[at] in ("--", "-")) :], call.error)
    return True


def _shift(expander: Expander, call: Call) -> bool | None:
    known, count = expander.variables.get("@"), (*call.arguments, "1")[0]
    if known is not None and isinstance(known.value, ShellArray):
        values = known.value.values()
        if not count.isdigit():
            raise UnresolvedError("`shift` by a number that is not known", call.node.place)
        if int(count) > len(values):
            return False
        array = ShellArray(dict(enumerate(values[int(count) :], 1)))
        expander.variables["@"] = known._replace(value=array)
    return True


def _read(expander: Expander, call: Call) -> bool | None:
    """`read`: known only for a here-string."""
    names, array, at, known = list[str](), None, 0, True
    while at < len(call.arguments):
        argument = call.arguments[at]
        if not argument.startswith("-"):
            names.append(argument)
        elif argument[-1] in "aptnNdui":
            array = (*call.arguments, "", "")[at + 1] if argument[-1] == "a" else array
            known = known and argument[-1] in "apt"
            at += 1
        known = known and (not argument.startswith("-") or "r" in argument or argument[-1] in "apt")
        at += 1
    texts = [one.target for one in call.node.redirections if one.kind == "<<<" and one.target is not None]
    try:
        values = _read_values(expander, call, texts if known else [], None if array else len(names or "1"))
    except UnresolvedError as error:
        for name in filter(None, (*(names or ("REPLY",)), array)):
            reason = f"{name} is set by `read` on line {call.node.place.line}: {error.reason}"
            expander.variables[name] = Variable(UnresolvedError(reason, call.node.place))
        return None
    if array:
        expander.variables[array] = Variable(ShellArray(dict(enumerate(values))))
    for number, name in enumerate(names or ("REPLY",)):
        expander.variables[name] = Variable(values[number] if number < len(values) else "")
    return True


def _read_values(expander: Expander, call: Call, texts: Sequence[Word], count: int | None) -> list[str]:
    """The fields of a here-string."""
    if len(texts) != 1:
        raise UnresolvedError("it is read from the input", call.node.place)
    text = expander.text(texts[0].parts, call.node.place)
    if OPEN in text or "\n" in text:
        raise UnresolvedError("it is read from a value that the text does not set", call.node.place)
    return _read_fields(text, call.separators, count)


def _read_fields(text: str, separators: str | None, count: int | None) -> list[str]:
    """The fields of a line; the last of `count` takes the rest."""
    if separators is None:
        text = text.strip(" \t")
        return re.split(r"[ \t]+", text, maxsplit=0 if count is None else count - 1) if count != 1 else [text]
    if not separators:
        return [text]
    if len(separators) > 1 or separators.isspace():
        raise UnresolvedError("the text sets IFS to several characters", None)
    fields = text.removesuffix(separators).split(separators, -1 if count is None else count - 1)
    return fields if text else []


def _forget_names(expander: Expander, call: Call) -> bool | None:
    """`mapfile`, `getopts`: the names after the options are set while the text runs."""
    names = [argument for argument in call.arguments if _NAME.fullmatch(argument)] or ["MAPFILE"]
    for name in names:
        reason = f"{name} is set by `{call.name}` on line {call.node.place.line}, from what is known only at run time"
        expander.variables[name] = Variable(UnresolvedError(reason, call.node.place))
    return None


def _getopts(expander: Expander, call: Call) -> bool | None:
    """Without arguments, `getopts` ends at once."""
    arguments = expander.variables.get("@")
    if arguments is None or (isinstance(arguments.value, ShellArray) and not arguments.value.items):
        if arguments is None:
            expander.assumed.add("$@")
            expander.arguments_read.append(call.node.place)
        return False
    return _forget_names(expander, call._replace(arguments=call.arguments[1:2]))


def _let(expander: Expander, call: Call) -> bool | None:
    place = call.node.place
    return [0, *(expander.arithmetic(SourceText(text, fixed=place), place) for text in call.arguments)][-1] != 0


def _change_directory(expander: Expander, call: Call) -> bool | None:
    """`cd` and `pushd`; the directory exists, or the text would stop there."""
    words = [argument for argument in call.arguments if argument not in ("-P", "-L", "--")]
    target = words[0] if words else expander.environment.home
    present = expander.variables.get("PWD")
    before = present.value if present is not None else expander.environment.directory
    unknown = call.error or (isinstance(before, UnresolvedError) and not target.startswith("/"))
    if unknown or target == "-" or OPEN in target or len(words) > 1:
        reason = f"the working directory is set on line {call.node.place.line} to a path that the text does not contain"
        expander.variables["PWD"] = Variable(UnresolvedError(reason, call.node.place))
        return None
    if target:
        path = normpath(join(before if isinstance(before, str) else "/", target))
        expander.variables["PWD"] = Variable(path, assumed=frozenset(expander.assumed))
    return True


def _print_into(expander: Expander, call: Call) -> bool | None:
    """`printf -v NAME`."""
    if call.arguments[:1] != ("-v",) or len(call.arguments) < 2:
        return True
    text = None if call.error is not None else format_text(call.arguments[2:])
    name = call.arguments[1].partition("[")[0]
    reason = f"{name} is set by `printf` on line {call.node.place.line}, whose output is known only to bash"
    value = UnresolvedError(reason, call.node.place) if text is None or "[" in call.arguments[1] else text
    if _NAME.fullmatch(name):
        expander.variables[name] = Variable(value, assumed=frozenset(expander.assumed))
    return True


BUILTINS: dict[str, Callable[[Expander, Call], bool | None]] = {
    "export": _declare, "readonly": _declare, "declare": _declare, "typeset": _declare, "local": _declare,
    "unset": _unset, "set": _set, "shift": _shift, "read": _read, "mapfile": _forget_names,
    "readarray": _forget_names, "getopts": _getopts, "let": _let, "cd": _change_directory,
    "pushd": _change_directory, "popd": lambda shell, call: _change_directory(shell, call._replace(arguments=("-",))),
    "printf": _print_into, ":": lambda *_: True, "true": lambda *_: True, "false": lambda *_: False,
    "echo": lambda *_: True, "trap": lambda *_: True, "shopt": lambda *_: None, "ulimit": lambda *_: None,
    "umask": lambda *_: True,
}  # fmt: skip
"""The builtins that set variables, or do nothing that matters: they return their status, None if it is not known."""
