"""Failures of the command line: the engine did not take the arguments."""

import re
from collections.abc import Mapping

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, Rank, Value, cause


def _json_reason(values: Mapping[str, Value]) -> Reason:
    """Whether a shell took the quotes away (or cut the word) or the JSON was written wrongly."""
    text = str(values.get("value", "")).strip()
    balanced = text.count("{") == text.count("}") and text.count("[") == text.count("]")
    quoted = '"' in text or "'" in text
    if "\\" in text or (not balanced and (not quoted or text.endswith((":", ",")))):
        return Reason.JSON_QUOTING_LOST
    if not quoted and (text[:1] in "{[" or re.match(r"\w+:", text)):
        return Reason.JSON_QUOTING_LOST
    return Reason.INVALID_JSON


def _unknown_argument(values: Mapping[str, Value]) -> Reason:
    """Left-over pieces of a JSON value are no argument that the engine lacks."""
    text = str(values.get("arguments", ""))
    first = text.split(" ", 1)[0]
    if not first.startswith("-") and re.search(r"[{}\[\]\"]|\w:[\w\[\"{]", text) and "://" not in text:
        return Reason.JSON_QUOTING_LOST
    return Reason.UNKNOWN_ARGUMENT


_PARSER_OPTION = (
    r"error: argument (?P<argument>--(?:tool-call|reasoning)-parser)[^:]*: invalid choice: '(?P<parser>[^']*)'"
)
_KV_OPTION = r"error: argument (?P<argument>--kv-cache-dtype)[^:]*: invalid choice: '(?P<value>[^']*)'"

CAUSES: tuple[Cause, ...] = (
    Cause(
        Reason.UNKNOWN_ARGUMENT,
        "error: unrecognized arguments:",
        re.compile(r"error: unrecognized arguments: ?(?P<arguments>.*)"),
        refine=_unknown_argument,
    ),
    cause(Reason.UNKNOWN_ARGUMENT, "error: ambiguous option:", r"error: ambiguous option: (?P<argument>\S+)"),
    cause(Reason.UNKNOWN_ARGUMENT, "error: no such option", r"(?i)error: no such option:? (?P<arguments>.*)"),
    cause(
        Reason.UNKNOWN_ARGUMENT,
        "got an unexpected keyword argument",
        r"TypeError: (?:Async)?(?:EngineArgs|ServerArgs)(?:\.__init__\(\))? got an unexpected keyword argument"
        r" '(?P<arguments>\w+)'",
    ),
    cause(Reason.UNKNOWN_ARGUMENT, "unknown flag: ", r"(?:^|: )unknown flag: (?P<arguments>-\S+)"),
    cause(
        Reason.UNKNOWN_ARGUMENT,
        "unknown shorthand flag: ",
        r"(?:^|: )unknown shorthand flag: '\w' in (?P<arguments>-\S+)",
    ),
    cause(Reason.UNKNOWN_PARSER, "-parser", _PARSER_OPTION),
    cause(Reason.KV_DTYPE_UNSUPPORTED, "--kv-cache-dtype", _KV_OPTION),
    Cause(
        Reason.INVALID_JSON,
        "cannot be converted to",
        re.compile(
            r"error: argument (?P<argument>[^:\s]+): Value"
            r" (?=[{\[]|.* cannot be converted to (?:<function loads|<function json|<class 'dict'>))"
            r"(?P<value>.*) cannot be converted to "
        ),
        refine=_json_reason,
    ),
    Cause(
        Reason.INVALID_JSON,
        "type=json_invalid",
        re.compile(
            r"Invalid JSON: (?P<error>.*?) \[type=json_invalid, input_value=(?P<quote>['\"])(?P<value>.*?)(?P=quote)"
        ),
        refine=_json_reason,
    ),
    Cause(
        Reason.INVALID_JSON,
        "nvalid JSON",
        re.compile(r"error: argument (?P<argument>[^:\s]+):.*?[Ii]nvalid JSON[^:]*:? ?(?P<value>.*)"),
        refine=_json_reason,
    ),
    # Not a file that is damaged: only the functions that read the command line.
    *(
        cause(Reason.INVALID_JSON, "JSONDecodeError", r"JSONDecodeError: (?P<error>.*)", Rank.BROAD, function)
        for function in ("from_server_args", "from_cli_args", "parse_args", "prepare_server_args")
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        ": error: argument ",
        r": error: argument (?P<argument>[^:\s]+): (?P<error>(?:invalid|expected|ignored|not allowed|Value|must).*)",
        Rank.BROAD,
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        ": error: ",
        r"^(?!slurmstepd|srun|sbatch|make|nvcc|gcc|g\+\+|ld)[\w.-]+(?: serve)?: error: "
        r"(?:argument (?P<argument>[^:\s]+): )?(?P<error>.*)",
        Rank.EXCEPTION,
    ),
    *(
        cause(
            Reason.BAD_ARGUMENT_VALUE,
            needle,
            rf"(?:ValueError: |AssertionError: |Value error, )(?P<error>.{{0,300}}?{pattern}.*?)(?: \[type=|$)",
            Rank.BROAD,
        )
        for needle, pattern in (
            ("alid ", r"[Vv]alid (?:options|values|choices|backends)\b"),
            ("vailable ", r"[Aa]vailable (?:options|values|choices|backends)\b"),
            ("must be ", r"must be (?:one of|in \[|divisible by|a multiple of|between|greater|less|positive|at least)"),
            ("r than ", r"\w \(\d+\) is (?:larger|greater|higher|smaller|lower) than (?:the )?\w+ \(\d+\)"),
            (
                "is not a valid ",
                r"is not a valid (?:\w*(?:Backend|Mode|Type|Method|Level|Config)|option|value|choice)\b",
            ),
        )
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "The supplied chat template",
        r"(?P<error>The supplied (?P<argument>chat template) .{0,400}(?:failed to be opened|n't exist).{0,200})",
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "orld size (",
        r"Error: (?P<error>.{0,60}[Ww]orld size \(\d+\) is larger than the number of (?:available )?GPUs)",
        Rank.BROAD,
    ),
    cause(Reason.BAD_ARGUMENT_VALUE, "port must be 0-65535", r"(?P<error>port must be 0-65535)"),
    cause(Reason.BAD_ARGUMENT_VALUE, "mutually exclusive", r"(?:Error|error): (?P<error>.*mutually exclusive)"),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "[type=",
        r"(?P<error>(?:Input should|Unexpected keyword argument|Field required|Extra inputs|.{0,200} should have).*?)"
        r" \[type=(?P<kind>\w+)(?:, input_value=(?P<value>.*?), input_type)?",
        Rank.BROAD,
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "Value error, ",
        r"^\s*Value error, (?P<error>.*?)(?: \[type=value_error|$)",
        Rank.VAGUE,
    ),
)
