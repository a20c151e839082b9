from typing import Any

import pytest

from gb300serve.importers.launcher import engine_of_image, find_launcher
from gb300serve.importers.read import Choices
from tests.support.imports import read, refused, said


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("vllm serve /m", (2, "vllm")),
        ("/usr/local/bin/vllm serve /m", (2, "vllm")),
        ("serve /m", (1, "vllm")),
        ("python3 -m vllm.entrypoints.openai.api_server --model m", (3, "vllm")),
        ("python3.12 -u -m sglang.launch_server --tp 1", (4, "sglang")),
        ("-m sglang.launch_server", (2, "sglang")),
        ("sglang serve", (2, "sglang")),
        ("numactl --membind=0 --cpunodebind 0 vllm serve /m", (6, "vllm")),
        ("python3 x.py", (0, None)),
        ("--model vllm serve", (0, None)),
        ("", (0, None)),
    ],
)
def test_launcher_words(words: str, found: tuple[int, str | None]) -> None:
    assert tuple(find_launcher(words.split())) == found


@pytest.mark.parametrize(
    ("repository", "engine"),
    [("vllm/vllm-openai", "vllm"), ("lmsysorg/sglang", "sglang"), ("nvcr.io/nvidia/vllm", "vllm"), ("a/b", None)],
)
def test_the_engine_of_an_image(repository: str, engine: str | None) -> None:
    assert engine_of_image(repository) == engine


BASH = "bash -c 'export A=1 B=2; cd /w && exec vllm serve /m --port 31'"


@pytest.mark.parametrize(
    ("launch", "engine", "container"),
    [
        ("vllm/vllm-openai:v0.33.0 /m --port 31", {}, {}),
        ("vllm/vllm-openai:v0.33.0 vllm serve /m --port 31", {}, {}),
        ("vllm/vllm-openai:v0.33.0 serve /m --port 31", {}, {}),
        ("vllm/vllm-openai:v0.33.0 python3 -m vllm.entrypoints.openai.api_server /m --port 31", {}, {}),
        ("x/vllm:v0.33.0 vllm serve /m --port 31", {"launcher": ["vllm", "serve"]}, {}),
        ("--entrypoint vllm a/b:v0.33.0 serve /m --port 31", {"launcher": ["serve"]}, {"entrypoint": "vllm"}),
        (
            "--entrypoint python3 a/b:v0.33.0 -m vllm.entrypoints.openai.api_server /m --port 31",
            {"launcher": ["-m", "vllm.entrypoints.openai.api_server"]},
            {"entrypoint": "python3"},
        ),
        (
            "--entrypoint numactl a/b:v0.33.0 --membind=0 vllm serve /m --port 31",
            {"launcher": ["--membind=0", "vllm", "serve"]},
            {"entrypoint": "numactl"},
        ),
        (f"x/vllm:v0.33.0 {BASH}", {"launcher": ["vllm", "serve"]}, {"workdir": "/w", "env": {"A": "1", "B": "2"}}),
        (
            f"--entrypoint /bin/bash x/vllm:v0.33.0 {BASH.removeprefix('bash ').replace('-c', '-lc')}",
            {"launcher": ["serve"]},
            {"workdir": "/w", "entrypoint": "vllm", "env": {"A": "1", "B": "2"}},
        ),
    ],
)
def test_what_starts_the_engine(launch: str, engine: dict[str, Any], container: dict[str, Any]) -> None:
    document = read(f"docker run {launch}\n").document
    wanted = {"name": "vllm", "version": "0.33.0", "options": {"model_tag": "/m", "port": 31}} | engine
    assert document["engine"] == wanted
    assert document.get("container", {}) == container


def test_a_repeated_entrypoint_is_reported() -> None:
    assert ("warning", "launcher-words", 1, 37) in said("docker run vllm/vllm-openai:v0.33.0 vllm serve /m\n")


def test_variables_in_the_container_are_the_containers() -> None:
    text = "docker run -e P=31 -e K x/vllm:1 bash -c 'vllm serve /m --port $P --api-key $K'\n"
    found = read(text).document
    assert found["engine"]["options"] == {"model_tag": "/m", "port": 31, "api_key": {"secret": "K"}}


def test_other_commands_of_a_shell_are_reported() -> None:
    found = read("docker run x/vllm:1 bash -c 'pip install x && vllm serve /m'\n").diagnostics
    message = "the shell in the container also runs `pip install x`, which a recipe cannot express"
    assert message in [d.message for d in found]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("./start.sh", "the container runs the shell command `./start.sh`, which starts no known engine"),
        ("if [ -e /x ]; then vllm serve /m; fi", "the engine depends on `if` in the container"),
        ("[ -e /x ] && A=1; vllm serve /m --port $A", "A depends on `[ -e /x ]`"),
        ("vllm serve /m & vllm serve /n", "the shell in the container starts 2 engines"),
    ],
)
def test_a_shell_that_starts_something_else(script: str, reason: str) -> None:
    message, line, _ = refused(f"docker run x/y:1 bash -c '{script}'\n")
    assert (message.startswith(reason), line) == (True, 1), message


def test_a_shell_with_arrays_and_functions() -> None:
    script = 'run() { exec "$@"; }; A=(serve /m); export B=1; run vllm "${A[@]}" --port 3'
    found = read(f"docker run x/vllm:1 bash -c -e '{script}'\n")
    assert found.plan.command == ("vllm", "serve", "/m", "--port", "3")
    assert found.plan.container.env == {"B": "1"}


@pytest.mark.parametrize(
    ("launch", "engine", "assumed"),
    [
        ("ghcr.io/x/text-generation:3 --model-id m", "vllm", True),
        ("a/b:1", "vllm", True),
        ("a/b:1 --model m --max_model_len=4096", "vllm", False),
        ("a/b:1 --model-path m", "sglang", False),
        ("a/vllm:1 --model m", "vllm", False),
    ],
)
def test_an_assumed_engine_is_reported(launch: str, engine: str, assumed: bool) -> None:
    found = read(f"docker run {launch}\n")
    assert found.document["engine"]["name"] == engine
    assert [one.code for one in found.diagnostics if one.path == "engine.name"] == ["IMP009"] * assumed


@pytest.mark.parametrize("image", ["lmsysorg/sgl-model-gateway:1", "x/sglang-router:v1", "x/vllm-router:1"])
def test_a_router_serves_no_model(image: str) -> None:
    assert "a router" in refused(f"docker run {image} --worker-urls http://h:1 --model-path /m --tp 2\n")[0]
    compose = f"services: {{r: {{image: '{image}'}}, e: {{image: 'vllm/vllm-openai:1', command: --model /m}}}}\n"
    assert list(read(compose, None, "compose.yaml").plan.command) == ["--model", "/m"]


@pytest.mark.parametrize("module", ["vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main serve"])
def test_a_module_without_a_container(module: str) -> None:
    text = f"P=3\npython -m {module} \\\n  --model m --port $P\n"
    found = read(text, choices=Choices(image="vllm/vllm-openai:v0.33.0"))
    assert list(found.plan.command) == ["--model", "m", "--port", "3"]
