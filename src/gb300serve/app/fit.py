"""The memory fit of a release: its sizes, the boots that this machine has learned from, and remarks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from gb300serve.adapters.safetensors import CheckpointUnreadableError, read_config, read_tensors
from gb300serve.adapters.system import read_document, write_document
from gb300serve.app.corrections import write_recipe
from gb300serve.app.workspace import RecipeInvalidError, Workspace, learned_boots
from gb300serve.boot.receipts import cache_tokens
from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.errors import CompileError
from gb300serve.engines.base import number
from gb300serve.fit.checkpoint import Checkpoint, checkpoint_from_tensors
from gb300serve.fit.hardware import GB300, STATION, GraceMemory, Hbm, gpu_named, gpu_with_total
from gb300serve.fit.learned import (
    CalibratedLaunch,
    LearnedOverhead,
    learn_overhead,
    parse_boots,
    with_boots,
    with_learned_overhead,
)
from gb300serve.fit.request import MemoryRequest, recipe_environment, recipe_request, request_from_options
from gb300serve.fit.result import (
    ANOTHER_MACHINE,
    MATCHES_NOTHING,
    OFFLOAD_IGNORED,
    SIZES_UNKNOWN,
    TOTAL_UNKNOWN,
    FitResult,
    RecordedBoot,
    fit_diagnostics,
    fit_result,
    with_nearest_settings,
)
from gb300serve.fit.section import (
    measured_sizes,
    missing_sizes,
    other_sizes,
    recipe_problems,
    with_memory_section,
    with_sizes,
)
from gb300serve.lint.known import runner_v2_ignores
from gb300serve.lint.rules.offload import uses_runner_v2
from gb300serve.lint.run import rule_findings
from gb300serve.lint.subject import LintSubject
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.merge import split_assignment, split_path
from gb300serve.recipe.model import Recipe
from gb300serve.recipe.write import to_yaml, with_entries

# Changing these settings does not change the overhead F.
_KEEPS_OVERHEAD = frozenset({"cpu_offload_gb", "cpu_offload_params", "gpu_memory_utilization"})
# Rules of lint about the settings that determine the result.
_RECORDS = ("OFF001", "OFF002", "OFF003", "OFF004", "OFF005", "REC001", "REC002")


class SizesUnknownError(CompileError):
    """Nothing can be learned about a model whose sizes are unknown."""

    def __init__(self, why: Diagnostic) -> None:
        super().__init__(why.message, hint=why.hint)


class LayoutUnknownError(CompileError):
    """The file is written in a way that `with_entries` cannot extend."""

    def __init__(self, file: str, section: str) -> None:
        super().__init__(f"{file}: not changed: its layout is not known", hint=f"write this yourself:\n{section}")


@dataclass(frozen=True, slots=True)
class WrittenSizes:
    """The entries that were written into a recipe's `memory` section; none if it stated them all before."""

    file: Path
    entries: Mapping[str, Any] = field(default_factory=dict)
    diff: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"file": str(self.file), "memory": dict(self.entries)}


@dataclass(frozen=True, slots=True)
class Fitted:
    """`result` is None if nothing can be computed; `remarks` state why. `gpu` is None if its total is unknown."""

    name: str
    request: MemoryRequest
    result: FitResult | None
    remarks: tuple[Diagnostic, ...]
    gpu: Hbm | None = GB300
    recorded: RecordedBoot | None = None

    @property
    def verdict(self) -> str:
        return self.result.verdict if self.result else "fits" if self.recorded else "unknown"


@dataclass(frozen=True, slots=True)
class Fitter:
    """`directory` is a local checkpoint that overrides the sizes in the package."""

    space: Workspace
    directory: Path | None = None

    def fit(self, loaded: LoadedRecipe, recipe: Recipe, sets: Sequence[str] = ()) -> Fitted:
        """The fit result of a release, loaded with `sets`, and its remarks."""
        subject = self.subject(loaded, recipe)
        known = self.checkpoint(subject, sets)
        gpu = self.gpu(loaded, recipe, known)
        name = f"{recipe.ref}+set" if sets else recipe.ref
        why = _not_applicable(subject) or _total_unknown(recipe, gpu) or (None if known else _sizes_unknown(recipe))
        if why is not None or known is None or gpu is None:
            recorded = None if sets else _recorded_boot(subject)
            return Fitted(name, _request(recipe, known), None, tuple(filter(None, (why,))), gpu, recorded)
        found = with_nearest_settings(known, fit_result(known, _request(recipe, known), gpu, changed=bool(sets)))
        return Fitted(name, found.request, found, tuple(self._remarks(subject, known, found)), gpu)

    def result(
        self,
        loaded: LoadedRecipe,
        recipe: Recipe,
        sets: Sequence[str] = (),
        gpu: Hbm | None = None,
        grace: GraceMemory = STATION,
    ) -> FitResult | None:
        """The figures alone, on `gpu` if the caller has seen it; None if nothing can be computed."""
        subject = self.subject(loaded, recipe)
        known = None if _not_applicable(subject) else self.checkpoint(subject, sets)
        gpu = gpu or self.gpu(loaded, recipe, known)
        if known is None or gpu is None:
            return None
        found = fit_result(known, _request(recipe, known), gpu, changed=bool(sets), grace=grace)
        # A sweep needs no advice for each of its steps.
        return found if grace == STATION else with_nearest_settings(known, found)

    def gpu(self, loaded: LoadedRecipe, recipe: Recipe, known: Checkpoint | None) -> Hbm | None:
        """The GPU that the recipe or the site names, else the one of the boots; None if its total is unknown.

        Without any of them it is a GB300, as on a Station.
        """
        stated = self._stated_gpu(loaded, recipe)
        if not isinstance(stated, bool):
            return stated
        boots = known.boots if known else ()
        totals = {boot.total_gib for boot in boots if boot.total_gib is not None}
        if len(totals) != 1 or any(boot.total_gib is None for boot in boots):
            return GB300
        return gpu_with_total(totals.pop(), basis="from a boot log")

    def _stated_gpu(self, loaded: LoadedRecipe, recipe: Recipe) -> Hbm | Literal[False] | None:
        """False if neither recipe nor site names a GPU."""
        requested, named = recipe.container.gpus, self.space.site(loaded.file.directory).gpu
        name = str(requested.values[0]) if requested is not None and requested.by == "name" else None
        if named is not None and (name is None or name.casefold() in named.name.casefold().split()):
            if named.total_gib is not None:
                return gpu_with_total(named.total_gib, named.name, "from the site file")
            return gpu_named(named.name)
        return gpu_named(name) if name is not None else False

    def checkpoint(self, subject: LintSubject, sets: Sequence[str] = ()) -> Checkpoint | None:
        """From the local directory or the package, then the recipe's `memory`, then the boots of this machine."""
        recipe = subject.recipe
        found = with_memory_section(subject.checkpoint, recipe.memory, _repo(recipe))
        if self.directory is not None:
            read, known = _read(subject, self.directory)
            section = with_sizes(recipe.memory, _sizes(recipe, read, known))
            found = with_memory_section(known, section, _repo(recipe))
            found = replace(found, architecture=read.architecture) if found else None
        if found is None:
            return None
        if found.overhead is not None and (
            _inherited(subject, "memory", "overhead_gib") or not all(map(_keeps_overhead, sets))
        ):
            found = replace(found, overhead=replace(found.overhead, basis="assumed"))
        return with_boots(found, parse_boots(read_document(learned_boots(self.space)), found.repo))

    def write(self, loaded: LoadedRecipe, recipe: Recipe, directory: Path) -> WrittenSizes:
        """Write the sizes of a local checkpoint into the recipe's `memory` section.

        Raises FileKeptError, RecipeInvalidError, LayoutUnknownError.
        """
        sizes = _sizes(recipe, *_read(self.subject(loaded, recipe), directory))
        changed = other_sizes(recipe.memory, sizes)
        if not changed:
            return WrittenSizes(loaded.file.path)
        text = with_entries(loaded.source.text, "memory", changed)
        again = self.space.loader_of({loaded.file.path: text}).load_file(loaded.file)
        errors = tuple(problem for problem in recipe_problems(again) if problem.severity == "error")
        if again.recipe is not None and errors:
            raise RecipeInvalidError(f"{loaded.source.name} with these sizes", errors)
        if again.recipe is None or again.recipe.memory != with_sizes(recipe.memory, sizes):
            raise LayoutUnknownError(loaded.source.name, to_yaml({"memory": changed}))
        return WrittenSizes(loaded.file.path, changed, write_recipe(self.space, loaded, text))

    def calibrate(self, loaded: LoadedRecipe, recipe: Recipe, log: str, lines: Iterable[str]) -> LearnedOverhead:
        """Learn the overhead from a boot log and save it.

        Raises NothingToLearnError, ForeignLogError, MachineError.
        """
        known = self.checkpoint(self.subject(loaded, recipe))
        if known is None:
            raise SizesUnknownError(_sizes_unknown(recipe))
        stated = self._stated_gpu(loaded, recipe)
        # The package's boots are those of a GB300: a log of another GPU says nothing about this launch.
        gpu = (GB300 if any(not boot.learned for boot in known.boots) else None) if stated is False else stated
        launch = CalibratedLaunch(recipe_environment(recipe, known), gpu, recipe.engine.options)
        _, lesson = learn_overhead(known, log, lines, launch)
        path = learned_boots(self.space)
        write_document(path, with_learned_overhead(read_document(path), known.repo, lesson))
        return lesson

    def subject(self, loaded: LoadedRecipe, recipe: Recipe) -> LintSubject:
        return LintSubject(loaded, recipe, lambda: self.space.site(loaded.file.directory))

    def _remarks(self, subject: LintSubject, known: Checkpoint, found: FitResult) -> Iterator[Diagnostic]:
        recorded = rule_findings(subject, _RECORDS)
        named = any(finding.code == "OFF002" for finding in recorded)
        for finding in fit_diagnostics(found, known.boots):
            if not (named and finding.code == MATCHES_NOTHING):
                yield finding
        yield from recorded
        if found.request.offloads and runner_v2_ignores(subject.version) and uses_runner_v2(subject):
            yield _ignored(subject, known, found)


def _read(subject: LintSubject, directory: Path) -> tuple[Checkpoint, Checkpoint | None]:
    """The local checkpoint, and what the package knows of its architecture."""
    config, dtype = read_config(directory), subject.vllm.kv_cache_dtype or "auto"
    try:
        found = checkpoint_from_tensors(_repo(subject.recipe), config, read_tensors(directory), dtype)
    except (KeyError, TypeError) as error:
        raise CheckpointUnreadableError(directory / "config.json", f"{error} is missing") from error
    known = subject.checkpoint
    return found, known if known is not None and known.architecture == found.architecture else None


def _sizes(recipe: Recipe, read: Checkpoint, known: Checkpoint | None) -> dict[str, Any]:
    """The measured entries of `memory`. A stated or known KV cache outranks one that is computed from dimensions."""
    stated = recipe.memory is not None and recipe.memory.kv_cache is not None
    return measured_sizes(read, with_cache=known is None and not stated)


def _request(recipe: Recipe, known: Checkpoint | None) -> MemoryRequest:
    if recipe.engine.name != "vllm":
        # The share for weights and KV cache; without it, SGLang computes one that is unknown here.
        share = number(recipe.engine.options.get("mem_fraction_static"))
        return MemoryRequest(recipe.engine.version, gpu_memory_utilization=share or 0.0)
    return recipe_request(recipe, known) if known else request_from_options(recipe.engine.options)


def _repo(recipe: Recipe) -> str:
    model = recipe.model
    return (model.repo or (model.path or "").rpartition("/")[2]) if model else ""


def _inherited(subject: LintSubject, *path: str) -> bool:
    """Whether the value at `path` comes from a parent, which may have other settings."""
    return subject.loaded.place(path).file != subject.loaded.source.name


def _recorded_boot(subject: LintSubject) -> RecordedBoot | None:
    """None if the release itself records no figure of a boot: those of its parent belong to another launch."""
    recipe = subject.recipe
    measured = bool(recipe.evidence) and not _inherited(subject, "evidence")
    receipts = [] if _inherited(subject, "boot", "receipts") else recipe.boot.receipts
    tokens = cache_tokens((receipt.line, receipt.value) for receipt in receipts)
    return RecordedBoot(tokens) if measured or tokens is not None else None


def _keeps_overhead(assignment: str) -> bool:
    words = split_path(split_assignment(assignment)[0])
    return words[:2] != ("engine", "options") or words[2:][0] in _KEEPS_OVERHEAD


def _not_applicable(subject: LintSubject) -> Diagnostic | None:
    """Why the arithmetic for one GPU and vLLM's offload does not apply, or None."""
    view = subject.vllm
    if not subject.is_vllm:
        return diagnostic(
            ANOTHER_MACHINE, f"{subject.recipe.engine.name} allocates memory by rules that fit does not model"
        )
    if subject.recipe.nodes > 1:
        message = f"the model is spread over {subject.recipe.nodes} Stations, but fit computes one"
        return diagnostic(ANOTHER_MACHINE, message, path="nodes")
    if view.tensor_parallel_size > 1 or view.data_parallel_size > 1:
        return diagnostic(ANOTHER_MACHINE, "the model is spread over several GPUs, but fit computes one")
    if view.offload.backend == "prefetch":
        return diagnostic(ANOTHER_MACHINE, "no boot was measured with the prefetch backend, which moves whole layers")
    return None


def _total_unknown(recipe: Recipe, gpu: Hbm | None) -> Diagnostic | None:
    if gpu is not None:
        return None
    gpus = recipe.container.gpus
    name = str(gpus.values[0]) if gpus is not None and gpus.by == "name" else "the GPU"
    shared = " (it shares one memory with the CPU)" if name.upper() == "GB10" else ""
    hint = (
        "write `gpu: {name: …, total_gib: …}` into the site file; boot logs print it: `Free memory on device (…/… GiB)`"
    )
    return diagnostic(TOTAL_UNKNOWN, f"the total memory of {name} is unknown{shared}", hint, path="container.gpus")


def _sizes_unknown(recipe: Recipe) -> Diagnostic:
    keys = ", ".join(f"memory.{key}" for key in missing_sizes(recipe.memory))
    message = f"the sizes of {_repo(recipe) or 'this model'} are unknown"
    return diagnostic(
        SIZES_UNKNOWN, message, f"read them from its files with --checkpoint DIR, or set {keys}", path="memory"
    )


def _ignored(subject: LintSubject, known: Checkpoint, found: FitResult) -> Diagnostic:
    without = fit_result(known, replace(found.request, cpu_offload_gb=0.0), found.gpu, changed=True)
    message = (
        f"vLLM {subject.version} uses model runner V2, which is reported to ignore cpu_offload_gb: "
        f"then {without.plan.hbm.weights_gib:.2f} GiB of weights stay in HBM and the launch is {without.verdict}"
    )
    hint = "look for `Total CPU offloaded parameters` in the first boot's log"
    return diagnostic(OFFLOAD_IGNORED, message, hint, path="engine.options.cpu_offload_gb")
