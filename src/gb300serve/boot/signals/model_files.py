"""Failures of the checkpoint: not there, not whole, not known, not what the flags say."""

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, Rank, cause

CAUSES: tuple[Cause, ...] = (
    cause(Reason.MODEL_PATH_NOT_VISIBLE, "Repo id must", r"Repo id must .*?: '(?P<path>[^']*)'"),
    cause(
        Reason.MODEL_PATH_NOT_VISIBLE,
        "Invalid repository ID or local directory specified",
        r"Invalid repository ID or local directory specified:? ?'?(?P<path>[^'\s]*)",
    ),
    cause(
        Reason.MODEL_PATH_NOT_VISIBLE,
        "is not a local folder and is not a valid model identifier",
        r"(?<!\S)(?P<path>\S+) is not a local folder and is not a valid model identifier",
    ),
    cause(
        Reason.MODEL_PATH_NOT_VISIBLE, "Incorrect path_or_model_id", r"Incorrect path_or_model_id: '(?P<path>[^']*)'"
    ),
    cause(
        Reason.MODEL_PATH_NOT_VISIBLE,
        "an't load the configuration of",
        r"Can't load the configuration of '(?P<path>[^']*)'",
        Rank.BROAD,
    ),
    cause(Reason.MODEL_PATH_NOT_VISIBLE, "LocalEntryNotFoundError", rank=Rank.BROAD),
    cause(Reason.MODEL_PATH_NOT_VISIBLE, "OfflineModeIsEnabled", rank=Rank.BROAD),
    cause(Reason.MODEL_PATH_NOT_VISIBLE, "RepositoryNotFoundError", rank=Rank.BROAD),
    *(
        cause(Reason.MODEL_ACCESS_DENIED, needle, pattern)
        for needle, pattern in (
            ("GatedRepoError", r"\bGatedRepoError: (?P<error>.*)"),
            ("LocalTokenNotFoundError", r"\bLocalTokenNotFoundError: (?P<error>.*)"),
            ("ated repo", r"(?P<error>(?:You are trying to access a|Cannot access) gated repo.{0,200})"),
            ("is restricted", r"(?P<error>Access to model (?P<repo>\S+) is restricted)"),
            ("is gated", r"(?:Error|rror:).{0,200}?(?P<repo>[\w.-]+/[\w.-]+) is gated"),
            ("Forbidden", r"(?P<error>403 Client Error: Forbidden for url: \S*huggingface\.co\S*)"),
            (
                "Unauthorized",
                r"(?P<error>401 Client Error: Unauthorized for url: \S*(?:/resolve/|huggingface\.co|modelscope)\S*)",
            ),
            ("Invalid credentials in Authorization header", None),
            ("nvalid user token", r"(?P<error>[Ii]nvalid user token)"),
        )
    ),
    cause(Reason.MODEL_PATH_NOT_VISIBLE, "We couldn't connect to 'https://huggingface.co'", rank=Rank.BROAD),
    cause(
        Reason.MODEL_PATH_NOT_VISIBLE,
        "Max retries exceeded",
        r"Error: .{0,100}HTTPSConnectionPool\(host=\\?'huggingface\.co.{0,40}Max retries exceeded",
        Rank.BROAD,
    ),
    cause(Reason.MODEL_PATH_NOT_VISIBLE, "Could not detect config format for no config file found"),
    cause(
        Reason.MODEL_PATH_NOT_VISIBLE,
        "No supported config format found in",
        r"No supported config format found in (?P<path>\S+?)\.?(?:\s|$)",
    ),
    cause(
        Reason.MODEL_PATH_NOT_VISIBLE,
        "No such file or directory: '",
        r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<path>[^']*/config\.json)'",
    ),
    cause(Reason.MODEL_FILES_INCOMPLETE, "Unable to load weights from", r"checkpoint file for '(?P<path>[^']*)'"),
    cause(Reason.MODEL_FILES_INCOMPLETE, "SafetensorError", r"SafetensorError: (?P<error>.*)"),
    cause(Reason.MODEL_FILES_INCOMPLETE, "Error while deserializing header", r"deserializing header: (?P<error>.*)"),
    cause(
        Reason.MODEL_FILES_INCOMPLETE,
        "Cannot find any model weights with",
        r"Cannot find any model weights with [`']?(?P<path>[^`'\s]*)",
    ),
    cause(
        Reason.MODEL_FILES_INCOMPLETE,
        "Consistency check failed",
        r"Error: (?P<error>Consistency check failed: file should be of size \d+ but has size \d+.{0,200})",
    ),
    cause(
        Reason.MODEL_FILES_INCOMPLETE, "PytorchStreamReader failed", r"(?P<error>PytorchStreamReader failed.{0,200})"
    ),
    cause(Reason.MODEL_FILES_INCOMPLETE, "invalid header or archive is corrupted"),
    cause(
        Reason.WEIGHTS_MISMATCH,
        "weights were not initialized from checkpoint",
        r"weights were not initialized from checkpoint:? ?\{?(?P<weights>[^}]{0,200})",
    ),
    cause(
        Reason.WEIGHTS_MISMATCH,
        "There is no module or parameter named",
        r"There is no module or parameter named '?(?P<weights>[^'\s]{1,200})",
    ),
    cause(Reason.WEIGHTS_MISMATCH, "Unexpected weight", r"Error: (?P<error>Unexpected weights?:? .{0,200})"),
    cause(
        Reason.WEIGHTS_MISMATCH,
        "size mismatch for",
        r"size mismatch for (?P<weights>[^:\s]{1,200}): (?P<error>.{0,300})",
    ),
    cause(
        Reason.WEIGHTS_MISMATCH,
        "in loading state_dict for",
        r"Error\(s\) in loading state_dict for (?P<module>\w+)",
        Rank.BROAD,
    ),
    cause(
        Reason.WEIGHTS_MISMATCH,
        "ttempted to load weight",
        r"(?P<error>[Aa]ttempted to load weight .{0,100} into parameter .{0,100})",
    ),
    cause(
        Reason.WEIGHTS_MISMATCH,
        "rying to load weights of size",
        r"(?P<error>[Tt]rying to load weights of size .{0,200})",
    ),
    *(
        cause(Reason.WEIGHTS_MISMATCH, needle, pattern, Rank.BROAD, function)
        for function in ("load_weights", "weight_loader")
        for needle, pattern in (
            ("KeyError: ", r"^KeyError: ['\"](?P<weights>[\w.]{1,200})['\"]$"),
            ("AssertionError", r"^AssertionError(?:$|: .{0,200}(?:[Ss]hape|[Ss]ize))"),
            ("must match the size of tensor", r"(?P<error>The size of tensor .{0,200})"),
            ("exceeds dimension size", r"(?P<error>start \(\d+\) \+ length \(\d+\) exceeds dimension size .{0,60})"),
        )
    ),
    # The name of a parameter within a layer: a dictionary of parameters lacks it.
    cause(
        Reason.WEIGHTS_MISMATCH,
        "KeyError: ",
        r"^KeyError: ['\"](?P<weights>(?:\w{1,60}\.){0,8}(?:layers|blocks|blk|h)\.\d{1,4}\."
        r"[\w.]{1,150}(?:weight|bias|scale|scales|qzeros|g_idx|_inv))['\"]$",
        Rank.BROAD,
    ),
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "KeyError: ",
        r"^KeyError: '(?P<model_type>[\w.-]{1,100})'$",
        Rank.BROAD,
        "configuration_auto.py:__getitem__",
    ),
    cause(Reason.MODEL_FILES_INCOMPLETE, "is not a valid JSON file", r"at '(?P<path>[^']*)' is not a valid JSON file"),
    cause(
        Reason.TOKENIZER_MISSING,
        "does not appear to have a file named",
        r"does not appear to have a file named (?P<file>tokenizer\S*|vocab\S*|spiece\S*)",
    ),
    cause(
        Reason.MODEL_FILES_INCOMPLETE,
        "does not appear to have a file named",
        r"(?<!\S)(?P<path>\S+) does not appear to have (?:a file|files) named (?P<file>\S+?)[.,]?(?:\s|$)",
    ),
    cause(
        Reason.MODEL_FILES_INCOMPLETE,
        "No such file or directory",
        r"No such file or directory:? .*?(?P<path>[^\s'\"]+\.(?:safetensors|bin|pt|index\.json))",
    ),
    cause(
        Reason.NEEDS_TRUST_REMOTE_CODE,
        "trust_remote_code=True",
        r"(?:Please pass the argument|set the option|execute the configuration).*trust_remote_code=True",
    ),
    cause(Reason.NEEDS_TRUST_REMOTE_CODE, "contains custom code which must be executed"),
    cause(Reason.NEEDS_TRUST_REMOTE_CODE, "--trust-remote-code", r"Error: .*--trust-remote-code", Rank.BROAD),
    cause(Reason.NEEDS_TRUST_REMOTE_CODE, "trust_remote_code", r"Error: .*trust_remote_code", Rank.VAGUE),
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "does not recognize this architecture",
        r"has model type `(?P<model_type>[^`]*)` but Transformers does not recognize this architecture",
    ),
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "odel architectures",
        r"[Mm]odel architectures \['?(?P<architectures>[^\]]*?)'?\] are not supported",
    ),
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN, "Unrecognized model in", r"Unrecognized model in (?P<path>\S+?)\.?(?:\s|$)"
    ),
    cause(Reason.MODEL_FILES_INCOMPLETE, "EntryNotFoundError", r"EntryNotFoundError: (?P<error>404 .*)", Rank.BROAD),
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "Unrecognized configuration class",
        r"Unrecognized configuration class <class '(?P<architectures>[^']*)'>",
    ),
    cause(Reason.TOKENIZER_MISSING, "not a string", r"^TypeError: not a string$", Rank.BROAD, "LoadFromFile"),
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "GGUF model with architecture ",
        r"GGUF model with architecture (?P<architectures>\S{1,100}) is not supported",
    ),
    cause(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        "nknown gguf model_type",
        r"[Uu]nknown gguf model_type: (?P<model_type>\S{1,100})",
    ),
    cause(Reason.TOKENIZER_MISSING, "Couldn't instantiate the backend tokenizer"),
    cause(Reason.TOKENIZER_MISSING, "Can't load tokenizer for", r"Can't load tokenizer for '(?P<path>[^']*)'"),
    cause(Reason.TOKENIZER_MISSING, "Failed to load the tokenizer"),
    cause(Reason.TOKENIZER_MISSING, "Unable to load vocabulary from file"),
    cause(
        Reason.TOKENIZER_MISSING,
        "okenizer",
        r"Error: .*(?:No tokenizer file found|tokenizer(?:\.json|\.model|_config\.json))",
        Rank.BROAD,
    ),
    cause(
        Reason.QUANTIZATION_MISMATCH,
        "does not match the quantization",
        r"\((?P<checkpoint>[^()]*)\) does not match the quantization (?:method|argument).*?\((?P<asked>[^)]*)\)",
    ),
    cause(
        Reason.QUANTIZATION_MISMATCH,
        "Check the quantization config",
        r"Error: (?P<error>.{0,300}Check the quantization config)",
    ),
    cause(
        Reason.QUANTIZATION_MISMATCH,
        "Cannot find the config file for",
        r"Cannot find the config file for (?P<asked>\w+)",
    ),
    cause(
        Reason.QUANTIZATION_MISMATCH,
        "in the model's quantization config",
        r"(?P<error>Cannot find any of .{0,200} in the model's quantization config)",
    ),
    cause(
        Reason.QUANTIZATION_MISMATCH,
        "is not supported for quantization method",
        r"(?<!\S)(?P<dtype>\S+) is not supported for quantization method (?P<asked>\w+)",
    ),
    cause(
        Reason.KERNEL_UNSUPPORTED,
        "is not supported for the current GPU",
        r"quantization method (?P<method>\w+) is not supported for the current GPU"
        r"(?:\. Minimum capability: (?P<needed>\d+)\. Current capability: (?P<found>\d+))?",
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE,
        "too large tensor parallel size",
        r"Error: (?P<detail>.{0,300}caused by too large tensor parallel size)",
    ),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "does not support",
        r"Error: (?P<detail>\S+ (?:\S+ )?does not support \w+ quantization.{0,100})",
        Rank.BROAD,
    ),
    cause(
        Reason.BAD_ARGUMENT_VALUE, "nknown quantization method", r"[Uu]nknown quantization method:? '?(?P<value>\w+)"
    ),
)
