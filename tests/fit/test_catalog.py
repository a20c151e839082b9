from gb300serve.fit.checkpoint import GIB, checkpoint, checkpoint_at, checkpoints


def test_flash_adds_up() -> None:
    flash = checkpoint("deepseek-ai/DeepSeek-V4.1-Flash")
    assert flash is not None
    layers = sum(parameter.bytes for parameter in flash.parameters)
    tables = [table.bytes for table in flash.host_tables]
    assert (round(layers / GIB / 40, 4), round(layers / GIB, 1)) == (6.7236, 268.9)
    assert [round(size / GIB, 2) for size in tables] == [94.42, 94.42]
    assert layers + sum(tables) < flash.bytes == 510_313_343_553
    assert flash.parameters[0].name == "model.layers.0.ffn.experts.routed_experts.w13_weight"
    assert flash.parameters[-1].name == "model.layers.39.ffn.experts.routed_experts.w2_weight_scale"


def test_every_file_is_readable_and_named_once() -> None:
    repos = [known.repo for known in checkpoints()]
    assert repos
    assert len(set(repos)) == len(repos)


def test_a_checkpoint_is_known_by_its_path() -> None:
    flash = checkpoint("deepseek-ai/deepseek-v4.1-flash")
    assert checkpoint_at("/models/DeepSeek-V4.1-Flash-df42c109f1defefcbfcedbe7d905718a12266e40") == flash
    assert checkpoint_at("/models/DeepSeek-V4.1-Flash/") == flash
    assert checkpoint_at("/models/GLM-5.3-Flash") is None


def test_a_hook_is_known_by_its_variable() -> None:
    flash = checkpoints()[0]
    assert flash.variant({"PIN_MODE": "split", "PIN_HOOK": "/w/hook.py"}) == "pin-hot-experts"
    assert flash.variant({"PIN_MODE": "split"}) is None
