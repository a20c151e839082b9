#!/bin/sh
# Record the container launches of a script, without starting a container.
#
#   sh capture.sh ./launch.sh ARGUMENTS > launch.json
#   gb300serve import launch.json
#
# Everything else in the script really runs, with your rights: read it first. Stubs for docker, podman, nerdctl and sudo
# come first on PATH. A program that is called by its absolute path (/usr/bin/docker) is not covered, nor is one that the
# script finds because it changes PATH.
#
# `docker run` and `docker create` are recorded. Every other call is refused and changes nothing: it succeeds where an
# idle Docker would answer (ps, pull, info, image), and it fails as for a container that does not exist (rm, inspect, …).
set -u

if [ "$#" -eq 0 ]; then
  echo "usage: sh capture.sh SCRIPT [ARGUMENT…] > launch.json" >&2
  exit 2
fi
echo "capture: everything in $1 but docker, podman, nerdctl and sudo really runs" >&2
if [ -f "$1" ] && grep -nE '/s?bin/(docker|podman|nerdctl)([^A-Za-z0-9_.-]|$)' "$1" >&2; then
  echo "capture: these lines name a program by its absolute path: it is not covered and really runs" >&2
  exit 1
fi

umask 077
GB300SERVE_CAPTURE=$(mktemp -d) || exit 1
export GB300SERVE_CAPTURE
trap 'rm -rf "$GB300SERVE_CAPTURE"' EXIT
mkdir "$GB300SERVE_CAPTURE/bin"

cat > "$GB300SERVE_CAPTURE/bin/docker" <<'STUB'
#!/bin/sh
LC_ALL=C
export LC_ALL
client=${0##*/} verb='' object='' value=''
for word in "$@"; do
  if [ -n "$value" ]; then
    value=''
    continue
  fi
  case $word in
    -H | --host | -c | --context | --config | -l | --log-level | --connection | --namespace) value=1 ;;
    -*) ;;
    container | image) if [ -n "$object" ]; then verb=$word && break; else object=$word; fi ;;
    *) verb=$word && break ;;
  esac
done

string() {
  tab=$(printf '\t') return=$(printf '\r')
  printf '"'
  printf '%s\n' "$1" |
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e "s/$tab/\\\\t/g" -e "s/$return/\\\\r/g" |
    awk '{ printf "%s%s", (NR > 1 ? "\\n" : ""), $0 }'
  printf '"'
}

case $object:$verb in
  :run | :create | container:run | container:create)
    {
      printf '%s{"directory": ' "$(test -s "$GB300SERVE_CAPTURE/launches" && printf ', ')"
      string "$PWD"
      printf ', "argv": ['
      string "$client"
      for word in "$@"; do
        printf ', '
        string "$word"
      done
      printf ']}'
    } >> "$GB300SERVE_CAPTURE/launches"
    echo "capture: recorded $client $verb" >&2
    echo 0000000000000000000000000000000000000000000000000000000000000000
    exit 0
    ;;
esac
echo "capture: refused $client ${object:+$object }$verb" >&2
case $object:$verb in
  *:ps | *:pull | *:images | image:* | *:info | *:version | *:login | *:build | *:network | *:volume | *:ls | *:system) exit 0 ;;
esac
exit 1
STUB

cat > "$GB300SERVE_CAPTURE/bin/sudo" <<'STUB'
#!/bin/sh
while [ "$#" -gt 0 ]; do
  case $1 in
    -u | -g | -h | -p | -C | -D | -R | -T | -U) shift 2 ;;
    -*) shift ;;
    [A-Za-z_]*=*) export "${1?}" && shift ;;
    *) break ;;
  esac
done
program=${1-}
case ${program##*/} in
  docker | podman | nerdctl) shift && exec "$GB300SERVE_CAPTURE/bin/${program##*/}" "$@" ;;
  sh | bash | dash | zsh | env | nohup | *.sh) exec "$@" ;;
esac
echo "capture: refused sudo $program" >&2
STUB

for name in podman nerdctl; do
  cp "$GB300SERVE_CAPTURE/bin/docker" "$GB300SERVE_CAPTURE/bin/$name"
done
chmod +x "$GB300SERVE_CAPTURE/bin/"*
PATH=$GB300SERVE_CAPTURE/bin:$PATH
export PATH

if [ -f "$1" ] && [ ! -x "$1" ]; then
  # shellcheck disable=SC2046 # the interpreter and its option
  set -- $(head -n 1 "$1" | sed -n 's/^#! *//p' | grep . || echo bash) "$@"
fi
case $1 in
  */*) ;;
  *) if [ -f "$1" ] && ! command -v "$1" > /dev/null; then set -- "./$@"; fi ;;
esac

# A script that waits for its server would wait for ever: it is ended five seconds after a launch.
exec 3<&0
"$@" <&3 >&2 &
script=$!
(
  seconds=0
  while [ "$seconds" -lt 5 ]; do
    sleep 1
    if [ -s "$GB300SERVE_CAPTURE/launches" ]; then seconds=$((seconds + 1)); fi
  done
  kill "$script"
) > /dev/null 2>&1 &
limit=$!
trap 'kill "$script" 2> /dev/null' INT TERM
wait "$script"
code=$?
kill "$limit" 2> /dev/null

if [ ! -s "$GB300SERVE_CAPTURE/launches" ]; then
  echo "capture: the script ended with status $code and started no container" >&2
  exit 1
fi
printf '{"schema": "gb300serve.capture/1", "launches": ['
cat "$GB300SERVE_CAPTURE/launches"
printf ']}\n'
