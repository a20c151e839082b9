"""The options of `docker run` as the container's section of a recipe. What a recipe cannot say is reported."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from gb300serve.core.text import suggestion
from gb300serve.importers.docker_words import SWITCHES, VALUED, DockerOption
from gb300serve.importers.draft import VARIABLE, Draft
from gb300serve.importers.gpu_choice import CDI, beside_devices, by_devices, from_gpus
from gb300serve.importers.mounts import add_mount, add_volume
from gb300serve.importers.report import LEFT_OUT, NOT_TAKEN, REPEATED, SPELLING, UNSET, shown

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


def take_options(draft: Draft, options: Iterable[DockerOption]) -> None:
    """Every option into the draft, in the order in which they stand."""
    given = list(options)
    for option in given:
        _take(draft, option)
    _choose_gpus(draft, given)


def _take(draft: Draft, option: DockerOption) -> None:
    if option.name in VALUED and option.value is None:
        draft.report.say(NOT_TAKEN, f"--{option.name} has no value", "write one, or leave the option out", option.place)
    elif option.name in _TEXTS:
        _single(draft, option, _TEXTS[option.name])
    elif option.name in _LISTS:
        value = draft.text(option.value or "", option.place, f"--{option.name}")
        draft.container.setdefault(_LISTS[option.name], []).append(value)
    elif option.name in _QUIET:
        if (why := _QUIET[option.name]) is not None and option.value != "false":
            draft.report.say(LEFT_OUT, f"--{option.name} is left out: {why}", None, option.place)
    elif (handler := _HANDLERS.get(option.name)) is not None:
        handler(draft, option)
    else:
        _untold(draft, option)


def _untold(draft: Draft, option: DockerOption) -> None:
    flag = f"--{option.name}" if len(option.name) > 1 else f"-{option.name}"
    said = f" {shown(draft.plain(option.value, option.place, flag))}" if option.value else ""
    if option.known:
        draft.report.say(
            NOT_TAKEN, f"a recipe has no word for {flag}{said}", "the launch that it describes lacks it", option.place
        )
    else:
        meant = suggestion(option.name, (*VALUED, *SWITCHES)) if len(option.name) > 1 else None
        hint = f"did you mean --{meant}? It was not taken over" if meant else "it was not taken over"
        draft.report.say(NOT_TAKEN, f"docker run has no option {flag}{said}", hint, option.place)


def _single(draft: Draft, option: DockerOption, key: str) -> None:
    value = draft.text(option.value or "", option.place, f"--{option.name}")
    before = draft.container.get(key)
    if before not in (None, value):
        draft.report.say(
            REPEATED, f"--{option.name} stands here again: docker takes the last, {shown(value)}", None, option.place
        )
    if value:
        draft.container[key] = value
    elif key == "entrypoint":
        draft.report.say(
            NOT_TAKEN, 'a recipe has no word for an empty --entrypoint ""', "name the program", option.place
        )


def _name(draft: Draft, option: DockerOption) -> None:
    value = draft.plain(option.value or "", option.place, "--name")
    if _NAME.fullmatch(value):
        _single(draft, option._replace(value=value), "name")
    else:
        kept = re.sub(r"[^a-zA-Z0-9_.-]+", "-", value).strip("-._")
        message = f"--name {shown(value)} is no name of a container" + (f": {kept} was taken" if len(kept) > 1 else "")
        draft.report.say(UNSET, message, "two or more of letters, digits, `.`, `-` and `_`", option.place)
        if len(kept) > 1:
            draft.container["name"] = kept


def _init(draft: Draft, option: DockerOption) -> None:
    if option.value != "false":
        draft.container["init"] = True


def _restart(draft: Draft, option: DockerOption) -> None:
    value = option.value or ""
    if not _RESTART.fullmatch(value):
        draft.report.say(NOT_TAKEN, f"--restart {shown(value)} is no policy of docker's", None, option.place)
    elif value != "no":
        draft.container["restart"] = value


def _stop_timeout(draft: Draft, option: DockerOption) -> None:
    if re.fullmatch(r"[0-9]{1,6}", option.value or ""):
        draft.container["stop_timeout"] = int(option.value or "")
    else:
        draft.report.say(
            NOT_TAKEN, f"--stop-timeout {shown(option.value or '')} is no number of seconds", None, option.place
        )


def _ulimit(draft: Draft, option: DockerOption) -> None:
    found = re.fullmatch(r"([a-z]+)=(-?[0-9]{1,19})(?::(-?[0-9]{1,19}))?", option.value or "")
    if found is None:
        draft.report.say(NOT_TAKEN, f"--ulimit {shown(option.value or '')} is not NAME=SOFT[:HARD]", None, option.place)
        return
    soft, hard = int(found[2]), int(found[3] or found[2])
    limit: Any = soft if soft == hard else {"soft": soft, "hard": hard}
    draft.container.setdefault("ulimits", {})[found[1]] = limit


def _label(draft: Draft, option: DockerOption) -> None:
    key, _, value = draft.plain(option.value or "", option.place, "--label").partition("=")
    if key:
        draft.container.setdefault("labels", {})[key] = draft.text(value, option.place, f"the label {shown(key, 30)}")


def _log_driver(draft: Draft, option: DockerOption) -> None:
    draft.container.setdefault("log", {})["driver"] = draft.text(option.value or "", option.place, "--log-driver")


def _log_option(draft: Draft, option: DockerOption) -> None:
    key, _, value = (option.value or "").partition("=")
    options = draft.container.setdefault("log", {}).setdefault("options", {})
    options[key] = draft.text(value, option.place, f"--log-opt {shown(key, 30)}")


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
        message = f"the env file {shown(path)} cannot be read here: its variables are missing from the recipe"
        draft.report.say(
            NOT_TAKEN, message, "put it where the text says, or write its variables into the recipe", option.place
        )
        return
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        name, equals, value = line.lstrip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not VARIABLE.fullmatch(name):
            draft.report.say(NOT_TAKEN, f"line {number} of {shown(path)} is no NAME=VALUE", None, option.place)
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
    if untold := beside_devices(option.value or ""):
        message = f"--gpus: a recipe has no word for {shown(', '.join(untold))}"
        draft.report.say(NOT_TAKEN, message, "the launch that it describes lacks it", option.place)


def _choose_gpus(draft: Draft, options: list[DockerOption]) -> None:
    """`--gpus`, CDI devices, or the older runtime with its variable; the first of them that chooses."""
    ways = [
        (o, f"--gpus {o.value}", from_gpus(draft.plain(o.value or "", o.place, "--gpus")))
        for o in options
        if o.name == "gpus"
    ]
    named = [o for o in options if o.name == "device" and (o.value or "").startswith(CDI)]
    if named:
        names = [draft.plain(o.value or "", o.place, "--device").removeprefix(CDI) for o in named]
        ways.append((named[0], f"--device {named[0].value}", by_devices(names)))
    runtime = next((o for o in options if o.name == "runtime" and o.value == "nvidia"), None)
    if (visible := draft.env.get("NVIDIA_VISIBLE_DEVICES")) is not None and not ways:
        del draft.env["NVIDIA_VISIBLE_DEVICES"]
        at = runtime or next((o for o in options if (o.value or "").startswith("NVIDIA_VISIBLE")), options[0])
        ways.append((at, "NVIDIA_VISIBLE_DEVICES", by_devices(visible.split(","))))
    for option, said, chosen in ways:
        if chosen is None:
            draft.report.say(
                NOT_TAKEN, f"{shown(said)} chooses no GPU", "write all, a count or device=GPU-…", option.place
            )
        elif draft.container.setdefault("gpus", chosen) != chosen:
            draft.report.say(
                REPEATED, f"{shown(said)}: the GPUs are chosen already, this was left out", None, option.place
            )
        elif not said.startswith("--gpus"):
            draft.report.say(SPELLING, f"{shown(said)} chooses GPUs: it became container.gpus", None, option.place)
    if runtime is not None:
        _say_runtime(draft, runtime, [option.name for option, *_ in ways])


def _say_runtime(draft: Draft, runtime: DockerOption, ways: list[str]) -> None:
    if not ways:
        message = (
            "--runtime nvidia chooses no GPU by itself: what the image's NVIDIA_VISIBLE_DEVICES says is not known here"
        )
        draft.report.say(NOT_TAKEN, message, "add gpus: all to the recipe's container", runtime.place)
    elif "gpus" in ways:
        draft.report.say(SPELLING, "--runtime nvidia is left out: --gpus alone chooses the GPUs", None, runtime.place)


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
