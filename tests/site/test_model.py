from gb300serve.site.model import Site


def test_variables_of_a_lane() -> None:
    site = Site.model_validate({"models": "/m", "cache": "/c", "lanes": {"a": {"cache": "/a"}, "b": {}}})
    assert site.variables("a") == {"models": "/m", "cache": "/a"}
    assert site.variables("b") == {"models": "/m", "cache": "/c"}
    assert site.variables("absent") == {"models": "/m", "cache": "/c"}
    assert Site().variables("a") == {}
