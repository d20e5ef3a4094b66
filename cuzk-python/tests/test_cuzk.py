"""Jobs through the package, as a script or a notebook would run them.

CUZK_TEST_CONFIG is the text of a configuration, CUZK_TEST_REQUEST the path of a request.
CUZK_TEST_SRS_CONFIG is the text of a configuration with an SRS for two proofs, and
CUZK_TEST_SECTORS the path of a list of two sectors with their proofs.
"""

import asyncio
import json
import os
import select
import threading
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


if __name__ == "__main__":
    unittest.main()
