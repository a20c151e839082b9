import pytest

from gb300serve.importers.report import NotImportableError
from tests.support.imports import read, said


@pytest.mark.parametrize(
    ("image", "section", "engine"),
    [
        ("vllm/vllm-openai:v0.33.0", {"repository": "vllm/vllm-openai", "tag": "v0.33.0"}, "0.33.0"),
        ("vllm/vllm-openai:v0.33.0-cu130", {"repository": "vllm/vllm-openai", "tag": "v0.33.0-cu130"}, "0.33.0"),
        ("localhost:5000/x/vllm", {"repository": "localhost:5000/x/vllm"}, None),
        (f"r/vllm:t@sha256:{'a' * 64}", {"repository": "r/vllm", "tag": "t", "digest": f"sha256:{'a' * 64}"}, None),
        (f"r/vllm@sha256:{'a' * 64}", {"repository": "r/vllm", "digest": f"sha256:{'a' * 64}"}, None),
    ],
)
def test_the_image(image: str, section: dict[str, str], engine: str | None) -> None:
    found = read(f"docker run {image} --model /m\n").document
    assert (found["image"], found["engine"].get("version")) == (section, engine)


@pytest.mark.parametrize(
    ("image", "refused"),
    [
        ("ghcr.io/Acme/vllm:x", True),
        ("a:b:c", True),
        ("A=2", True),
        ("Acme/vllm:x", False),
        ("host.io:5000/a/b__c-d.e", False),
        ("'$IMAGE'", True),
    ],
)
def test_invalid_image_references(image: str, refused: bool) -> None:
    found = [one for one in read(f"docker run {image} --model /m\n").diagnostics if one.path == "image.repository"]
    assert [one.code for one in found] == ["IMP012"] * refused


def test_an_invalid_digest() -> None:
    assert ("warning", "not-taken-over", 1, 12) in said("docker run r/vllm@sha256:abc --model /m\n")


@pytest.mark.parametrize(
    ("words", "lane"),
    [
        ("--name a.b vllm:1 --model /m --served-model-name X/Flash_2", "flash_2"),
        ("--name a.b vllm:1 --model /m", "a.b"),
        ("vllm:1 --model /models/GLM-5.3", "glm-5.3"),
        ("vllm:1", "vllm"),
    ],
)
def test_the_lane(words: str, lane: str) -> None:
    assert read(f"docker run {words}\n").document["lane"] == lane


def test_the_model_is_the_first_mount_if_the_engine_loads_it() -> None:
    found = read("docker run -v /srv/m:/model:ro -v /c:/d vllm:1 --model /model\n").document
    assert found["model"] == {"path": "/srv/m", "mount": "/model"}
    assert found["container"] == {"mounts": [{"source": "/c", "target": "/d"}]}
    assert read("docker run vllm:1 --model deepseek-ai/DeepSeek-V4.1\n").document["model"] == {
        "repo": "deepseek-ai/DeepSeek-V4.1"
    }


def test_no_image_and_too_many_arguments() -> None:
    with pytest.raises(NotImportableError, match="names no image"):
        read("docker run --gpus all\n")
    with pytest.raises(NotImportableError, match="2,002 arguments"):
        read(f"docker run i:1 {'x ' * 2001}\n")


def test_no_token_is_left_anywhere() -> None:
    token = "hf_Qw3rTy7uIoPaSdFgHjKl"
    found = read(f"docker run --label x=a{token} -v /a{token}:/b vllm:1 --model /m --chat-template x{token}\n")
    assert token not in repr(found)


def test_secrets_are_known_by_their_names() -> None:
    text = (
        "docker run -e PGPASSWORD=Winter31 --log-driver splunk --log-opt splunk-token=Autumn31 "
        "--label a.token=Spring31 --label team=desk vllm/vllm-openai:v0.33.0 --model /m "
        """--kv-transfer-config '{"kv_role":"kv_both","kv_connector_extra_config":{"remote_password":"Summer31"}}'"""
    )
    found = read(text)
    container = found.document["container"]
    assert container["secrets"] == {
        "PGPASSWORD": {"env": "PGPASSWORD"}, "REMOTE_PASSWORD": {"env": "REMOTE_PASSWORD"},
    }  # fmt: skip
    assert (container["log"], container["labels"]) == ({"driver": "splunk"}, {"team": "desk"})
    assert '"remote_password":"${secret:REMOTE_PASSWORD}"' in found.plan.command[-1]
    assert not any("31" in finding.message for finding in found.diagnostics)


def test_names_that_only_look_like_those_of_secrets() -> None:
    text = "docker run -e HF_HUB_DISABLE_IMPLICIT_TOKEN=1 -e TOKENIZER=x vllm/vllm-openai:v0.33.0 --model /m"
    assert read(text).document["container"]["env"] == {"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "TOKENIZER": "x"}


def test_secrets_that_were_struck_out() -> None:
    text = "docker run -e HF_TOKEN='hf_***' vllm/vllm-openai:v0.33.0 --model /m --api-key '[redacted]'"
    found = read(text)
    assert found.document["container"]["secrets"] == {"HF_TOKEN": {"env": "HF_TOKEN"}, "API_KEY": {"env": "API_KEY"}}
    assert [d.code for d in found.diagnostics if d.severity == "warning"] == ["IMP014", "IMP014"]


def test_what_no_table_knows_goes_to_extra_args() -> None:
    options = """--dtype own --speculative-config '{"method":"mtp","num_speculative_tokens":2,"own":1}' --port 3"""
    found = read(f"docker run vllm/vllm-openai:v0.33.0 --model /m {options}\n")
    engine = found.document["engine"]
    assert engine["options"] == {"model": "/m", "port": 3}
    assert engine["extra_args"] == [
        "--dtype",
        "own",
        "--speculative-config",
        '{"method":"mtp","num_speculative_tokens":2,"own":1}',
    ]
    assert [(one.severity, one.code) for one in found.diagnostics if one.hint == "it was kept in extra_args"] == [
        ("warning", "OPT003"),
        ("warning", "OPT006"),
    ]


def test_every_number_that_the_text_does_not_set_is_named() -> None:
    with pytest.raises(NotImportableError) as stopped:
        read("docker run -p $P:8000 vllm/vllm-openai:v0.33.0 --model $M --max-model-len $L --max-num-seqs ${S}k\n")
    errors = [one.message for one in stopped.value.diagnostics if one.severity == "error"]
    assert errors == [
        "--publish needs a number, and the text does not set P",
        "--max-model-len needs a number, and the text does not set L",
        "--max-num-seqs needs a number, and the text does not set S",
        "the text does not set P, L, S",
    ]
