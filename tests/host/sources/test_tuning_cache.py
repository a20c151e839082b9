from gb300serve.host.sources.tuning_cache import matching


def test_by_the_beginning_of_the_name() -> None:
    paths = ("/c/0.6.18/103a/9ac7b3880", "/c/0.6.18/103a/9ac7b387ff", "/c/9ac7b387/x/y")
    assert matching("9ac7b387", paths) == "/c/0.6.18/103a/9ac7b387ff"
    assert matching("08c89d94", paths) is None
