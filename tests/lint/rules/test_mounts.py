from pathlib import Path

import pytest

from tests.lint.samples import BASES, Case, Said, changed, judge, lint, reported

CASES = (
    Case(
        "MNT001",
        "other",
        bad={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: ./templates, target: /templates}\n"
            )
        },
        said=Said(
            "error",
            "`./templates` is not an absolute path: Docker rejects it",
            "write a path that starts with /, ${models}, ${cache} or ${patches}; for a volume, write `volume: NAME`",
            22,
            16,
            "container.mounts.1.source",
        ),
        good={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/templates, target: /templates}\n"
            )
        },
    ),
    Case(
        "MNT002",
        "other",
        bad={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/templates, target: templates}\n"
            )
        },
        said=Said(
            "error",
            "`templates` is not an absolute path in the container",
            "write /templates",
            22,
            40,
            "container.mounts.1.target",
        ),
        good={},
    ),
    Case(
        "MNT003",
        "other",
        bad={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                '    - {source: /srv/templates, target: "/templates:ro"}\n'
            )
        },
        said=Said(
            "error",
            "`/templates:ro` contains a colon, which separates the parts of a mount",
            "remove `:ro` from the path, and write `read_only: true`",
            22,
            40,
            "container.mounts.1.target",
        ),
        good={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/templates, target: /templates, read_only: true}\n"
            )
        },
    ),
    Case(
        "MNT004",
        "other",
        bad={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/templates, target: /model/}\n"
            )
        },
        said=Said(
            "error", "/model/ is taken by model.mount", "mount it elsewhere", 22, 40, "container.mounts.1.target"
        ),
        good={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/templates, target: /model/templates}\n"
            )
        },
    ),
    Case(
        "MNT005",
        "other",
        bad={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/fix/hermes.py, target: "
                "/usr/lib/python3/dist-packages/vllm/hermes.py}\n"
            )
        },
        said=Said(
            "warning",
            ("/usr/lib/python3/dist-packages/vllm/hermes.py is code from outside the image, without a sha256"),
            "add `sha256:` of the file",
            22,
            44,
            "container.mounts.1.target",
        ),
        good={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - source: /srv/fix/hermes.py\n"
                "      target: /usr/lib/python3/dist-packages/vllm/hermes.py\n"
                "      sha256: 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a\n"
            )
        },
    ),
    Case(
        "MNT006",
        "other",
        bad={"target: /root/.cache/vllm}": "target: /cache}"},
        said=Said(
            "warning",
            "nothing is mounted at /root/.cache/vllm: each new container tunes its kernels again",
            'add {source: "${cache}", target: /root/.cache/vllm}',
            20,
            3,
            "container.mounts",
        ),
        good={"target: /root/.cache/vllm}": "target: /root/.cache}"},
    ),
    Case(
        "MNT007",
        "other",
        bad={"v0.32.0": "v0.33.0", "version: 0.32.0": "version: 0.33.0"},
        said=Said(
            "note",
            "vllm 0.33.0 stores its tuning in /root/.cache/flashinfer, which is not mounted",
            ("mount it, or add VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR: /root/.cache/vllm/flashinfer_autotune"),
            20,
            3,
            "container.mounts",
        ),
        good={
            "v0.32.0": "v0.33.0",
            "version: 0.32.0": "version: 0.33.0",
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/flashinfer, target: /root/.cache/flashinfer}\n"
            ),
        },
    ),
    Case(
        "MNT008",
        "other",
        bad={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/map.json, target: /w/map.json, read_only: false, sha256: "
                "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a}\n"
            )
        },
        said=Said(
            "warning",
            "a mount with sha256 is read-only",
            "remove `read_only: false`",
            22,
            63,
            "container.mounts.1.read_only",
        ),
        good={
            '    - {source: "${cache}", target: /root/.cache/vllm}\n': (
                '    - {source: "${cache}", target: /root/.cache/vllm}\n'
                "    - {source: /srv/map.json, target: /w/map.json, read_only: true, sha256: "
                "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a}\n"
            )
        },
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)


CACHE = '    - {source: "${cache}", target: /root/.cache/vllm}\n'
MOUNTED = f"{CACHE}    - {{source: /srv/pear, target: /pear}}\n"
PORT = "    port: 8000\n"
NOTHING = "mount it, and write the path below the target of the mount"


@pytest.mark.parametrize(
    ("options", "path", "hint"),
    [
        ("chat_template: /srv/pear/chat.jinja", "chat_template", "write /pear/chat.jinja"),
        ("chat_template: /data/chat.jinja", "chat_template", NOTHING),
        ("chat_template: ~/chat.jinja", "chat_template", NOTHING),
        ("chat_template: ./chat.jinja", "chat_template", NOTHING),
        ("lora_modules: [plum=/srv/pear/plum]", "lora_modules", "write /pear/plum"),
        ("lora_modules: [{name: plum, path: /data/plum}]", "lora_modules", NOTHING),
        ("default_mm_loras: {image: /data/plum}", "default_mm_loras", NOTHING),
        ("ssl_keyfile: /etc/plum/key.pem", "ssl_keyfile", NOTHING),
        ("ssl_ca_certs: /srv/pear/ca.pem", "ssl_ca_certs", "write /pear/ca.pem"),
        ("tool_parser_plugin: /data/plum.py", "tool_parser_plugin", NOTHING),
        ("download_dir: /srv/pear/hub", "download_dir", "write /pear/hub"),
    ],
)
def test_a_file_outside_every_mount(tmp_path: Path, options: str, path: str, hint: str) -> None:
    changes = {CACHE: MOUNTED, PORT: f"{PORT}    {options}\n"}
    assert reported(tmp_path, "other", changes) == [("MNT009", f"engine.options.{path}", hint)]


def test_a_file_outside_every_mount_in_raw_arguments_and_variables(tmp_path: Path) -> None:
    raw = f"{PORT}  extra_args: [--chat-template, /srv/pear/chat.jinja, --ssl-certfile=/data/cert.pem]\n"
    variable = "    VLLM_LOGGING_LEVEL: INFO\n    SSL_CERT_FILE: /data/ca.pem\n    PLUM: /srv/pear/plum\n"
    changes = {CACHE: MOUNTED, PORT: raw, "    VLLM_LOGGING_LEVEL: INFO\n": variable}
    findings = [found for found in reported(tmp_path, "other", changes) if found[0] == "MNT009"]
    assert findings == [
        ("MNT009", "container.env.SSL_CERT_FILE", NOTHING),
        ("MNT009", "container.env.PLUM", "write /pear/plum"),
        ("MNT009", "engine.extra_args.1", "write /pear/chat.jinja"),
        ("MNT009", "engine.extra_args.2", NOTHING),
    ]


@pytest.mark.parametrize(
    "options",
    [
        "chat_template: /pear/chat.jinja",
        "chat_template: /vllm-workspace/examples/tool_chat_template_hermes.jinja",
        'chat_template: "{% for plum in plums %}/data/{{ plum }}{% endfor %}"',
        "ssl_ca_certs: /etc/ssl/certs/ca-certificates.crt",
        "generation_config: vllm",
        "hf_config_path: acme/Quince-9B",
        "root_path: /api",
        "lora_modules: [plum=/pear/plum, peach=acme/peach]",
    ],
)
def test_a_file_in_the_container_is_not_reported(tmp_path: Path, options: str) -> None:
    assert reported(tmp_path, "other", {CACHE: MOUNTED, PORT: f"{PORT}    {options}\n"}) == []


def test_an_image_of_ones_own_may_contain_the_file(tmp_path: Path) -> None:
    template = f"{PORT}    chat_template: /data/chat.jinja\n"
    changes = {"repository: vllm/vllm-openai": "repository: acme/serve", PORT: template}
    assert [found.severity for found in lint(tmp_path, changed(BASES["other"], changes))] == ["note"]


HASH = "5a" * 32


@pytest.mark.parametrize(
    ("setting", "is_reported"),
    [
        ({"    VLLM_LOGGING_LEVEL: INFO\n": "    PLUM_HOOK: /pear/hook.py\n"}, True),
        ({"    VLLM_LOGGING_LEVEL: INFO\n": "    PYTHONPATH: /opt/plum:/pear\n"}, True),
        ({"    VLLM_LOGGING_LEVEL: INFO\n": "    LD_PRELOAD: /pear/lib/plum.so.1\n"}, True),
        ({PORT: f"{PORT}    tool_parser_plugin: /pear/plum.py\n"}, True),
        ({"  ipc: host\n": "  ipc: host\n  entrypoint: /pear/start.sh\n"}, True),
        ({"  version: 0.32.0\n": "  version: 0.32.0\n  launcher: [bash, /pear/start.sh]\n"}, True),
        ({"    VLLM_LOGGING_LEVEL: INFO\n": "    PLUM_TABLE: /pear/table.json\n"}, False),
        ({"    VLLM_LOGGING_LEVEL: INFO\n": "    PLUM_HOOK: /peach/hook.py\n"}, False),
    ],
)
def test_code_from_a_mounted_directory_needs_a_hash(tmp_path: Path, setting: dict[str, str], is_reported: bool) -> None:
    found = {code: path for code, path, _ in reported(tmp_path, "other", {CACHE: MOUNTED, **setting})}
    assert found.get("MNT005") == ("container.mounts.1.target" if is_reported else None)


@pytest.mark.parametrize(("name", "is_reported"), [("hook.py", False), ("other.py", True)])
def test_the_file_that_is_executed_needs_its_own_hash(tmp_path: Path, name: str, is_reported: bool) -> None:
    hashed = f"{CACHE}    - {{source: /srv/pear, target: /pear, sha256: {{{name}: {HASH}}}}}\n"
    changes = {CACHE: hashed, "    VLLM_LOGGING_LEVEL: INFO\n": "    PLUM_HOOK: /pear/hook.py\n"}
    assert ("MNT005" in [code for code, _, _ in reported(tmp_path, "other", changes)]) == is_reported


@pytest.mark.parametrize("package", ["", "/vllm", "/plum/"])
def test_a_directory_over_the_packages_of_the_image_is_code(tmp_path: Path, package: str) -> None:
    target = f"/usr/local/lib/python3.12/dist-packages{package}"
    changes = {CACHE: f"{CACHE}    - {{source: /srv/pear, target: {target}}}\n"}
    assert [found[:2] for found in reported(tmp_path, "other", changes)] == [("MNT005", "container.mounts.1.target")]
