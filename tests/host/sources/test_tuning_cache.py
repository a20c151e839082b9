from gb300serve.host.model_files import matching_set


def test_by_the_beginning_of_the_name() -> None:
    paths = ("/c/0.6.18/103a/9ac7b3880", "/c/0.6.18/103a/9ac7b387ff", "/c/9ac7b387/x/y")
    assert matching_set("9ac7b387", paths) == "/c/0.6.18/103a/9ac7b387ff"
    assert matching_set("08c89d94", paths) is None
