"""The options of `docker run` as the container section of a recipe."""

import csv
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from posixpath import normpath
from typing import Any

from gb300serve.core.redaction import holds_secret, is_placeholder, literal_secret
from gb300serve.core.text import find_placeholder, suggestion
from gb300serve.importers.docker_arguments import SWITCHES, VALUED, DockerOption
from gb300serve.importers.draft import VARIABLE, Draft
from gb300serve.importers.report import (
    CLEAR_TEXT,
    LEFT_OUT,
    NOT_TAKEN_OVER,
    PLACEHOLDER,
    REPEATED,
    SPELLING,
    UNSET,
    TextPosition,
    UnresolvedError,
    shorten,
)
from gb300serve.render.target import TargetService

_WINDOWS_PATH = re.compile(r"[A-Za-z]:(?!/[^:]*(?::[A-Za-z,]+)?$)|%\w+%")
_LOST = "the imported launch runs without it"


def _not_taken_over(draft: Draft, option: DockerOption, message: str, hint: str | None = None) -> None:
    draft.report.add(NOT_TAKEN_OVER, message, hint, option.place)


def _left_out(draft: Draft, option: DockerOption, message: str) -> None:
    draft.report.add(LEFT_OUT, message, None, option.place)


def add_volume(draft: Draft, option: DockerOption) -> None:
    """`-v SOURCE:TARGET[:MODE]`."""
    text = draft.as_written(option.value or "", option.place, "-v")
    if _WINDOWS_PATH.match(text):
        hint = "use the path of a directory on the Station"
        _not_taken_over(draft, option, f"-v {shorten(text)} is a Windows path, which the Station does not have", hint)
        return
    source, *rest = text.split(":")
    if not rest:
        message = f"-v {shorten(text)} has only one path: docker would create an anonymous volume there"
        _not_taken_over(draft, option, message, "write -v SOURCE:TARGET")
        return
    target, modes = rest[0], [mode for part in rest[1:] for mode in part.split(",") if mode]
    if others := [mode for mode in dict.fromkeys(modes) if mode not in ("ro", "rw")]:
        mode = shorten(",".join(others), 30)
        _left_out(draft, option, f"-v {shorten(text)}: a recipe cannot express the mode {mode}")
    _add_bind_mount(draft, option, source, target, read_only="ro" in modes)


# Docker's rule for names; a path contains a slash.
_VOLUME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
_MOUNT_KEYS = {"src": "source", "dst": "target", "destination": "target", "ro": "readonly"}


def add_mount(draft: Draft, option: DockerOption) -> None:
    """`--mount type=bind,source=…,target=…[,readonly]`."""
    text = draft.as_written(option.value or "", option.place, "--mount")
    items = (item.partition("=") for item in (next(csv.reader([text]), []) if "\n" not in text else []))
    values = {_MOUNT_KEYS.get(key, key): value for key, _, value in items}
    kind = values.pop("type", "volume")
    source, target, read_only = values.pop("source", ""), values.pop("target", ""), values.pop("readonly", "false")
    for key in values:
        _left_out(draft, option, f"--mount: a recipe cannot express {shorten(key, 30)}")
    if kind == "tmpfs" and target:
        draft.container.setdefault("tmpfs", []).append(target)
    elif kind in ("bind", "volume") and source and target:
        _add_bind_mount(draft, option, source, target, read_only=read_only in ("", "true", "1"))
    else:
        message = f"--mount {shorten(text)} does not mount a directory of the host"
        _not_taken_over(draft, option, message, "write type=bind,source=…,target=…")


def _add_bind_mount(draft: Draft, option: DockerOption, source: str, target: str, *, read_only: bool) -> None:
    if source.startswith("."):
        source = normpath(f"{draft.directory}/{source}")
        _left_out(draft, option, f"the relative path was resolved from {draft.directory}")
    elif not source.startswith(("/", "~", "$")) and not _VOLUME.fullmatch(source):
        message = f"{shorten(source)} is neither an absolute path nor the name of a volume: docker rejects it"
        _not_taken_over(draft, option, message, "write the path from /; it was kept as written")
    if find_placeholder(source):
        message = f"{shorten(source)} is a placeholder: the author did not publish the real path"
        draft.report.add(PLACEHOLDER, message, "write the real path", option.place)
    if not source or not target or ":" in source:
        _not_taken_over(draft, option, f"-v {shorten(source)} has no source and target", "write -v SOURCE:TARGET")
        return
    named = {"volume": source} if _VOLUME.fullmatch(source) else {"source": source.replace("${", "$${")}
    mount: dict[str, Any] = named | {"target": target}
    draft.container.setdefault("mounts", []).append(mount | ({"read_only": True} if read_only else {}))


CDI = "nvidia.com/gpu="


def _gpus_fields(value: str) -> list[str]:
    """The fields of `--gpus`, which Docker parses as CSV; each may keep its quotes."""
    text = value.strip().strip("'")
    return next(csv.reader([text], skipinitialspace=True), []) if "\n" not in text else []


def parse_gpus(value: str) -> Any:
    """The value of `--gpus` (`all`, a count, `device=…`) as `container.gpus`; None if it selects no GPU."""
    devices: list[str] = []
    for field in _gpus_fields(value):
        key, equals, text = field.strip().strip('"').partition("=")
        if key == "device" and equals:
            devices += text.split(",")
        elif key == "count" and equals:
            return _gpu_count(text)
        elif not equals and devices:
            devices.append(key)
        elif not equals:
            return _gpu_count(key)
    return gpu_selection(devices)


def other_gpu_settings(value: str) -> list[str]:
    """The fields of `--gpus` that do not select GPUs: `capabilities=…`, `driver=…`."""
    fields = map(str.strip, _gpus_fields(value))
    return [field for field in fields if field.strip('"').partition("=")[0] in ("capabilities", "driver")]


def _gpu_count(text: str) -> Any:
    if text in ("all", "-1"):
        return "all"
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,3}", text) else None


def gpu_selection(names: Sequence[str]) -> Any:
    """Indexes or UUIDs from `device=`, CDI or NVIDIA_VISIBLE_DEVICES; None if they select no GPU."""
    devices = [name.strip() for name in names if name.strip() not in ("", "none", "void")]
    if not devices:
        return None
    if "all" in devices:
        return "all"
    if all(re.fullmatch(r"[0-9]{1,4}", name) for name in devices):
        return {"index": [int(name) for name in devices]}
    return {"uuid": devices[0] if len(devices) == 1 else devices}


_TEXTS = {
    "ipc": "ipc", "network": "network", "shm-size": "shm_size", "user": "user", "workdir": "workdir", "pid": "pid",
    "memory": "memory", "entrypoint": "entrypoint", "cpuset-cpus": "cpuset_cpus", "memory-swap": "memory_swap",
}  # fmt: skip
_LISTS = {
    "cap-add": "cap_add", "security-opt": "security_opt", "tmpfs": "tmpfs", "publish": "ports",
    "group-add": "group_add", "add-host": "add_host",
}  # fmt: skip
_IRRELEVANT = {
    "detach": None, "quiet": None, "sig-proxy": None, "interactive": "a server reads no terminal",
    "tty": "a server needs no terminal",
    "rm": "the container of a lane is kept when it stops, so that it can be started again",
    "pull": "a launch does not pull images",
}  # fmt: skip
_NUMBERS = frozenset(("publish", "shm-size", "memory", "gpus", "ulimit", "stop-timeout"))
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")
_RESTART = re.compile(r"no|always|unless-stopped|on-failure(?::[0-9]+)?")

Handler = Callable[[Draft, DockerOption], None]


def apply_options(draft: Draft, options: Iterable[DockerOption]) -> None:
    """Add every option to the draft, in order."""
    given = list(options)
    for option in given:
        _apply(draft, option)
    _select_gpus(draft, given)


def _apply(draft: Draft, option: DockerOption) -> None:
    name = option.name
    if name in _NUMBERS and draft.require(option.value or "", option.place, f"--{name}"):
        return
    if name in VALUED and option.value is None:
        _not_taken_over(draft, option, f"--{name} has no value", "write a value, or leave the option out")
    elif name in _TEXTS:
        _set_text(draft, option, _TEXTS[name])
    elif name in _LISTS:
        draft.container.setdefault(_LISTS[name], []).append(_text_value(draft, option))
    elif name in ("init", "privileged"):
        draft.container |= {name: True} if option.value != "false" else {}
    elif name in _IRRELEVANT:
        if (reason := _IRRELEVANT[name]) is not None and option.value != "false":
            _left_out(draft, option, f"--{name} is left out: {reason}")
    else:
        _HANDLERS.get(name, _unsupported)(draft, option)


def _text_value(draft: Draft, option: DockerOption) -> str:
    return draft.redacted(option.value or "", option.place, f"--{option.name}")


def _unsupported(draft: Draft, option: DockerOption) -> None:
    flag = f"--{option.name}" if len(option.name) > 1 else f"-{option.name}"
    argument = f"{flag} {shorten(draft.as_written(option.value or '', option.place, flag))}".strip()
    if option.known:
        _not_taken_over(draft, option, f"a recipe cannot express {argument}", _LOST)
    else:
        similar = suggestion(option.name, (*VALUED, *SWITCHES)) if len(option.name) > 1 else None
        hint = f"did you mean --{similar}? The option was left out" if similar else "the option was left out"
        _not_taken_over(draft, option, f"docker run has no option {argument}", hint)


def _set_text(draft: Draft, option: DockerOption, key: str) -> None:
    value = _text_value(draft, option)
    if draft.container.get(key) not in (None, value):
        message = f"--{option.name} is repeated: docker uses the last value, {shorten(value)}"
        draft.report.add(REPEATED, message, "the earlier value was left out", option.place)
    if value:
        draft.container[key] = value
    elif key == "entrypoint":
        _not_taken_over(draft, option, 'a recipe cannot express an empty --entrypoint ""', "name the program")


def _name(draft: Draft, option: DockerOption) -> None:
    value = draft.as_written(option.value or "", option.place, "--name")
    if _NAME.fullmatch(value):
        _set_text(draft, option._replace(value=value), "name")
        return
    valid = re.sub(r"[^a-zA-Z0-9_.-]+", "-", value).strip("-._")
    message = f"--name {shorten(value)} is not a valid container name"
    if len(valid) > 1:
        draft.container["name"] = valid
        message += f": {valid} was used"
    draft.report.add(UNSET, message, "use two or more letters, digits, `.`, `-` or `_`", option.place)


def _restart(draft: Draft, option: DockerOption) -> None:
    value = option.value or ""
    if not _RESTART.fullmatch(value):
        hint = "write no, always, unless-stopped or on-failure[:N]"
        _not_taken_over(draft, option, f"--restart {shorten(value)} is not a restart policy of Docker", hint)
    elif value != "no":
        draft.container["restart"] = value


def _stop_timeout(draft: Draft, option: DockerOption) -> None:
    value = option.value or ""
    if re.fullmatch(r"[0-9]{1,6}", value):
        draft.container["stop_timeout"] = int(value)
    else:
        message = f"--stop-timeout {shorten(value)} is not a number of seconds"
        _not_taken_over(draft, option, message, "write a whole number")


def _ulimit(draft: Draft, option: DockerOption) -> None:
    value = option.value or ""
    if (match := re.fullmatch(r"([a-z]+)=(-?[0-9]{1,19})(?::(-?[0-9]{1,19}))?", value)) is None:
        _not_taken_over(draft, option, f"--ulimit {shorten(value)} is not valid", "write NAME=SOFT[:HARD]")
        return
    soft, hard = int(match[2]), int(match[3] or match[2])
    draft.container.setdefault("ulimits", {})[match[1]] = soft if soft == hard else {"soft": soft, "hard": hard}


def _label(draft: Draft, option: DockerOption) -> None:
    key, _, value = draft.as_written(option.value or "", option.place, "--label").partition("=")
    if key and not _holds_literal_secret(draft, option, f"the label {shorten(key, 30)}", key, value):
        draft.container.setdefault("labels", {})[key] = value


def _log_option(draft: Draft, option: DockerOption) -> None:
    key, _, value = draft.as_written(option.value or "", option.place, "--log-opt").partition("=")
    if not _holds_literal_secret(draft, option, f"the log option {shorten(key, 30)}", key, value):
        draft.container.setdefault("log", {}).setdefault("options", {})[key] = value


def _holds_literal_secret(draft: Draft, option: DockerOption, subject: str, key: str, value: str) -> bool:
    """Report and hide a secret where a recipe allows no reference, so that the setting must be left out."""
    if literal_secret(key, value) is None and not (holds_secret(key) and is_placeholder(value)):
        return False
    draft.report.hide(value)
    message = f"{subject} contains a secret as plain text: it was left out, because it cannot be a reference"
    draft.report.add(CLEAR_TEXT, message, "replace a secret that was published", option.place)
    return True


def _env(draft: Draft, option: DockerOption) -> None:
    name, equals, value = (option.value or "").partition("=")
    if equals:
        draft.set_variable(name, value, option.place)
    else:
        draft.pass_variable(name, option.place)


def _env_file(draft: Draft, option: DockerOption) -> None:
    """Docker reads lines `NAME=VALUE` and `NAME`, with literal quotes and without expanding variables."""
    path = draft.as_written(option.value or "", option.place, "--env-file")
    if (text := draft.read_file(path)) is None:
        message = f"the env file {shorten(path)} cannot be read here: its variables are missing from the recipe"
        _not_taken_over(draft, option, message, "copy it to that path, or write its variables into the recipe")
        return
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        name = line.lstrip().partition("=")[0]
        if not name or name.startswith("#"):
            continue
        if VARIABLE.fullmatch(name):
            _env(draft, option._replace(value=line.lstrip()))
        else:
            _not_taken_over(draft, option, f"line {number} of {shorten(path)} is not valid", "write NAME=VALUE")


def _device(draft: Draft, option: DockerOption) -> None:
    if not (option.value or "").startswith(CDI):
        draft.container.setdefault("devices", []).append(_text_value(draft, option))


def _runtime(draft: Draft, option: DockerOption) -> None:
    if option.value != "nvidia":
        _unsupported(draft, option)


def _gpus(draft: Draft, option: DockerOption) -> None:
    """The settings besides the selection, which `_select_gpus` reads."""
    if others := other_gpu_settings(option.value or ""):
        _not_taken_over(draft, option, f"--gpus: a recipe cannot express {shorten(', '.join(others))}", _LOST)


def _select_gpus(draft: Draft, options: list[DockerOption]) -> None:
    """The first of `--gpus`, CDI devices, and NVIDIA_VISIBLE_DEVICES that selects GPUs."""
    selections = [
        (option, f"--gpus {option.value}", parse_gpus(draft.as_written(option.value or "", option.place, "--gpus")))
        for option in options
        if option.name == "gpus" and not draft.missing
    ]
    if devices := [o for o in options if o.name == "device" and (o.value or "").startswith(CDI)]:
        names = [draft.as_written(o.value or "", o.place, "--device").removeprefix(CDI) for o in devices]
        selections.append((devices[0], f"--device {devices[0].value}", gpu_selection(names)))
    runtime = next((o for o in options if o.name == "runtime" and o.value == "nvidia"), None)
    if (visible := draft.env.get("NVIDIA_VISIBLE_DEVICES")) is not None and not selections:
        del draft.env["NVIDIA_VISIBLE_DEVICES"]
        at = runtime or next((o for o in options if (o.value or "").startswith("NVIDIA_VISIBLE")), options[0])
        selections.append((at, "NVIDIA_VISIBLE_DEVICES", gpu_selection(visible.split(","))))
    for option, source, gpus in selections:
        if gpus is None and option.name == "gpus" and option.value not in ("0", "count=0"):
            reason = f"{shorten(source)} selects no GPU, and docker starts no container with it"
            hint = "write all, a count or device=0; without a GPU, leave the option out"
            raise UnresolvedError(reason, option.place, hint)
        if gpus is None:
            _not_taken_over(draft, option, f"{shorten(source)} selects no GPU", "write all, a count or device=GPU-…")
        elif draft.container.setdefault("gpus", gpus) != gpus:
            message = f"{shorten(source)} was left out: an earlier option already selects GPUs"
            draft.report.add(REPEATED, message, "select the GPUs once", option.place)
        elif not source.startswith("--gpus"):
            draft.report.add(SPELLING, f"{shorten(source)} selects GPUs: it became container.gpus", None, option.place)
    if runtime is not None:
        _report_runtime(draft, runtime, [option.name for option, *_ in selections])


def _report_runtime(draft: Draft, runtime: DockerOption, selecting: list[str]) -> None:
    if not selecting:
        message = "--runtime nvidia selects no GPU by itself, and NVIDIA_VISIBLE_DEVICES of the image is not known here"
        _not_taken_over(draft, runtime, message, "add `gpus: all` to container")
    elif "gpus" in selecting:
        draft.report.add(SPELLING, "--runtime nvidia is left out: --gpus selects the GPUs", None, runtime.place)


HEALTH_TIMES = ("interval", "timeout", "start-period", "start-interval", "retries")
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:h|ms|us|ns|m|s))+")


def health_options(
    test: Sequence[str], times: Mapping[str, tuple[str, TextPosition]], place: TextPosition | None
) -> Iterator[DockerOption]:
    """A health check (`[CMD, …]`, `[CMD-SHELL, TEXT]`, `[NONE]`, or `[]` for that of the image) as docker options."""
    kind, *words = test or [""]
    if kind == "CMD" and words and _is_generated_check(words):
        return
    if kind == "NONE" or words in (["none"], ["NONE"]):
        yield DockerOption("no-healthcheck", None, place or TextPosition(1, 1))
        return
    if words:
        command = words[0] if kind == "CMD-SHELL" else shlex.join(words)
        yield DockerOption("health-cmd", command, place or TextPosition(1, 1))
    for key, (value, at) in times.items():
        yield DockerOption(f"health-{key}", value, at)


def _health(draft: Draft, option: DockerOption) -> None:
    """A `--health-…` option, or `--no-healthcheck`."""
    key, value = option.name.removeprefix("health-"), option.value or ""
    check = draft.container.setdefault("healthcheck", {})
    if option.name == "no-healthcheck":
        draft.container["healthcheck"] = {"disable": True}
    elif key == "cmd":
        text = draft.as_written(value, option.place, "--health-cmd")
        if not _holds_literal_secret(draft, option, "the health check", "", text):
            check["test"] = text
    elif key == "retries" and value.isdecimal():
        check["retries"] = int(value[:9])
    elif _DURATION.fullmatch(value):
        check[key.replace("-", "_")] = value
    else:
        message = f"--{option.name} {shorten(value)} is not valid"
        _not_taken_over(draft, option, message, "write a whole number" if key == "retries" else "write 30s or 1m30s")
    if not draft.container["healthcheck"]:
        del draft.container["healthcheck"]


def _is_generated_check(words: Sequence[str]) -> bool:
    """Whether `compile --to` wrote the check: every compiled file gets it again."""
    port = re.search(r"//127\.0\.0\.1:(\d{1,5})/", words[-1])
    return port is not None and list(words) == ["python3", "-c", TargetService(int(port[1])).health_program]


_HANDLERS: dict[str, Handler] = {
    "no-healthcheck": _health, **{f"health-{key}": _health for key in ("cmd", *HEALTH_TIMES)},
    "name": _name, "restart": _restart, "stop-timeout": _stop_timeout, "ulimit": _ulimit,
    "label": _label,
    "log-driver": lambda draft, option: draft.container.setdefault("log", {}).update(driver=_text_value(draft, option)),
    "log-opt": _log_option, "env": _env, "env-file": _env_file,
    "device": _device, "runtime": _runtime, "gpus": _gpus, "volume": add_volume, "mount": add_mount,
}  # fmt: skip
