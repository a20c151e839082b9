"""Launch scripts from a grammar: assignments, arrays, conditions, loops, functions, and one launch that uses them."""

import random
from dataclasses import dataclass, field

NAMES = ("A", "B", "C", "D")
LISTS = ("ARGS", "XS")
VALUES = ("a", "b c", "x/y.z", "7", "24", "", "it's", "  p  q ", "ab:cd", "Q1", "0", "on", "aXbXc")
PLAIN = ("a", "b", "on", "x/y", "7", "Q1")
FILE = 'A=from-file\nD="x y"\n[ -n "$B" ] && C=seen\n'
"""The content of `settings.env`, beside each script."""
LAUNCH = "docker run -d --name lane --gpus all"
IMAGE = "vllm/vllm-openai:v0.33.0"


@dataclass
class Script:
    """A script while it is written."""

    chance: random.Random
    functions: int = 0
    depth: int = 0
    lines: list[str] = field(default_factory=list)

    def one(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def name(self) -> str:
        return self.chance.choice(NAMES)

    def quoted(self, value: str) -> str:
        if self.chance.random() < 0.5:
            return "'" + value.replace("'", "'\\''") + "'"
        return '"' + value + '"'

    def number(self) -> str:
        """An arithmetic expression on literals and N."""
        n = self.chance.randint(0, 9)
        return self.one(
            f"N+{n}", f"{n}*1024", f"(N+{n})%5", f"N<{n}?{n}:N*2", f"+N+{n}", f"{n}<<2", f"N=={n}||{n}>4", f"2**{n}"
        )

    def expansion(self) -> str:
        """A piece that expands, without quotes around it."""
        name, items = self.name(), self.chance.choice(LISTS)
        return self.one(
            f"${name}",
            f"${{{name}}}",
            f"${{{name}:-d e}}",
            f"${{{name}-f}}",
            f"${{{name}:+set}}",
            f"${{Z:-{self.one(*PLAIN)}}}",
            f"${{{name}#*/}}",
            f"${{{name}%%:*}}",
            f"${{{name}/X/_}}",
            f"${{{name}//X/ }}",
            f"${{{name}^^}}",
            f"${{#{name}}}",
            f"${{{name}:1}}",
            f"${{{name}:0:2}}",
            f"${{{items}[0]}}",
            f"${{#{items}[@]}}",
            f"${{{items}[*]}}",
            f"${{{items}[@]}}",
            f"${{{items}[@]:1}}",
            f"${{{items}[-1]}}",
            "$*",
            "$#",
            "${1:-none}",
            f"$(({self.number()}))",
            f"$(echo ${name} z)",
            f'$(printf "%s_%03d" "${name}" 7)',
            "$(basename /p/q.txt .txt)",
            "$(pwd)",
            f'${{{name}:-"${{{self.name()}}}"}}',
        )

    def word(self) -> str:
        """One word of the shell, that may expand to none or several."""
        items = self.chance.choice(LISTS)
        return self.one(
            self.expansion(),
            f'"{self.expansion()}"',
            f"pre-{self.expansion()}",
            f'"{self.expansion()} {self.expansion()}"',
            f'"${{{items}[@]}}"',
            f'"${{{items}[@]}}"',
            '"$@"',
            f'${{{items}[@]+"${{{items}[@]}}"}}',
            self.one(*PLAIN),
            self.quoted(self.chance.choice(VALUES)),
            "{l,m}",
            "~/w",
            f'x"{self.expansion()}"y',
            "\\$A",
            f'"${{{items}[@]/a/b}}"',
        )

    def words(self, most: int = 3) -> str:
        return " ".join(self.word() for _ in range(self.chance.randint(0, most)))

    def condition(self) -> str:
        name = self.name()
        return self.one(
            f'[ "${name}" = {self.one(*PLAIN)} ]',
            f'[ -n "${name}" ]',
            f'[ -z "${{{name}:-}}" ]',
            f"[[ ${name} == a* ]]",
            f"[[ -n ${name} && ${self.name()} != on ]]",
            "[ $# -gt 0 ]",
            f"(( {self.number()} > 3 ))",
            '[ "${Z:-0}" = 1 ]',
            f'! [ "${name}" = on ]',
            "[ $N -lt 4 ]",
            "[[ $N -ge 2 || -n $Z ]]",
            "[ -e /nowhere/at-all ]",
            "true",
            "false",
            f'test "${name}" != x -a -n "$B"',
            "[ -d / ]",
            f"[[ ! ${name} =~ ^a ]]",
            "command -v docker >/dev/null",
            f"[ ${{#{name}}} -eq 1 ]",
        )

    def assignment(self) -> str:
        name, items = self.name(), self.chance.choice(LISTS)
        value = self.chance.choice(VALUES)
        return self.one(
            f"{name}={self.quoted(value)}",
            f'{name}="{self.expansion()}"',
            f"{name}={self.expansion()}",
            f"{name}+={self.one(*PLAIN)}",
            f'{name}+=" {self.expansion()}"',
            f"N=$(({self.number()}))",
            f"{items}=({self.words()})",
            f"{items}+=({self.words(2)})",
            f"{items}=()",
            f"{items}[{self.chance.randint(0, 2)}]={self.quoted(value)}",
            f"export {name}={self.quoted(value)}",
            f"unset {name}",
            f"{name}=",
            f"{name}=${{{name}:-dflt}}",
            f": ${{{name}:=given}}",
            f"declare {name}={self.one(*PLAIN)}",
            f"read -r {name} C <<< {self.quoted(value)}",
            f"printf -v {name} '%s_%02d' {self.one(*PLAIN)} {self.chance.randint(0, 99)}",
            f"set -- {self.words()}",
            "shift",
            f"(( N += {self.chance.randint(0, 3)} ))",
            f"let N={self.chance.randint(0, 3)}+1",
            f'eval "{name}={self.one(*PLAIN)}"',
            f"IFS=, read -ra {items} <<< 'p,q r,s'",
            f"echo piped | read {name}",
            f"{name}=x true",
            f"{name}=$(cat <<'TXT'\ndon't (stop\nTXT\n)",
            f"{name}=$(date)",
            "cd /tmp",
            ". ./settings.env",
            "source settings.env",
            "[ -f ./absent.env ] && . ./absent.env",
            f"{name}=~/m",
            f"local {name}=lo" if self.functions < 0 else "true",
        )

    def guard(self) -> str:
        return self.one(
            "set -euo pipefail" if self.chance.random() < 0.1 else "set -o pipefail",
            "trap 'echo bye' EXIT",
            "mkdir -p ./made",
            "test -d / || { echo none; exit 3; }",
            "command -v docker >/dev/null || exit 1",
            "docker rm -f old >/dev/null 2>&1 || true",
            "if [ ! -d / ]; then\n  echo none >&2\n  exit 2\nfi",
            "docker ps | grep -q nothing && { echo busy; exit 4; }",
            "echo begin >&2",
            "[[ -f STOP ]] && exit 0",
            "# a comment (with 'quotes",
            "while false; do A=loop; done",
        )

    def block(self, most: int = 2) -> str:
        self.depth += 1
        lines = [self.statement() for _ in range(self.chance.randint(1, most))]
        self.depth -= 1
        return "\n".join(lines)

    def statement(self) -> str:
        kind = self.chance.random()
        if kind < 0.55 or self.depth > 2:
            return self.assignment()
        if kind < 0.65:
            return self.guard()
        return self.compound()

    def compound(self) -> str:
        name, body = self.name(), self.block()
        self.functions += 1
        # Nested loops count in variables of their own: a shared one would never reach its end.
        function, counter, count = f"f{self.functions}", f"K{self.depth}", self.chance.randint(0, 3)
        return self.one(
            f"if {self.condition()}; then\n{body}\nfi",
            f"if {self.condition()}; then\n{body}\nelse\n{self.block()}\nfi",
            f"if {self.condition()}; then\n{body}\nelif {self.condition()}; then\n{self.block()}\n"
            f"else\n{self.block()}\nfi",
            f"{self.condition()} && {name}={self.one(*PLAIN)}",
            f"{self.condition()} || {name}={self.one(*PLAIN)}",
            f"{self.condition()} && {{\n{body}\n}}",
            f"( {body})",
            f"{{ {body}\n}}",
            f"echo x | {{\n{body}\n}}",
            f"case ${name} in\n  a|on) {body};;\n  x/*) {self.block()};;\n  *) {self.assignment()};;\nesac",
            f"case ${name} in\n  {self.one(*PLAIN)}) {body}\n;;\nesac",
            f'for i in {self.words()}; do\n{name}+=" $i"\n{body}\ndone',
            f"for (({counter} = 0; {counter} < {count}; {counter}++)); do\nXS+=(${counter})\n{body}\ndone",
            f"{counter}=0\nwhile [ ${counter} -lt {count} ]; do\n(({counter}++))\n{name}+=${counter}\ndone",
            f"for i in 1 2 3; do\n{self.condition()} && break\n{name}=$i\ndone",
            f"for i in 1 2 3; do\n{self.condition()} && continue\n{name}+=$i\ndone",
            f'{function}() {{\nlocal {name}=in i\n{body}\nXS+=("$@")\n}}\n{function} {self.words()}',
            f"{function}() {{\n{self.condition()} && return\n{body}\n}}\n{function} {self.words()}",
            f'{function}() {{ echo "$1_${name}"; }}\nA=$({function} {self.word()})',
            f"function {function} {{\n{body}\n}}\n{function}",
            f'{function}() {{ [ "$1" = on ]; }}\nif {function} "${name}"; then\n{body}\nfi',
        )

    def launch(self) -> str:
        value = self.expansion().replace("[@]", "[*]")
        run = (
            f'{LAUNCH} -e V="{value}" {IMAGE} --model /model --served-model-name x {self.words(4)} --port $((8000 + N))'
        )
        broken = run.replace(" --model", " \\\n  --model")
        return self.one(
            run,
            run,
            run,
            f"exec {run}",
            f"go() {{\n{run}\n}}\ngo {self.words(2)}",
            f'CMD=({run})\n"${{CMD[@]}}"',
            f"{{ {run}; }}",
            f"if [ -d / ]; then\n{run}\nelse\nexit 1\nfi",
            f"{run} || exit 1",
            f"({run})",
            f"DOCKER='sudo docker'\n{run.replace('docker', '$DOCKER', 1)}",
            f"{broken} >/dev/null",
            f"if ! {run}; then\n  exit 1\nfi",
        )


def script(chance: random.Random) -> str:
    """One of them, with a single launch."""
    made = Script(chance)
    lines = ["#!/bin/bash", *(f"{name}={made.quoted(chance.choice(VALUES))}" for name in NAMES), "N=2"]
    lines += [f"{name}=({made.one('', 'a', 'a b', 'x=1 c')})" for name in LISTS]
    lines += [made.statement() for _ in range(chance.randint(0, 5))]
    return "\n".join([*lines, made.launch(), made.assignment(), ""])
