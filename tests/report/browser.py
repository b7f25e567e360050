"""A headless Chromium, driven through its DevTools protocol by the standard library alone.

    with Browser() as browser:
        page = browser.open("file:///tmp/a.html", width=375, height=800, dark=True)
        page.evaluate("document.title")
        page.problems                  # errors and warnings of the console, uncaught exceptions, failed requests
        page.screenshot("a.png")

Messages are JSON texts that end in NUL, through two pipes which Chromium finds as file descriptors 3 and 4.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
SECONDS = 60


class BrowserError(Exception):
    pass


def find_program():
    for program in PROGRAMS:
        if shutil.which(program):
            return shutil.which(program)
    raise BrowserError("no Chromium: sudo apt-get install --no-install-recommends chromium-headless-shell")


class Browser:
    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="browser")
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()

        def give_descriptors():
            # By way of high numbers: 3 and 4 may be among the pipes' own.
            os.dup2(to_read, 100)
            os.dup2(to_write, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        # Root has no sandbox; the pages are our own.
        self.process = subprocess.Popen(
            [find_program(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-dev-shm-usage", "--remote-debugging-pipe", "--user-data-dir=" + self.profile],
            close_fds=False, preexec_fn=give_descriptors, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=self.profile))
        os.close(to_read)
        os.close(to_write)
        self.number, self.buffer, self.events = 0, b"", []
        return self

    def __exit__(self, *_):
        os.close(self.to_browser)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))[0]:
                raise BrowserError("the browser does not answer")
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise BrowserError("the browser has ended, code %s" % self.process.poll())
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer)

    def open(self, url, width, height, dark=False, script=True):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, url, width, height, dark, script)


class Page:
    def __init__(self, browser, session, url, width, height, dark, script):
        self.browser, self.session, self.width = browser, session, width
        self.problems, self.requests = [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        if not script:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def call(self, method, **parameters):
        result = self.browser.call(method, self.session, **parameters)
        self.take_events()
        return result

    def take_events(self):
        """Sorts what the browser told meanwhile; returns the methods' names."""
        events, self.browser.events = self.browser.events, []
        names = []
        for event in events:
            if event.get("sessionId") != self.session:
                continue
            method, parameters = event["method"], event["params"]
            names.append(method)
            if method == "Runtime.exceptionThrown":
                self.problems.append(json.dumps(parameters["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                self.problems.append(json.dumps(parameters["args"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                self.problems.append(parameters["entry"]["text"])
            elif method == "Network.loadingFailed":
                self.problems.append(parameters["errorText"])
            elif method == "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
        return names

    def wait_for(self, name):
        deadline = time.monotonic() + SECONDS
        while name not in self.take_events():
            self.browser.events.append(self.browser.receive(deadline))

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def move_to(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path, whole=True):
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
