"""A Groth16 proving engine for Filecoin storage proofs.

    engine = cuzk.Engine()
    proof = engine.submit(open("porep.json", "rb").read()).wait()

A job can also be awaited: `proof = await engine.submit(request)`.
"""

import asyncio
import json
import os

from . import _cuzk
from ._cuzk import Error, __version__

__all__ = ["Engine", "Error", "Job", "__version__"]


class Job:
    """A job of an engine. All threads may use it at once. It goes on without this object."""

    def __init__(self, job):
        self._job = job

    def poll(self):
        """Returns the proof, or None while the job runs. Raises the error of a failed job."""
        return self._job.poll()

    def wait(self, timeout=None):
        """Returns the proof when it is there. After `timeout` seconds it raises TimeoutError."""
        proof = self._job.wait(timeout)
        if proof is None:
            raise TimeoutError(f"the job has not ended within {timeout} s")
        return proof

    def cancel(self):
        """Ends the job, unless it has ended. Returns true if this ended it."""
        return self._job.cancel()

    def progress(self):
        """Returns how many partitions are proved, and how many there are."""
        return self._job.progress()

    def fileno(self):
        """Returns an eventfd that becomes readable with the job's end. The job owns it."""
        return self._job.fileno()

    def __await__(self):
        return self._ended().__await__()

    async def _ended(self):
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        # A loop watches a descriptor once, and two tasks may await a job.
        descriptor = os.dup(self.fileno())
        loop.add_reader(descriptor, lambda: ended.done() or ended.set_result(None))
        try:
            await ended
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        return self.wait()


class Engine:
    """A proving engine. All threads may use it at once.

    `toml` is the text of a configuration. As a context manager it ends the engine.
    """

    def __init__(self, toml=""):
        self._engine = _cuzk.Engine(toml)

    def submit(self, request, *, id=None, priority=None, deadline=None, waits=False):
        """Submits the JSON of a request and returns its job.

        `priority` is critical, high, normal or low. `deadline` is in seconds from now.
        """
        return Job(
            self._engine.submit(
                request, id=id, priority=priority, deadline=deadline, waits=waits
            )
        )

    def aggregate(self, request):
        """Aggregates proofs of replication and returns the bytes of the aggregate.

        `request` is the JSON of a list of sectors with their proofs. Other threads run
        meanwhile. Ctrl-C ends the work and raises KeyboardInterrupt.
        """
        return self._engine.aggregate(request)

    def status(self):
        """Returns the state of the engine as a dictionary."""
        return json.loads(self._engine.status())

    def end(self, patience=None):
        """Accepts no more jobs, and proves those that it has for at most `patience` seconds.

        Returns how many were not proved.
        """
        return self._engine.end(patience)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(0)
