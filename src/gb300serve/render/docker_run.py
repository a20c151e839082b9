"""Plan → the arguments of `docker run`, and the same as text for sh, bash and zsh."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.plan import model
from gb300serve.plan.compile import node_plan, own_address_variable, variable
from gb300serve.render.target import substitute_secrets

LEADER, RANK = "LEADER_ADDRESS", "NODE_RANK"
"""Variables of the user's shell, for a model over several machines."""

# Characters that no shell treats specially. zsh expands a leading `=`, all shells a leading `~`: both are quoted.
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:@%+,=-]*")


def docker_argv(plan: model.Plan) -> tuple[str, ...]:
    """`docker run -d …` as arguments; the value of a secret appears as `${secret:NAME}`."""
    return tuple(word for group in argument_groups(plan) for word in group)


def argument_groups(plan: model.Plan) -> Iterator[tuple[str, ...]]:
    """The arguments of `docker_argv`, each option with its values."""
    yield ("docker", "run")
    yield from _options(plan.container)
    yield (plan.image,)
    yield from flag_groups(plan.command)


def _options(c: model.ContainerPlan) -> Iterator[tuple[str, ...]]:
    yield ("-d",)
    yield from _single("--name", c.name)
    yield from _single("--gpus", model.gpus_argument(c.gpus) if c.gpus else None)
    yield from _single("--ipc", c.ipc)
    yield from _single("--network", c.network)
    yield from _single("--shm-size", c.shm_size)
    yield from _each("--ulimit", (model.ulimit_argument(name, limit) for name, limit in c.ulimits.items()))
    yield from _each("--cap-add", c.cap_add)
    yield from _each("--security-opt", c.security_opt)
    if c.privileged:
        yield ("--privileged",)
    if c.init:
        yield ("--init",)
    yield from _single("--stop-timeout", None if c.stop_timeout is None else str(c.stop_timeout))
    yield from _single("--user", c.user)
    yield from _each("--group-add", c.group_add)
    yield from _single("--workdir", c.workdir)
    yield from _single("--pid", c.pid)
    yield from _single("--memory", c.memory)
    yield from _single("--cpuset-cpus", c.cpuset_cpus)
    yield from _single("--memory-swap", c.memory_swap)
    yield from _each("--tmpfs", c.tmpfs)
    yield from _each("--add-host", c.add_host)
    yield from _single("--log-driver", c.log_driver)
    yield from _each("--log-opt", (f"{key}={value}" for key, value in c.log_options.items()))
    yield from _each("--device", c.devices)
    yield from _each("--label", (f"{key}={value}" for key, value in c.labels.items()))
    yield from _each("-p", c.ports)
    yield from _each("-v", map(model.mount_argument, c.mounts))
    yield from _each("-e", (f"{name}={value}" for name, value in c.env.items()))
    yield from _each("-e", (secret.name for secret in c.secrets))
    yield from _health_check(c.healthcheck)
    yield from _single("--entrypoint", c.entrypoint)


def _health_check(check: model.HealthCheck | None) -> Iterator[tuple[str, ...]]:
    if check is None:
        return
    if check.disable:
        yield ("--no-healthcheck",)
    yield from _single("--health-cmd", check.test)
    yield from _single("--health-interval", check.interval)
    yield from _single("--health-timeout", check.timeout)
    yield from _single("--health-start-period", check.start_period)
    yield from _single("--health-start-interval", check.start_interval)
    yield from _single("--health-retries", None if check.retries is None else str(check.retries))


def _single(flag: str, value: str | None) -> Iterator[tuple[str, ...]]:
    if value:
        yield (flag, value)


def _each(flag: str, values: Iterable[str]) -> Iterator[tuple[str, ...]]:
    return ((flag, value) for value in values)


def quote(word: str) -> str:
    """Quote an argument for sh, bash and zsh. (`shlex.quote` leaves `=ls` bare; zsh expands it to the path of `ls`.)"""
    return word if _PLAIN.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'"


def _with_variables(word: str, secrets: Collection[str]) -> str:
    """An engine argument with each declared secret as a variable.

    Only the variable is in double quotes, where an interactive bash would expand a `!`.
    """
    written = substitute_secrets(word, '"${{{}}}"'.format, lambda text: quote(text) if text else "", secrets)
    return written or quote("")


def command_lines(plan: model.Plan) -> tuple[str, ...]:
    """The command, one flag per line, with continuations."""
    secrets = {secret.name for secret in plan.container.secrets} | ({LEADER, RANK} if plan.nodes > 1 else set())
    detached, *options = (" ".join(map(quote, group)) for group in _options(plan.container))
    engine = (" ".join(_with_variables(word, secrets) for word in group) for group in flag_groups(plan.command))
    lines = (f"docker run {detached}", *(f"  {line}" for line in (*options, quote(plan.image), *engine)))
    return (*(f"{line} \\" for line in lines[:-1]), lines[-1])


def flag_groups(command: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Each flag with its values; arguments before the first flag form a group."""
    group: tuple[str, ...] = ()
    for word in command:
        if word.startswith("--") and group:
            yield group
            group = ()
        group = (*group, word)
    if group:
        yield group


def _export_lines(secret: model.Secret) -> tuple[str, ...]:
    """The lines before the command that set a secret; they are not part of a pinned command."""
    # `:?` stops the pasted lines with a message if the value is missing, and keeps an interactive shell open.
    name = secret.name
    export = f"export {name}"
    if secret.file:
        check = f': "${{{name}:?the file of this secret is empty}}"'
        return (f"{name}=$(cat {client_path(secret.file)})", check, export)
    check = f': "${{{secret.env}:?set it to the value of the secret}}"'
    return (check, export if secret.env == name else f'{export}="${secret.env}"')


def shell_value(secret: model.Secret) -> str:
    """The value of a secret in double quotes; `$(cat …)` drops the line feed at the end of the file."""
    return f"$(cat {client_path(secret.file)})" if secret.file else f"${secret.env}"


def client_path(path: str) -> str:
    """A path for the user's shell: `~` becomes $HOME, because a quoted `~` is not expanded."""
    return f'"$HOME"/{quote(path[2:])}' if path.startswith("~/") else quote(path)


def shell_text(plan: model.Plan) -> str:
    """The text that `compile` prints, ready to paste."""
    checks = _machine_checks(plan) if plan.nodes > 1 else ()
    exports = (line for secret in plan.container.secrets for line in _export_lines(secret))
    return "\n".join((*checks, *exports, *_lines(plan))) + "\n"


def pinned_text(plan: model.Plan) -> str:
    """The content of `<release>.command`: only the command."""
    return "\n".join(_lines(plan)) + "\n"


def machine_plans(plan: model.Plan) -> tuple[model.Plan, model.Plan]:
    """The launches of the leader and of a worker; LEADER_ADDRESS and NODE_RANK are set on each machine."""
    if name := own_address_variable(plan):
        own = model.Secret(name, env=name)
        plan = replace(plan, container=replace(plan.container, secrets=(*plan.container.secrets, own)))
    leader = variable(LEADER)
    return node_plan(plan, "0", leader), node_plan(plan, variable(RANK), leader)


def _machine_checks(plan: model.Plan) -> tuple[str, ...]:
    """`:` replaces comments, which an interactive zsh does not support."""
    others = "to 1 on the other" if plan.nodes == 2 else f"to a number of its own up to {plan.nodes - 1} on each other"
    name = own_address_variable(plan)
    own = f': "${{{name}:?set it to the address of this Station}}"'
    return (
        f": {quote(f'{plan.recipe} on {plan.nodes} Stations: paste all of this on each Station')}",
        f': "${{{LEADER}:?set it to the address of the leader Station}}"',
        f': "${{{RANK}:?set it to 0 on the leader Station, and {others}}}"',
        *((own, f"export {name}") if name else ()),
    )


def _lines(plan: model.Plan) -> tuple[str, ...]:
    # Pinned: another wording of these comments would differ from every `.command` file in use.
    if plan.nodes == 1:
        return command_lines(plan)
    leader, worker = machine_plans(plan)
    serves = f"the leader, which answers on port {plan.port}" if plan.port else "the leader"
    others, role = ("Station 2", "the worker") if plan.nodes == 2 else (f"Stations 2 to {plan.nodes}", "a worker each")
    ranks = "|".join(map(str, range(1, plan.nodes)))
    return (
        f'case "${{{RANK}}}" in',
        f"0) : {quote(f'Station 1 of {plan.nodes}: {serves}')}",
        *command_lines(leader),
        ";;",
        f"{ranks}) : {quote(f'{others} of {plan.nodes}: {role}')}",
        *command_lines(worker),
        ";;",
        "esac",
    )


SCHEMA = "gb300serve.plan/1"


def plan_document(plan: model.Plan, diagnostics: Iterable[Diagnostic] = ()) -> dict[str, Any]:
    """`gb300serve.plan/1`."""
    machines = machine_plans(plan) if plan.nodes > 1 else (plan,)
    document = {
        "schema": SCHEMA,
        "recipe": plan.recipe,
        "engine": plan.engine,
        "image": plan.image,
        "image_id": plan.image_id,
        "container": model.container_document(plan.container),
        "command": list(plan.command),
        "argv": _argv(machines[0]),
        "digest": model.digest(plan),
        "diagnostics": [finding.as_json() for finding in diagnostics],
    }
    if plan.nodes > 1:
        roles = zip(("leader", "worker"), (1, plan.nodes - 1), machines, strict=True)
        document["nodes"] = [{"role": role, "count": n, "argv": _argv(machine)} for role, n, machine in roles]
    return document


def _argv(plan: model.Plan) -> list[str]:
    """Over several machines, `${LEADER_ADDRESS}` and `${NODE_RANK}` are placeholders for the values of each."""
    words = list(docker_argv(plan))
    for name in (LEADER, RANK) if plan.nodes > 1 else ():
        words = [word.replace(variable(name), f"${{{name}}}") for word in words]
    return words
