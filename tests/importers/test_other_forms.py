import pytest

from gb300serve.importers.marked import Marked
from gb300serve.importers.other_forms import refuse_other_form
from gb300serve.importers.report import Place, Stop

AS_COMMAND = "say its image, variables, mounts and arguments as a `docker run` command, and import that"
WHEN_STARTED = "start it, then import the container: gb300serve import --container NAME"
BARE = "put `docker run --gpus all IMAGE` before it, with the image that has this engine"


@pytest.mark.parametrize(
    ("text", "what", "line", "hint"),
    [
        ("lane: a\nformat: gb300serve/1\n", "recipe already", 2, "gb300serve lint FILE, gb300serve compile FILE"),
        ("services:\r\n  a:\r\n    image: i:1\r\n", "a compose file", 1, WHEN_STARTED),
        ("---\napiVersion: v1\n", "a Kubernetes manifest", 2, AS_COMMAND),
        ("[Unit]\n[Container]\nImage=i:1\n", "a Podman unit", 2, AS_COMMAND),
        ('# my image\nFROM i:1\nCMD ["--model", "/m"]\n', "a Dockerfile", 2, AS_COMMAND),
        ("sudo docker compose up -d\n", "described elsewhere", 1, WHEN_STARTED),
        ("docker exec -it a vllm serve /m\n", "described elsewhere", 1, WHEN_STARTED),
        ("docker-compose up\n", "described elsewhere", 1, WHEN_STARTED),
        ("pip install vllm\n$ A=1 B=2 vllm serve /m\n", "without a container", 2, BARE),
        ("python3 -m sglang.launch_server --model-path /m\n", "without a container", 1, BARE),
    ],
)
def test_what_it_is_and_the_way_that_works(text: str, what: str, line: int, hint: str) -> None:
    with pytest.raises(Stop) as stopped:
        refuse_other_form(Marked(text))
    assert what in stopped.value.reason
    assert (stopped.value.place, stopped.value.hint) == (Place(line, 1), hint)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ls /m\n",
        "cat > c.yml <<X\nservices:\nX\ndocker --context a run i:1 /m\n",
        "docker run i:1 \\\n  vllm serve /m\n",
        "echo vllm serve\n",
    ],
)
def test_what_may_hold_a_launch_is_read_on(text: str) -> None:
    refuse_other_form(Marked(text))


def test_a_long_line_is_read_to_its_end() -> None:
    """What it costs is measured by scripts/bench."""
    long = "A=" * 100_000 + " " * 100_000
    refuse_other_form(Marked(f"{long}vllm /m"))
    with pytest.raises(Stop, match=r"without a container"):
        refuse_other_form(Marked(f"{long}vllm serve /m"))
