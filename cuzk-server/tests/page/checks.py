"""Checks of the page that hold for every daemon.

Not the daemons, which are in made_up.py and real.py. Each check waits for a condition. None
depends on how long something takes.
"""

import os
import socket
import time
import urllib.error
import urllib.request

NUMBER = "(id) => Number.parseFloat(document.getElementById(id).textContent)"
STATE = "document.getElementById('state-text').textContent"
BANNER = "document.getElementById('banner')"
RUNNING = f"({NUMBER})('partitions-running') >= 1"

# Name, width, height, and true for a phone.
VIEWS = [("laptop", 1280, 800, False), ("phone", 390, 844, True)]
SECTIONS = ["running", "waiting", "memory", "devices", "failures", "finished"]

# Enough for anything that ends at all, on a busy machine.
TIME_LIMIT_S = 300


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_until_alive(port, process):
    """Waits until a daemon answers. Its end is an error."""
    until = time.monotonic() + TIME_LIMIT_S
    while True:
        assert process.poll() is None, f"the daemon ended with {process.returncode}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez") as reply:
                assert reply.status == 200
                return
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < until, "the daemon does not answer"
            time.sleep(0.1)


def number(browser, name):
    return browser.evaluate(f"({NUMBER})({name!r})")


def numbers_change(browser):
    """The page follows jobs: they run, they end, and the totals rise."""
    browser.wait_for(f"{STATE} === 'ready'", "ready")
    browser.wait_for(f"({NUMBER})('proved') >= 1", "a job is proved")
    rows = "document.querySelectorAll('#waterfall tr').length >= 2"
    browser.wait_for(rows, "partitions are in the waterfall")
    bars = "document.querySelectorAll('#waterfall rect').length >= 4"
    browser.wait_for(bars, "stages are in the waterfall")
    before = number(browser, "proved")
    browser.wait_for(f"({NUMBER})('proved') > {before}", "the number of proved jobs rises")
    browser.wait_for("document.querySelectorAll('#finished-rows tr').length >= 2",
                     "ended jobs are listed")
    browser.wait_for("document.getElementById('news').textContent !== ''",
                     "screen readers are told")


def a_failure_has_its_reason(browser, reason):
    browser.wait_for("document.querySelectorAll('#failures-list h3').length >= 1",
                     "a failure is listed")
    shown = browser.evaluate("document.querySelector('#failures-list p').textContent")
    assert reason in shown, shown


def uptime_s(browser):
    """Returns the uptime that the page shows, such as "7 s" or "1 min 02 s"."""
    words = browser.evaluate("document.getElementById('uptime').textContent").split()
    units = {"s": 1, "min": 60, "h": 3600}
    return sum(int(count) * units[unit] for count, unit in zip(words[::2], words[1::2]))


def it_recovers(browser, end, start):
    """`end` kills the daemon, and `start` starts it again at the same address."""
    end()
    browser.wait_for(f"!{BANNER}.hidden", "the banner appears")
    text = browser.evaluate(f"{BANNER}.textContent")
    assert "has not answered since" in text, text
    assert browser.evaluate(STATE) == "no connection"
    started = time.monotonic()
    start()
    browser.wait_for(f"{BANNER}.hidden", "the banner goes")
    browser.wait_for(f"{STATE} === 'ready'", "ready again")
    # The figures are those of the new process. The page rounds to seconds.
    shown, possible = uptime_s(browser), time.monotonic() - started + 1
    assert shown <= possible, f"up {shown} s after {possible} s"
    proved = number(browser, "proved")
    browser.wait_for(f"({NUMBER})('proved') > {proved}", "the numbers change again")


def focused(browser, what):
    return browser.evaluate(f"document.activeElement.{what}")


def the_keyboard_is_enough(browser):
    """Tab reaches every link, the focus is seen, and Enter follows a link."""
    browser.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    browser.press("Tab", 9)
    assert focused(browser, "className") == "skip", focused(browser, "outerHTML")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert browser.evaluate(outline) == "solid"
    for name in SECTIONS:
        browser.press("Tab", 9)
        assert focused(browser, "getAttribute('href')") == f"#{name}"
        assert browser.evaluate(outline) == "solid"
        target = f"document.getElementById('{name}')"
        assert browser.evaluate(f"{target}.tabIndex === -1 && !!{target}.querySelector('h2')")
    # The last link is that of the finished jobs.
    browser.press("Enter", 13)
    browser.wait_for("document.activeElement.id === 'finished'", "the section has the focus")
    links = browser.evaluate("document.querySelectorAll('footer a').length")
    reached = set()
    for _ in range(links + 2):
        browser.press("Tab", 9)
        reached.add(focused(browser, "getAttribute('href')"))
    assert {"/status", "/metrics", "/timeline.svg", "/timeline.json"} <= reached, reached
    browser.evaluate("document.activeElement.blur(); history.replaceState(null, '', '/')")


def the_tables_are_named(browser):
    tables = "[...document.querySelectorAll('table')]"
    assert browser.evaluate(f"{tables}.length >= 4 && {tables}.every((t) => t.caption)")
    heads = "[...document.querySelectorAll('th')]"
    assert browser.evaluate(f"{heads}.every((head) => head.scope)")


def it_fits(browser, folder):
    """The page is no wider than the screen, in both schemes. Takes pictures in `folder`."""
    for name, width, height, is_phone in VIEWS:
        for scheme in ("light", "dark"):
            browser.view(width, height, scheme, is_phone)
            browser.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
            browser.wait_for(RUNNING, "a partition runs")
            wide = browser.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name}: the page is {wide} pixels wide"
            columns = browser.evaluate(
                "getComputedStyle(document.querySelector('.pair')).gridTemplateColumns")
            assert len(columns.split()) == (1 if is_phone else 2), columns
            if folder:
                os.makedirs(folder, exist_ok=True)
                browser.screenshot(os.path.join(folder, f"{name}-{scheme}.png"))
                whole = os.path.join(folder, f"{name}-{scheme}-whole.png")
                browser.screenshot(whole, whole=True)
    browser.view(1280, 800, "light")
