"""The findings that are no rules of lint: what keeps a file from being a recipe, and what loading it notices."""

from typing import NamedTuple

from gb300serve.core.diagnostics import Severity


class Code(NamedTuple):
    """A code with its name, its usual severity, and what it means in one line."""

    code: str
    name: str
    severity: Severity
    summary: str


_ROWS: tuple[tuple[str, str, Severity, str], ...] = (
    ("YAML001", "not-yaml", "error", "The text is not YAML."),
    ("YAML002", "duplicate-key", "error", "A key stands twice in one mapping; YAML would keep the last in silence."),
    ("YAML003", "not-plain-yaml", "error", "An anchor, an alias, a tag or `<<`: a recipe says each value where it is."),
    ("YAML004", "empty-value", "error", 'Nothing stands after a key, or in the file: null and "" must be written.'),
    ("YAML005", "ambiguous-value", "error", "YAML readers disagree about the value: quote it, or write it plainly."),
    ("YAML006", "second-document", "error", "A second document starts: one file, one recipe."),
    ("YAML007", "key-not-text", "error", "A key that YAML reads as something else than text."),
    ("YAML008", "unreadable-file", "error", "The file cannot be read, or is not UTF-8."),
    (
        "YAML009",
        "control-character",
        "error",
        "A text holds a control character; terminals and logs would get it.",
    ),
    ("FMT001", "unknown-key", "error", "The format has no such key here; a misspelt one gets a suggestion."),
    ("FMT002", "wrong-type", "error", "The value has another type than the key takes."),
    ("FMT003", "missing-key", "error", "A required key is missing; title and status are never inherited."),
    ("FMT004", "bad-value", "error", "The value has the right type and is not one that the key takes."),
    ("FMT005", "unknown-format", "error", "The file does not state a format that this version reads."),
    ("FMT006", "newer-format", "error", "The file was written for a newer version of gb300serve."),
    ("FMT007", "misplaced-file", "error", "The file says another lane or release than its place in the directory."),
    ("EXT001", "parent-not-found", "error", "The release that it extends is nowhere on the search path."),
    ("EXT002", "cycle", "error", "`extends` goes round in a circle."),
    ("EXT003", "other-lane", "error", "A release extends releases of its own lane only."),
    ("EXT004", "nothing-to-add-to", "error", "`+key` has no mapping or list to add to."),
    (
        "REF001",
        "shadowed-release",
        "note",
        "Another directory of the search path has another release of that name.",
    ),
    ("REF002", "deprecated-release", "warning", "The release is deprecated."),
    ("VAR001", "unknown-variable", "error", "`${…}` names what neither a site nor the recipe has."),
    ("OPT001", "unknown-option", "error", "This engine version has no such option."),
    ("OPT002", "option-wrong-type", "error", "The option takes another type."),
    ("OPT003", "option-wrong-choice", "error", "The value is not one of the option's choices."),
    ("OPT004", "option-wrong-arity", "error", "The option takes another number of values."),
    ("OPT005", "option-has-no-off-form", "error", "The switch has no form that says false."),
    ("OPT006", "unknown-json-field", "error", "The option's mapping has no such key."),
    ("OPT007", "option-out-of-range", "error", "The engine refuses a number of this size."),
    (
        "OPT008",
        "engine-version-without-table",
        "note",
        "No option table for this engine version: its neighbours' are used.",
    ),
    (
        "OPT009",
        "list-swallows-next-words",
        "error",
        "The last option takes several words, and bare words follow.",
    ),
    ("OPT010", "speculation-schedule-refused", "error", "The scheduler refuses the schedule, minutes into the boot."),
    ("OPT011", "value-reads-as-a-flag", "error", "The engine would take the value for a flag."),
    ("OPT012", "unknown-parser", "error", "This engine version registers no parser of that name."),
    ("OPT013", "model-said-twice", "error", "`model` (SGLang: `model_path`) and `model_tag` both name the model."),
    ("OPT014", "served-name-with-colon", "error", "SGLang keeps the colon of a served name for adapters."),
    ("SEC001", "undeclared-secret", "error", "A secret is spoken of, and container.secrets has none of that name."),
    ("SEC002", "secret-without-source", "error", "A secret names no source, or two: it has a variable or a file."),
    (
        "FIT001",
        "overhead-unknown",
        "warning",
        "No boot of the checkpoint was measured: what the engine needs is unknown.",
    ),
    ("FIT002", "constant-assumed", "note", "Nothing was measured with these settings: the nearest boots stand in."),
    ("FIT003", "pattern-matches-nothing", "error", "A pattern of what to offload matches no parameter."),
    ("FIT004", "weights-do-not-fit", "error", "The weights that stay are more than the GPU has."),
    ("FIT005", "host-memory-short", "warning", "The host's memory holds what is offloaded barely, or not at all."),
    ("FIT006", "sizes-unknown", "warning", "The sizes of the checkpoint are not known."),
    ("FIT007", "another-machine", "warning", "The plan is for another machine than the one that it was measured on."),
    ("FIT008", "offload-ignored-by-runner", "warning", "The engine's runner is reported to ignore offload."),
    ("TGT001", "not-in-target", "warning", "`compile --to` has no form there for what `docker run` says."),
    ("TGT002", "otherwise-in-target", "note", "`compile --to` says there in another way what `docker run` says."),
    ("TGT003", "to-do-before-start", "note", "Something must be there before the compiled file is started."),
    ("IMP001", "damaged-text", "warning", "What bash would break in an imported text was read as it was meant."),
    ("IMP002", "copied-text", "note", "The text was copied from a page or another shell, and read accordingly."),
    ("IMP003", "not-taken-over", "warning", "The imported launch says what a recipe has no word for."),
    ("IMP004", "literal-secret", "warning", "A secret stood in clear: its name was kept, its value nowhere."),
    ("IMP005", "secret-reference", "note", "A value that is read at launch became a secret of the recipe."),
    ("IMP006", "unset-variable", "warning", "Nothing in the text sets a variable, or a name cannot be used."),
    ("IMP007", "json-mended", "warning", "The engine would refuse the JSON as it stands: it was read as it was meant."),
    ("IMP008", "docker-option-after-the-image", "warning", "An option of docker stood where the engine would get it."),
    ("IMP009", "launcher-words", "note", "What starts the engine is said twice, or not at all."),
    ("IMP010", "repeated-option", "warning", "Something is said twice, and only one of both holds."),
    ("IMP011", "unknown-option", "warning", "No option table knows the option: it stands in extra_args."),
    ("IMP012", "refused-value", "warning", "The engine or docker would refuse the value."),
    ("IMP013", "image-without-digest", "note", "The imported image is named by a tag alone."),
    ("IMP014", "placeholder", "warning", "The author's own value was not published."),
    ("IMP015", "left-out", "note", "What was left out of the recipe, and why it is not missed."),
    ("IMP016", "other-spelling", "note", "A spelling became the one that a recipe has."),
    ("IMP020", "cannot-be-imported", "error", "The text is a program, or says no launch."),
    ("IMP021", "not-json", "error", "What begins as JSON is none."),
    ("LNT001", "idle-ignore", "warning", "`lint.ignore` names a code that finds nothing here, or that does not exist."),
    ("LNT002", "ignore-without-reason", "warning", "`lint.ignore` gives no reason."),
)
CODES = tuple(Code(*row) for row in _ROWS)
