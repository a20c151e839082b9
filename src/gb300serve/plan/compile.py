"""Recipe and site to plan. Pure: no clock, no environment, no file."""

from dataclasses import dataclass
from typing import Literal

from gb300serve.core.errors import CompileError
from gb300serve.engines.registry import engine
from gb300serve.plan.model import ContainerPlan, Mount, Plan, Secret
from gb300serve.plan.nodes import BACKEND, OPTIONS, RAY
from gb300serve.plan.ports import published_port
from gb300serve.plan.variables import expand
from gb300serve.plan.words import with_secret_words
from gb300serve.recipe.gpus import Gpus
from gb300serve.recipe.model import ContainerSection, ImageSection, Recipe, UlimitSection
from gb300serve.site.model import Site

ImageRef = Literal["digest", "tag"]


class GpuNotInSiteError(CompileError):
    """A GPU is asked for by name and the site does not say which one that is."""

    def __init__(self, name: str) -> None:
        hint = f"`nvidia-smi -L` prints the UUIDs; add `gpus: {{{name}: GPU-…}}` to site.yaml"
        super().__init__(f"container.gpus names {name}, and the site does not know its UUID", hint=hint)


class ImageWithoutTagError(CompileError):
    """`--image-ref tag` on an image without a tag."""

    def __init__(self, repository: str) -> None:
        super().__init__(f"image {repository} has no tag to print", hint="add image.tag, or leave out --image-ref tag")


class ColonInMountError(CompileError):
    """`-v` separates source, target and mode by colons."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} cannot be mounted: `-v` takes what follows a colon for the target", hint="rename it")


class ListBeforeBareWordsError(CompileError):
    """The last option takes any number of words, and bare words follow it."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"engine.options.{key} takes every word that follows it, and engine.extra_args begins with a bare word",
            hint=f"move {key} up: any option after it ends its list",
        )


class NodesSaidTwiceError(CompileError):
    """An option that `nodes` gives each machine its own value of."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"engine.options.{key} is what `nodes` tells each machine for itself", hint=f"remove {key}, or `nodes`"
        )


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles recipes for one site."""

    site: Site
    image_ref: ImageRef = "digest"

    def plan(self, recipe: Recipe, *, changed: bool = False) -> Plan:
        """The launch that `recipe` means here; raises CompileError (exit 4)."""
        spoken = engine(recipe.engine.name)
        options = with_secret_words(recipe.engine.options)
        port = spoken.port(options)
        if recipe.nodes > 1:
            _refuse_said_twice(recipe)
        return Plan(
            recipe=recipe.ref + ("+set" if changed else ""),
            lane=recipe.lane,
            release=recipe.release + ("+set" if changed else ""),
            engine=recipe.engine.name,
            engine_version=recipe.engine.version,
            image=image_word(recipe.image, self.image_ref),
            image_id=recipe.image.id,
            container=self._container(recipe),
            command=_command(recipe),
            served_names=spoken.served_names(options),
            port=published_port(recipe.container.network, recipe.container.ports, port),
            model_path=self._expand(recipe.model.path, recipe) if recipe.model and recipe.model.path else None,
            nodes=recipe.nodes,
            ray=recipe.nodes > 1 and options.get(BACKEND) == RAY,
            launched_by=tuple(recipe.engine.launcher),
        )

    def try_plan(self, recipe: Recipe) -> Plan | None:
        """The same, None where it cannot be compiled here."""
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
            ulimits={name: _limit(value) for name, value in section.ulimits.items()},
            cap_add=tuple(section.cap_add),
            security_opt=tuple(section.security_opt),
            init=bool(section.init),
            stop_timeout=section.stop_timeout,
            user=section.user,
            workdir=section.workdir,
            pid=section.pid,
            memory=section.memory,
            tmpfs=tuple(section.tmpfs),
            log_driver=section.log.driver if section.log else None,
            log_options=dict(section.log.options) if section.log else {},
            devices=tuple(section.devices),
            labels=dict(section.labels),
            ports=tuple(section.ports),
            mounts=self._mounts(recipe),
            env=dict(section.env),
            secrets=self._secrets(section, recipe),
            entrypoint=section.entrypoint,
            restart=section.restart or "no",
        )

    def _mounts(self, recipe: Recipe) -> tuple[Mount, ...]:
        models = [
            _mount(self._expand(model.path, recipe), model.mount, read_only=True)
            for model in recipe.all_models
            if model.path and model.mount
        ]
        others = [
            _mount(
                self._expand(mount.source, recipe),
                mount.target,
                read_only=bool(mount.read_only or mount.sha256),
                sha256=mount.sha256,
            )
            for mount in recipe.container.mounts
        ]
        return (*models, *others)

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
            raise GpuNotInSiteError(name)
        return self.site.gpus[name]

    def _expand(self, text: str, recipe: Recipe) -> str:
        return expand(text, self.site.variables(recipe.lane), recipe)


def _mount(source: str, target: str, *, read_only: bool, sha256: str | dict[str, str] | None = None) -> Mount:
    for path in (source, target):
        if ":" in path:
            raise ColonInMountError(path)
    return Mount(source, target, read_only, sha256)


def image_word(image: ImageSection, image_ref: ImageRef) -> str:
    """`repository:tag@digest`, or what of it there is; `repository:tag` for `tag` and for images pinned by id."""
    if image_ref == "tag" and image.tag is None:
        raise ImageWithoutTagError(image.repository)
    tagged = image.repository + (f":{image.tag}" if image.tag else "")
    by_tag = image_ref == "tag" or image.id is not None or image.digest is None
    return tagged if by_tag else f"{tagged}@{image.digest}"


def _command(recipe: Recipe) -> tuple[str, ...]:
    section = recipe.engine
    spoken = engine(section.name)
    options = with_secret_words(section.options)
    key = spoken.open_list(options, section.version)
    if key and section.extra_args and not section.extra_args[0].startswith("-"):
        raise ListBeforeBareWordsError(key)
    return (*section.launcher, *spoken.argv(options, section.version), *section.extra_args)


def _refuse_said_twice(recipe: Recipe) -> None:
    for key in OPTIONS[recipe.engine.name]:
        if key in recipe.engine.options:
            raise NodesSaidTwiceError(key)


def _limit(value: int | UlimitSection) -> int | tuple[int, int]:
    return value if isinstance(value, int) else (value.soft, value.hard)
