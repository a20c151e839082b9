import pytest

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from tests.boot.cases import LOADING, Case, check, config, engine, name, pydantic
from tests.boot.logs import Log, diagnosed

CASES = [
    Case(
        Reason.MODEL_PATH_NOT_VISIBLE,
        config(
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or"
            " 'namespace/repo_name': '/srv/ckpt'. Use `repo_type` argument if needed."
        ),
        5,
        {"path": "/srv/ckpt"},
    ),
    Case(
        Reason.MODEL_PATH_NOT_VISIBLE,
        pydantic("Invalid repository ID or local directory specified: '/ckpt'. [type=value_error, input_value=x]"),
        6,
        {"path": "/ckpt"},
    ),
    Case(
        Reason.MODEL_FILES_INCOMPLETE,
        engine(
            "FileNotFoundError: Weight files referenced in index but missing:"
            " {'/ckpt/model-00003-of-00009.safetensors'}"
        ),
        8,
        {"files": "'/ckpt/model-00003-of-00009.safetensors'"},
    ),
    Case(
        Reason.MODEL_FILES_INCOMPLETE,
        engine(
            "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully"
            " covered",
            Log().raw(*LOADING),
        ),
        14,
        {"error": "Error while deserializing header: incomplete metadata, file not fully covered"},
        Phase.PROFILING,
    ),
    Case(
        Reason.NEEDS_TRUST_REMOTE_CODE,
        config(
            "ValueError: The repository /ckpt contains custom code which must be executed to correctly load the model."
            " Please pass the argument `trust_remote_code=True` to allow custom code to be run."
        ),
        5,
    ),
    Case(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        pydantic(
            "The checkpoint you are trying to load has model type `kimi_k9` but Transformers does not recognize this"
            " architecture. This could be because of an issue with the checkpoint, or because your version of"
            " Transformers is out of date. [type=value_error, input_value=x]"
        ),
        6,
        {"model_type": "kimi_k9"},
    ),
    Case(
        Reason.MODEL_ARCHITECTURE_UNKNOWN,
        pydantic("Model architectures ['GlmNext'] are not supported for now. Supported architectures: dict_keys([])"),
        6,
        {"architectures": "GlmNext"},
    ),
    Case(
        Reason.TOKENIZER_MISSING,
        config("ValueError: Couldn't instantiate the backend tokenizer from one of: (1) a `tokenizers` library file"),
        5,
    ),
    Case(
        Reason.QUANTIZATION_MISMATCH,
        pydantic(
            "Quantization method specified in the model config (compressed-tensors) does not match the quantization"
            " method specified in the `quantization` argument (awq). [type=value_error, input_value=x]"
        ),
        6,
        {"checkpoint": "compressed-tensors", "asked": "awq"},
    ),
    Case(
        Reason.CONTEXT_EXCEEDS_MODEL,
        pydantic(
            "User-specified max_model_len (300000) is greater than the derived max_model_len"
            " (max_position_embeddings=131072.0 or model_max_length=None in model's config.json)."
        ),
        6,
        {"asked": 300000, "limit": 131072},
    ),
    Case(
        Reason.WEIGHTS_MISMATCH,
        engine("ValueError: Following weights were not initialized from checkpoint: {'vision.norm.bias'}"),
        8,
        {"weights": "'vision.norm.bias'"},
        Phase.LOADING_WEIGHTS,
    ),
    Case(
        Reason.MODEL_ACCESS_DENIED,
        config("OSError: You are trying to access a gated repo."),
        5,
        {"error": "You are trying to access a gated repo."},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_line_that_names_the_cause_is_found(case: Case) -> None:
    check(case)


def test_a_key_counts_only_where_weights_are_loaded() -> None:
    lines = engine("KeyError: 'layers.3.self_attn.attn'")
    assert diagnosed(lines).reason is Reason.UNKNOWN
    loading = [line.replace("in run_engine_core", "in load_weights") for line in lines]
    assert diagnosed(loading).reason is Reason.WEIGHTS_MISMATCH


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ValueError: Unexpected weight: visual.blocks.3.attn.qkv.g_idx", Reason.WEIGHTS_MISMATCH),
        (
            "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/api/models/a/b",
            Reason.MODEL_ACCESS_DENIED,
        ),
        (
            "OSError: Can't load the configuration of '/srv/m'. If you were trying to load it",
            Reason.MODEL_PATH_NOT_VISIBLE,
        ),
        ("EntryNotFoundError: 404 Client Error. Entry Not Found for url: https://a/b", Reason.MODEL_FILES_INCOMPLETE),
        (
            "ValueError: The input size is not aligned with the quantized weight shape. This can be caused by too large"
            " tensor parallel size.",
            Reason.BAD_ARGUMENT_VALUE,
        ),
        (
            "AttributeError: Model OwlForCausalLM does not support BitsAndBytes quantization yet.",
            Reason.UNSUPPORTED_ON_ENGINE,
        ),
        ("TypeError: AsyncEngineArgs.__init__() got an unexpected keyword argument 'owl'", Reason.UNKNOWN_ARGUMENT),
        ("RuntimeError: Numpy is not available", Reason.IMAGE_BROKEN),
        ("ValueError: No supported config format found in /srv/m.", Reason.MODEL_PATH_NOT_VISIBLE),
        (
            "ValueError: Unrecognized configuration class <class 'owl.OwlConfig'> for this kind of AutoModel: X.",
            Reason.MODEL_ARCHITECTURE_UNKNOWN,
        ),
        (
            "ValueError: The supplied chat template (/c/a.jinja) looks like a file path, but it failed to be opened.",
            Reason.BAD_ARGUMENT_VALUE,
        ),
    ],
)
def test_what_an_exception_says(text: str, reason: Reason) -> None:
    assert diagnosed(engine(text)).reason == reason


def test_a_parameter_of_a_layer_counts_without_the_frames_above_it() -> None:
    lines = ["(Worker_TP3 pid=81) ERROR 12-03 08:00:21 [elsewhere.py:19] KeyError: 'model.layers.7.mlp.gate.weight'"]
    assert diagnosed(lines).reason is Reason.WEIGHTS_MISMATCH


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("OSError: Can't load the configuration of '/ckpt'. If you were", Reason.MODEL_PATH_NOT_VISIBLE),
        ("ValueError: No supported config format found in /ckpt.", Reason.MODEL_PATH_NOT_VISIBLE),
        ("huggingface_hub.errors.LocalTokenNotFoundError: Token is required.", Reason.MODEL_ACCESS_DENIED),
        ("ValueError: GGUF model with architecture nova4 is not supported yet.", Reason.MODEL_ARCHITECTURE_UNKNOWN),
        ("RuntimeError: Unknown gguf model_type: nova4", Reason.MODEL_ARCHITECTURE_UNKNOWN),
    ],
)
def test_a_checkpoint_that_is_not_found_or_not_known(text: str, reason: Reason) -> None:
    assert diagnosed(engine(text)).reason is reason
