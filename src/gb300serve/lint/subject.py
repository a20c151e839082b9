"""The input of a rule: a valid recipe, its compiled plan, and its pinned command."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

from gb300serve.core.rules import RuleBook
from gb300serve.document.nodes import DocumentTexts, Path, Text, document_texts
from gb300serve.engines.base import Options
from gb300serve.engines.registry import engine as engine_named
from gb300serve.engines.tables import TableChoice, tables_for
from gb300serve.engines.vllm.options import VllmOptions, view
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot, find_checkpoint
from gb300serve.fit.hardware import GB300
from gb300serve.fit.memory import MemoryPlan, measured_boots, memory_plan
from gb300serve.fit.request import MemoryRequest, is_on_one_gpu, recipe_request
from gb300serve.fit.section import known_checkpoint, with_memory_section
from gb300serve.plan.check import LiteralSecret, literal_secrets
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan, with_secret_placeholders
from gb300serve.recipe.gpus import Gpus
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import PLAN_SECTIONS, ContainerSection, ModelSection, Recipe
from gb300serve.recipe.site import Site

# Two boots that moved the same parameters differ by less than the smallest of them.
SAME_GIB = 0.005


@dataclass(frozen=True, slots=True)
class Fitting:
    """The memory plan, and a failed boot with the same parameters moved and no longer context."""

    plan: MemoryPlan
    failed: MeasuredBoot | None


# Many recipes of a lane need the same memory.
@lru_cache(maxsize=1024)
def _fitting(checkpoint: Checkpoint, request: MemoryRequest) -> Fitting:
    plan = memory_plan(checkpoint, request)
    if plan.verdict != "refused" or plan.hbm.kv_cache_gib is None:
        return Fitting(plan, None)
    alike = [
        measured
        for measured in measured_boots(checkpoint, GB300.total_gib)
        if not measured.boot.booted
        and abs(measured.offloaded_gib - plan.offload.moved_gib) < SAME_GIB
        and measured.boot.variant is None
        and (measured.request.max_model_len or 0) <= plan.max_model_len
    ]
    nearest = max(alike, key=lambda measured: measured.request.max_model_len or 0, default=None)
    return Fitting(plan, nearest.boot if nearest else None)


OPTIONS = ("engine", "options")
# Paths end at 4,096 bytes; patterns would take minutes for a megabyte of braces.
LONGEST = 8192
_TEMPLATES = frozenset({"chat_template", "response_role", "log_format"})


@dataclass
class LintSubject:
    """`pinned` is the text of `<release>.command`, None if it does not exist; `reference` loads the reference site."""

    loaded: LoadedRecipe
    recipe: Recipe
    reference: Callable[[], Site] = field(default=Site)
    pinned: str | None = None

    @property
    def container(self) -> ContainerSection:
        return self.recipe.container

    @property
    def version(self) -> str | None:
        """The engine's."""
        return self.recipe.engine.version

    @cached_property
    def options(self) -> dict[str, Any]:
        """`engine.options`, with `${secret:NAME}` for secrets."""
        return with_secret_placeholders(self.recipe.engine.options)

    @cached_property
    def vllm(self) -> VllmOptions:
        """The typed options of vLLM, for the rules of this engine only."""
        return view(self.options)

    @property
    def is_vllm(self) -> bool:
        return self.recipe.engine.name == "vllm"

    @cached_property
    def plan(self) -> Plan:
        """Compiled for the reference site; raises CompileError."""
        return Compiler(self.reference()).plan(self.recipe)

    @cached_property
    def words(self) -> DocumentTexts:
        """Every text and key of the resolved recipe."""
        return document_texts(self.loaded.root)

    @cached_property
    def literals(self) -> tuple[LiteralSecret, ...]:
        """The literal secrets of the resolved recipe."""
        return tuple(literal_secrets(self.loaded.root, self.words))

    @cached_property
    def plain_texts(self) -> list[Text]:
        """The texts that reach the container or the engine, except templates and very long texts."""
        return [text for text in self.words.texts if text.path[0] in PLAN_SECTIONS and _is_plain(text)]

    @cached_property
    def joined(self) -> str:
        """Those texts joined by NULs: a rule searches it once before it searches each text."""
        return "\0" + "\0".join([text.value for text in self.plain_texts]) + "\0"

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        """The known checkpoint of the first model, found by repository, path or name."""
        model = self.recipe.model
        if model is not None and (model.repo or model.path):
            return known_checkpoint(model)
        return find_checkpoint(self.vllm.model) if self.is_vllm and self.vllm.model else None

    @cached_property
    def fitting(self) -> Fitting | None:
        """The memory plan; None if the sizes are unknown, or for other GPUs than one GB300."""
        gpus = self.container.gpus
        elsewhere = gpus is not None and gpus.by == "name" and gpus.values != ("GB300",)
        if elsewhere or self.recipe.nodes > 1 or not is_on_one_gpu(self.options):
            return None
        if not self.is_vllm or self.starts_itself:
            return None
        checkpoint = with_memory_section(self.checkpoint, self.recipe.memory, self.repo)
        if checkpoint is None:
            return None
        return _fitting(checkpoint, recipe_request(self.recipe, checkpoint, seen=self.vllm))

    @cached_property
    def tables(self) -> TableChoice:
        """The option tables of the engine version."""
        return tables_for(self.recipe.engine.name, self.version)

    @property
    def models(self) -> Iterator[tuple[Path, ModelSection]]:
        """Every model of the recipe, with its place."""
        if self.recipe.model is not None:
            yield ("model",), self.recipe.model
        for index, model in enumerate(self.recipe.models):
            yield ("models", index), model

    @property
    def is_official_image(self) -> bool:
        return self.recipe.image.repository == engine_named(self.recipe.engine.name).image

    @property
    def starts_itself(self) -> bool:
        """Whether an image of the user's own starts the engine, with settings that the recipe does not contain."""
        section = self.recipe.engine
        return not (self.is_official_image or section.options or section.launcher or section.extra_args)

    @cached_property
    def arguments(self) -> list[tuple[Path, str, Any]]:
        """The place, key and value of each engine option, and of each value among the raw arguments."""
        arguments = [(option_path(key), key, value) for key, value in self.options.items()]
        key = ""
        for index, word in enumerate(self.recipe.engine.extra_args):
            flag, equals, value = word.partition("=")
            if word.startswith("-"):
                key = flag.lstrip("-").replace("-", "_")
            if equals or not word.startswith("-"):
                arguments.append((("engine", "extra_args", index), key, from_json(value if equals else word)))
        return arguments

    def is_mounted(self, path: str) -> bool:
        """Whether a mount other than those of the models contains this path in the container."""
        return any(contains(mount.target, path) for mount in self.container.mounts)

    @property
    def repo(self) -> str:
        """The repository or the directory name of the first model; empty if neither is known."""
        model = self.recipe.model
        if model is None:
            return ""
        return model.repo or (model.path or "").rpartition("/")[2]


def from_json(value: Any) -> Any:
    """The mapping in a text that is a JSON object; any other value as it is."""
    try:
        return json.loads(value) if isinstance(value, str) and value.startswith("{") else value
    except (ValueError, RecursionError):
        return value


def contains(target: str, path: str) -> bool:
    """Whether `path` lies at or below the mount `target`."""
    return path == target or path.startswith(target.rstrip("/") + "/")


def gpu_count(gpus: Gpus) -> int:
    """The GPUs that a container gets; `all` counts as one, because a Station has one GB300."""
    return 1 if gpus.by == "all" else int(gpus.values[0]) if gpus.by == "count" else len(gpus.values)


def option_path(*keys: str | int) -> Path:
    """`engine.options` and below."""
    return (*OPTIONS, *keys)


def option_given(options: Options, *keys: str) -> bool:
    """Whether one of the options has a value."""
    return any(options.get(key) is not None for key in keys)


def _is_plain(text: Text) -> bool:
    path, _, value = text
    if len(value) > LONGEST:
        return False
    return path[1] != "log" and (path[1] != "options" or path[2] not in _TEMPLATES)


RULES: RuleBook[LintSubject] = RuleBook()
rule = RULES.rule
vllm_rule = partial(RULES.rule, engine="vllm")
