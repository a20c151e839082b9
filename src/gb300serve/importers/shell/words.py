"""The elements of a shell text: source text with positions, words of parts, commands, variables; brace expansion."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

from gb300serve.importers.report import TextPosition, UnresolvedError


class SourceText:
    """A text that keeps the original position of each character."""

    def __init__(
        self,
        text: str,
        origin: Sequence[int] | None = None,
        starts: Sequence[int] | None = None,
        fixed: TextPosition | None = None,
    ) -> None:
        self.text = text
        self._fixed = fixed
        self._origin = range(len(text)) if origin is None else origin
        if starts is None:
            starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]
        self._starts = starts

    def place(self, index: int) -> TextPosition:
        """The original position of the character at `index`."""
        if self._fixed is not None or not self._origin:
            return self._fixed or TextPosition(1, 1)
        offset = self._origin[index] if index < len(self._origin) else self._origin[-1] + 1
        line = bisect_right(self._starts, offset)
        return TextPosition(line, offset - self._starts[line - 1] + 1)

    def part(self, start: int, end: int) -> "SourceText":
        """The characters from `start` up to `end`."""
        return SourceText(self.text[start:end], self._origin[start:end], self._starts, self._fixed)

    def sub(self, pattern: str, new: Callable[[re.Match[str]], str], flags: int = 0) -> "SourceText":
        """Replace every match; the replacement keeps the position of the match."""
        pieces: list[str] = []
        origin: list[int] = []
        last = 0
        for match in re.finditer(pattern, self.text, flags):
            start, end = match.span()
            replacement = new(match)
            if replacement == match[0]:
                continue
            pieces += (self.text[last:start], replacement)
            origin += self._origin[last:start]
            # Characters keep their own position where possible, so that the rest of the line does not move.
            spare = self._origin[start] if start < len(self._origin) else len(self.text)
            origin += [self._origin[start + n] if start + n < end else spare for n in range(len(replacement))]
            last = end
        if not pieces:
            return self
        origin += self._origin[last:]
        return SourceText("".join((*pieces, self.text[last:])), origin, self._starts)


PartKind = Literal["text", "variable", "command", "arithmetic", "array", "program"]


class Part(NamedTuple):
    """A piece of a word. `text` is literal text, the inside of an expansion, or the name of an unsupported form.

    `quoted`: its value is neither split nor expanded further. `words`: the elements of an array, `(a b)`.
    """

    kind: PartKind
    text: str
    quoted: bool
    source: SourceText | None = None
    words: "tuple[Word, ...]" = ()


class Word(NamedTuple):
    """One word as written."""

    parts: tuple[Part, ...]
    place: TextPosition

    @property
    def plain(self) -> str:
        """The text of the literal parts; a null character replaces each other part."""
        return "".join(part.text if part.kind == "text" else "\0" for part in self.parts)

    @property
    def bare(self) -> bool:
        """Whether the word starts with unquoted text, so that it can be a keyword or an assignment."""
        return bool(self.parts) and self.parts[0].kind == "text" and not self.parts[0].quoted


def written(word: Word) -> str:
    """A word as it is written, without quotes and with the inside of substitutions left out."""
    forms = {"variable": "${}", "command": "$(…)", "arithmetic": "$(({}))", "array": "(…)"}
    texts = (forms.get(part.kind, "{}").replace("{}", part.text) for part in word.parts)
    return " ".join("".join(texts).split())


class Operator(NamedTuple):
    """`;`, `&&`, `|`, a parenthesis, a line feed; or `>` or `<`, with the whole operator as `kind`."""

    text: str
    place: TextPosition
    kind: str = ""
    target: Word | None = None
    """The file of a redirection, the word that ends a here-document, or the expression of `((…))`."""
    document: list[str] | None = None
    """The body of a here-document, as one text; the lexer adds it at the end of the line."""


class SimpleCommand(NamedTuple):
    """A program or builtin with its arguments and redirections, and the operator after it."""

    words: tuple[Word, ...]
    redirections: tuple[Operator, ...]
    place: TextPosition
    end: str = ""
    comment: TextPosition | None = None
    """The last comment before the end of the command."""


class Pipeline(NamedTuple):
    """Commands connected by `|`; `!` negates its status."""

    commands: "tuple[Node, ...]"
    negated: bool
    place: TextPosition


class AndOr(NamedTuple):
    """Commands connected by `&&` and `||`; `&` runs them in the background."""

    first: "Node"
    rest: "tuple[tuple[str, Node], ...]"
    background: bool
    place: TextPosition


class IfCommand(NamedTuple):
    """The conditions with their commands, in order, and the commands of `else`."""

    branches: "tuple[tuple[Nodes, Nodes], ...]"
    otherwise: "Nodes"
    place: TextPosition


class ForLoop(NamedTuple):
    """`for NAME in WORDS`; without `in`, the words are the arguments. `select` is unsupported."""

    name: str
    words: tuple[Word, ...] | None
    body: "Nodes"
    place: TextPosition


class ArithmeticLoop(NamedTuple):
    """`for ((START; CONDITION; STEP))`."""

    expressions: tuple[SourceText, ...]
    body: "Nodes"
    place: TextPosition


class WhileLoop(NamedTuple):
    """`while` or `until`."""

    keyword: str
    condition: "Nodes"
    body: "Nodes"
    place: TextPosition


class CaseCommand(NamedTuple):
    """`case WORD in`: the patterns with their commands and the operator that ends them."""

    word: Word
    items: "tuple[tuple[tuple[Word, ...], Nodes, str], ...]"
    place: TextPosition


class Group(NamedTuple):
    """`{ …; }`, or a subshell `( … )`."""

    body: "Nodes"
    is_subshell: bool
    place: TextPosition


class Function(NamedTuple):
    """The definition of a function."""

    name: str
    body: "Node"
    place: TextPosition


class Condition(NamedTuple):
    """`[[ … ]]` or `((…))`, whose only token is an arithmetic word."""

    tokens: tuple[Word | Operator, ...]
    place: TextPosition


Node = (
    SimpleCommand
    | Pipeline
    | AndOr
    | IfCommand
    | ForLoop
    | ArithmeticLoop
    | WhileLoop
    | CaseCommand
    | Group
    | Function
    | Condition
)
Nodes = tuple[Node, ...]


class ExpandedWord(NamedTuple):
    """A word after expansion. Values that are known only at launch are reference marks in it."""

    text: str
    place: TextPosition


class Piece(NamedTuple):
    """A piece of an expanded word. `splits`: it is split at blanks. `ends`: the field ends here.

    `is_empty_list`: an array without elements, which makes even a quoted word vanish.
    """

    text: str
    splits: bool = False
    ends: bool = False
    is_empty_list: bool = False


class Reference(NamedTuple):
    """A value that is read at launch, from an environment variable or a file."""

    kind: Literal["env", "file"]
    name: str
    settings: tuple[str, TextPosition] | None = None
    """The file of settings that probably sets the variable and is not here, and where the text reads it."""


OPEN, CLOSE = "\ue000", "\ue001"


def reference_mark(index: int) -> str:
    """The mark of the reference with this index. `mend` removes both characters from the text."""
    return f"{OPEN}{index}{CLOSE}"


class ShellArray(NamedTuple):
    """An array: its elements by index, or by key if it is associative."""

    items: Mapping[int | str, str]
    is_associative: bool = False

    def values(self) -> list[str]:
        return [self.items[index] for index in sorted(self.items, key=lambda index: (isinstance(index, str), index))]


class Variable(NamedTuple):
    """A variable that the text sets; a value of None was unset."""

    value: str | ShellArray | Function | UnresolvedError | None
    exported: bool = False
    assumed: frozenset[str] = frozenset()
    """What had to be unset for this value: variables of the caller, and arguments of the script."""
    doubt: int | None = None
    """The number of the file that is not here, and that may set it to something else."""

    def agreeing(self, others: Iterable["Variable | None"]) -> "Variable":
        """With what is assumed and doubted in the other branches, which have the same value."""
        states = [self, *(other for other in others if other)]
        assumed = frozenset[str]().union(*(state.assumed for state in states))
        return self._replace(assumed=assumed, doubt=next((s.doubt for s in states if s.doubt is not None), None))


# bash or the login sets these, so a text that does not set them may still have them.
OF_THE_SHELL = frozenset((
    "BASH", "BASH_VERSION", "BASH_VERSINFO", "BASH_REMATCH", "BASHPID", "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS",
    "HOSTNAME", "HOSTTYPE", "LINENO", "MACHTYPE", "OLDPWD", "OPTARG", "OPTIND", "OSTYPE", "PIPESTATUS", "PPID",
    "RANDOM", "REPLY", "SECONDS", "SHELL", "SHLVL", "TERM", "UID",
))  # fmt: skip


class Variables(dict[str, Variable]):
    """Variables by name; what a branch changes can be taken back."""

    def __init__(self) -> None:
        super().__init__()
        self._before: list[dict[str, Variable | None]] = []

    def __setitem__(self, name: str, variable: Variable) -> None:
        if self._before:
            self._before[-1].setdefault(name, self.get(name))
        super().__setitem__(name, variable)

    def restore(self, name: str, variable: Variable | None) -> None:
        """Give a variable an earlier state; None if the text had not set it."""
        if variable is not None:
            self[name] = variable
        elif name in self:
            if self._before:
                self._before[-1].setdefault(name, self.get(name))
            del self[name]

    def forget(self, reason: str, place: TextPosition, file: int | None = None, *, guarded: bool = False) -> None:
        """Every variable may have changed; by a file that is not here, if that has a number.

        Then a value that was a default stays, in doubt; and any value if the file is read only where it exists.
        """
        for name, variable in list(self.items()):
            if name in ("@", "PWD") or isinstance(variable.value, (Function, UnresolvedError)):
                continue
            if file is not None and (guarded or name in variable.assumed):
                self[name] = variable._replace(doubt=file)
            else:
                self[name] = Variable(UnresolvedError(f"{name} {reason}", place), variable.exported)

    def begin(self) -> None:
        """Begin a branch."""
        self._before.append({})

    def undo(self) -> dict[str, Variable | None]:
        """End the branch and take its changes back; returns them."""
        before = self._before.pop()
        after = {name: self.get(name) for name in before}
        for name, variable in before.items():
            super().pop(name, None)
            if variable is not None:
                super().__setitem__(name, variable)
        return after

    def changed(self, since: int) -> dict[str, Variable | None]:
        """The present state of what changed in the branches from number `since` on."""
        return {name: self.get(name) for before in self._before[since:] for name in before}

    @property
    def branches(self) -> int:
        """The number of branches that are open."""
        return len(self._before)


@dataclass(frozen=True, slots=True)
class ShellEnvironment:
    """What the shell of the user provides. `script`: the path of the script, if the text is a file."""

    home: str
    directory: str
    user: str | None = None
    script: str | None = None


MAX_WORDS = 1000
"""The most words that one word may expand to."""
_SEQUENCE = re.compile(r"(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d{1,9}))?")
_MAX_BRACES = 200
_LONGEST_SEQUENCE = 40  # {-999999999..-999999999..-999999999}

_Items = tuple[Part, ...]
"""The parts of a word; every unquoted character is a part."""


def expand_braces(word: Word) -> tuple[Word, ...]:
    """The words that bash expands a word to. Raises UnresolvedError above MAX_WORDS words."""
    bare = "".join(part.text for part in word.parts if _is_unquoted(part))
    if "{" not in bare or not ("," in bare or ".." in bare):
        return (word,)
    if bare.count("{") > _MAX_BRACES:
        raise UnresolvedError(f"the word has more than {_MAX_BRACES} braces", word.place)
    items = tuple(chain.from_iterable(map(_characters, word.parts)))
    expanded = _expand(items, word)
    return (word,) if expanded == [items] else tuple(Word(_join(items), word.place) for items in expanded)


def _is_unquoted(part: Part) -> bool:
    return part.kind == "text" and not part.quoted


def _characters(part: Part) -> list[Part]:
    return [part._replace(text=character) for character in part.text] if _is_unquoted(part) else [part]


def _is(item: Part, character: str) -> bool:
    return _is_unquoted(item) and item.text == character


def _expand(items: _Items, word: Word, depth: int = 0) -> list[_Items]:
    if depth > MAX_WORDS // 10:
        raise UnresolvedError("braces are nested too deeply", word.place)
    pair = _first_pair(items)
    if pair is None:
        return [items]
    start, end = pair
    alternatives = _alternatives(items[start + 1 : end])
    if alternatives is None and end + 1 == len(items):
        return [items]
    tails = _expand(items[end + 1 :], word, depth + 1)
    if alternatives is None:
        return [(*items[: end + 1], *rest) for rest in tails]
    middles = list(chain.from_iterable(_expand(alternative, word, depth + 1) for alternative in alternatives))
    if len(middles) * len(tails) > MAX_WORDS:
        raise UnresolvedError(f"the braces expand to more than {MAX_WORDS:,} words", word.place)
    return [(*items[:start], *middle, *rest) for middle in middles for rest in tails]


def _first_pair(items: _Items) -> tuple[int, int] | None:
    """The first brace with a closing brace. bash ignores `{}` at the start of a word (as for find)."""
    for start, item in enumerate(items):
        if _is(item, "{") and not (start == 0 and len(items) > 1 and _is(items[1], "}")):
            end = _closing(items, start)
            if end is not None:
                return start, end
    return None


def _closing(items: _Items, start: int) -> int | None:
    """A closing brace counts only after a comma or `..` on its level; otherwise it is literal."""
    level = divided = 0
    for at in range(start + 1, len(items)):
        if _is(items[at], "{"):
            level += 1
        elif _is(items[at], "}") and level:
            level -= 1
        elif level:
            continue
        elif _is(items[at], "}") and divided:
            return at
        else:
            divided += _is(items[at], ",") or _is_range(items[at : at + 3])
    return None


def _is_range(items: _Items) -> bool:
    return len(items) == 3 and _is(items[0], ".") and _is(items[1], ".") and not _is(items[2], "}")


def _alternatives(inner: _Items) -> list[_Items] | None:
    """The alternatives between commas, or the items of a sequence; None if bash keeps the braces.

    After a comma anywhere, also in inner braces, bash removes the outer braces.
    """
    if not any("," in item.text for item in inner):
        short = len(inner) <= _LONGEST_SEQUENCE and all(map(_is_unquoted, inner))
        return _sequence("".join(item.text for item in inner)) if short else None
    alternatives, begin, level = list[_Items](), 0, 0
    for at, item in enumerate(inner):
        level += _is(item, "{") - (level > 0 and _is(item, "}"))
        if level == 0 and _is(item, ","):
            alternatives.append(inner[begin:at])
            begin = at + 1
    return [*alternatives, inner[begin:]]


def _sequence(text: str) -> list[_Items] | None:
    match = _SEQUENCE.fullmatch(text)
    if match is None:
        return None
    first, last, low, high, step = match.groups()
    begin, end = (int(first), int(last)) if first is not None else (ord(low), ord(high))
    stride = abs(int(step or 1)) or 1
    if abs(end - begin) // stride >= MAX_WORDS:
        raise UnresolvedError(f"the braces expand to more than {MAX_WORDS:,} words", None)
    numbers = range(begin, end + (1 if end >= begin else -1), stride if end >= begin else -stride)
    if first is None:
        return [(Part("text", chr(number), quoted=False),) for number in numbers]
    padded = any(re.match(r"-?0\d", number) for number in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [(Part("text", f"{number:0{width}d}", quoted=False),) for number in numbers]


def _join(items: _Items) -> _Items:
    parts: list[Part] = []
    for item in items:
        if parts and _is_unquoted(item) and _is_unquoted(parts[-1]):
            parts[-1] = parts[-1]._replace(text=parts[-1].text + item.text)
        else:
            parts.append(item)
    return tuple(parts)
