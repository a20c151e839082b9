"""Who listens on the lane's port that is not the lane's container."""

from collections.abc import Iterable

from gb300serve.lifecycle.ports import Listener

# What forwards a published port into its container: their processes are not the container's.
_FORWARDERS = ("docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta", "conmon", "com.docker", "vpnkit")
_EVERY = ("0.0.0.0", "::", "*")  # noqa: S104 - what sockets are compared with; nothing is bound


def intruder(listeners: Iterable[Listener], own: frozenset[int], address: str) -> Listener | None:
    """The one that a client of `address` reaches, where it is surely none of ours; `own` are the container's processes.

    The kernel gives a connection to the socket of exactly its address before one of every address. None where the
    owner of the socket may not be seen.
    """
    every = tuple(listeners)
    exact = [each for each in every if each.address == address]
    reached = exact or [each for each in every if each.address in _EVERY]
    foreign = (each for each in reached if each.pid is not None and each.pid not in own)
    return next((each for each in foreign if not (each.process or "").startswith(_FORWARDERS)), None)
