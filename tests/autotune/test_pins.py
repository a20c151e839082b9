from dataclasses import replace

from gb300serve.autotune.pins import FORMAT, Pin, pins_of, with_pin

PIN = Pin("lane/v14", "0.6.18", "103a", "9ac7b387", "autotune_configs.json", 210, "ab" * 32, 1_796_000_000.0)


def test_a_pin_comes_back_as_it_was() -> None:
    document = with_pin({}, PIN)
    assert document["format"] == FORMAT
    assert pins_of(document) == {"lane/v14": PIN}
    assert PIN.kept == "ab" * 32 + ".json"


def test_a_release_has_one_pin() -> None:
    other = replace(PIN, release="lane/v11")
    document = with_pin(with_pin(with_pin({}, PIN), other), replace(PIN, configs=231))
    assert {name: pin.configs for name, pin in pins_of(document).items()} == {"lane/v11": 210, "lane/v14": 231}


def test_entries_of_another_shape_are_left_out() -> None:
    assert pins_of({"format": FORMAT, "pins": [{"release": "x"}]}) == {}
    assert pins_of({"format": "another", "pins": [PIN]}) == {}
