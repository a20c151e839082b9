from dataclasses import dataclass, field

from gb300serve.core.errors import BackendError
from gb300serve.lifecycle.receipts import ReadsFiles, check_patches, patches
from gb300serve.plan.model import Mount
from tests.support.fake_backend import FakeBackend
from tests.support.launches import contained, plan

HOOK, MAP = "ab" * 32, "cd" * 32
PLAN = contained(
    plan(),
    mounts=(
        Mount("/models/x", "/model", read_only=True),
        Mount("/p/site.py", "/usr/lib/site.py", read_only=True, sha256=HOOK),
        Mount("/p", "/w", read_only=True, sha256={"hook.py": HOOK, "map.json": MAP}),
    ),
)


@dataclass
class Open(FakeBackend):
    """One that can be looked into."""

    files: dict[str, str] = field(default_factory=dict)
    silent: bool = False

    def file_sha256(self, container: str, path: str) -> str | None:
        if self.silent:
            raise BackendError("the Engine has gone")
        return self.files.get(path)


def test_every_pinned_file_by_its_path_in_the_container() -> None:
    assert dict(patches(PLAN)) == {"/usr/lib/site.py": HOOK, "/w/hook.py": HOOK, "/w/map.json": MAP}


def test_files_are_kept_different_or_missing() -> None:
    backend = Open(files={"/usr/lib/site.py": HOOK, "/w/hook.py": MAP})
    assert isinstance(backend, ReadsFiles)
    found = check_patches(PLAN, "id", backend)
    assert [(one.state, one.good) for one in found] == [("kept", True), ("different", False), ("missing", False)]
    assert found[1].sentence() == f"different: sha256 of /w/hook.py in the container (wanted {HOOK}, found {MAP})"


def test_where_nobody_can_look_nothing_is_held_against_it() -> None:
    assert {one.state for one in check_patches(PLAN, "id", FakeBackend())} == {"unknown"}
    (one, *_) = check_patches(PLAN, "id", Open(silent=True))
    assert (one.state, one.found) == ("unknown", "the Engine has gone")


def test_without_pins_there_is_nothing_to_check() -> None:
    assert check_patches(plan(), "id", Open()) == ()
