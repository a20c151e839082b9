"""A stand-in for the ssh client: there is no ssh server here, and what runs behind one is Docker's own client."""

from collections.abc import Mapping
from pathlib import Path

SILENT = "silent"
"""In place of an Engine: a machine that takes the connection and says nothing."""

_HEAD = """\
#!/bin/sh
echo "$@" >>{asked}
while [ "$1" != -- ]; do shift; done
host=$2
shift 2
case $host in
{cases}
*) echo "ssh: Could not resolve hostname $host" >&2; exit 255 ;;
esac
exec "$@"
"""


def ssh_stand_in(directory: Path, engines: Mapping[str, str]) -> Path:
    """`<directory>/ssh`, which runs its last words against the Engine of the host; returns where it notes its words."""
    asked = directory / "asked"
    cases = "\n".join(
        f"{host}) exec sleep 60 ;;" if engine == SILENT else f"{host}) export DOCKER_HOST={engine} ;;"
        for host, engine in engines.items()
    )
    program = directory / "ssh"
    program.write_text(_HEAD.format(asked=asked, cases=cases))
    program.chmod(0o755)
    return asked
