"""The plan as an object for `--json`, and its digest."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from gb300serve.plan.model import ContainerPlan, GpuSelection, Mount, Plan, Secret

# Always present; the other options stand in the object only where they are set, so that an option that a later
# version learns leaves the digests of today's plans as they are.
ALWAYS = (
    "name", "gpus", "ipc", "network", "shm_size", "ulimits", "cap_add", "security_opt", "devices", "ports",
    "mounts", "env", "secrets", "labels", "entrypoint", "restart",
)  # fmt: skip


def container_document(container: ContainerPlan) -> dict[str, Any]:
    """`container` of the plan object."""
    values = asdict(container)
    values["name"] = container.name or None
    values["gpus"] = _gpus(container.gpus)
    values["mounts"] = [_mount(mount) for mount in container.mounts]
    values["secrets"] = [_secret(secret) for secret in container.secrets]
    always = {key: values.pop(key) for key in ALWAYS}
    return always | {key: value for key, value in values.items() if _is_set(value)}


def _is_set(value: Any) -> bool:
    """0 is a value: `--stop-timeout 0` is another launch than the engine's default of 10."""
    return bool(value) or (value is not False and value == 0)


def digest(plan: Plan) -> str:
    """sha256 of what is launched, without what it is called: the identity of a plan."""
    content: dict[str, Any] = {
        "engine": plan.engine,
        "image": plan.image,
        "image_id": plan.image_id,
        "container": container_document(plan.container),
        "command": plan.command,
    }
    if plan.nodes > 1:
        content["nodes"] = plan.nodes
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _gpus(selection: GpuSelection) -> Any:
    """As a recipe writes the choice: `all`, a count, `{"uuid": one or a list}`, `{"index": [0]}`."""
    if selection is None or not selection.startswith("device="):
        return selection
    names = selection.removeprefix("device=").split(",")
    if all(name.isdecimal() for name in names):
        return {"index": [int(name) for name in names]}
    return {"uuid": names[0] if len(names) == 1 else names}


def _mount(mount: Mount) -> dict[str, Any]:
    value: dict[str, Any] = {"source": mount.source, "target": mount.target, "read_only": mount.read_only}
    return value | ({"sha256": mount.sha256} if mount.sha256 else {})


def _secret(secret: Secret) -> dict[str, Any]:
    return {"name": secret.name} | ({"env": secret.env} if secret.env else {"file": secret.file})
