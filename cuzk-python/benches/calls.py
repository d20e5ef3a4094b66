"""Calls of an engine through the package, which another process orders.

CUZK_BENCH_CONFIG is the text of a configuration, CUZK_BENCH_REQUEST the path of a request.
Each line of the input is a number of calls and the id of their job, if it has one. The line
that answers it is the time of the calls in seconds.
"""

import os
import sys
import time

import cuzk

with open(os.environ["CUZK_BENCH_REQUEST"], "rb") as file:
    REQUEST = file.read()

with cuzk.Engine(os.environ["CUZK_BENCH_CONFIG"]) as engine:
    for order in sys.stdin:
        calls, *job_id = order.split()
        calls, job_id = int(calls), next(iter(job_id), None)
        begun = time.perf_counter()
        for _ in range(calls):
            proof = engine.submit(REQUEST, id=job_id).wait()
            if len(proof) != 192:
                sys.exit(f"a proof of {len(proof)} bytes")
        print(time.perf_counter() - begun, flush=True)
