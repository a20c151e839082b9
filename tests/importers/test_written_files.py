import pytest

from gb300serve.importers.report import Report
from gb300serve.importers.shell.script import read_script
from gb300serve.importers.shell.words import Marked
from tests.support.imports import AROUND, read


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("cat > .env <<EOF\nA=1\nB=x y\nEOF\n", {".env": "A=1\nB=x y\n"}),
        ("cat <<'EOF' > '.env'\nA=$B\nEOF\nA=2\n", {".env": "A=$B\n"}),
        ("cat <<\\EOF > .env\nA=$B\nEOF\n", {".env": "A=$B\n"}),
        ("  cat >.env <<-E\n\tA=1\n\tE\n", {".env": "A=1\n"}),
        ("cat > a <<E\nA=1\nE\ncat >> a <<E\nB=2\nE\n", {"a": "A=1\nB=2\n"}),
        ("cat > a <<E\nA=$HOME\nE\ncat > b <<E\nE\n", {"a": None, "b": ""}),
        ("cat >> a <<E\nB=2\nE\n", {"a": None}),
        ("cat > a <<E\ncat > b <<F\nF\nE\n", {"a": "cat > b <<F\nF\n"}),
        ("cd sub\ncat > a <<E\nA=1\nE\ncd ..\n", {"sub/a": "A=1\n"}),
        ("cat > $X <<E\nA=1\nE\ncat a > b\necho A=1 > c\ncat > d <<E > e\nE\n", {}),
    ],
)
def test_files_that_the_text_writes_itself(text: str, files: dict[str, str | None]) -> None:
    found = read_script(Marked(text + "docker run i:1\ncat > late <<E\nE\n"), AROUND, Report()).files
    assert found == {f"{AROUND.directory}/{path}": body for path, body in files.items()}


def test_many_files_and_a_long_one() -> None:
    many = "".join(f"cat > {number} <<E\nE\n" for number in range(20_000))
    assert len(read_script(Marked(many + "docker run i:1\n"), AROUND, Report()).files) == 20_000
    long = "cat > a <<E\n" + "cat > a <<E\n" * 20_000 + "E\ndocker run i:1\n"
    assert set(read_script(Marked(long), AROUND, Report()).files) == {f"{AROUND.directory}/a"}


def test_an_env_file_that_the_text_writes_itself() -> None:
    text = "cd /srv\ncat > .env <<EOF\nA=1\nEOF\ndocker run --env-file /srv/.env i:1 /model\n"
    found = read(text)
    assert found.document["container"] == {"env": {"A": "1"}}
    assert "not-taken-over" not in {one.name for one in found.diagnostics}
