#!/usr/bin/env python3
"""The main job in one minute, on this machine: pilotfish, a real Envoy and two upstreams; requests;
an edit that changes who answers; a typo that takes nothing away. Called by `make demo`.

DEMO_KEEP=1 leaves everything running until Ctrl-C. Only the standard library is used.
"""

import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / ".demo"
CONFIG = WORK / "config"
EDGE = "http://127.0.0.1:8080/"
READY = "http://127.0.0.1:18080/ready"
ENVOY_ADMIN = "http://127.0.0.1:15000"

processes = []


def say(text):
    print(f"\n==> {text}", flush=True)


def start(name, *command):
    log = open(WORK / f"{name}.log", "w")
    processes.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))


def stop():
    say("stopping")
    for process in reversed(processes):
        process.terminate()
    for process in processes:
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()


def get(url, headers=None):
    request = urllib.request.Request(url, headers=headers or {})
    with urllib.request.urlopen(request, timeout=5) as response:
        return response.read().decode()


def wait_for(what, condition):
    """Waits for a condition, 30 seconds at most. Errors count as "not yet"."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for process in processes:
            if process.poll() is not None:
                sys.exit(f"demo: {process.args[0]} ended; see the logs in {WORK}")
        try:
            if condition():
                return
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.1)
    sys.exit(f"demo: {what} did not get ready; see the logs in {WORK}")


def ask(count, headers=None):
    """Sends requests through Envoy and prints who answered how often."""
    answers = collections.Counter()
    for _ in range(count):
        try:
            answers[json.loads(get(EDGE, headers))["name"]] += 1
        except (OSError, ValueError, KeyError):
            answers["nobody"] += 1
    for name, times in sorted(answers.items()):
        print(f"    {name} answered {times}")


def edit(old_new):
    path = CONFIG / "route.yaml"
    text = path.read_text()
    for old, new in old_new:
        if old not in text:
            sys.exit(f"demo: '{old}' is not in {path}; the quickstart and the demo differ")
        text = text.replace(old, new)
    path.write_text(text)


def main(pilotfish, envoy):
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.copytree(ROOT / "examples/configs/quickstart", CONFIG)

    say("starting two upstreams, v1 on 9001 and v2 on 9002")
    for name, port in (("v1", 9001), ("v2", 9002)):
        start(name, pilotfish, "echo", "--listen", f"127.0.0.1:{port}", "--name", name)
        wait_for(name, lambda port=port: get(f"http://127.0.0.1:{port}/"))

    say("starting pilotfish on a copy of examples/configs/quickstart")
    start("pilotfish", pilotfish, "serve", "--config-dir", str(CONFIG), "--http-addr", READY[7:-6])
    wait_for("pilotfish", lambda: get(READY))

    say("starting Envoy with what `pilotfish bootstrap --node-id edge` prints")
    bootstrap = WORK / "envoy.yaml"
    command = [pilotfish, "bootstrap", "--node-id", "edge"]
    bootstrap.write_text(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    start("envoy", envoy, "-c", str(bootstrap), "--log-level", "warn", "--use-dynamic-base-id")
    wait_for("Envoy", lambda: get(f"{ENVOY_ADMIN}/ready"))
    wait_for("the route", lambda: get(EDGE))

    say("100 requests; the VirtualService says 90 to v1 and 10 to v2")
    ask(100)
    say("10 requests with the header x-version: v2")
    ask(10, {"x-version": "v2"})

    say(f"editing the weights in {CONFIG / 'route.yaml'}: 20 to v1 and 80 to v2")
    edit([("weight: 90", "weight: 20"), ("weight: 10", "weight: 80")])
    wait_for("the new weight", lambda: '"weight": 80' in get(f"{ENVOY_ADMIN}/config_dump"))
    ask(100)

    say("breaking the file with a typo: nothing is taken away, and the finding says where it is")
    edit([("subset: v1}", "subset: v1")])
    log = WORK / "pilotfish.log"
    wait_for("the finding", lambda: "route.yaml" in log.read_text())
    subprocess.run([pilotfish, "validate", str(CONFIG)], check=False)
    ask(10)

    print(f"""
Where to look next:
    .demo/pilotfish.log    what pilotfish decided
    examples/configs       more examples, each tested with a real Envoy
    {pilotfish} translate --config-dir examples/configs/quickstart --proxy edge
    DEMO_KEEP=1 make demo  leaves everything running, so that you can edit .demo/config""")
    if os.environ.get("DEMO_KEEP"):
        say("still running; Ctrl-C stops everything")
        signal.pause()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: demo.py PILOTFISH ENVOY")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell that starts the demo in the background has Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        pass
    finally:
        stop()
