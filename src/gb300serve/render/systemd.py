"""A systemd service that brings a lane up at boot and takes it down at shutdown, as systemd.service(5) describes it."""

from collections.abc import Sequence

from gb300serve.plan.model import Plan
from gb300serve.render.quadlet import assignment

# `up` has its own patience for each phase; a tuning miss takes 81 minutes.
_START = "infinity"
# The stop of the container, and the wait for free GPU memory (30 s), with a margin.
_STOP_MARGIN = 60


def service(plan: Plan, *, up: Sequence[str], down: Sequence[str], user: str, local_docker: bool) -> str:
    """The unit's text; `up` and `down` are complete commands with an absolute program."""
    after = "network-online.target" + (" docker.service" if local_docker else "")
    needs = ["Requires=docker.service"] if local_docker else []
    stop = (plan.container.stop_timeout or 30) + _STOP_MARGIN
    secrets = [f"#   {secret.name}" for secret in plan.container.secrets if secret.env]
    asks = ["# Put these variables into a file that only root can read:", *secrets] if secrets else []
    environment = ["EnvironmentFile=/etc/gb300serve/secrets.env"] if secrets else []
    name = f"gb300serve-{plan.lane}.service"
    lines = [
        f"# Save it as /etc/systemd/system/{name}, then: systemctl enable --now {name}",
        *asks,
        "[Unit]",
        f"Description=gb300serve: {plan.recipe}".replace("%", "%%"),
        "Wants=network-online.target",
        f"After={after}",
        *needs,
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        assignment("User", user),
        *environment,
        assignment("ExecStart", *up),
        assignment("ExecStop", *down),
        f"TimeoutStartSec={_START}",
        f"TimeoutStopSec={stop:g}",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines)
