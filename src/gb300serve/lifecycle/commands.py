"""Commands of ours in messages, to be pasted into a shell: they mean the place that the message is about."""

import shlex


def command(*words: str, on: str, found_by: tuple[str, ...], options: tuple[str, ...] = ()) -> str:
    """`found_by`: the options that led to the site, the Station and the recipes; `options` follow them."""
    place = ("--on", "sim") if on == "sim" else ()
    return shlex.join(("gb300serve", *words, *place, *found_by, *options))
