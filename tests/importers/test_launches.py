import json

import pytest

from gb300serve.importers.launches import find_quoted_launch, has_launch, read_script
from gb300serve.importers.read import Choices, read_text
from gb300serve.importers.report import (
    NotImportableError,
    Report,
    SourceInvalidError,
    TextPosition,
    UnresolvedError,
)
from gb300serve.importers.shell.builtins import match_assignment
from gb300serve.importers.shell.findings import ScriptLaunch
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.words import SourceText, Word
from tests.support.imports import ENVIRONMENT, IMAGE, command, container, read, refused


def run(text: str, report: Report | None = None) -> ScriptLaunch:
    return read_script(SourceText(text), ENVIRONMENT, report or Report())


def words(text: str) -> list[str]:
    return [word.text for word in run(text).words]


@pytest.mark.parametrize(
    "before",
    ["", "sudo ", "sudo -u me ", "A=1 ", "nohup ", "env A=1 ", "time ", "cd /x && ", "set -e; ", "/usr/bin/", "exec "],
)
def test_the_position_of_the_launch(before: str) -> None:
    assert words(f"{before}docker run i:1 /m\n") == ["i:1", "/m"]


@pytest.mark.parametrize(
    "client", ["docker", "podman", "nerdctl", "docker container", "docker --context x", "docker -H y"]
)
def test_by_which_client(client: str) -> None:
    assert words(f"{client} run i:1 /m\n") == ["i:1", "/m"]
    assert words(f"{client} create i:1 /m\n") == ["i:1", "/m"]


def test_exports_and_position_of_the_launch() -> None:
    found = run("export A=1\nB=2\n  C=3 docker run i:1\n")
    assert (found.place, found.exported) == (TextPosition(3, 7), {"A": "1", "B": "2", "C": "3"})


def test_a_line_that_lost_its_continuation_belongs_to_the_launch() -> None:
    report = Report()
    assert [word.text for word in run("docker run -d\n  --gpus all\n  i:1 /m\n", report).words][:3] == [
        "-d",
        "--gpus",
        "all",
    ]
    assert [(found.code, found.line) for found in report.diagnostics][:1] == [("IMP001", 2)]


def test_a_redirection_ends_nothing() -> None:
    assert words("docker run i:1 2>&1 /m >/dev/null --port 3 </dev/null\n") == ["i:1", "/m", "--port", "3"]


def test_two_launches_that_nothing_tells_apart() -> None:
    report = Report()
    with pytest.raises(UnresolvedError, match="the text starts 2 servers"):
        run("docker run a:1\ndocker run b:1\n", report)
    assert [(found.message, found.hint, found.line) for found in report.diagnostics] == [
        ("launch 1 is a:1", "`--launch 1` imports it", 1),
        ("launch 2 is b:1", "`--launch 2` imports it", 2),
    ]


def test_other_commands_are_reported() -> None:
    report = Report()
    run("mkdir -p /x\ndocker run i:1\ndocker logs -f a\n", report)
    assert [(found.code, found.message) for found in report.diagnostics] == [
        (
            "IMP015",
            "commands that are not part of the launch were left out: `mkdir …` (line 1); `docker logs …` (line 3)",
        )
    ]


@pytest.mark.parametrize(
    "command",
    [
        "docker login -u me -p hunter2pass registry",
        "sshpass -phunter2pass ssh box",
        "echo hunter2pass | docker login --password-stdin",
        "curl --user me:hunter2pass localhost",
        "sudo docker login -p hunter2pass",
    ],
)
def test_a_password_of_another_command_is_not_shown(command: str) -> None:
    report = Report()
    run(f"{command}\ndocker run i:1\n", report)
    (found,) = report.diagnostics
    assert found.code == "IMP015"
    assert "hunter2" not in found.message


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("echo hello\n", "the text has no `docker run` command", None),
        (
            "if x; then\ndocker run i:1\nfi\n",
            "the launch depends on `if x`, and the text does not decide it",
            TextPosition(1, 1),
        ),
        (
            "f() { docker run i:1; }\n",
            "the text does not run this launch: it is in quotes, a comment, a function or another command",
            TextPosition(1, 7),
        ),
        ("docker run i:1 $(date)\n", "the output of $(date) is not known without running it", TextPosition(1, 18)),
    ],
)  # fmt: skip
def test_launches_that_are_not_known_without_running_the_text(
    text: str, reason: str, place: TextPosition | None
) -> None:
    with pytest.raises(UnresolvedError) as caught:
        run(text)
    assert (caught.value.reason, caught.value.place) == (reason, place)


@pytest.mark.parametrize(
    ("text", "name"), [("A=1", "A"), ("A+=1", "A"), ("a_b=", "a_b"), ("'A=1'", None), ("1A=1", None), ("$A=1", None)]
)
def test_assignments(text: str, name: str | None) -> None:
    (word,) = Lexer(SourceText(text), Report()).tokens()
    found = match_assignment(word) if isinstance(word, Word) else None
    assert (found and found[1]) == name


def messages(text: str) -> list[str]:
    return [found.message for found in read(text).diagnostics if found.code == "IMP015"]


@pytest.mark.parametrize(
    ("before", "directory"),
    [
        ("cd /srv/vllm && ", "/srv/vllm"),
        ("cd sub\ncd ../other\n", "/home/me/work/other"),
        ("cd ~/x; ", "/home/me/x"),
        ("D=/data\npushd $D\n", "/data"),
        ("cd\n", "/home/me"),
        ("(cd /x)\n", "/home/me/work"),
        ('cd "$(dirname "$0")"\n', "/home/me/work"),
    ],
)
def test_where_a_relative_path_starts(before: str, directory: str) -> None:
    text = f"{before}docker run --env-file x.env -v ./m:/m -v $PWD/n:/n {IMAGE} /m\n"
    found = read(text, {"x.env": "A=1\n", f"{directory}/x.env": "A=2\n"})
    mounts = [(mount.source, mount.target) for mount in found.plan.container.mounts]
    assert mounts == [(f"{directory}/m", "/m"), (f"{directory}/n", "/n")]
    assert found.plan.container.env == {"A": "2" if directory != ENVIRONMENT.directory else "1"}


def test_a_cd_after_the_launch_has_no_effect() -> None:
    assert run("docker run i:1\ncd /x\n").directory == ENVIRONMENT.directory


def test_a_file_below_an_undecided_working_directory_is_absent() -> None:
    text = "[ -d /x ] && cd /x\n. a.env\ndocker run --gpus all -e V=$A vllm/vllm-openai:v0.33.0 --model /m\n"
    values = [
        read_text(source, "input.sh", ENVIRONMENT, {"a.env": "A=1"}.get).plan.container.env
        for source in (text, text.partition("\n")[2])
    ]
    assert values == [{}, {"V": "1"}]


@pytest.mark.parametrize("change", ["cd -", 'cd "$UNSET"', "popd", "[ -d /x ] && cd /x"])
def test_a_relative_path_in_a_directory_that_is_not_known(change: str) -> None:
    message, line, _ = refused(f"{change}\ndocker run -v ./m:/m i:1 /m\n")
    assert (message[:21], line) == ("the working directory", 1)
    assert read(f"{change}\ndocker run -v /m:/m i:1 /m\n").plan.container.mounts[0].source == "/m"


def test_a_command_that_only_expands_sets_its_defaults() -> None:
    text = f': "${{PORT:=8123}}" "${{KEY:?set it}}" "$(hostname)"\ndocker run -e A=$PORT {IMAGE} /m\n'
    assert read(text).plan.container.env == {"A": "8123"}
    assert messages(text) == []


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ("docker --context gb300", "--context gb300"),
        ("sudo docker -H tcp://10.0.0.1:2375", "-H tcp://10.0.0.1:2375"),
        ("DOCKER_HOST=ssh://me@gb300 docker", "DOCKER_HOST=ssh://me@gb300"),
        ("export DOCKER_CONTEXT=a\ndocker container", "DOCKER_CONTEXT=a"),
    ],
)
def test_the_selected_docker_engine_is_reported(client: str, said: str) -> None:
    assert messages(f"{client} run {IMAGE} /m\n") == [f"`{said}` is left out: a recipe does not select a Docker Engine"]
    assert messages(f"docker container run {IMAGE} /m\n") == []


def test_a_launch_that_the_text_does_not_run() -> None:
    message = "the text does not run this launch: it is in quotes, a comment, a function or another command"
    text = "true # docker container run i:1 /m\n"
    assert refused(text) == (message, 1, 8)
    assert find_quoted_launch(SourceText(text)) == TextPosition(1, 8)


def test_whether_a_substitution_may_launch() -> None:
    assert [has_launch(text) for text in ("docker ps; docker run x", "run docker", "podman create x", "")] == [
        True, False, True, False,
    ]  # fmt: skip


def test_a_text_full_of_docker() -> None:
    assert has_launch("docker " * 30_000) is False  # 54 s while each of them was followed to the end of the text


def test_messages_contain_no_reference_marks() -> None:
    assert "\0" not in messages(f"logger $A{IMAGE}\ndocker run {IMAGE} /m\n")[0]
    assert container("-e A=1") == {"env": {"A": "1"}}


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("cat > .env <<EOF\nA=1\nB=x y\nEOF\n", {".env": "A=1\nB=x y\n"}),
        ("cat <<'EOF' > '.env'\nA=$B\nEOF\nA=2\n", {".env": "A=$B\n"}),
        ("cat <<\\EOF > .env\nA=$B\nEOF\n", {".env": "A=$B\n"}),
        ("  cat >.env <<-E\n\tA=1\n\tE\n", {".env": "A=1\n"}),
        ("cat > a <<E\nA=1\nE\ncat >> a <<E\nB=2\nE\n", {"a": "A=1\nB=2\n"}),
        ("cat > a <<E\nA=$HOME\nE\ncat > b <<E\nE\n", {"a": "A=/home/me\n", "b": ""}),
        ("cat > a <<E\nA=$(date)\nE\n", {"a": None}),
        ("echo A=1 > a\nprintf '%s\\n' B=2 >> a\n", {"a": "A=1\nB=2\n"}),
        ("[ -f x ] && echo A=1 > a\n", {"a": None}),
        ("cat >> a <<E\nB=2\nE\n", {"a": None}),
        ("cat > a <<E\ncat > b <<F\nF\nE\n", {"a": "cat > b <<F\nF\n"}),
        ("cd sub\ncat > a <<E\nA=1\nE\ncd ..\n", {"sub/a": "A=1\n"}),
        ("cat > $X <<E\nA=1\nE\ncat a > b\n", {"b": None}),
    ],
)
def test_files_that_the_text_writes_itself(text: str, files: dict[str, str | None]) -> None:
    found = read_script(SourceText(text + "docker run i:1\ncat > late <<E\nE\n"), ENVIRONMENT, Report()).files
    assert found == {f"{ENVIRONMENT.directory}/{path}": body for path, body in files.items()}


def test_many_files_and_a_long_one() -> None:
    many = "".join(f"cat > {number} <<E\nE\n" for number in range(20_000))
    assert len(read_script(SourceText(many + "docker run i:1\n"), ENVIRONMENT, Report()).files) == 20_000
    long = "cat > a <<E\n" + "cat > a <<E\n" * 20_000 + "E\ndocker run i:1\n"
    assert set(read_script(SourceText(long), ENVIRONMENT, Report()).files) == {f"{ENVIRONMENT.directory}/a"}


def test_an_env_file_that_the_text_writes_itself() -> None:
    text = "cd /srv\ncat > .env <<EOF\nA=1\nEOF\ndocker run --env-file /srv/.env i:1 /model\n"
    found = read(text)
    assert found.document["container"] == {"env": {"A": "1"}}
    assert "not-taken-over" not in {one.name for one in found.diagnostics}


@pytest.mark.parametrize(
    ("launch", "names"),
    [
        ("nvcr.io/nvidia/tensorrt-llm/release:1.2.0 trtllm-serve /m", "TensorRT-LLM"),
        ("ollama/ollama:0.21.0", "Ollama"),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda -m /m.gguf", "llama.cpp"),
        ("x/y:1 /usr/bin/llama-server -m /m.gguf", "llama-server"),
        ("ghcr.io/huggingface/text-generation-inference:3.0 --model-id m", "TGI"),
        ("nvcr.io/nim/meta/llama:1.8", "NIM"),
        ("x/y:1 bash -c 'ollama serve'", "Ollama"),
        ("lmsysorg/sglang:v0.5.21 sleep infinity", "sleep infinity"),
        ("lmsysorg/sglang:v0.5.21", "without a command"),
        ("-it --entrypoint /bin/bash vllm/vllm-openai:v0.33.0", "/bin/bash"),
        ("nvidia/cuda:13.0.1-base nvidia-smi", "nvidia-smi"),
        ("vllm/vllm-openai:v0.33.0 vllm bench serve --model m", "vllm bench serve"),
        ("lmsysorg/sglang:v0.5.21 python3 -m sglang.bench_serving --port 1", "a benchmark client"),
        ("x/y:1 ./start.sh", "./start.sh"),
    ],
)
def test_what_is_no_engine_of_a_recipe(launch: str, names: str) -> None:
    message, line, _ = refused(f"docker run {launch}\n")
    assert (names in message, line) == (True, 1)


def test_the_launch_that_serves() -> None:
    text = "docker run --rm --gpus all nvidia/cuda:13 nvidia-smi\ndocker run redis:7\ndocker run x/vllm:1 --model /m\n"
    assert [word.text for word in run(text).words] == ["x/vllm:1", "--model", "/m"]


def test_one_of_several_servers() -> None:
    text = f"docker run --name big {IMAGE} /m\ndocker run --name small {IMAGE} /n\n"
    found = read_text(text, "input.sh", ENVIRONMENT, choices=Choices(launch=2))
    assert found.plan.container.name == "small"
    assert [one.message for one in found.diagnostics if one.code == "IMP003"] == [
        "the text also starts the container big: it was left out"
    ]
    with pytest.raises(NotImportableError, match="--launch 3: the text starts 2 servers"):
        read_text(text, "input.sh", ENVIRONMENT, choices=Choices(launch=3))


@pytest.mark.parametrize(
    "image",
    [
        "<image>",
        "<the image you pulled>",
        "IMAGE_HERE",
        "[your image]",
        "YOUR_IMAGE:latest",
        "your-image",
        "xxx",
        "…",
        "IMAGE",
    ],
)
def test_a_placeholder_for_the_image(image: str) -> None:
    message, line, _ = refused(f"docker run --gpus all \\\n  {image} --model /m\n")
    assert ("placeholder for the image" in message, line) == (True, 2)


@pytest.mark.parametrize("wrapper", ["sg docker -c", "sg docker", "sg - docker", "su - me -c", "sudo su me -c"])
def test_a_launch_as_another_group_or_user(wrapper: str) -> None:
    assert read(f"{wrapper} 'docker run vllm/vllm-openai:v1 --model /m'\n").document["image"]["tag"] == "v1"


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("$IMG", "the image is $IMG"),
        ("vllm/vllm-openai:${TAG}", "the image contains $TAG"),
        ("vllm/vllm-openai:${TAG:?choose one}", "the image contains $TAG"),
        ("${HUB}/vllm:1@$DIGEST", "the image contains $HUB"),
        ("vllm/vllm-openai:$(cat /tag)", "the image contains $(cat /tag)"),
    ],
)
def test_an_image_that_the_text_does_not_set(image: str, reason: str) -> None:
    assert refused(f"docker run {image} --model /m\n")[0] == f"{reason}, which the text does not set"


@pytest.mark.parametrize(
    ("command", "is_server"),
    [
        ("me/vllm-tools:1 tool serve_it --model /m", False),
        ("me/vllm-tools:1 serve_it --model /m", False),
        ("me/vllm-tools:1 gpt2 --port 1", True),
        ("me/vllm-tools:1 --model /m", True),
        ("me/vllm-tools:1 Qwen/Qwen3-8B --port 1", True),
        ("vllm/vllm-openai:v0.11.0 opt --port 1", True),
    ],
)
def test_a_command_that_begins_as_that_of_a_program(command: str, is_server: bool) -> None:
    text = f"docker run {command}\n"
    if is_server:
        assert read(text).document["engine"]["name"] == "vllm"
    else:
        assert refused(text)[0].startswith(f"the container runs `{command.split()[1]}")


@pytest.mark.parametrize(
    "text",
    [
        "ssh -p 22 me@far 'docker run -v ~/m:/m x/vllm:1 /m'\n",
        'H=me@far\nssh $H "docker rm -f a; docker run -v ~/m:/m x/vllm:1 /m"\n',
        "ssh me@far <<'E'\nset -e\ndocker run -v ~/m:/m x/vllm:1 /m\nE\n",
        "ssh me@far bash -s <<E\ndocker run -v ~/m:/m x/vllm:1 /m\nE\n",
    ],
)
def test_a_launch_on_another_host(text: str) -> None:
    found = read(text)
    assert found.plan.container.mounts[0].source == "~/m"
    assert any("`ssh me@far` is left out" in one.message for one in found.diagnostics)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("cat > run.sh <<'X'\ndocker run x/vllm:1 /m --port $1\nX\nbash run.sh 3\n", {}),
        ("P=3 bash ./run.sh\n", {"./run.sh": "docker run x/vllm:1 /m --port $P\n"}),
        ("export P=3\n./run.sh\n", {"./run.sh": "docker run x/vllm:1 /m --port $P\n"}),
        ("bash -c 'docker run x/vllm:1 /m --port $0' 3\n", {}),
        ('sudo bash -lc "docker run x/vllm:1 /m --port 3"\n', {}),
        ("CMD='docker run x/vllm:1'\nCMD=\"$CMD /m\"\neval $CMD --port 3\n", {}),
        ("set -a\n. ./x.env\ndocker run x/vllm:1 /m --port $P\n", {"./x.env": "P=3\n"}),
        ("[ -f x.env ] && source x.env\ndocker run x/vllm:1 /m --port ${P:-4}\n", {"x.env": "P=3\n"}),
        ("DOCKER='sudo docker'\nR=(run x/vllm:1 /m)\n$DOCKER \"${R[@]}\" --port 3\n", {}),
        ('docker() { command docker "$@"; }\ndocker run x/vllm:1 /m --port 3\n', {}),
        ('run() { sudo "$@"; }\nrun docker run x/vllm:1 /m --port 3\n', {}),
    ],
)
def test_a_launch_in_another_shell_or_file(text: str, files: dict[str, str]) -> None:
    assert list(read(text, files).plan.command) == ["/m", "--port", "3"]


@pytest.mark.parametrize(
    "text",
    [
        '[ "$1" ] && shift\ndocker run x/vllm:1 /m\n',
        "[[ a =~ ^a ]] && echo\ndocker run x/vllm:1 /m\n",
        "{ echo; }\ndocker run x/vllm:1 /m\n",
        "f() { PORT=$P; }\nP=3 f\n[ $PORT = 3 ] || exit 1\ndocker run x/vllm:1 /m\n",
    ],
)
def test_a_text_that_begins_with_a_test_or_a_group(text: str) -> None:
    assert command(text) == ["/m"]


def test_a_file_of_settings_that_is_not_here() -> None:
    text = f". /etc/x.env\ndocker run {IMAGE} /m --port ${{P:-3}} --max-num-seqs ${{S:-4}} --max-model-len ${{P:-3}}\n"
    found = read(text)
    assert [(one.severity, one.message) for one in found.diagnostics if one.code == "IMP006"] == [
        ("warning", "P may be set in /etc/x.env (line 1), which is not here"),
        ("warning", "S may be set in /etc/x.env (line 1), which is not here"),
    ]
    message, line, _ = refused(f"P=3\n. /etc/x.env\ndocker run {IMAGE} /m --port $P\n")
    assert (message, line) == ("P may be changed on line 2 by /etc/x.env, which is not here", 2)


@pytest.mark.parametrize(
    "source",
    ["[ -f x.env ] && . x.env", "if [[ -f x.env ]]; then set -a; source x.env; set +a; fi", "test -f x.env && . x.env"],
)
def test_a_guarded_file_of_settings_that_is_not_here(source: str) -> None:
    """bash goes on with the values of the text; whoever has the file may get others."""
    found = read(f"P=3\nS=${{S:-4}}\nL=5\n{source}\nL=6\ndocker run {IMAGE} /m --port $P --seed $S --max-num-seqs $L\n")
    assert list(found.plan.command) == ["/m", "--port", "3", "--seed", "4", "--max-num-seqs", "6"]
    assert [(one.severity, one.message) for one in found.diagnostics if one.code == "IMP006"] == [
        ("warning", "P may be set in x.env (line 4), which is not here"),
        ("warning", "S may be set in x.env (line 4), which is not here"),
    ]


def test_a_default_before_a_file_of_settings_that_is_not_here() -> None:
    found = read(f"P=${{P:-3}}\n. x.env\ndocker run {IMAGE} /m --port $P\n")
    assert [one.message for one in found.diagnostics if one.code == "IMP006"] == [
        "P may be set in x.env (line 2), which is not here"
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("read A", "A is set by `read` on line 2: it is read from the input"),
        ("mapfile -t A < f", "A is set by `mapfile` on line 2"),
        ("printf -v A '%q' x", "A is set by `printf` on line 2"),
        ("declare -i A=1+1", "`declare -i` changes how bash assigns A"),
        ("export $(cat f | xargs)", "A may be changed on line 2 by an `export`"),
        ('eval "$(ssh-agent)"', "A may be changed on line 2 by `eval`"),
        ("A=$(nproc)", "the output of $(nproc) is not known without running it"),
        ("A=$RANDOM", "$RANDOM is known only when the text runs"),
        ("for A in *; do :; done", "A is set in the loop `for`"),
    ],
)
def test_values_that_only_a_run_has(change: str, reason: str) -> None:
    message, line, _ = refused(f"A=1\n{change}\ndocker run {IMAGE} /m --port $A\n")
    assert (message.startswith(reason), line) == (True, 2), message


@pytest.mark.parametrize(
    "text",
    [
        'docker run x/vllm:1 /m --api-key "$KEY")" \\\n  --port 3\n',
        'docker run x/vllm:1 /m --api-key KEY" \\\n  --port 3 \\\n  --name "a"\n',
        'docker run x/vllm:1 /m --a "k \\\n  --port 3 \\\n  --served-model-name "x" --b "c"\n',
        "docker run x/vllm:1 /m --a (b \\\n  --port 3\n",
        "docker run x/vllm:1 /m --a $(cat f \\\n  --port 3\n",
    ],
)
def test_an_unbalanced_quote_or_parenthesis_never_shortens_a_launch(text: str) -> None:
    assert refused(text)[1] is not None


def test_a_recorded_launch() -> None:
    argv = ["docker", "run", "-d", "--name", "ab", "-v", "./m:/m", "x/vllm:1", "--model", "/m", "a b"]
    document = {"schema": "gb300serve.capture/1", "launches": [{"directory": "/srv", "argv": argv}]}
    found = read(json.dumps(document))
    assert found.plan.container.mounts[0].source == "/srv/m"
    assert found.plan.command == ("--model", "/m", "a b")
    with pytest.raises(SourceInvalidError):
        read(json.dumps(document | {"launches": [{"argv": ["rm", "-rf"]}]}))
    assert refused(json.dumps(document | {"launches": []}))[0] == "no launch was recorded"


def test_a_variable_that_only_an_absent_file_of_settings_can_set() -> None:
    message, line, _ = refused(f". ./lane.env\ndocker run {IMAGE} \\\n  --model $CHECKPOINT\n")
    assert line == 3
    assert message == ("--model contains $CHECKPOINT, which only ./lane.env (line 1) can set: that file is not here")
    secret = read(f". ./lane.env\ndocker run -e HF_TOKEN=$HF_TOKEN {IMAGE} --model m\n")
    assert secret.document["container"]["secrets"] == {"HF_TOKEN": {"env": "HF_TOKEN"}}


@pytest.mark.parametrize(
    "before",
    [
        "tmux new-session -d -s lane",
        "tmux new -ds lane -c /srv",
        "/usr/bin/tmux split-window -h",
        "screen -dmS lane bash -c",
        "screen -L -d -m -S lane sh -c",
    ],
)
def test_a_launch_in_a_terminal_of_its_own(before: str) -> None:
    assert words(f'P=3\n{before} "docker run i:1 /m --port $P"\n') == ["i:1", "/m", "--port", "3"]


def test_an_engine_in_a_terminal_of_its_own() -> None:
    text = 'P=3\ntmux new-session -d -s lane "\n  vllm serve /m \\\n    --port $P 2>&1 | tee log\n"\n'
    found = read(text, choices=Choices(image="vllm/vllm-openai:v0.33.0"))
    assert list(found.plan.command) == ["/m", "--port", "3"]


def test_a_unit_that_a_text_contains() -> None:
    text = "cat > /etc/systemd/system/lane.service <<EOF\n[Service]\nExecStart=/usr/bin/docker run i:1 /m\nEOF\n"
    message, line, _ = refused(text)
    assert (line, "in a systemd unit" in message) == (3, True)


def test_a_launch_that_cannot_be_read_says_why() -> None:
    message, _, _ = refused(f'docker run --entrypoint bash {IMAGE} -c "vllm serve /m -tp $(nvidia-smi -L | wc -l)"\n')
    assert "nvidia-smi" in message


def test_a_makefile() -> None:
    text = "GPUS ?= all\n\nserve: stop\n\tdocker run --gpus $(GPUS) i:1 /m\n\nstop:\n\tdocker rm -f a\n"
    message, line, _ = refused(text)
    assert (message, line) == ("the text is a Makefile, whose variables make sets", 3)


def test_keys_that_are_sent_to_a_terminal_are_not_read() -> None:
    """Earlier keys may have set variables in the same shell."""
    text = 'tmux send-keys -t s "export M=/m" C-m\ntmux send-keys -t s "docker run i:1 --model \\$M" C-m\n'
    assert "does not run this launch" in refused(text)[0]
