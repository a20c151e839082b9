"""What a rule looks at: a valid recipe, what it is compiled with, and what is pinned beside it."""

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
from gb300serve.fit.memory import MeasuredOverhead, measured_boots, memory_plan
from gb300serve.fit.model import GB300, MemoryPlan
from gb300serve.fit.request import MemoryRequest, recipe_environment, request_from_options, with_environment
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan, with_secret_placeholders
from gb300serve.plan.secrets import LiteralSecret, literal_secrets
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import PLAN_SECTIONS, ContainerSection, Recipe
from gb300serve.recipe.site import Site

# Two boots that moved the same parameters differ by less than the smallest of them.
SAME_GIB = 0.005
_RANKS = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@dataclass(frozen=True, slots=True)
class Fitting:
    """The plan, and the boot that failed with the same parameters moved and no longer context, where there is one."""

    plan: MemoryPlan
    failed: MeasuredBoot | None


def fitting(
    known: Checkpoint | None, repo: str, options: Mapping[str, Any], view: VllmOptions, recipe: Recipe
) -> Fitting | None:
    """None where the arithmetic does not apply: sizes unknown, another GPU than the GB300, or several of them.

    What nothing comparable was measured for has the verdict `unknown`.
    """
    gpus = recipe.container.gpus
    elsewhere = gpus is not None and gpus.by == "name" and gpus.values != ("GB300",)
    if elsewhere or recipe.nodes > 1 or any(options.get(key) not in (None, 1) for key in _RANKS):
        return None
    checkpoint = with_memory_section(known, recipe.memory, repo)
    if checkpoint is None:
        return None
    variant = checkpoint.variant(recipe.container.env)
    asked = request_from_options(options, recipe.engine.version, variant, seen=view)
    return _fitting(checkpoint, with_environment(asked, recipe_environment(recipe, variant)))


# Many recipes of a lane ask for the same memory.
@lru_cache(maxsize=1024)
def _fitting(checkpoint: Checkpoint, asked: MemoryRequest) -> Fitting:
    plan = memory_plan(checkpoint, asked)
    return Fitting(plan, _failed(measured_boots(checkpoint, GB300.total_gib), plan))


def _failed(boots: tuple[MeasuredOverhead, ...], plan: MemoryPlan) -> MeasuredBoot | None:
    """The failed boot nearest in length that moved the same, for a plan that is refused."""
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
    """`pinned` is the text of `<release>.command`, None where there is none; `reference` gives the site beside it."""

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
        """The options that vLLM's rules speak of; None for another engine."""
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
        """The texts that reach the container or the engine, but for templates by nature and for whole books."""
        return [text for text in self.words.texts if text.path[0] in PLAN_SECTIONS and _is_plain(text)]

    @cached_property
    def joined(self) -> str:
        """Those texts as one, each between two NULs: what does not occur in it need not be looked for one by one."""
        return "\0" + "\0".join([text.value for text in self.plain_texts]) + "\0"

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        """What the package knows of the first model: by its repository, else by where it lies or what it is called."""
        model = self.recipe.model
        if model is not None and model.repo:
            return find_checkpoint(model.repo)
        if model is not None and model.path:
            return checkpoint_at_path(model.path)
        return find_checkpoint(self.vllm.model) if self.vllm and self.vllm.model else None

    @cached_property
    def fitting(self) -> Fitting | None:
        """The memory plan, where everything that it needs is known."""
        if self.vllm is None:
            return None
        return fitting(self.checkpoint, self.repo, self.options, self.vllm, self.recipe)

    @cached_property
    def tables(self) -> TableChoice:
        """The option tables that speak for the engine version."""
        return tables_for(self.recipe.engine.name, self.version)

    @property
    def repo(self) -> str:
        """The first model's repository or, failing that, the directory it lies in; empty where neither is known."""
        model = self.recipe.model
        if model is None:
            return ""
        return model.repo or (model.path or "").rpartition("/")[2]


def option_path(*keys: str | int) -> Path:
    """`engine.options` and below."""
    return (*OPTIONS, *keys)


def option_given(options: Options, *keys: str) -> bool:
    """Whether one of the options is there with a value."""
    return any(options.get(key) is not None for key in keys)


def _is_plain(text: Text) -> bool:
    path, _, value = text
    if len(value) > LONGEST:
        return False
    return path[1] != "log" and (path[1] != "options" or path[2] not in _TEMPLATES)


RULES: RuleBook[LintSubject] = RuleBook()
rule = RULES.rule
vllm_rule = partial(RULES.rule, engine="vllm")
