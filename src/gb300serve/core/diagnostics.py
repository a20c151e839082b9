"""Diagnostics (findings with a position), and the catalogue of their codes.

Codes of lint rules and machine checks are declared by their decorators (`core.rules`); every other code is below.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

Severity = Literal["error", "warning", "note"]
RANK: dict[Severity, int] = {"note": 0, "warning": 1, "error": 2}

Position: TypeAlias = tuple[str | None, int | None, int | None]
"""File, line and column."""

NOWHERE: Position = (None, None, None)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. Lines and columns count from 1; `path` joins keys and indexes with dots.

    `fix` is the YAML text to write in place of the key or value at the position, if it is certain what was meant.
    `release` is the one that the finding is about. Its cause may be in another file, which is then in `related`.
    """

    code: str
    name: str
    severity: Severity
    message: str
    hint: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str | None = None
    fix: str | None = field(default=None, compare=False)
    release: str | None = None
    related: tuple["RelatedPlace", ...] = ()

    @property
    def position(self) -> tuple[str, int, int]:
        """File, line and column, to sort and compare by: empty and 0 if they are unknown."""
        return self.file or "", self.line or 0, self.column or 0

    def as_json(self) -> dict[str, Any]:
        """The object of every `--json` output; `release` and `related` only where they are known."""
        document = asdict(self)
        del document["fix"]
        for key in ("release", "related"):
            if not document[key]:
                del document[key]
        return document


@dataclass(frozen=True, slots=True)
class RelatedPlace:
    """Another place that a finding is about."""

    file: str
    line: int
    column: int
    message: str


def dotted_path(path: Iterable[str | int]) -> str:
    """`path` of a diagnostic: keys and indexes, joined with dots."""
    return ".".join(map(str, path))


def diagnostic(  # noqa: PLR0913 - the fields of a diagnostic
    code: str,
    message: str,
    hint: str | None = None,
    place: Position = NOWHERE,
    path: str | None = None,
    *,
    severity: Severity | None = None,
    fix: str | None = None,
) -> Diagnostic:
    """A diagnostic with the name and the severity of the catalogue, unless `severity` overrides it."""
    entry = CATALOGUE[code]
    return Diagnostic(code, entry.name, severity or entry.severity, message, hint, *place, path, fix)


class CatalogueEntry(NamedTuple):
    """A code with its name, its usual severity, and its meaning in one sentence."""

    code: str
    name: str
    severity: Severity
    summary: str


_ROWS: tuple[tuple[str, str, Severity, str], ...] = (
    # YAML: the text of a file.
    ("YAML001", "not-yaml", "error", "The text is not valid YAML."),
    ("YAML002", "duplicate-key", "error", "A key appears twice in the same mapping."),
    ("YAML003", "not-plain-yaml", "error", "Anchors, aliases, tags and `<<` are not allowed in a recipe."),
    ("YAML004", "empty-value", "error", 'A key or the file has no value: write null or "" explicitly.'),
    ("YAML005", "ambiguous-value", "error", "YAML readers disagree about the type of this value."),
    ("YAML006", "second-document", "error", "The file contains more than one YAML document."),
    ("YAML007", "key-not-text", "error", "YAML does not read this key as text."),
    ("YAML008", "unreadable-file", "error", "The file cannot be read, or it is not UTF-8."),
    ("YAML009", "control-character", "error", "A text contains a control character."),
    # FMT: the keys and values of a recipe or a site file.
    ("FMT001", "unknown-key", "error", "The format does not define this key."),
    ("FMT002", "wrong-type", "error", "The value has the wrong type."),
    ("FMT003", "missing-key", "error", "A required key is missing."),
    ("FMT004", "bad-value", "error", "The value has the right type, but the key does not accept it."),
    ("FMT005", "unknown-format", "error", "The file does not state a format that this version reads."),
    ("FMT006", "newer-format", "error", "The file requires a newer version of gb300serve."),
    ("FMT007", "misplaced-file", "error", "The lane or release in the file differs from its directory or file name."),
    # EXT, REF: which releases a recipe builds on, and which file a reference means.
    ("EXT001", "parent-not-found", "error", "The parent release is not found on the search path."),
    ("EXT002", "cycle", "error", "A release extends itself through its parents."),
    ("EXT003", "other-lane", "error", "A release can extend only releases of its own lane."),
    ("EXT004", "nothing-to-add-to", "error", "`+key` adds a mapping to a mapping, or a list to a list."),
    ("EXT005", "nothing-to-replace", "error", "`replace: true` below `+mounts` requires a mount with the same target."),
    ("EXT006", "tuning-not-inherited", "warning", "A release with another tuning identity has no tuning set yet."),
    ("REF001", "shadowed-release", "note", "Another recipes directory contains a different release of the same name."),
    ("REF002", "deprecated-release", "warning", "The release is deprecated, rejected or withdrawn."),
    ("REF003", "current-release", "note", "A lane's name means its current release."),
    ("VAR001", "unknown-variable", "error", "Neither the site nor the recipe defines the variable in `${…}`."),
    # OPT: engine options.
    ("OPT001", "unknown-option", "error", "This engine version does not have the option."),
    ("OPT002", "option-wrong-type", "error", "The option requires a different type."),
    ("OPT003", "option-wrong-choice", "error", "The value is not one of the option's choices."),
    ("OPT004", "option-wrong-arity", "error", "The option requires a different number of values."),
    ("OPT005", "option-has-no-off-form", "error", "The engine has no flag that turns this option off."),
    ("OPT006", "unknown-json-field", "error", "The option's JSON value does not have this field."),
    ("OPT007", "option-out-of-range", "error", "The number is outside the range that the engine accepts."),
    ("OPT008", "engine-version-without-table", "note", "The engine version has no option table: nearby ones are used."),
    ("OPT009", "list-swallows-next-words", "error", "The last option takes a list, and arguments follow it."),
    ("OPT010", "speculation-schedule-refused", "error", "The engine rejects the speculation schedule during the boot."),
    ("OPT011", "value-reads-as-a-flag", "error", "The engine would parse the value as a flag."),
    ("OPT012", "unknown-parser", "error", "This engine version does not register a parser of this name."),
    ("OPT013", "model-said-twice", "error", "`model` (SGLang: `model_path`) and `model_tag` both name the model."),
    ("OPT014", "served-name-with-colon", "error", "SGLang reserves the colon in a served name for adapters."),
    # SEC: secrets that a recipe declares. Literal secrets are found by rules.
    ("SEC001", "undeclared-secret", "error", "The recipe uses a secret that container.secrets does not declare."),
    ("SEC002", "secret-without-source", "error", "A secret requires exactly one source: a variable or a file."),
    # FIT: the memory estimate.
    ("FIT001", "overhead-unknown", "warning", "No boot of this checkpoint was measured: overhead is unknown."),
    ("FIT002", "constant-assumed", "note", "No boot was measured with these settings: the nearest boots are used."),
    ("FIT003", "pattern-matches-nothing", "error", "An offload pattern matches no parameter."),
    ("FIT004", "weights-do-not-fit", "error", "The weights that stay on the GPU exceed its memory."),
    ("FIT005", "host-memory-short", "warning", "The host memory is too small, or barely enough, for the offload."),
    ("FIT006", "sizes-unknown", "warning", "The sizes of the checkpoint are unknown."),
    ("FIT007", "another-machine", "warning", "The estimate does not apply to the hardware or engine of this recipe."),
    ("FIT008", "offload-ignored-by-runner", "warning", "The engine's model runner is reported to ignore offload."),
    ("FIT009", "hook-residency", "note", "A hook sets where the experts are, whatever the offload is."),
    ("FIT010", "fixed-kv-cache-too-large", "error", "The fixed size of the KV cache exceeds the GPU memory."),
    ("FIT011", "boots-disagree", "warning", "Boots with the same settings contradict each other."),
    ("FIT012", "gpu-total-unknown", "warning", "The memory of the GPU is unknown."),
    ("FIT013", "impossible-memory-figure", "error", "A figure of the memory section contradicts another one."),
    # TGT: the targets of `compile --to`.
    ("TGT001", "not-in-target", "warning", "The target cannot express a setting of `docker run`."),
    ("TGT002", "otherwise-in-target", "note", "The target expresses a setting differently from `docker run`."),
    ("TGT003", "to-do-before-start", "note", "The compiled file requires something to exist before it starts."),
    # IMP: what `import` reads.
    ("IMP001", "damaged-text", "warning", "The text was damaged by copying, and was repaired."),
    ("IMP002", "copied-text", "note", "The text was copied from a page or another shell, and was read accordingly."),
    ("IMP003", "not-taken-over", "warning", "A recipe cannot express a part of the imported launch."),
    ("IMP004", "literal-secret", "warning", "The text contains a secret: the recipe keeps its name, not its value."),
    ("IMP005", "secret-reference", "note", "A value that is read at launch became a secret of the recipe."),
    ("IMP006", "unset-variable", "warning", "The text does not set a variable, or a name is not valid."),
    ("IMP007", "json-mended", "warning", "The engine would reject the JSON as written: it was repaired."),
    ("IMP008", "docker-option-after-the-image", "warning", "A Docker option appears after the image name."),
    ("IMP009", "launcher-words", "note", "The command that starts the engine is missing or repeated."),
    ("IMP010", "repeated-option", "warning", "An option appears twice, and only one value applies."),
    ("IMP011", "unknown-option", "warning", "No option table contains the option: it was kept in extra_args."),
    ("IMP012", "refused-value", "warning", "The engine or Docker would reject the value."),
    ("IMP013", "image-without-digest", "note", "The image has a tag, but no digest."),
    ("IMP014", "placeholder", "warning", "The value is a placeholder: the author did not publish the real value."),
    ("IMP015", "left-out", "note", "A part of the text that the launch does not need was left out."),
    ("IMP016", "other-spelling", "note", "The value was rewritten in the spelling of a recipe."),
    ("IMP020", "cannot-be-imported", "error", "The text is a program, or it contains no launch."),
    ("IMP021", "not-json", "error", "The text starts like JSON, but is not valid JSON."),
    # LNT: the list of ignored codes.
    ("LNT001", "idle-ignore", "warning", "`lint.ignore` contains a code that does not exist or finds nothing here."),
    ("LNT002", "ignore-without-reason", "warning", "`lint.ignore` contains a code without a reason."),
    ("LNT003", "no-recipe", "error", "No file below the directory is a recipe."),
)  # fmt: skip
CATALOGUE = {row[0]: CatalogueEntry(*row) for row in _ROWS}
