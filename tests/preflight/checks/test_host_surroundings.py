from gb300serve.core.values import Missing
from gb300serve.host.facts import ListeningSocket, SecretFact, TuningCache
from gb300serve.preflight.subject import LaunchRefusal, OwnResources
from tests.support.hosts import launched, said, station


def test_a_container_in_the_way() -> None:
    subject = launched(refusal=LaunchRefusal("the name is held", "gb300serve up v14 --replace"))
    assert said(subject, "PRE070") == [("error", "the name is held", "gb300serve up v14 --replace")]
    assert said(launched(), "PRE070") == said(station(), "PRE070") == []


def test_a_port_that_is_taken() -> None:
    heard = (ListeningSocket(30006, "127.0.0.1", "python3, process 4711"), ListeningSocket(8021, "::"))
    ways = "stop that program, or use another port; to identify it: ss -ltnp 'sport = :{}'"
    assert said(launched(ports=heard), "PRE071") == [
        ("error", "port 30006 is taken: python3, process 4711 listens on 127.0.0.1", ways.format(30006)),
        ("error", "port 8021 is taken: an unknown process listens on ::", ways.format(8021)),
    ]
    assert said(launched(ports=heard[:1], own=OwnResources(ports=frozenset({30006}))), "PRE071") == []


def test_a_secret_that_cannot_be_read() -> None:
    secrets = (SecretFact("A"), SecretFact("B", "secret B: the variable B is not set", "export B=…"))
    assert said(launched(secrets=secrets), "PRE072") == [("error", "secret B: the variable B is not set", "export B=…")]
    assert said(launched(secrets=Missing("x")), "PRE072") == said(station(), "PRE072") == []


def test_a_tuning_cache_that_is_not_there() -> None:
    message = "no kernel-tuning cache 9ac7b387 below /c: the first boot tunes, 16 to 81 minutes on a Station"
    hint = "copy the set from a machine that has it, or allow the time"
    assert said(launched(tuning_cache=TuningCache("/c", "9ac7b387", None)), "PRE073") == [("warning", message, hint)]
    assert said(launched(tuning_cache=TuningCache("/c", "9ac7b387", "/c/x")), "PRE073") == []
    assert said(launched(tuning_cache=Missing("x")), "PRE073") == said(launched(), "PRE073") == []


def test_another_tuning_set_under_the_identity_of_the_release() -> None:
    def cache(*found: str, wanted: str | None = "aa" * 32) -> TuningCache:
        return TuningCache("/c", "9ac7b387", "/c/x", found, wanted)

    message = "another set of this identity: the recipe names sha256 aaaaaaaaaaaa, found bbbbbbbbbbbb"
    hint = "`cache verify` compares, `cache seed` replaces it"
    assert said(launched(tuning_cache=cache("bb" * 32)), "PRE074") == [("warning", message, hint)]
    for fine in (cache("bb" * 32, "aa" * 32), cache(), cache("bb" * 32, wanted=None)):
        assert said(launched(tuning_cache=fine), "PRE074") == []
