# Sourced by scripts/gb300serve and scripts/test: makes .venv from the locked requirements when it is missing or stale.
# Needs Python 3.11 or newer with its venv module, and nothing else that a fresh Ubuntu 24.04 or Debian 12 lacks.
# shellcheck shell=sh

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$root/.venv

stop() {
    printf 'gb300serve: %s\n' "$1" >&2
    exit 70
}

find_python() {
    for name in python3 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$name"
            return
        fi
    done
    stop 'Python 3.11 or newer is needed and none is on PATH. On Debian and Ubuntu: apt-get install python3 python3-venv'
}

# Fresh when the stamp holds the lock that is asked for, byte for byte (the test lock contains the other one).
is_fresh() {
    [ -x "$venv/bin/python" ] && [ -f "$venv/.lock" ] &&
        { cmp -s "$venv/.lock" "$1" || { [ "$1" = "$root/scripts/requirements.lock" ] &&
            cmp -s "$venv/.lock" "$root/scripts/requirements-test.lock"; }; }
}

build() {
    python=$(find_python) || exit 70
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        stop "$python has no venv module. On Debian and Ubuntu: apt-get install python3-venv"
    printf 'gb300serve: preparing %s (once)\n' "$venv" >&2
    rm -rf "$venv"
    "$python" -m venv "$venv" >&2 || stop "could not create $venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$1" >&2 ||
        stop "could not install what $1 lists (see above)"
    # The checkout is run as it stands: a path file instead of an installation, so that no build step is needed.
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$root/src" >"$site/gb300serve.pth"
    cp "$1" "$venv/.lock"
}

# environment LOCK: returns when .venv holds what LOCK lists. Only one process builds, the others wait for it.
environment() {
    is_fresh "$1" && return
    if command -v flock >/dev/null 2>&1; then
        exec 9>"$root/.venv.lock"
        flock 9
        is_fresh "$1" || build "$1" 9>&-
        exec 9>&-
        return
    fi
    until mkdir "$root/.venv.lock.d" 2>/dev/null; do # macOS has no flock
        sleep 1
        is_fresh "$1" && return
    done
    trap 'rmdir "$root/.venv.lock.d" 2>/dev/null' EXIT
    is_fresh "$1" || build "$1"
    rmdir "$root/.venv.lock.d"
    trap - EXIT
}
