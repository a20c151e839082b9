from pathlib import Path

import pytest

from gb300serve.app.diagnose import LONGEST_LINE, LogUnreadableError, diagnosed, read_log
from tests.support.simulated import V14, boot_script, changed, said


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    path = tmp_path / "boot.log"
    path.write_bytes(b"a\rb\r\nc\xff\n")
    assert list(read_log(str(path))) == ["a\rb\r", "c\ufffd"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("ending", ["", "\r\n"])
def test_the_encodings_of_powershell(encoding: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / "boot.log"
    path.write_bytes(f"(APIServer pid=1) x\r\nModèle \u2588{ending}".encode(encoding))
    assert [line.rstrip() for line in read_log(str(path))] == ["(APIServer pid=1) x", "Modèle \u2588"]
    path.write_bytes(b"")
    assert list(read_log(str(path))) == []


def test_the_middle_of_an_endless_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "boot.log"
    path.write_bytes(b"begin" + b"x" * 5 * LONGEST_LINE + b"end\nnext")
    line, after = read_log(str(path))
    assert (line[:5], line[-3:], after) == ("begin", "end", "next")
    assert len(line) <= 3 * LONGEST_LINE


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LogUnreadableError) as caught:
        list(read_log(str(tmp_path / "x.log")))
    assert (caught.value.exit_code, caught.value.message) == (2, f"{tmp_path}/x.log: No such file or directory")


SECRET = "orchard-7f3k2m9q"


def lines_of(*words: str, stored: int | None = None) -> list[str]:
    return list(diagnosed(said(boot_script(words, stored=stored))).sentences())


def test_computed_advice_follows_the_engine_s() -> None:
    assert lines_of(*changed("--cpu-offload-gb", "55"))[3:] == [
        "  - One request of max_model_len 1048576 needs 2.2 GiB of KV cache, 0.65 are left.",
        "  - max_model_len 123264 would fit.",
        "  - cpu_offload_gb 57 moves 61.17 GiB and fits, with 4.87 GiB of KV cache (computed)",
    ]


def test_a_hit_and_a_miss_are_told_apart() -> None:
    assert "  tuning cache: hit, 210 configurations loaded" in lines_of(*V14)
    assert "  tuning cache: miss, 210 tuned" in lines_of(*V14, stored=0)
    hit = diagnosed(said(boot_script(V14))).as_json()["tuning"]
    assert (hit["cache"], hit["loaded"], hit["new"]) == ("hit", 210, 0)
    assert hit["path"].endswith("/autotune_configs.json")


def test_a_boot_that_never_tuned_has_null() -> None:
    assert diagnosed(said(boot_script(changed("--cpu-offload-gb", "55")))).as_json()["tuning"] is None


def test_the_echo_of_a_key_is_not_passed_on() -> None:
    lines = said(boot_script((*changed("--cpu-offload-params", "experts.*"), "--api-key", SECRET)))
    lines = [
        line.replace("'api_key': '***'", f"'api_key': ['{SECRET}']") for line in lines
    ]  # as older engines print it
    assert sum(SECRET in line for line in lines) == 1
    found = diagnosed(lines)
    assert "'api_key': ['[secret]']" in found.diagnosis.evidence[1].text
    assert SECRET not in "\n".join(found.sentences()) + str(found.as_json())


def test_a_token_is_known_by_its_shape() -> None:
    token = "hf_" + "Ab3dEf6hIj9k" * 2
    found = diagnosed([f"vllm serve: error: unrecognized arguments: --hf-tokn {token}"])
    assert token not in "\n".join(found.sentences()) + str(found.as_json())


def test_a_line_without_end_is_cut_for_people_only() -> None:
    found = diagnosed(["vllm serve: error: unrecognized arguments: --x " + "y" * 9000])
    shown = next(line for line in found.sentences() if line.startswith("  line 1: "))
    assert (len(shown), shown[-1]) == (210, "…")
    assert len(found.as_json()["evidence"][0]["text"]) == 9047
