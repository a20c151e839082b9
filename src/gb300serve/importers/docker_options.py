"""The options of `docker run` as the container's section of a recipe. What a recipe cannot say is reported."""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from posixpath import normpath
from typing import Any

from gb300serve.core.text import suggestion
from gb300serve.importers.docker_arguments import SWITCHES, VALUED, DockerOption
from gb300serve.importers.draft import VARIABLE, Draft
from gb300serve.importers.report import LEFT_OUT, NOT_TAKEN_OVER, PLACEHOLDER, REPEATED, SPELLING, UNSET, shorten

_PLACEHOLDER = re.compile(r"/path/to\b|<[A-Za-z][^<>]*>|\byour[-_ /]|/YOUR|\.\.\.|…", re.IGNORECASE)
_WINDOWS = re.compile(r"[A-Za-z]:(?!/[^:]*(?::[A-Za-z,]+)?$)|%\w+%")


def add_volume(draft: Draft, option: DockerOption) -> None:
    """`-v SOURCE:TARGET[:MODE]`."""
    text = draft.plain(option.value or "", option.place, "-v")
    if _WINDOWS.match(text):
        message = f"-v {shorten(text)} names a directory of Windows: the Station has none"
        draft.report.add(NOT_TAKEN_OVER, message, "write the path of a directory of the Station", option.place)
        return
    source, *rest = text.split(":")
    if not rest:
        message = (
            f"-v {shorten(text)} has one path only: docker makes an anonymous volume there, and mounts no directory"
        )
        draft.report.add(NOT_TAKEN_OVER, message, "write -v SOURCE:TARGET", option.place)
        return
    target, modes = rest[0], [mode for part in rest[1:] for mode in part.split(",") if mode]
    if untold := [mode for mode in dict.fromkeys(modes) if mode not in ("ro", "rw")]:
        message = f"-v {shorten(text)}: a recipe has no word for the mode {shorten(','.join(untold), 30)}"
        draft.report.add(LEFT_OUT, message, None, option.place)
    _add(draft, option, source, target, read_only="ro" in modes)


def add_mount(draft: Draft, option: DockerOption) -> None:
    """`--mount type=bind,source=…,target=…[,readonly]`."""
    text = draft.plain(option.value or "", option.place, "--mount")
    said: dict[str, str] = {}
    for item in next(csv.reader([text]), []) if "\n" not in text else []:
        key, _, value = item.partition("=")
        said[{"src": "source", "dst": "target", "destination": "target", "ro": "readonly"}.get(key, key)] = value
    kind = said.pop("type", "volume")
    source, target, read_only = said.pop("source", ""), said.pop("target", ""), said.pop("readonly", "false")
    for key in said:
        draft.report.add(LEFT_OUT, f"--mount: a recipe has no word for {shorten(key, 30)}", None, option.place)
    if kind == "tmpfs" and target:
        draft.container.setdefault("tmpfs", []).append(target)
    elif kind in ("bind", "volume") and source and target:
        _add(draft, option, source, target, read_only=read_only in ("", "true", "1"))
    else:
        message = f"--mount {shorten(text)} mounts nothing of the host"
        draft.report.add(NOT_TAKEN_OVER, message, "write type=bind,source=…,target=…", option.place)


def _add(draft: Draft, option: DockerOption, source: str, target: str, *, read_only: bool) -> None:
    if source.startswith("."):
        source = normpath(f"{draft.directory}/{source}")
        draft.report.add(LEFT_OUT, f"the relative path was read from {draft.directory}", None, option.place)
    elif not source.startswith(("/", "~", "$")):
        message = f"{shorten(source)} is a named volume, not a path of the host"
        draft.report.add(
            NOT_TAKEN_OVER, message, "write the path of a directory; it is kept here as it was said", option.place
        )
    if _PLACEHOLDER.search(source):
        message = f"{shorten(source)} is a placeholder: the author's own path was not published"
        draft.report.add(PLACEHOLDER, message, "write the real path", option.place)
    if not source or not target or ":" in source:
        draft.report.add(NOT_TAKEN_OVER, f"-v {shorten(source)}: not a source and a target", None, option.place)
        return
    mount: dict[str, Any] = {"source": source.replace("${", "$${"), "target": target}
    draft.container.setdefault("mounts", []).append(mount | ({"read_only": True} if read_only else {}))


CDI = "nvidia.com/gpu="


def parse_gpus(value: str) -> Any:
    """The value of `--gpus`: `all`, a count, `device=…` with the quotes that docker's reader of lists needs."""
    text = value.strip().strip("'")
    fields = next(csv.reader([text], skipinitialspace=True), []) if "\n" not in text else []
    devices: list[str] = []
    for item in fields:
        key, equals, said = item.strip().strip('"').partition("=")
        if key == "device" and equals:
            devices += said.split(",")
        elif key == "count" and equals:
            return _counted(said)
        elif not equals and devices:
            devices.append(key)
        elif not equals:
            return _counted(key)
    return gpu_selection(devices)


def other_gpu_settings(value: str) -> list[str]:
    """What `--gpus` says besides which GPUs: `capabilities=…`, `driver=…`."""
    fields = next(csv.reader([value.strip().strip("'")], skipinitialspace=True), []) if "\n" not in value else []
    return [item.strip() for item in fields if item.strip().strip('"').partition("=")[0] in ("capabilities", "driver")]


def _counted(text: str) -> Any:
    if text in ("all", "-1"):
        return "all"
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,3}", text) else None


def gpu_selection(names: Sequence[str]) -> Any:
    """A list of UUIDs or indexes, from `device=`, CDI or NVIDIA_VISIBLE_DEVICES; None where it chooses none."""
    chosen = [name.strip() for name in names if name.strip() not in ("", "none", "void")]
    if not chosen:
        return None
    if "all" in chosen:
        return "all"
    if all(re.fullmatch(r"[0-9]{1,4}", name) for name in chosen):
        return {"index": [int(name) for name in chosen]}
    return {"uuid": chosen[0] if len(chosen) == 1 else chosen}


_TEXTS = {
    "ipc": "ipc", "network": "network", "shm-size": "shm_size", "user": "user", "workdir": "workdir", "pid": "pid",
    "memory": "memory", "entrypoint": "entrypoint",
}  # fmt: skip
_LISTS = {"cap-add": "cap_add", "security-opt": "security_opt", "tmpfs": "tmpfs", "publish": "ports"}
_QUIET = {
    "detach": None,
    "quiet": None,
    "interactive": "a server reads no terminal",
    "tty": "a server needs no terminal",
    "rm": "a lane's container is kept when it stops, so that it can be started again",
    "pull": "a launch pulls nothing",
    "sig-proxy": None,
}
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")
_RESTART = re.compile(r"no|always|unless-stopped|on-failure(?::[0-9]+)?")

Handler = Callable[[Draft, DockerOption], None]


def apply_options(draft: Draft, options: Iterable[DockerOption]) -> None:
    """Every option into the draft, in the order in which they stand."""
    given = list(options)
    for option in given:
        _take(draft, option)
    _choose_gpus(draft, given)


def _take(draft: Draft, option: DockerOption) -> None:
    if option.name in VALUED and option.value is None:
        draft.report.add(
            NOT_TAKEN_OVER, f"--{option.name} has no value", "write one, or leave the option out", option.place
        )
    elif option.name in _TEXTS:
        _single(draft, option, _TEXTS[option.name])
    elif option.name in _LISTS:
        value = draft.text(option.value or "", option.place, f"--{option.name}")
        draft.container.setdefault(_LISTS[option.name], []).append(value)
    elif option.name in _QUIET:
        if (why := _QUIET[option.name]) is not None and option.value != "false":
            draft.report.add(LEFT_OUT, f"--{option.name} is left out: {why}", None, option.place)
    elif (handler := _HANDLERS.get(option.name)) is not None:
        handler(draft, option)
    else:
        _untold(draft, option)


def _untold(draft: Draft, option: DockerOption) -> None:
    flag = f"--{option.name}" if len(option.name) > 1 else f"-{option.name}"
    said = f" {shorten(draft.plain(option.value, option.place, flag))}" if option.value else ""
    if option.known:
        draft.report.add(
            NOT_TAKEN_OVER,
            f"a recipe has no word for {flag}{said}",
            "the launch that it describes lacks it",
            option.place,
        )
    else:
        meant = suggestion(option.name, (*VALUED, *SWITCHES)) if len(option.name) > 1 else None
        hint = f"did you mean --{meant}? It was not taken over" if meant else "it was not taken over"
        draft.report.add(NOT_TAKEN_OVER, f"docker run has no option {flag}{said}", hint, option.place)


def _single(draft: Draft, option: DockerOption, key: str) -> None:
    value = draft.text(option.value or "", option.place, f"--{option.name}")
    before = draft.container.get(key)
    if before not in (None, value):
        draft.report.add(
            REPEATED, f"--{option.name} stands here again: docker takes the last, {shorten(value)}", None, option.place
        )
    if value:
        draft.container[key] = value
    elif key == "entrypoint":
        draft.report.add(
            NOT_TAKEN_OVER, 'a recipe has no word for an empty --entrypoint ""', "name the program", option.place
        )


def _name(draft: Draft, option: DockerOption) -> None:
    value = draft.plain(option.value or "", option.place, "--name")
    if _NAME.fullmatch(value):
        _single(draft, option._replace(value=value), "name")
    else:
        kept = re.sub(r"[^a-zA-Z0-9_.-]+", "-", value).strip("-._")
        message = f"--name {shorten(value)} is no name of a container" + (
            f": {kept} was taken" if len(kept) > 1 else ""
        )
        draft.report.add(UNSET, message, "two or more of letters, digits, `.`, `-` and `_`", option.place)
        if len(kept) > 1:
            draft.container["name"] = kept


def _init(draft: Draft, option: DockerOption) -> None:
    if option.value != "false":
        draft.container["init"] = True


def _restart(draft: Draft, option: DockerOption) -> None:
    value = option.value or ""
    if not _RESTART.fullmatch(value):
        draft.report.add(NOT_TAKEN_OVER, f"--restart {shorten(value)} is no policy of docker's", None, option.place)
    elif value != "no":
        draft.container["restart"] = value


def _stop_timeout(draft: Draft, option: DockerOption) -> None:
    if re.fullmatch(r"[0-9]{1,6}", option.value or ""):
        draft.container["stop_timeout"] = int(option.value or "")
    else:
        draft.report.add(
            NOT_TAKEN_OVER, f"--stop-timeout {shorten(option.value or '')} is no number of seconds", None, option.place
        )


def _ulimit(draft: Draft, option: DockerOption) -> None:
    found = re.fullmatch(r"([a-z]+)=(-?[0-9]{1,19})(?::(-?[0-9]{1,19}))?", option.value or "")
    if found is None:
        draft.report.add(
            NOT_TAKEN_OVER, f"--ulimit {shorten(option.value or '')} is not NAME=SOFT[:HARD]", None, option.place
        )
        return
    soft, hard = int(found[2]), int(found[3] or found[2])
    limit: Any = soft if soft == hard else {"soft": soft, "hard": hard}
    draft.container.setdefault("ulimits", {})[found[1]] = limit


def _label(draft: Draft, option: DockerOption) -> None:
    key, _, value = draft.plain(option.value or "", option.place, "--label").partition("=")
    if key:
        draft.container.setdefault("labels", {})[key] = draft.text(value, option.place, f"the label {shorten(key, 30)}")


def _log_driver(draft: Draft, option: DockerOption) -> None:
    draft.container.setdefault("log", {})["driver"] = draft.text(option.value or "", option.place, "--log-driver")


def _log_option(draft: Draft, option: DockerOption) -> None:
    key, _, value = (option.value or "").partition("=")
    options = draft.container.setdefault("log", {}).setdefault("options", {})
    options[key] = draft.text(value, option.place, f"--log-opt {shorten(key, 30)}")


def _env(draft: Draft, option: DockerOption) -> None:
    name, equals, value = (option.value or "").partition("=")
    if equals:
        draft.variable(name, value, option.place)
    else:
        draft.passed_on(name, option.place)


def _env_file(draft: Draft, option: DockerOption) -> None:
    """Docker reads lines `NAME=VALUE` and `NAME`, takes quotes as they are, and no variables."""
    path = draft.plain(option.value or "", option.place, "--env-file")
    text = draft.read_file(path)
    if text is None:
        message = f"the env file {shorten(path)} cannot be read here: its variables are missing from the recipe"
        draft.report.add(
            NOT_TAKEN_OVER, message, "put it where the text says, or write its variables into the recipe", option.place
        )
        return
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        name, equals, value = line.lstrip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not VARIABLE.fullmatch(name):
            draft.report.add(NOT_TAKEN_OVER, f"line {number} of {shorten(path)} is no NAME=VALUE", None, option.place)
        elif equals:
            draft.variable(name, value, option.place)
        else:
            draft.passed_on(name, option.place)


def _device(draft: Draft, option: DockerOption) -> None:
    if not (option.value or "").startswith(CDI):
        value = draft.text(option.value or "", option.place, "--device")
        draft.container.setdefault("devices", []).append(value)


def _runtime(draft: Draft, option: DockerOption) -> None:
    if option.value != "nvidia":
        _untold(draft, option)


def _gpus(draft: Draft, option: DockerOption) -> None:
    """What stands beside the devices; all ways to choose these are looked at together."""
    if untold := other_gpu_settings(option.value or ""):
        message = f"--gpus: a recipe has no word for {shorten(', '.join(untold))}"
        draft.report.add(NOT_TAKEN_OVER, message, "the launch that it describes lacks it", option.place)


def _choose_gpus(draft: Draft, options: list[DockerOption]) -> None:
    """`--gpus`, CDI devices, or the older runtime with its variable; the first of them that chooses."""
    ways = [
        (o, f"--gpus {o.value}", parse_gpus(draft.plain(o.value or "", o.place, "--gpus")))
        for o in options
        if o.name == "gpus"
    ]
    named = [o for o in options if o.name == "device" and (o.value or "").startswith(CDI)]
    if named:
        names = [draft.plain(o.value or "", o.place, "--device").removeprefix(CDI) for o in named]
        ways.append((named[0], f"--device {named[0].value}", gpu_selection(names)))
    runtime = next((o for o in options if o.name == "runtime" and o.value == "nvidia"), None)
    if (visible := draft.env.get("NVIDIA_VISIBLE_DEVICES")) is not None and not ways:
        del draft.env["NVIDIA_VISIBLE_DEVICES"]
        at = runtime or next((o for o in options if (o.value or "").startswith("NVIDIA_VISIBLE")), options[0])
        ways.append((at, "NVIDIA_VISIBLE_DEVICES", gpu_selection(visible.split(","))))
    for option, said, chosen in ways:
        if chosen is None:
            draft.report.add(
                NOT_TAKEN_OVER, f"{shorten(said)} chooses no GPU", "write all, a count or device=GPU-…", option.place
            )
        elif draft.container.setdefault("gpus", chosen) != chosen:
            draft.report.add(
                REPEATED, f"{shorten(said)}: the GPUs are chosen already, this was left out", None, option.place
            )
        elif not said.startswith("--gpus"):
            draft.report.add(SPELLING, f"{shorten(said)} chooses GPUs: it became container.gpus", None, option.place)
    if runtime is not None:
        _say_runtime(draft, runtime, [option.name for option, *_ in ways])


def _say_runtime(draft: Draft, runtime: DockerOption, ways: list[str]) -> None:
    if not ways:
        message = (
            "--runtime nvidia chooses no GPU by itself: what the image's NVIDIA_VISIBLE_DEVICES says is not known here"
        )
        draft.report.add(NOT_TAKEN_OVER, message, "add gpus: all to the recipe's container", runtime.place)
    elif "gpus" in ways:
        draft.report.add(SPELLING, "--runtime nvidia is left out: --gpus alone chooses the GPUs", None, runtime.place)


_HANDLERS: dict[str, Handler] = {
    "name": _name,
    "init": _init,
    "restart": _restart,
    "stop-timeout": _stop_timeout,
    "ulimit": _ulimit,
    "label": _label,
    "log-driver": _log_driver,
    "log-opt": _log_option,
    "env": _env,
    "env-file": _env_file,
    "device": _device,
    "runtime": _runtime,
    "gpus": _gpus,
    "volume": add_volume,
    "mount": add_mount,
}
