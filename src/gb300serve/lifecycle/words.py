"""Options of an engine's command, read from its words."""


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
