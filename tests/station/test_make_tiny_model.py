import json
import struct
from pathlib import Path

from tests.station.make_tiny_model import byte_alphabet, shapes, write_model


def test_every_byte_has_a_character_of_its_own() -> None:
    alphabet = byte_alphabet()
    assert len(set(alphabet)) == 256
    assert (alphabet[ord("a")], alphabet[ord(" ")], alphabet[0]) == ("a", "Ġ", "Ā")


def test_the_shards_hold_every_weight_once(tmp_path: Path) -> None:
    write_model(tmp_path)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    held: dict[str, tuple[int, ...]] = {}
    for shard in sorted(tmp_path.glob("*.safetensors")):
        data = shard.read_bytes()
        length: int = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + length])
        tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
        assert max(tensor["data_offsets"][1] for tensor in tensors.values()) == len(data) - 8 - length
        assert {index["weight_map"][name] for name in tensors} == {shard.name}
        held |= {name: tuple(tensor["shape"]) for name, tensor in tensors.items()}
    assert held == shapes()


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    write_model(tmp_path / "a")
    write_model(tmp_path / "b")
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert [(tmp_path / "a" / name).read_bytes() for name in files] == [
        (tmp_path / "b" / name).read_bytes() for name in files
    ]
