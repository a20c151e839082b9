"""Contexts of Docker's client, as `docker context create` writes them."""

import json
from hashlib import sha256
from pathlib import Path


def write_context(configuration: Path, name: str, host: str) -> None:
    directory = configuration / "contexts" / "meta" / sha256(name.encode()).hexdigest()
    directory.mkdir(parents=True)
    meta = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": False}}}
    (directory / "meta.json").write_text(json.dumps(meta))
