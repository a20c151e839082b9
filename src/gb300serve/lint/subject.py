"""The input of a rule: a valid recipe, its compiled plan, and its pinned command."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

from gb300serve.core.rules import RuleBook
from gb300serve.document.nodes import DocumentTexts, Path, Text, document_texts
from gb300serve.engines.base import Options
from gb300serve.engines.tables import TableChoice, tables_for
from gb300serve.engines.vllm.options import VllmOptions, view
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot, checkpoint_at_path, find_checkpoint, with_memory_section
from gb300serve.fit.memory import GB300, MeasuredOverhead, MemoryPlan, measured_boots, memory_plan
from gb300serve.fit.request import MemoryRequest, recipe_environment, request_from_options, with_environment
from gb300serve.plan.check import LiteralSecret, literal_secrets
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan, with_secret_placeholders
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import PLAN_SECTIONS, ContainerSection, Recipe
from gb300serve.recipe.site import Site

# Two boots that moved the same parameters differ by less than the smallest of them.
SAME_GIB = 0.005
_RANKS = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True, slots=True)
class Fitting:
    """The memory plan, and a failed boot with the same parameters moved and no longer context."""

    plan: MemoryPlan
    failed: MeasuredBoot | None


def fitting(
    known: Checkpoint | None, repo: str, options: Mapping[str, Any], view: VllmOptions, recipe: Recipe
) -> Fitting | None:
    """None if the sizes are unknown, or for other GPUs than one GB300; `unknown` if no comparable boot was measured."""
    gpus = recipe.container.gpus
    elsewhere = gpus is not None and gpus.by == "name" and gpus.values != ("GB300",)
    if elsewhere or recipe.nodes > 1 or any(options.get(key) not in (None, 1) for key in _RANKS):
        return None
    checkpoint = with_memory_section(known, recipe.memory, repo)
    if checkpoint is None:
        return None
    variant = checkpoint.variant(recipe.container.env)
    request = request_from_options(options, recipe.engine.version, variant, seen=view)
    return _fitting(checkpoint, with_environment(request, recipe_environment(recipe, variant)))


# Many recipes of a lane need the same memory.
@lru_cache(maxsize=1024)
def _fitting(checkpoint: Checkpoint, request: MemoryRequest) -> Fitting:
    plan = memory_plan(checkpoint, request)
    return Fitting(plan, _failed(measured_boots(checkpoint, GB300.total_gib), plan))


def _failed(boots: tuple[MeasuredOverhead, ...], plan: MemoryPlan) -> MeasuredBoot | None:
    """For a refused plan, the failed boot of the nearest length that moved the same."""
    if plan.verdict != "refused" or plan.hbm.kv_cache_gib is None:
        return None
    alike = [
        one
        for one in boots
        if not one.boot.booted
        and abs(one.moved_gib - plan.offload.moved_gib) < SAME_GIB
        and (one.request.max_model_len or 0) <= plan.max_model_len
    ]
    return max(alike, key=lambda one: one.request.max_model_len or 0).boot if alike else None


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
    def vllm(self) -> VllmOptions | None:
        """The options of vLLM; None for another engine."""
        return view(self.options) if self.recipe.engine.name == "vllm" else None

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
        if model is not None and model.repo:
            return find_checkpoint(model.repo)
        if model is not None and model.path:
            return checkpoint_at_path(model.path)
        return find_checkpoint(self.vllm.model) if self.vllm and self.vllm.model else None

    @cached_property
    def fitting(self) -> Fitting | None:
        """The memory plan, if its inputs are known."""
        if self.vllm is None:
            return None
        return fitting(self.checkpoint, self.repo, self.options, self.vllm, self.recipe)

    @cached_property
    def tables(self) -> TableChoice:
        """The option tables of the engine version."""
        return tables_for(self.recipe.engine.name, self.version)

    @property
    def repo(self) -> str:
        """The repository or the directory name of the first model; empty if neither is known."""
        model = self.recipe.model
        if model is None:
            return ""
        return model.repo or (model.path or "").rpartition("/")[2]


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
