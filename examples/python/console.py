#!/usr/bin/env python3
"""A client of the console, with nothing but Python's library.

    takt web --tokens tokens &
    export TAKT_TOKEN=$(sed -n 's/^steer //p' tokens)
    python3 examples/python/console.py                        # a line for each app, each second
    python3 examples/python/console.py set dial priority 90   # what it would do, then does it if no contract breaks

TAKT_WEB says where the console is, if not at http://127.0.0.1:9550. docs/web.md describes the API.
"""

import json
import os
import sys
import urllib.error
import urllib.request

BASE = os.environ.get("TAKT_WEB", "http://127.0.0.1:9550")


def request(path, body=None):
    """Opens a path of the API; with a body, posts it."""
    headers = {"x-takt-token": os.environ["TAKT_TOKEN"], "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        return urllib.request.urlopen(urllib.request.Request(f"{BASE}/api/v1/{path}", data, headers))
    except urllib.error.HTTPError as error:
        sys.exit(json.load(error)["error"])


def events():
    """What is so, each second."""
    name = None
    for line in request("events"):
        key, _, value = line.decode().rstrip("\n").partition(": ")
        if key == "event":
            name = value
        elif key == "data" and name == "now":
            yield json.loads(value)


def show(now):
    """A line for each app."""
    if now["error"]:
        print(now["error"])
    for app in now["apps"]:
        met = "-" if app["met"] is None else f"{app['met']:.1%}"
        late = app["late"]["sentence"] if app["late"] else ""
        print(f"{app['name']:20} {app['fps']:6.1f} fps  met {met:>6}  GPU {app['gpu']:6.1%}  {app['contract']:18} {late}")
    print(flush=True)


def change(app, key, value):
    """Asks what a change would do, and makes it if no contract that holds would break."""
    order = {"ask": "set", "app": app, key: json.loads(value)}
    preview = json.load(request("preview", {"order": order}))
    if preview["refused"] or preview["loses"]:
        sys.exit(preview["refused"] or f"it would break the contract of {', '.join(preview['loses'])}")
    done = json.load(request("order", {"order": order}))
    print(f"change {done['change']}, done in {done['took_ms']:.1f} ms")


if __name__ == "__main__":
    if sys.argv[1:2] == ["set"]:
        change(*sys.argv[2:5])
    else:
        for picture in events():
            show(picture)
            if sys.argv[1:2] == ["once"]:
                break
