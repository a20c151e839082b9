from pathlib import Path

import pytest

from tests.lint.samples import Case, Said, judge

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
            "start with /, ${models}, ${cache} or ${patches}; a volume is `volume: NAME`",
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
            "write `read_only: true` and remove it",
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
