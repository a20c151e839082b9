import pytest

from gb300serve.importers.written_files import written_files
from tests.support.imports import read


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("cat > .env <<EOF\nA=1\nB=x y\nEOF\n", {".env": "A=1\nB=x y\n"}),
        ("cat <<'EOF' > '.env'\nA=$B\nEOF\nA=2\n", {".env": "A=$B\n"}),
        ("  cat >.env <<-E\n\tA=1\n\tE\n", {".env": "A=1\n"}),
        ("cat > a <<E\nA=1\nE\ncat >> a <<E\nB=2\nE\n", {"a": "A=1\nB=2\n"}),
        ("cat > a <<E\nA=$HOME\nE\ncat > b <<E\nE\n", {"a": None, "b": ""}),
        ("cat >> a <<E\nB=2\nE\n", {"a": None}),
        ("cat > a <<E\nA=1\n", {"a": "A=1\n"}),
        ("cat > $X <<E\nA=1\nE\ncat a > b\necho A=1 > c\n", {}),
    ],
)
def test_what_a_text_writes(text: str, files: dict[str, str | None]) -> None:
    assert written_files(text) == files


def test_an_env_file_that_the_text_writes_itself() -> None:
    text = "cd /srv\ncat > .env <<EOF\nA=1\nEOF\ndocker run --env-file /srv/.env i:1 /model\n"
    found = read(text)
    assert found.document["container"] == {"env": {"A": "1"}}
    assert "not-taken-over" not in {one.name for one in found.diagnostics}


def test_a_long_text() -> None:
    assert written_files("cat > a <<E\n" * 20_000 + "\n") == {"a": "cat > a <<E\n" * 19_999 + "\n"}
    assert len(written_files("".join(f"cat > {n} <<E\nE\n" for n in range(20_000)))) == 20_000
    assert written_files("cat " + " " * 100_000 + "\n" + " " * 100_000) == {}
