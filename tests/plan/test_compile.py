from dataclasses import replace
from pathlib import Path

import pytest

from gb300serve.core.errors import CompileError
from gb300serve.document.nodes import Source
from gb300serve.document.read import parse
from gb300serve.plan.compile import (
    Compiler,
    ImageRef,
    VariableError,
    expand,
    node_plan,
    own_address_variable,
    variable,
)
from gb300serve.plan.model import ContainerPlan, HealthCheck, Mount, Plan, Secret, digest
from gb300serve.recipe.site import Site
from tests.support.recipes import BODY, ENGINE, EVERYTHING, alone, container, load, write
from tests.support.spread import OWN, RAY, SGLANG, spread

SITE = Site(models="/models", cache="/cache", gpus={"GB300": "GPU-5f1b"})
SHA = "0123456789abcdef" * 4


def compiled(directory: Path, text: str, site: Site = SITE, image_ref: ImageRef = "digest", *sets: str) -> Plan:
    loaded = load(write(directory, {"v1": text}), "v1", *sets)
    assert loaded.problems == ()
    assert loaded.recipe is not None
    return Compiler(site, image_ref).plan(loaded.recipe, changed=loaded.changed)


def refused(directory: Path, text: str, site: Site = SITE, image_ref: ImageRef = "digest") -> tuple[str, str | None]:
    with pytest.raises(CompileError) as error:
        compiled(directory, text, site, image_ref)
    assert error.value.exit_code == 4
    return error.value.message, error.value.hint


def test_everything(tmp_path: Path) -> None:
    assert compiled(tmp_path, EVERYTHING) == Plan(
        recipe="bench/v1",
        lane="bench",
        release="v1",
        engine="vllm",
        engine_version="0.33.0",
        image=f"a/b:c@sha256:{SHA}",
        image_id=None,
        container=ContainerPlan(
            name="bench",
            gpus="all",
            ipc="host",
            network="bridge",
            shm_size="16g",
            ulimits={"memlock": -1, "nofile": (1024, 4096)},
            cap_add=("IPC_LOCK",),
            security_opt=("seccomp=unconfined",),
            init=True,
            stop_timeout=30,
            user="1000:1000",
            workdir="/w",
            pid="host",
            memory="64g",
            tmpfs=("/tmp:size=1g",),
            log_driver="json-file",
            log_options={"max-size": "10m"},
            devices=("/dev/fuse",),
            labels={"team": "bench"},
            ports=("8021:8000",),
            mounts=(
                Mount("/models/b", "/model", read_only=True),
                Mount("/models/d", "/draft", read_only=True),
                Mount("/a", "/b", read_only=True, sha256=SHA),
                Mount("/c", "/d", read_only=True, sha256={"f": SHA}),
                Mount("kept", "/kept", is_volume=True),
            ),
            privileged=True,
            group_add=("109",),
            cpuset_cpus="0-71",
            memory_swap="-1",
            add_host=("db:10.0.0.5",),
            healthcheck=HealthCheck("curl -f http://localhost/health", "30s", "5s", "1m30s", retries=4),
            env={"A": "x"},
            secrets=(Secret("K", env="K"), Secret("L", file="/l")),
            entrypoint="vllm",
            restart="on-failure:3",
        ),
        command=("serve", "--model", "/model", "--api-key", "${secret:K}", "--new-flag", "3"),
        served_names=("/model",),
        port=8021,
        model_path="/models/b",
        launched_by=("serve",),
    )


def test_little(tmp_path: Path) -> None:
    plan = compiled(tmp_path, alone())
    assert plan.container == ContainerPlan(name="")
    assert (plan.image, plan.command, plan.port, plan.model_path) == (
        "vllm/vllm-openai:v0.33.0",
        ("--model", "/model"),
        None,
        None,
    )


@pytest.mark.parametrize(
    ("written", "selection"),
    [
        ("all", "all"),
        ("2", "2"),
        ("{name: GB300}", "device=GPU-5f1b"),
        ("{uuid: GPU-1}", "device=GPU-1"),
        ("{uuid: [GPU-1, GPU-2]}", "device=GPU-1,GPU-2"),
        ("{index: [0, 1]}", "device=0,1"),
        ("null", None),
    ],
)
def test_gpus(tmp_path: Path, written: str, selection: str | None) -> None:
    assert compiled(tmp_path, container(f"gpus: {written}")).container.gpus == selection


def test_a_gpu_that_the_site_does_not_know(tmp_path: Path) -> None:
    assert refused(tmp_path, container("gpus: {name: RTX}")) == (
        "container.gpus names RTX, but the site does not define its UUID",
        "`nvidia-smi -L` prints the UUIDs; add `gpus: {RTX: GPU-…}` to site.yaml",
    )


@pytest.mark.parametrize(
    ("image", "by_digest", "by_tag"),
    [
        (f"tag: t, digest: 'sha256:{SHA}'", f"a/b:t@sha256:{SHA}", "a/b:t"),
        (f"digest: 'sha256:{SHA}'", f"a/b@sha256:{SHA}", None),
        ("tag: t", "a/b:t", "a/b:t"),
        (f"tag: t, id: 'sha256:{SHA}'", "a/b:t", "a/b:t"),
        (f"id: 'sha256:{SHA}'", "a/b", None),
        (f"tag: t, id: 'sha256:{SHA}', digest: 'sha256:{SHA}'", "a/b:t", "a/b:t"),
    ],
)
def test_images(tmp_path: Path, image: str, by_digest: str, by_tag: str | None) -> None:
    text = alone().replace(BODY, f"image: {{repository: a/b, {image}}}\n")
    plan = compiled(tmp_path, text)
    assert (plan.image, plan.image_id) == (by_digest, f"sha256:{SHA}" if "id:" in image else None)
    if by_tag is not None:
        assert compiled(tmp_path, text, SITE, "tag").image == by_tag
    else:
        assert refused(tmp_path, text, SITE, "tag") == (
            "image a/b has no tag",
            "add image.tag, or omit --image-ref tag",
        )


def test_paths_with_variables(tmp_path: Path) -> None:
    text = alone(
        'model: {revision: df42, path: "${models}/m-${model.revision}", mount: /model}\n'
        'models: [{path: "${models}/d", mount: /draft}, {repo: a/b}]\n'
        'container:\n  mounts:\n    - {source: "${cache}", target: "/${cache}"}\n'
        '    - {source: "$${x}", target: /x, read_only: true}\n'
        '  env: {A: "${cache}"}\n  secrets: {K: {file: "${cache}/k"}}\n' + ENGINE
    )
    plan = compiled(tmp_path, text)
    assert plan.container.mounts == (
        Mount("/models/m-df42", "/model", read_only=True),
        Mount("/models/d", "/draft", read_only=True),
        Mount("/cache", "/${cache}"),
        Mount("${x}", "/x", read_only=True),
    )
    assert (plan.container.env, plan.container.secrets) == ({"A": "${cache}"}, (Secret("K", file="/cache/k"),))
    assert plan.model_path == "/models/m-df42"


def test_a_lane_has_its_own_cache(tmp_path: Path) -> None:
    text = container('mounts: [{source: "${cache}", target: /c}]')
    site = Site.model_validate({"cache": "/a", "lanes": {"bench": {"cache": "/b"}, "other": {"cache": "/c"}}})
    assert compiled(tmp_path, text, site).container.mounts == (Mount("/b", "/c"),)


def test_a_site_that_lacks_a_directory(tmp_path: Path) -> None:
    message, hint = refused(tmp_path, container('mounts: [{source: "${patches}/x", target: /x}]'))
    assert message == "`${patches}/x`: the site does not define `patches`"
    assert hint == "add `patches: /a/directory` to site.yaml"


@pytest.mark.parametrize(("source", "target", "at_fault"), [("/a:b", "/c", "/a:b"), ("/a", "/c:ro", "/c:ro")])
def test_a_colon_in_a_mount(tmp_path: Path, source: str, target: str, at_fault: str) -> None:
    message, _ = refused(tmp_path, container(f'mounts: [{{source: "{source}", target: "{target}"}}]'))
    assert message == f"{at_fault} cannot be mounted: `-v` splits at colons"


LAST_LIST = ENGINE + "    served_model_name: [a, b]\n"


def test_a_list_may_not_come_last_before_bare_words(tmp_path: Path) -> None:
    assert refused(tmp_path, alone(LAST_LIST + "  extra_args: [bare]\n")) == (
        "engine.options.served_model_name would take the positional arguments at the start of engine.extra_args",
        "move served_model_name up: the next option ends its list",
    )
    plan = compiled(tmp_path, alone(LAST_LIST + "    port: 1\n  extra_args: [bare]\n"))
    assert plan.command[2:] == ("--served-model-name", "a", "b", "--port", "1", "bare")
    plan = compiled(tmp_path, alone(LAST_LIST + "  extra_args: [--flag]\n"))
    assert plan.command[-3:] == ("a", "b", "--flag")


def test_the_order_of_the_words(tmp_path: Path) -> None:
    text = alone(
        "engine:\n  name: vllm\n  version: 0.33.0\n  launcher: [vllm, serve]\n"
        "  options: {port: 1, model_tag: /model, max_model_len: 4096}\n  extra_args: [--x, '']\n"
    )
    assert compiled(tmp_path, text).command == (
        "vllm", "serve", "/model", "--port", "1", "--max-model-len", "4096", "--x", "",
    )  # fmt: skip


def test_the_forms_of_options(tmp_path: Path) -> None:
    text = alone(
        ENGINE + "    trust_remote_code: true\n    enable_prefix_caching: false\n    served_model_name: [a, b]\n"
        "    gpu_memory_utilization: 0.90\n"
        "    override_generation_config: {temperature: 0.90, top_p: [1, 0.50], a: ü}\n"
    )
    assert compiled(tmp_path, text).command == (
        "--model", "/model", "--trust-remote-code", "--no-enable-prefix-caching", "--served-model-name", "a", "b",
        "--gpu-memory-utilization", "0.90",
        "--override-generation-config", '{"temperature":0.90,"top_p":[1,0.50],"a":"ü"}',
    )  # fmt: skip


def test_another_engine(tmp_path: Path) -> None:
    text = alone(
        "engine:\n  name: sglang\n  launcher: [python3, -m, sglang.launch_server]\n  options: {model_path: /m, tp: 1}\n"
    )
    plan = compiled(tmp_path, text)
    assert plan.command == ("python3", "-m", "sglang.launch_server", "--model-path", "/m", "--tp", "1")
    assert (plan.engine, plan.engine_version, plan.served_names) == ("sglang", None, ("/m",))


def test_an_assignment_is_in_the_name(tmp_path: Path) -> None:
    plan = compiled(tmp_path, alone(), SITE, "digest", "engine.options.port=1")
    assert (plan.recipe, plan.lane, plan.release) == ("bench/v1+set", "bench", "v1+set")
    assert replace(plan, recipe="bench/v1", release="v1").command == ("--model", "/model", "--port", "1")


def test_a_plan_where_there_is_one(tmp_path: Path) -> None:
    recipe = load(write(tmp_path, {"v1": container("gpus: {name: RTX}")}), "v1").recipe
    assert recipe is not None
    assert Compiler(Site()).try_plan(recipe) is None
    known = Compiler(Site(gpus={"RTX": "GPU-1"})).try_plan(recipe)
    assert known is not None
    assert known.container.gpus == "device=GPU-1"


A = variable("A")


def test_vllms_own_processes(tmp_path: Path) -> None:
    plan = compiled(tmp_path, OWN)
    place = ("--nodes", "2")
    assert place[0] not in plan.command
    assert node_plan(plan, "0", A).command == (
        *plan.command, "--nnodes", "2", "--node-rank", "0", "--master-addr", A,
    )  # fmt: skip
    assert node_plan(plan, "1", A).command == (
        *plan.command, "--nnodes", "2", "--node-rank", "1", "--master-addr", A, "--headless",
    )  # fmt: skip


def test_sglang(tmp_path: Path) -> None:
    plan = compiled(tmp_path, SGLANG)
    words = ("--nnodes", "2", "--node-rank", "1", "--dist-init-addr", f"{A}:20000")
    assert node_plan(plan, "1", A).command == (*plan.command, *words)
    assert not own_address_variable(plan)


def words(text: str, directory: Path) -> tuple[str, ...]:
    return node_plan(compiled(directory, text), "0", A).command[2:]


def test_ray_starts_the_program_that_the_image_or_the_recipe_names(tmp_path: Path) -> None:
    engine = ("--model", "/model", "--pipeline-parallel-size", "3", "--distributed-executor-backend", "ray")
    assert words(RAY, tmp_path) == ("leader", A, "vllm", "serve", *engine)
    launched = RAY.replace("  options:", "  launcher: [python3, -m, serve]\n  options:")
    assert words(launched, tmp_path) == ("leader", A, "python3", "-m", "serve", *engine)
    entered = RAY.replace("  ipc: host", "  ipc: host\n  entrypoint: /serve")
    assert words(entered, tmp_path) == ("leader", A, "/serve", *engine)
    worker = node_plan(compiled(tmp_path, RAY), "1", A)
    assert (worker.container.entrypoint, worker.command[2:]) == ("/bin/bash", ("worker", A))


def test_the_digest_knows_nodes_and_nothing_else_changes_it(tmp_path: Path) -> None:
    one = compiled(tmp_path, OWN.replace("nodes: 2\n", ""))
    assert digest(compiled(tmp_path, OWN.replace("nodes: 2", "nodes: 1"))) == digest(one)
    assert digest(compiled(tmp_path, OWN)) != digest(one)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_what_nodes_says_is_not_said_twice(engine: str, tmp_path: Path) -> None:
    text = spread(2, engine, "{model_path: /model, nnodes: 2}" if engine == "sglang" else "{model: /model, nnodes: 2}")
    message = "engine.options.nnodes conflicts with `nodes`, which sets it on each machine"
    assert refused(tmp_path, text) == (message, "remove nnodes, or `nodes`")
    compiled(tmp_path, text.replace("nodes: 2\n", ""))


def test_an_address_that_the_recipe_says_is_left_alone() -> None:
    def plan(**env: str) -> Plan:
        return Plan("a/b", "a", "b", "vllm", None, "i", None, ContainerPlan("c", env=env), (), (), None, None, 2)

    assert own_address_variable(plan())
    assert not own_address_variable(plan(VLLM_HOST_IP="10.0.0.1"))


SITE_VARIABLES = {"models": "/models", "cache": "/cache dir"}
RECIPE = parse(
    Source(
        "f",
        'release: v1\nmodel: {revision: df42, path: "${models}/${model.revision}"}\nlimits: [a]\n'
        "engine: {options: {port: 30006, gpu_memory_utilization: 0.90, trust_remote_code: true, x: null}}\n"
        'container: {secrets: {K: {file: "${model.path}/key"}, L: {file: "${container.secrets.L.file}"}}}\n',
    )
).root


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("/plain", "/plain"),
        ("${models}/a", "/models/a"),
        ("${cache}", "/cache dir"),
        ("${models}${cache}", "/models/cache dir"),
        ("/a-${model.revision}-${release}", "/a-df42-v1"),
        ("${engine.options.port}", "30006"),
        ("${engine.options.gpu_memory_utilization}", "0.90"),
        ("${engine.options.trust_remote_code}", "true"),
        ("${model.path}/sub", "/models/df42/sub"),
        ("${container.secrets.K.file}", "/models/df42/key"),
        ("$${models}", "${models}"),
        ("a$${b}$c$$d$", "a${b}$c$$d$"),
        ("$$${models}", "$${models}"),
    ],
)
def test_variables_are_replaced(text: str, expanded: str) -> None:
    assert expand(text, SITE_VARIABLES, RECIPE) == expanded


NOTHING_LIKE_IT = "valid names: models, cache, patches, or a key of the recipe such as model.revision"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("${modls}", "unknown variable `modls`", "write ${models}"),
        ("${model.revison}", "unknown variable `model.revison`", "write ${model.revision}"),
        ("${HOME}", "unknown variable `HOME`", NOTHING_LIKE_IT),
        ("${}", "unknown variable ``", None),
        ("${ models }", "unknown variable ` models `", "write ${models}"),
        ("${limits.0}", "unknown variable `limits.0`", None),
        ("${model}", "`model` is not a single value", "name a text or a number of the recipe"),
        ("${limits}", "`limits` is not a single value", None),
        ("${engine.options.x}", "`engine.options.x` is not a single value", None),
        ("${models", "`${` is not closed", "add }, or write $${ for a literal ${"),
        ("/a/${", "`${` is not closed", None),
        ("${container.secrets.L.file}", "`container.secrets.L.file` refers to itself", "write the path here"),
    ],
)  # fmt: skip
def test_what_no_site_can_give(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(VariableError) as error:
        expand(text, SITE_VARIABLES, RECIPE)
    assert error.value.message.endswith(f"`: {message}")
    assert hint is None or error.value.hint == hint


def test_what_this_site_does_not_say() -> None:
    with pytest.raises(CompileError) as error:
        expand("${patches}/hook", SITE_VARIABLES, RECIPE)
    assert error.value.exit_code == 4
    assert error.value.message == "`${patches}/hook`: the site does not define `patches`"
    assert error.value.hint == "add `patches: /a/directory` to site.yaml"
