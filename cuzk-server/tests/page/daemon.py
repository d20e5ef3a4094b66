"""The daemon `cuzk serve` in a process of its own, and jobs for it."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

import checks

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../data/sector-2kib")


class Daemon:
    """A daemon with a journal, and with the parameters of one kind."""

    def __init__(self, program, kind, parameters):
        self.program, self.port = program, checks.free_port()
        self.folder = tempfile.mkdtemp(prefix="cuzk-page-")
        self.address = f"unix://{self.folder}/cuzk.sock"
        self.parameters = os.path.join(self.folder, "parameters")
        self.environment = {
            **os.environ,
            "CUZK_ADDRESS": self.address,
            "FIL_PROOFS_PARAMETER_CACHE": self.parameters,
            "STATE_DIRECTORY": os.path.join(self.folder, "state"),
        }
        self.process = None
        try:
            self._link(kind, parameters)
            self.start()
        except BaseException:
            self.remove()
            raise

    def _link(self, kind, kept):
        """Makes parameters in the folder `kept`, unless they are there, and links to them."""
        environment = {**self.environment, "FIL_PROOFS_PARAMETER_CACHE": kept}
        arguments = ["params", "generate", "--kind", kind, "--sector-size", "2KiB", "--json"]
        made = subprocess.run([self.program, *arguments], env=environment, check=True,
                              stdout=subprocess.PIPE)
        os.makedirs(self.parameters)
        for key in ("params", "vk"):
            path = os.path.abspath(json.loads(made.stdout)[key])
            os.symlink(path, os.path.join(self.parameters, os.path.basename(path)))

    def start(self):
        arguments = [self.program, "serve", "--listen", self.address,
                     "--http", f"127.0.0.1:{self.port}"]
        with open(os.path.join(self.folder, "log"), "a") as log:
            self.process = subprocess.Popen(arguments, env=self.environment, stderr=log)
        checks.wait_until_alive(self.port, self.process)

    def end(self):
        """Ends the process at once, as a power cut would."""
        self.process.kill()
        self.process.wait()

    def submit(self, kind, name):
        """Submits a bundled request under a name, and does not wait for its proof."""
        request = os.path.join(DATA, f"{kind}.json")
        arguments = ["submit", "--no-wait", "--request", request, "--id", name]
        subprocess.run([self.program, *arguments], env=self.environment, check=True,
                       stdout=subprocess.DEVNULL)

    def jobs(self):
        """Returns the number of jobs that have not ended, or None if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status") as reply:
                return len(json.load(reply)["pipelines"])
        except (urllib.error.URLError, ConnectionError):
            return None

    def log(self):
        with open(os.path.join(self.folder, "log")) as log:
            return log.read()

    def remove(self):
        if self.process and self.process.poll() is None:
            self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Load:
    """Submits jobs of a kind while fewer than four are there.

    A submission fails if the daemon ends just before it: its socket still has a name, and
    nothing listens there. The same job is then submitted again. `problem` is the last error,
    if no submission has succeeded since.
    """

    def __init__(self, daemon, kind):
        self.daemon, self.kind = daemon, kind
        self.is_over = threading.Event()
        self.problem = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        submitted = 0
        while not self.is_over.is_set():
            jobs = self.daemon.jobs()
            if jobs is not None and jobs < 4:
                try:
                    self.daemon.submit(self.kind, f"{self.kind}-1000-{submitted}")
                    submitted, self.problem = submitted + 1, None
                except subprocess.CalledProcessError as error:
                    self.problem = error
            self.is_over.wait(0.1)

    def end(self):
        self.is_over.set()
        self.thread.join()
        assert self.problem is None, self.problem
