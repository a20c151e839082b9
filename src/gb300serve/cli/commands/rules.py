"""`gb300serve rules`."""

from typing import Annotated, Any

import typer

from gb300serve.app.lint import described
from gb300serve.cli.parameters import Json
from gb300serve.core.errors import CommandLineError
from gb300serve.core.text import suggestion
from gb300serve.lint.run import RULES
from gb300serve.preflight.run import CHECKS

SCHEMA = "gb300serve.rules/1"


class UnknownRuleError(CommandLineError):
    """No rule has this code or name."""

    def __init__(self, text: str, known: list[str]) -> None:
        meant = suggestion(text, known)
        hint = f"did you mean {meant}?" if meant else "`rules` lists them"
        super().__init__(f"rule {text} does not exist", hint=hint)


def run(
    ctx: typer.Context,
    code: Annotated[str | None, typer.Argument(metavar="[CODE]", help="A code or a name.", show_default=False)] = None,
    json: Json = False,
) -> int:
    """Explain a rule of lint or a check of doctor, or list all of them."""
    _, console = ctx.obj
    rows = described((*RULES, *CHECKS))
    chosen = rows if code is None else [_chosen(code, rows)]
    if json:
        console.document({"schema": SCHEMA, "rules": chosen})
        return 0
    console.results(map(_line if code is None else _page, chosen))
    return 0


def _chosen(text: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    found = next((row for row in rows if text.lower() in (row["code"].lower(), row["name"])), None)
    if found is None:
        raise UnknownRuleError(text, [word for row in rows for word in (row["code"], row["name"])])
    return found


def _line(row: dict[str, Any]) -> str:
    return f"{row['code']:8}{row['severity']:9}{row['name']:35}{row['summary']}"


def _page(row: dict[str, Any]) -> str:
    parts = [f"{row['code']} {row['name']} ({row['severity']})", row["summary"]]
    parts += [f"{title}: {row[key]}" for title, key in (("Why", "why"), ("Fix", "fix")) if row[key]]
    return "\n\n".join(parts)
