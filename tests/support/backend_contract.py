"""What every container backend does: the Docker Engine and the simulated Station run the same suite.

A test module subclasses `BackendContract` (its name then begins with `Test`) and gives the fixtures that raise here.
"""

import dataclasses
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from gb300serve.core.errors import BackendError
from gb300serve.core.values import Missing
from gb300serve.lifecycle.backend import LABEL_LANE, LABEL_PLAN, ContainerBackend, LogLine, differences, wanted_options
from gb300serve.plan.model import Mount, Plan

EVERY = 0.1
# Silences in a row that a test waits for what must come: a minute, far beyond what any of it takes.
PATIENCE = 600
LABELS = {LABEL_LANE: "a-lane", LABEL_PLAN: "0123"}


def texts(lines: Iterator[LogLine | None]) -> Iterator[str]:
    """The lines' texts; the test fails when nothing comes for too long."""
    silences = 0
    for line in lines:
        if line is None:
            silences += 1
            assert silences < PATIENCE, "no line came and the log did not end"
        else:
            silences = 0
            yield line.text


class BackendContract:
    """Semantics of `lifecycle.backend.ContainerBackend`.

    The suite of each backend brings the first three fixtures: here they are only described, and raise.
    """

    @pytest.fixture
    def backend(self) -> ContainerBackend:
        """Ends and removes afterwards whatever the test left."""
        raise NotImplementedError

    @pytest.fixture
    def plan(self) -> Plan:
        """Writes at least three lines, then serves silently until it is asked to end; a name of its own."""
        raise NotImplementedError

    @pytest.fixture
    def failing_plan(self) -> Plan:
        """Writes at least one line and ends by itself with an exit code other than 0; another name."""
        raise NotImplementedError

    @pytest.fixture
    def name(self, backend: ContainerBackend, plan: Plan) -> str:
        """A container of `plan`, created."""
        backend.create(plan, LABELS, {})
        return plan.container.name

    @pytest.fixture
    def running(self, backend: ContainerBackend, name: str) -> str:
        """The same, started and past its third line."""
        backend.start(name)
        assert len(list(islice(texts(backend.follow(name, EVERY)), 3))) == 3
        return name

    def test_check_passes_where_the_engine_answers(self, backend: ContainerBackend) -> None:
        backend.check()

    def test_a_created_container_is_what_the_plan_says(self, backend: ContainerBackend, plan: Plan) -> None:
        identity = backend.create(plan, LABELS, {})
        found = backend.find(plan.container.name)
        assert found is not None
        assert found == backend.find(identity)
        assert (found.id, found.name, found.image) == (identity, plan.container.name, plan.image)
        assert (found.state, found.command, found.ours) == ("created", plan.command, True)
        assert {key: found.labels[key] for key in LABELS} == LABELS
        assert (found.started_at, found.finished_at, found.exit_code) == (None, None, None)
        assert (found.restart_policy, found.restart_count, found.oom_killed) == ("no", 0, False)
        assert found.gpus == plan.container.gpus
        assert found.options is not None
        assert list(differences(wanted_options(plan.container), found.options)) == []
        assert found.host_network == (plan.container.network == "host")
        assert plan.container.env.items() <= found.env.items()

    def test_a_name_is_given_once(self, backend: ContainerBackend, plan: Plan, name: str) -> None:
        with pytest.raises(BackendError, match="in use"):
            backend.create(plan, LABELS, {})
        assert len([found for found in backend.containers() if found.name == name]) == 1

    def test_the_image_is_the_one_it_was_created_from(self, backend: ContainerBackend, plan: Plan, name: str) -> None:
        image, found = backend.image(plan.image), backend.find(name)
        assert image is not None
        assert found is not None
        assert image.id == found.image_id

    def test_an_image_that_is_not_there(self, backend: ContainerBackend) -> None:
        assert backend.image("nobody/has-this:at-all") is None

    def test_creating_from_an_image_that_is_not_there(self, backend: ContainerBackend, plan: Plan) -> None:
        with pytest.raises(BackendError, match="nobody/has-this:at-all"):
            backend.create(dataclasses.replace(plan, image="nobody/has-this:at-all"), LABELS, {})
        assert backend.find(plan.container.name) is None

    def test_a_started_container_runs(self, backend: ContainerBackend, running: str) -> None:
        found = backend.find(running)
        assert found is not None
        assert (found.state, found.exit_code, found.finished_at) == ("running", None, None)
        assert found.started_at is not None
        assert found.started_at >= found.created_at
        assert found in backend.containers()

    def test_shared_memory_is_a_size_or_a_reason(self, backend: ContainerBackend, running: str) -> None:
        held = backend.shared_memory(running)
        assert held.why if isinstance(held, Missing) else held >= 0

    def test_elapsed_grows(self, backend: ContainerBackend, running: str) -> None:
        first = backend.elapsed(running)
        assert 0 < first < backend.elapsed(running)

    def test_follow_tells_silence(self, backend: ContainerBackend, running: str) -> None:
        assert None in islice(backend.follow(running, EVERY), 10_000)

    def test_follow_ends_with_the_container_and_has_every_line_once(
        self, backend: ContainerBackend, running: str
    ) -> None:
        followed = texts(backend.follow(running, EVERY))
        seen = list(islice(followed, 3))
        backend.stop(running, 30.0)
        seen += followed
        assert seen == [line.text for line in backend.log(running)]

    def test_lines_are_stamped_in_order(self, backend: ContainerBackend, running: str) -> None:
        backend.stop(running, 30.0)
        stamps = [line.elapsed for line in backend.log(running) if line.stream == "stdout"]
        assert stamps == sorted(stamps)
        assert stamps[0] >= 0

    def test_the_tail_of_a_log(self, backend: ContainerBackend, running: str) -> None:
        backend.stop(running, 30.0)
        whole = list(backend.log(running))
        assert list(backend.log(running, tail=2)) == whole[-2:]
        assert list(backend.log(running, tail=100_000)) == whole

    def test_a_container_that_never_started_has_no_log(self, backend: ContainerBackend, name: str) -> None:
        assert list(backend.log(name)) == []
        assert list(backend.follow(name, EVERY)) == []
        assert backend.elapsed(name) == 0

    def test_stop_ends_it_and_keeps_it(self, backend: ContainerBackend, running: str) -> None:
        backend.stop(running, 30.0)
        found = backend.find(running)
        assert found is not None
        assert found.state == "exited"
        assert found.exit_code is not None
        assert found.started_at is not None
        assert found.finished_at is not None
        assert found.finished_at >= found.started_at
        backend.stop(running, 30.0)
        assert backend.find(running) == found

    def test_a_container_that_fails(self, backend: ContainerBackend, failing_plan: Plan) -> None:
        name = failing_plan.container.name
        backend.create(failing_plan, LABELS, {})
        backend.start(name)
        seen = list(texts(backend.follow(name, EVERY)))
        found = backend.find(name)
        assert found is not None
        assert found.state == "exited"
        assert found.exit_code not in {None, 0}
        assert seen == [line.text for line in backend.log(name)] != []

    def test_started_again_its_log_begins_anew(self, backend: ContainerBackend, failing_plan: Plan) -> None:
        name = failing_plan.container.name
        backend.create(failing_plan, LABELS, {})
        backend.start(name)
        first = list(texts(backend.follow(name, EVERY)))
        before = backend.find(name)
        backend.start(name)
        assert len(list(texts(backend.follow(name, EVERY)))) == len(first)
        after = backend.find(name)
        assert before is not None
        assert after is not None
        assert before.started_at is not None
        assert after.started_at is not None
        assert after.started_at > before.started_at
        assert after.id == before.id

    def test_rename(self, backend: ContainerBackend, running: str) -> None:
        before = backend.find(running)
        backend.rename(running, f"{running}-failed")
        after = backend.find(f"{running}-failed")
        assert backend.find(running) is None
        assert before is not None
        assert after == dataclasses.replace(before, name=f"{running}-failed")

    def test_rename_to_a_name_in_use(self, backend: ContainerBackend, name: str, failing_plan: Plan) -> None:
        backend.create(failing_plan, LABELS, {})
        with pytest.raises(BackendError, match="in use"):
            backend.rename(name, failing_plan.container.name)

    def test_remove(self, backend: ContainerBackend, running: str) -> None:
        with pytest.raises(BackendError):
            backend.remove(running)
        backend.stop(running, 30.0)
        backend.remove(running)
        assert backend.find(running) is None
        assert running not in {found.name for found in backend.containers()}

    def test_a_restart_policy_comes_later(self, backend: ContainerBackend, running: str) -> None:
        backend.set_restart(running, "unless-stopped")
        found = backend.find(running)
        assert found is not None
        assert found.restart_policy == "unless-stopped"
        backend.stop(running, 30.0)
        stopped = backend.find(running)
        assert stopped is not None
        assert stopped.state == "exited"

    @pytest.mark.parametrize("verb", ["start", "stop", "rename", "remove", "restart", "elapsed", "follow", "log"])
    def test_a_container_that_is_not_there(self, backend: ContainerBackend, plan: Plan, verb: str) -> None:
        name = plan.container.name
        assert backend.find(name) is None
        calls: dict[str, Callable[[], object]] = {
            "start": lambda: backend.start(name),
            "stop": lambda: backend.stop(name, 1.0),
            "rename": lambda: backend.rename(name, f"{name}-failed"),
            "remove": lambda: backend.remove(name),
            "restart": lambda: backend.set_restart(name, "no"),
            "elapsed": lambda: backend.elapsed(name),
            "follow": lambda: list(backend.follow(name, EVERY)),
            "log": lambda: list(backend.log(name)),
        }
        with pytest.raises(BackendError, match=name):
            calls[verb]()

    def test_missing_sources_are_named_and_not_created(
        self, backend: ContainerBackend, plan: Plan, tmp_path: Path
    ) -> None:
        sources = [tmp_path, tmp_path / "b", tmp_path / "a", tmp_path / "b"]
        mounts = tuple(Mount(str(source), f"/{index}") for index, source in enumerate(sources))
        wanted = dataclasses.replace(plan, container=dataclasses.replace(plan.container, mounts=mounts))
        assert backend.missing_sources(wanted) == (str(tmp_path / "b"), str(tmp_path / "a"))
        assert list(tmp_path.iterdir()) == []
        assert backend.find(plan.container.name) is None
