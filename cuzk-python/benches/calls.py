"""Proves a request for each line of the input, and prints the seconds that it took.

CUZK_BENCH_CONFIG is the text of a configuration, CUZK_BENCH_REQUEST the path of a request. A line
has the number of calls and, if the job is to have one, its id. "ready" is the first line of the
output.
"""

import os
import sys
import time

import cuzk


def prove(engine, request, name):
    proof = engine.submit(request, id=name).wait()
    if len(proof) != 192:
        sys.exit(f"a proof has {len(proof)} bytes, and not 192")


def main():
    with open(os.environ["CUZK_BENCH_REQUEST"], "rb") as file:
        request = file.read()
    with cuzk.Engine(os.environ["CUZK_BENCH_CONFIG"]) as engine:
        print("ready", flush=True)
        for line in sys.stdin:
            calls, *names = line.split()
            name = names[0] if names else None
            begun = time.perf_counter()
            for _ in range(int(calls)):
                prove(engine, request, name)
            print(time.perf_counter() - begun, flush=True)


main()
