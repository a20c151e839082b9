"""Plan → the words of `docker run`, and the same as text that sh, bash and zsh read unchanged."""

import re
import shlex
from collections.abc import Iterable, Iterator

from gb300serve.plan.model import ContainerPlan, Plan, Secret
from gb300serve.plan.words import SECRET, gpus_word, mount_word, ulimit_word


# What no shell treats specially in any place of a word. `=` first is zsh's, `~` first is everyone's: both are quoted.
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:@%+,=-]*")


def docker_argv(plan: Plan) -> tuple[str, ...]:
    """`docker run -d …` as words; the value of a secret appears as `${secret:NAME}`."""
    options = (word for group in _options(plan.container) for word in group)
    return ("docker", "run", *options, plan.image, *plan.command)


def _options(c: ContainerPlan) -> Iterator[tuple[str, ...]]:
    """The container's options in their fixed order, a flag and its value together."""
    yield ("-d",)
    yield from _single("--name", c.name)
    yield from _single("--gpus", gpus_word(c.gpus) if c.gpus else None)
    yield from _single("--ipc", c.ipc)
    yield from _single("--network", c.network)
    yield from _single("--shm-size", c.shm_size)
    yield from _each("--ulimit", (ulimit_word(name, limit) for name, limit in c.ulimits.items()))
    yield from _each("--cap-add", c.cap_add)
    yield from _each("--security-opt", c.security_opt)
    if c.init:
        yield ("--init",)
    yield from _single("--stop-timeout", None if c.stop_timeout is None else str(c.stop_timeout))
    yield from _single("--user", c.user)
    yield from _single("--workdir", c.workdir)
    yield from _single("--pid", c.pid)
    yield from _single("--memory", c.memory)
    yield from _each("--tmpfs", c.tmpfs)
    yield from _single("--log-driver", c.log_driver)
    yield from _each("--log-opt", (f"{key}={value}" for key, value in c.log_options.items()))
    yield from _each("--device", c.devices)
    yield from _each("--label", (f"{key}={value}" for key, value in c.labels.items()))
    yield from _each("-p", c.ports)
    yield from _each("-v", map(mount_word, c.mounts))
    yield from _each("-e", (f"{name}={value}" for name, value in c.env.items()))
    yield from _each("-e", (secret.name for secret in c.secrets))
    yield from _single("--entrypoint", c.entrypoint)


def _single(flag: str, value: str | None) -> Iterator[tuple[str, ...]]:
    if value:
        yield (flag, value)


def _each(flag: str, values: Iterable[str]) -> Iterator[tuple[str, ...]]:
    return ((flag, value) for value in values)


def quote(word: str) -> str:
    """One word for sh, bash and zsh. A secret becomes its variable, in double quotes."""
    if SECRET.search(word):
        return '"' + SECRET.sub(r"${\1}", _in_double_quotes(word)) + '"'
    return word if _PLAIN.fullmatch(word) else shlex.quote(word)


def _in_double_quotes(word: str) -> str:
    parts = SECRET.split(word)
    kept = [re.sub(r'([\\"$`])', r"\\\1", part) if index % 2 == 0 else f"${{secret:{part}}}" for index, part in enumerate(parts)]
    return "".join(kept)


def command_lines(plan: Plan) -> tuple[str, ...]:
    """The command, one flag a line, each but the last ending in a continuation."""
    groups = [("docker", "run", "-d"), *_grouped(plan)]
    lines = [("  " if index else "") + " ".join(map(quote, group)) for index, group in enumerate(groups)]
    return tuple(f"{line} \\" for line in lines[:-1]) + (lines[-1],)


def _grouped(plan: Plan) -> Iterator[tuple[str, ...]]:
    options = list(_options(plan.container))
    yield from options[1:]
    yield (plan.image,)
    group: tuple[str, ...] = ()
    for word in plan.command:
        if word.startswith("--") and group:
            yield group
            group = ()
        group = (*group, word)
    if group:
        yield group


def secret_lines(secrets: Iterable[Secret]) -> tuple[str, ...]:
    """What stands before the command so that the secrets are there: nothing of it is part of a pinned command."""
    return tuple(line for secret in secrets for line in _secret(secret))


def _secret(secret: Secret) -> tuple[str, ...]:
    # `:?` stops the pasted lines with its text where the value is missing, and leaves an interactive shell open.
    name = secret.name
    export = f"export {name}"
    if secret.file:
        asked = f': "${{{name}:?no value in the file of this secret}}"'
        return (f"{name}=$(cat {quote(secret.file)})", asked, export)
    asked = f': "${{{secret.env}:?set it to the value of the secret}}"'
    return (asked, export if secret.env == name else f'{export}="${secret.env}"')


def shell(plan: Plan) -> str:
    """The text that `compile` prints: pasteable, ending in a newline."""
    return "\n".join((*secret_lines(plan.container.secrets), *command_lines(plan))) + "\n"


def pinned(plan: Plan) -> str:
    """The content of `<release>.command`: the command alone."""
    return "\n".join(command_lines(plan)) + "\n"
