"""Tests the page against a made-up engine, whose jobs and failures are always the same.

Usage: made_up.py DAEMON [SCREENSHOTS]. DAEMON is the example `page`, which takes an address
and the milliseconds of a made-up witness.
"""

import subprocess
import sys

import checks
from browser import Browser


class Daemon:
    def __init__(self, program, port):
        self.program, self.port = program, port
        self.start()

    def start(self):
        arguments = [self.program, f"127.0.0.1:{self.port}", "400"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        checks.wait_until_alive(self.port, self.process)

    def end(self):
        self.process.kill()
        self.process.wait()


def main():
    program = sys.argv[1]
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    daemon = Daemon(program, checks.free_port())
    browser = None
    try:
        browser = Browser(checks.TIME_LIMIT_S)
        browser.view(1280, 800, "light")
        browser.open(f"http://127.0.0.1:{daemon.port}/")
        checks.numbers_change(browser)
        checks.a_failure_has_its_reason(browser, "constraint")
        checks.the_keyboard_is_enough(browser)
        checks.the_tables_are_named(browser)
        checks.it_fits(browser, folder)
        checks.it_recovers(browser, daemon.end, daemon.start)
        assert not browser.problems, browser.problems
    finally:
        if browser:
            browser.close()
        daemon.end()
    print("the page passes with a made-up engine")


main()
