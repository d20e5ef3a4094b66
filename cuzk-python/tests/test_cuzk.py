"""Jobs through the package, as a script or a notebook would run them.

CUZK_TEST_CONFIG is the text of a configuration, CUZK_TEST_REQUEST the path of a request.
CUZK_TEST_SRS_CONFIG is the text of a configuration with an SRS for two proofs, and
CUZK_TEST_SECTORS the path of a list of two sectors with their proofs.
CUZK_TEST_PIPE is the path of a pipe, and CUZK_TEST_PIPE_CONFIG the text of a configuration
whose SRS it is, with memory for one aggregation of those sectors at a time.
CUZK_TEST_PAGE is the path of the page that shows a program, and FIL_PROOFS_PARAMETER_CACHE has
the parameters of the request.
"""

import asyncio
import faulthandler
import json
import os
import select
import signal
import tempfile
import threading
import time
import unittest

import cuzk

CONFIG = os.environ["CUZK_TEST_CONFIG"]
with open(os.environ["CUZK_TEST_REQUEST"], "rb") as file:
    REQUEST = file.read()
with open(os.environ["CUZK_TEST_SECTORS"], "rb") as file:
    SECTORS = file.read()


class Jobs(unittest.TestCase):
    def setUp(self):
        self.engine = cuzk.Engine(CONFIG)
        self.addCleanup(self.engine.end, 0)

    def test_a_job_is_proved(self):
        job = self.engine.submit(REQUEST, id="a", priority="low", deadline=3600)
        proof = job.wait()
        self.assertEqual(len(proof), 192)
        self.assertEqual(job.poll(), proof)
        self.assertEqual(job.progress(), (1, 1))
        self.assertEqual(select.select([job], [], [], 0)[0], [job])
        self.assertEqual(self.engine.submit(REQUEST, id="a").wait(), proof)
        self.assertEqual(self.engine.status()["ended"][0]["id"], "a")

    def test_a_job_is_awaited_by_more_than_one_task(self):
        async def both():
            job = self.engine.submit(REQUEST)

            async def task():
                return await job

            return await asyncio.gather(task(), task())

        first, second = asyncio.run(both())
        self.assertEqual(first, second)
        self.assertEqual(len(first), 192)

    def test_threads_run_while_one_waits(self):
        job = self.engine.submit(REQUEST)
        ended = []
        thread = threading.Thread(target=lambda: ended.append(job.wait()))
        thread.start()
        job.wait()
        thread.join()
        self.assertEqual(len(ended), 1)

    def test_a_cancelled_job_raises_its_error(self):
        job = self.engine.submit(REQUEST, priority="low")
        if job.cancel():
            with self.assertRaises(cuzk.Error) as raised:
                job.wait()
            self.assertEqual(raised.exception.code, 25)
            with self.assertRaises(cuzk.Error):
                asyncio.run(self._awaited(job))

    async def _awaited(self, job):
        return await job

    def test_wrong_input_is_an_error(self):
        with self.assertRaises(cuzk.Error) as raised:
            self.engine.submit(b"{")
        self.assertEqual(raised.exception.code, 6)
        self.assertIn("CUZK-0006", str(raised.exception))
        with self.assertRaises(cuzk.Error) as raised:
            cuzk.Engine("[jobs]\nqueued = 1\n")
        self.assertEqual(raised.exception.code, 5)
        for wrong in ({"priority": "highest"}, {"deadline": -1.0}):
            with self.assertRaises(ValueError):
                self.engine.submit(REQUEST, **wrong)


class Aggregates(unittest.TestCase):
    def test_proofs_are_aggregated(self):
        with cuzk.Engine(os.environ["CUZK_TEST_SRS_CONFIG"]) as engine:
            aggregate = engine.aggregate(SECTORS)
            self.assertGreater(len(aggregate), 192)
            self.assertEqual(engine.aggregate(SECTORS), aggregate)
            with self.assertRaises(cuzk.Error) as raised:
                engine.aggregate(REQUEST)
            self.assertEqual(raised.exception.code, 6)

    def test_an_srs_that_is_too_short_is_an_error(self):
        sectors = json.loads(SECTORS)
        sectors["sectors"] *= 2
        with cuzk.Engine(os.environ["CUZK_TEST_SRS_CONFIG"]) as engine:
            with self.assertRaises(cuzk.Error) as raised:
                engine.aggregate(json.dumps(sectors).encode())
            self.assertEqual(raised.exception.code, 8)

    def test_ctrl_c_ends_an_aggregation(self):
        """One aggregation waits for its SRS, and a second one for the memory of the first.

        Only a signal ends the second one while the first one waits.
        """
        engine = cuzk.Engine(os.environ["CUZK_TEST_PIPE_CONFIG"])
        self.addCleanup(engine.end, 0)
        failed = []

        def first():
            try:
                engine.aggregate(SECTORS)
            except cuzk.Error as error:
                failed.append(error.code)

        thread = threading.Thread(target=first)
        thread.start()
        while thread.is_alive() and engine.status()["memory"]["used_bytes"] == 0:
            time.sleep(0.01)
        with self.assertRaises(KeyboardInterrupt):
            self._aggregate_and_interrupt(engine)
        self.assertTrue(thread.is_alive())
        # A pipe opens when it has both ends. This one is no SRS.
        with open(os.environ["CUZK_TEST_PIPE"], "wb"):
            thread.join()
        self.assertEqual(failed, [8])

    def _aggregate_and_interrupt(self, engine):
        """Aggregates, and sends SIGINT once the call of the engine has begun."""
        begun = threading.Event()

        def interrupt(_, frame):
            # A signal that comes before the call is sent again.
            if frame.f_code is cuzk.Engine.aggregate.__code__:
                raise KeyboardInterrupt
            begun.set()

        def send():
            while begun.wait():
                begun.clear()
                os.kill(os.getpid(), signal.SIGINT)

        before = signal.signal(signal.SIGINT, interrupt)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        threading.Thread(target=send, daemon=True).start()
        begun.set()
        engine.aggregate(SECTORS)


class Page(unittest.TestCase):
    def test_the_program_of_the_page_runs(self):
        with open(os.environ["CUZK_TEST_PAGE"], encoding="utf-8") as file:
            _, *programs = file.read().split("\n```python\n")
        self.assertEqual(len(programs), 1)
        program = compile(programs[0].split("\n```")[0], "the page", "exec")
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        names = {}
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            with open("porep.json", "wb") as file:
                file.write(REQUEST)
            exec(program, names)
            os.chdir(before)
        self.addCleanup(names["engine"].end, 0)
        self.assertEqual(len(names["proof"]), 192)
        proofs = asyncio.run(names["both"]([REQUEST, REQUEST]))
        self.assertEqual([len(proof) for proof in proofs], [192, 192])


if __name__ == "__main__":
    # A test that hangs ends with the places where its threads are.
    faulthandler.dump_traceback_later(600, exit=True)
    unittest.main()
