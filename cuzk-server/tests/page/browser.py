"""A headless Chromium, driven over the DevTools protocol with the standard library."""

import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time


class Browser:
    """A browser with one tab. Every problem that a page reports is in `problems`."""

    def __init__(self, time_limit_s=120):
        self.folder = tempfile.mkdtemp(prefix="cuzk-page-")
        self.time_limit_s = time_limit_s
        self.problems = []
        self.next_id = 0
        arguments = [
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
            "--hide-scrollbars", "--remote-debugging-port=0",
            f"--user-data-dir={self.folder}", "about:blank",
        ]
        # A group of its own, so that all its processes can be ended.
        self.process = subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self):
        path = os.path.join(self.folder, "DevToolsActivePort")
        until = time.monotonic() + self.time_limit_s
        while not (os.path.exists(path) and len(open(path).read().splitlines()) == 2):
            if time.monotonic() > until:
                raise TimeoutError("the browser did not start")
            time.sleep(0.1)
        port, target = open(path).read().splitlines()
        self.socket = socket.create_connection(("127.0.0.1", int(port)), self.time_limit_s)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((
            f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.stream = self.socket.makefile("rb")
        while self.stream.readline() not in (b"\r\n", b""):
            pass
        self.session = None
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=tab, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def _send(self, text):
        """Sends a text frame, masked as clients must."""
        data = text.encode()
        mask = os.urandom(4)
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x81, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x81, 0xFE, size)
        else:
            head = struct.pack("!BBQ", 0x81, 0xFF, size)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.socket.sendall(head + mask + masked)

    def _receive(self):
        """Returns the next message, put together of its frames."""
        whole = b""
        while True:
            first, second = self.stream.read(2)
            size = second & 0x7F
            if size == 126:
                size, = struct.unpack("!H", self.stream.read(2))
            elif size == 127:
                size, = struct.unpack("!Q", self.stream.read(8))
            data = self.stream.read(size)
            if first & 0x0F in (0, 1):
                whole += data
                if first & 0x80:
                    return json.loads(whole)

    def call(self, method, **parameters):
        """Calls a method of the protocol and returns its result."""
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self._send(json.dumps(message))
        while True:
            reply = self._receive()
            if reply.get("id") == message["id"]:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]
            self._note(reply)

    def _note(self, event):
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(event["params"]["exceptionDetails"])
        if event.get("method") == "Log.entryAdded":
            entry = event["params"]["entry"]
            # A daemon that is gone is what a test is about.
            if entry["level"] == "error" and "net::ERR_" not in entry["text"]:
                self.problems.append(entry)

    def open(self, address):
        self.call("Page.navigate", url=address)
        loaded = f"location.href === {json.dumps(address)} && document.readyState === 'complete'"
        self.wait_for(loaded, f"{address} is loaded")

    def evaluate(self, expression):
        """Returns the value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression, what):
        """Waits until an expression is true."""
        until = time.monotonic() + self.time_limit_s
        while not self.evaluate(expression):
            if time.monotonic() > until:
                raise AssertionError(f"it did not happen: {what}")
            time.sleep(0.1)

    def press(self, key, code=None):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code or 0)

    def view(self, width, height, scheme, mobile=False):
        """Sets the size of the window and the colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=mobile)
        scheme = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(data["data"]))

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
