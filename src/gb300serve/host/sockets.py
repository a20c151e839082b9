"""`/proc/net/tcp` and `tcp6`: which sockets listen (Linux, Documentation/networking/proc_net_tcp.rst)."""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Socket:
    """A listening socket; `inode` is what its owner's file descriptor names."""

    address: str
    port: int
    inode: str


def listening(text: str) -> Iterator[Socket]:
    """The listening sockets of a table; lines that are not entries are passed over."""
    for line in text.splitlines():
        words = line.split()
        if len(words) > 9 and words[3] == _LISTEN and ":" in words[1]:
            address, _, port = words[1].rpartition(":")
            yield Socket(_address(address), int(port, 16), words[9])


def _address(text: str) -> str:
    """Words of 32 bits in the machine's byte order, which is little-endian wherever this runs."""
    raw = bytes.fromhex(text)
    words = [raw[start : start + 4][::-1] for start in range(0, len(raw), 4)]
    return str(ipaddress.ip_address(b"".join(words)))
