"""SGLang. No table of its options is shipped: they are said by the common form and not checked."""

from gb300serve.engines.base import Options
from gb300serve.engines.common import POSITIONAL, first_text, model_first, plain_words, texts, whole
from gb300serve.engines.forms import word
from gb300serve.engines.problem import Problem

DEFAULT_PORT = 30000  # sglang.srt.server_args.ServerArgs.port


class Sglang:
    """The engine `sglang`."""

    name = "sglang"

    def check(self, options: Options, version: str | None) -> tuple[Problem, ...]:
        found = [
            Problem(
                (key,), "OPT005", f"{key} cannot be switched off: the off form of its flag is unknown", "leave it out"
            )
            for key, value in options.items()
            if value is False
        ]
        named = f"sglang {version}" if version else "sglang"
        note = Problem((), "OPT008", f"{named} has no option table: its options are unchecked", None, "note")
        return (*found, note)

    def argv(self, options: Options, version: str | None) -> tuple[str, ...]:  # noqa: ARG002 - no table, no version
        return tuple(
            said
            for key, value in model_first(options)
            for said in ((word(value),) if key == POSITIONAL else plain_words(key, value))
        )

    def open_list(self, options: Options, version: str | None) -> str | None:  # noqa: ARG002 - as above
        last = next(reversed(list(options)), None)
        return last if last is not None and isinstance(options[last], list | tuple) else None

    def served_names(self, options: Options) -> tuple[str, ...]:
        model = self.model_path(options)
        return texts(options.get("served_model_name")) or ((model,) if model else ())

    def model_path(self, options: Options) -> str | None:
        return first_text(options, "model_path", "model", POSITIONAL)

    def port(self, options: Options) -> int:
        return whole(options.get("port"), DEFAULT_PORT)
