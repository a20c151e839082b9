import json

from gb300serve.host.collect import collect_model_files
from gb300serve.host.missing import Missing
from gb300serve.host.model_files import Model, ModelFiles
from gb300serve.host.ports import FileEntry
from tests.support.fake_machine import FakeMachine

MODEL = Model("/m", "a/b", "rev")
INDEX = json.dumps({"weight_map": {"x": "1.safetensors", "y": "2.safetensors", "z": "3.safetensors"}})


def shard(size: int = 4) -> bytes:
    header = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


def test_a_whole_checkpoint() -> None:
    commit = "0123456789" * 4
    machine = FakeMachine(
        files={
            "/m/config.json": "{}",
            "/m/model.safetensors": shard(),
            "/m/.cache/huggingface/download/config.json.metadata": f"{commit}\nx\n",
        }
    )
    assert collect_model_files(MODEL, machine) == ModelFiles(MODEL, shards=1, bytes=len(shard()), revision=commit)


def test_what_an_index_names_and_is_not_there_or_cut() -> None:
    machine = FakeMachine(
        files={
            "/m/config.json": "version https://git-lfs.github.com/spec/v1",
            "/m/model.safetensors.index.json": INDEX,
            "/m/1.safetensors": shard()[:-1],
            "/m/2.safetensors": "version https://git-lfs.github.com/spec/v1",
            "/m/old.safetensors": shard(),
        }
    )
    assert collect_model_files(MODEL, machine) == ModelFiles(
        MODEL,
        config=False,
        shards=3,
        bytes=len(shard()) - 1 + 42,
        absent=("3.safetensors",),
        cut=("1.safetensors", "2.safetensors"),
    )


def test_a_snapshot_whose_links_lead_out_of_it() -> None:
    machine = FakeMachine(
        files={"/m/config.json": "{}", "/m/model.safetensors": shard()},
        links={"/m": "/hub/models--a--b/snapshots/rev", "/m/model.safetensors": "/hub/models--a--b/blobs/1"},
    )
    found = collect_model_files(MODEL, machine)
    assert (found.linked_away, found.complete) == (("model.safetensors",), True)


def test_a_directory_that_is_not_there_or_closed_or_empty() -> None:
    assert collect_model_files(MODEL, FakeMachine()) == ModelFiles(MODEL, exists=False)
    closed = FakeMachine(files={"/m/config.json": "{}"}, closed=frozenset({"/m"}))
    assert collect_model_files(MODEL, closed) == ModelFiles(MODEL, problem="/m: Permission denied")
    assert collect_model_files(MODEL, FakeMachine(files={"/m/README.md": ""})) == ModelFiles(MODEL, config=False)


class Denied(FakeMachine):
    def entry(self, path: str) -> FileEntry | Missing | None:
        return Missing(f"{path}: Permission denied")


def test_a_directory_that_may_not_be_looked_at() -> None:
    assert collect_model_files(MODEL, Denied()) == ModelFiles(MODEL, problem="/m: Permission denied")
