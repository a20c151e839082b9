from gb300serve.recipe.site import Site


def test_variables_of_a_lane() -> None:
    site = Site.model_validate({"models": "/m", "cache": "/c", "lanes": {"a": {"cache": "/a"}, "b": {}}})
    assert site.variables("a") == {"models": "/m", "cache": "/a"}
    assert site.variables("b") == {"models": "/m", "cache": "/c"}
    assert site.variables("absent") == {"models": "/m", "cache": "/c"}
    assert Site().variables("a") == {}


def test_a_station_is_laid_over_the_top_level() -> None:
    site = Site.model_validate(
        {
            "models": "/m",
            "cache": "/c",
            "address": "10.0.0.1",
            "docker": {"context": "c"},
            "gpus": {"GB300": "GPU-1", "RTX": "GPU-2"},
            "stations": {
                "a": {"docker": {"host": "ssh://a"}, "cache": "/a", "gpus": {"GB300": "GPU-3"}},
                "b": {"address": "10.0.0.2"},
            },
        }
    )
    a, b = site.at("a"), site.at("b")
    assert (a.models, a.cache, a.docker.host, a.docker.context) == ("/m", "/a", "ssh://a", None)
    assert (a.address, a.gpus) == (None, {"GB300": "GPU-3"})  # the address was another machine's
    assert (b.address, b.docker.context, b.gpus) == ("10.0.0.2", "c", site.gpus)
