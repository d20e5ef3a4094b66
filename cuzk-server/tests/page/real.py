"""Tests the page against the daemon while it proves.

Usage: real.py CUZK PARAMETERS [SCREENSHOTS]. CUZK is the program. PARAMETERS is a folder for
test parameters, which is kept.
"""

import sys

import checks
from browser import Browser
from daemon import Daemon, Load

# The kind that is quickest to prove.
KIND = "window-post"


def main():
    program, parameters = sys.argv[1:3]
    folder = sys.argv[3] if len(sys.argv) > 3 else None
    daemon = Daemon(program, KIND, parameters)
    browser, load = None, None
    try:
        browser = Browser(checks.TIME_LIMIT_S)
        browser.view(1280, 800, "light")
        browser.open(f"http://127.0.0.1:{daemon.port}/")
        browser.wait_for(f"{checks.STATE} === 'ready'", "ready")
        shown = browser.evaluate("document.getElementById('running-empty').textContent")
        assert shown.startswith("Nothing runs"), shown
        load = Load(daemon, KIND)
        checks.numbers_change(browser)
        checks.the_tables_are_named(browser)
        checks.it_fits(browser, folder)
        checks.it_recovers(browser, daemon.end, daemon.start)
        load.end()
        assert not browser.problems, browser.problems
    except BaseException:
        print(daemon.log(), file=sys.stderr)
        raise
    finally:
        if load:
            load.is_over.set()
        if browser:
            browser.close()
        daemon.remove()
    print("the page passes with the daemon")


main()
