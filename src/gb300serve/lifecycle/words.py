"""Options of an engine's command, read from its words; and those words, read from a pinned command."""

import shlex

from gb300serve.plan.model import Plan
from gb300serve.plan.words import secret_word


def values(words: tuple[str, ...], flag: str) -> tuple[str, ...]:
    """The words that follow a flag up to the next one, or its `--flag=value`; of every time that it is said."""
    found: list[str] = []
    inside = False
    for word in words:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            inside = name == flag
            found += [value] if inside and equals else []
        elif inside:
            found.append(word)
    return tuple(found)


def pinned_words(pin: str | None, plan: Plan) -> tuple[str, ...] | None:
    """The engine's words of the pinned command of a release, secrets as the plan has them; None where there is none."""
    try:
        words = shlex.split((pin or "").replace(" \\\n", " "))  # shlex takes a continuation for a line feed
    except ValueError:
        return None
    repository = plan.image.partition("@")[0].rpartition(":")[0] or plan.image
    image = next((at for at, word in enumerate(words) if word.startswith(repository)), None)
    if image is None:
        return None
    names = {f"${{{secret.name}}}": secret_word(secret.name) for secret in plan.container.secrets}
    return tuple(_with(names, word) for word in words[image + 1 :])


def _with(names: dict[str, str], word: str) -> str:
    for variable, secret in names.items():
        word = word.replace(variable, secret)
    return word
