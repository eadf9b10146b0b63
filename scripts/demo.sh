#!/usr/bin/env bash
# The main job in one minute: pilotfish, a real Envoy and two upstreams on this machine; requests;
# an edit that changes who answers. Called by `make demo`.
#
#   demo.sh PILOTFISH ENVOY      DEMO_KEEP=1 leaves everything running until Ctrl-C
set -euo pipefail
pilotfish=$1 envoy=$2
cd "$(dirname "$0")/.."
work=$PWD/.demo
config=$work/config

say() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }

pids=()
stop() {
    trap - EXIT INT TERM
    say "stopping"
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Waits until a command succeeds, for 30 seconds at most.
until_ok() {
    local what=$1; shift
    for _ in $(seq 300); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    echo "demo: $what did not get ready; see the logs in $work" >&2
    exit 1
}

start() {
    local name=$1; shift
    "$@" >"$work/$name.log" 2>&1 &
    pids+=($!)
}

# Sends N requests and counts who answered.
ask() {
    local n=$1; shift
    for _ in $(seq "$n"); do
        curl -s -o /dev/null -w '%header{x-echo-name}\n' --max-time 5 "$@" http://127.0.0.1:8080/
    done | sort | uniq -c | awk '{printf "    %s answered %d\n", ($2 == "" ? "nobody" : $2), $1}'
}

rm -rf "$work"
mkdir -p "$config"
cp examples/configs/quickstart/*.yaml "$config"

say "starting two upstreams, v1 on 9001 and v2 on 9002"
start v1 "$pilotfish" echo --listen 127.0.0.1:9001 --name v1
start v2 "$pilotfish" echo --listen 127.0.0.1:9002 --name v2
until_ok "v1" curl -sf http://127.0.0.1:9001/
until_ok "v2" curl -sf http://127.0.0.1:9002/

say "starting pilotfish on a copy of examples/configs/quickstart"
start pilotfish "$pilotfish" serve --config-dir "$config" --http-addr 127.0.0.1:18080
until_ok "pilotfish" curl -sf http://127.0.0.1:18080/ready

say "starting Envoy with the bootstrap that 'pilotfish bootstrap --proxy edge' prints"
"$pilotfish" bootstrap --proxy edge >"$work/envoy.yaml"
start envoy "$envoy" -c "$work/envoy.yaml" --log-level warn --use-dynamic-base-id
until_ok "Envoy" curl -sf http://127.0.0.1:15000/ready
until_ok "the route" curl -sf http://127.0.0.1:8080/

say "100 requests; the VirtualService says 90 to v1, 10 to v2"
ask 100
say "10 requests with the header x-version: v2"
ask 10 -H 'x-version: v2'

say "editing the weights in $config/route.yaml: 20 to v1, 80 to v2"
sed -i 's/weight: 90/weight: 20/; s/weight: 10/weight: 80/' "$config/route.yaml"
grep -n 'weight' "$config/route.yaml" | sed 's/^/    /'
# The change has arrived when Envoy's configuration has the new weight.
until_ok "the new weight" bash -c \
    "curl -s http://127.0.0.1:15000/config_dump | grep -q '\"weight\": 80'"
say "100 requests after the edit"
ask 100

say "a typo does not take anything away: breaking route.yaml and asking again"
sed -i 's/ subset: v1}/ subset: v1/' "$config/route.yaml"
until_ok "the finding" grep -q 'route.yaml' "$work/pilotfish.log"
"$pilotfish" validate "$config" || true
ask 10

cat <<TXT

Where to look next:
    .demo/config               the files that steer Envoy: copy, edit, break
    .demo/pilotfish.log        what pilotfish decided
    examples/configs           more examples, each tested with a real Envoy
    $pilotfish translate --config-dir .demo/config --proxy edge
TXT

if [ -n "${DEMO_KEEP:-}" ] || [ -t 0 ]; then
    say "still running; Ctrl-C stops everything"
    sleep infinity &
    pids+=($!)
    wait $!
fi
