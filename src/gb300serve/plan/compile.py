"""Compile a recipe and a site to a plan. Pure: no clock, no environment, no file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pydantic import BaseModel

from gb300serve.core.errors import CompileError
from gb300serve.core.text import suggestion
from gb300serve.core.values import compact_json
from gb300serve.engines.registry import engine
from gb300serve.plan.model import (
    ContainerPlan,
    HealthCheck,
    Mount,
    Plan,
    Secret,
    published_port,
    secret_placeholder,
    with_secret_placeholders,
)
from gb300serve.recipe.gpus import Gpus
from gb300serve.recipe.model import ContainerSection, HealthCheckSection, ImageSection, MountSection, Recipe
from gb300serve.recipe.site import DIRECTORIES, Site

BACKEND, RAY = "distributed_executor_backend", "ray"
RAY_PORT = 6379

_SERVE = ("vllm", "serve")
_LEADER = f'ray start --head --port={RAY_PORT} && shift && exec "$@"'
# A worker retries until the head is up. It exits when it loses the head, and may join the next one after a restart.
_WORKER = f'until ray start --address="$1:{RAY_PORT}" --block; do sleep 5; done'


def variable(name: str) -> str:
    """A variable in an engine argument. Every target can express it, in the same way as a secret."""
    return secret_placeholder(name)


def node_plan(plan: Plan, rank: str, leader: str) -> Plan:
    """The plan of one machine. Rank `0` is the leader, `leader` its address (or a placeholder for it)."""
    if plan.ray:
        return _with_ray(plan, leader, is_leader=rank == "0")
    join = engine(plan.engine).nodes.join(leader, rank)
    return replace(plan, command=(*plan.command, "--nnodes", str(plan.nodes), "--node-rank", rank, *join))


def own_address_variable(plan: Plan) -> str | None:
    """The variable that must hold the machine's own address, unless the recipe sets it."""
    variable, container = engine(plan.engine).nodes.address_variable, plan.container
    return None if variable in {*container.env, *(secret.name for secret in container.secrets)} else variable


def _with_ray(plan: Plan, leader: str, *, is_leader: bool) -> Plan:
    """The engine behind a shell that starts Ray first. Without launcher and entrypoint, images run `vllm serve`."""
    entrypoint = plan.container.entrypoint
    program = (entrypoint,) if entrypoint else () if plan.launched_by else _SERVE
    script = (_LEADER, "leader", leader, *program, *plan.command) if is_leader else (_WORKER, "worker", leader)
    return replace(plan, command=("-c", *script), container=replace(plan.container, entrypoint="/bin/bash"))


def ray_program(words: Sequence[str]) -> tuple[str, ...] | None:
    """The engine's own command, if `words` are the command of a leader that starts Ray first."""
    if tuple(words[:4]) != ("/bin/bash", "-c", _LEADER, "leader"):
        return None
    program = tuple(words[5:])
    return program[2:] if program[:2] == _SERVE else program


_VARIABLE = re.compile(r"\$(\$\{)|\$\{([^}]*)\}|\$\{")

# These values contain variables themselves: `${model.path}` expands to the directory, not to the text of the recipe.
_EXPANDED = re.compile(r"model\.path|container\.secrets\.[^.]+\.file")

VariableSource: TypeAlias = BaseModel | Mapping[str, object]
"""A recipe, as a model or as nodes."""


class VariableError(CompileError):
    """A variable in the recipe cannot be expanded on any site."""


def expand(text: str, site: Mapping[str, str], recipe: VariableSource, within: tuple[str, ...] = ()) -> str:
    """Expand variables, except those in `within` (a cycle); raises CompileError. `$${` is a literal `${`."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return "${"
        name = match[2]
        if name is None:
            raise VariableError(f"`{text}`: `${{` is not closed", hint="add }, or write $${ for a literal ${")
        if name in site:
            return site[name]
        if name in within:
            raise VariableError(f"`{text}`: `{name}` refers to itself", hint="write the path here")
        own = _own(name, text, recipe)
        return expand(own, site, recipe, (*within, name)) if _EXPANDED.fullmatch(name) else own

    return _VARIABLE.sub(value, text) if "$" in text else text


def _own(name: str, text: str, recipe: VariableSource) -> str:
    if name in DIRECTORIES:
        hint = f"add `{name}: /a/directory` to site.yaml"
        raise CompileError(f"`{text}`: the site does not define `{name}`", hint=hint)
    value: object = recipe
    for key in name.split("."):
        if isinstance(value, BaseModel) and key in type(value).model_fields:
            value = getattr(value, key)
        elif isinstance(value, Mapping) and key in value:
            value = value[key]
        else:
            meant = suggestion(name, (*DIRECTORIES, *_scalars(recipe)))
            known = f"valid names: {', '.join(DIRECTORIES)}, or a key of the recipe such as model.revision"
            raise VariableError(f"`{text}`: unknown variable `{name}`", hint=f"write ${{{meant}}}" if meant else known)
    if not isinstance(value, (str, int, float)):
        hint = "name a text or a number of the recipe"
        raise VariableError(f"`{text}`: `{name}` is not a single value", hint=hint)
    return value if isinstance(value, str) else compact_json(value)


def _scalars(node: object, path: str = "") -> Iterator[str]:
    for key, value in node.items() if isinstance(node, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _scalars(value, f"{path}{key}.")
        elif not isinstance(value, list):
            yield f"{path}{key}"


ImageRef = Literal["digest", "tag"]


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles recipes for a site."""

    site: Site
    image_ref: ImageRef = "digest"

    def plan(self, recipe: Recipe, *, changed: bool = False) -> Plan:
        """The plan of a recipe on this site; raises CompileError (exit 4)."""
        recipe_engine = engine(recipe.engine.name)
        options = with_secret_placeholders(recipe.engine.options)
        port = recipe_engine.port(options)
        for key in recipe_engine.nodes.options if recipe.nodes > 1 else ():
            if key in options:
                message = f"engine.options.{key} conflicts with `nodes`, which sets it on each machine"
                raise CompileError(message, hint=f"remove {key}, or `nodes`")
        return Plan(
            recipe=recipe.ref + ("+set" if changed else ""),
            lane=recipe.lane,
            release=recipe.release + ("+set" if changed else ""),
            engine=recipe.engine.name,
            engine_version=recipe.engine.version,
            image=image_reference(recipe.image, self.image_ref),
            image_id=recipe.image.id,
            container=self._container(recipe),
            command=_command(recipe),
            served_names=recipe_engine.served_names(options),
            port=published_port(recipe.container.network, recipe.container.ports, port),
            model_path=self._expand(recipe.model.path, recipe) if recipe.model and recipe.model.path else None,
            nodes=recipe.nodes,
            ray=recipe.nodes > 1 and options.get(BACKEND) == RAY,
            launched_by=tuple(recipe.engine.launcher),
        )

    def try_plan(self, recipe: Recipe) -> Plan | None:
        """The plan, or None if the recipe cannot be compiled here."""
        try:
            return self.plan(recipe)
        except CompileError:
            return None

    def _container(self, recipe: Recipe) -> ContainerPlan:
        section = recipe.container
        return ContainerPlan(
            name=section.name or "",
            gpus=self._gpus(section.gpus),
            ipc=section.ipc,
            network=section.network,
            shm_size=section.shm_size,
            ulimits={
                name: value if isinstance(value, int) else (value.soft, value.hard)
                for name, value in section.ulimits.items()
            },
            cap_add=tuple(section.cap_add),
            security_opt=tuple(section.security_opt),
            privileged=bool(section.privileged),
            init=bool(section.init),
            stop_timeout=section.stop_timeout,
            user=section.user,
            group_add=tuple(section.group_add),
            workdir=section.workdir,
            pid=section.pid,
            memory=section.memory,
            cpuset_cpus=section.cpuset_cpus,
            memory_swap=section.memory_swap,
            tmpfs=tuple(section.tmpfs),
            add_host=tuple(section.add_host),
            log_driver=section.log.driver if section.log else None,
            log_options=dict(section.log.options) if section.log else {},
            devices=tuple(section.devices),
            labels=dict(section.labels),
            ports=tuple(section.ports),
            mounts=self._mounts(recipe),
            env=dict(section.env),
            secrets=self._secrets(section, recipe),
            healthcheck=_health_check(section.healthcheck) if section.healthcheck else None,
            entrypoint=section.entrypoint,
            restart=section.restart or "no",
        )

    def _mounts(self, recipe: Recipe) -> tuple[Mount, ...]:
        models = [
            _mount(self._expand(model.path, recipe), model.mount, read_only=True)
            for model in recipe.all_models
            if model.path and model.mount
        ]
        return (*models, *(self._own_mount(mount, recipe) for mount in recipe.container.mounts))

    def _own_mount(self, mount: MountSection, recipe: Recipe) -> Mount:
        if mount.volume is not None:
            volume = _mount(mount.volume, mount.target, read_only=bool(mount.read_only))
            return replace(volume, is_volume=True)
        source, read_only = self._expand(mount.source or "", recipe), bool(mount.read_only or mount.sha256)
        return _mount(source, mount.target, read_only=read_only, sha256=mount.sha256)

    def _secrets(self, section: ContainerSection, recipe: Recipe) -> tuple[Secret, ...]:
        return tuple(
            Secret(name, secret.env, self._expand(secret.file, recipe) if secret.file else None)
            for name, secret in section.secrets.items()
        )

    def _gpus(self, gpus: Gpus | None) -> str | None:
        if gpus is None or gpus.by == "all":
            return gpus.by if gpus else None
        if gpus.by == "count":
            return str(gpus.values[0])
        values = [self._uuid(str(value)) if gpus.by == "name" else str(value) for value in gpus.values]
        return "device=" + ",".join(values)

    def _uuid(self, name: str) -> str:
        if name not in self.site.gpus:
            hint = f"`nvidia-smi -L` prints the UUIDs; add `gpus: {{{name}: GPU-…}}` to site.yaml"
            raise CompileError(f"container.gpus names {name}, but the site does not define its UUID", hint=hint)
        return self.site.gpus[name]

    def _expand(self, text: str, recipe: Recipe) -> str:
        return expand(text, self.site.variables(recipe.lane), recipe)


def _health_check(section: HealthCheckSection) -> HealthCheck:
    """The check of the recipe; without any key, that of the image."""
    values = {name: getattr(section, name) for name in HealthCheckSection.model_fields if name != "disable"}
    return HealthCheck(**values, disable=bool(section.disable))


def _mount(source: str, target: str, *, read_only: bool, sha256: str | dict[str, str] | None = None) -> Mount:
    for path in (source, target):
        if ":" in path:
            raise CompileError(f"{path} cannot be mounted: `-v` splits at colons", hint="rename the path")
    return Mount(source, target, read_only, sha256)


def image_reference(image: ImageSection, image_ref: ImageRef) -> str:
    """`repository[:tag][@digest]`; without the digest for `tag` and for images pinned by id."""
    if image_ref == "tag" and image.tag is None:
        hint = "add image.tag, or omit --image-ref tag"
        raise CompileError(f"image {image.repository} has no tag", hint=hint)
    tagged = image.repository + (f":{image.tag}" if image.tag else "")
    by_tag = image_ref == "tag" or image.id is not None or image.digest is None
    return tagged if by_tag else f"{tagged}@{image.digest}"


def _command(recipe: Recipe) -> tuple[str, ...]:
    section = recipe.engine
    recipe_engine = engine(section.name)
    options = with_secret_placeholders(section.options)
    key = recipe_engine.open_list(options, section.version)
    if key and section.extra_args and not section.extra_args[0].startswith("-"):
        message = f"engine.options.{key} would take the positional arguments at the start of engine.extra_args"
        raise CompileError(message, hint=f"move {key} up: the next option ends its list")
    return (*section.launcher, *recipe_engine.argv(options, section.version), *section.extra_args)
