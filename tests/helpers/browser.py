"""Headless Chromium through its debugging pipe: no driver, no package."""

import json
import os
import shutil
import subprocess
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """Where Chromium is: $CHROMIUM, or a usual name; None if nowhere."""
    given = os.environ.get("CHROMIUM")
    return given or next((path for path in map(shutil.which, NAMES) if path), None)


def browsing(folder):
    """What a fixture yields: a browser whose files are in `folder`; skips where there is none."""
    if find() is None:
        pytest.skip("no Chromium here; set CHROMIUM to its path")
    opened = Browser(folder)
    yield opened
    opened.close()


class Browser:
    """One page in headless Chromium, without a network."""

    def __init__(self, folder):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            f"--user-data-dir={folder}", "--remote-debugging-pipe",
            "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND",
        ]  # fmt: skip
        script = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", find(), *options],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)},
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._number, self._rest, self.events, self._session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Send a command and wait for its answer; what happens meanwhile is kept in `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width=1440, height=1000, dark=False):
        """Load a file and wait until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for("document.readyState + location.protocol == 'completefile:'")

    def run(self, script):
        """The value of an expression."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def key(self, name):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def point(self, x, y):
        """Move the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def wait_for(self, script):
        """Wait until an expression is true."""
        until = time.monotonic() + 60
        while not self.run(script):
            assert time.monotonic() < until, f"never: {script}"
            time.sleep(0.1)

    def complaints(self):
        """Errors, refusals, and requests of anything but the page itself and data."""
        found = []
        for event in self.events:
            method, values = event.get("method"), event.get("params", {})
            bad = method in ("Runtime.exceptionThrown", "Log.entryAdded")
            bad |= method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning")
            if method == "Network.requestWillBeSent":
                bad = not values["request"]["url"].startswith(("file:", "data:", "about:"))
            found += [values] if bad else []
        return found

    def close(self):
        self._process.terminate()
        self._process.wait(20)
        os.close(self._write)
        os.close(self._read)

    def _next(self):
        while b"\0" not in self._rest:
            block = os.read(self._read, 1 << 20)
            assert block, "the browser has gone"
            self._rest += block
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)
