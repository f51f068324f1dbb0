"""What browsers put into a page, or over it, without telling anybody."""

import pytest

from stage import processes
from stage.application import chromium, firefox
from stage.client import Client

PAGE = """<!doctype html><title>Late page</title>
<button onclick="setTimeout(() => {
  const outer = document.createElement('div');
  outer.innerHTML = '<div><button>Nested</button></div>';
  document.body.append(outer);
}, 300)">Insert</button>
<button onclick="document.querySelector('#empty').innerHTML = '<button>Inner</button>'">Fill</button>
<div id="empty"></div>
<button onclick="setTimeout(() => alert('hi there'), 300)">Alert</button>
"""


@pytest.mark.parametrize("browser", [chromium, firefox])
def test_what_comes_into_a_page_unannounced_is_seen(desktop, tmp_path, browser):
    page = tmp_path / "late.html"
    page.write_text(PAGE)
    profile = tmp_path / "profile"
    profile.mkdir()
    process = desktop.start(browser(profile, page.as_uri()))
    try:
        with Client(desktop) as client:
            window = client.window(title="Late page", timeout=60)
            for pressed, appears in (("Insert", "Nested"), ("Fill", "Inner"), ("Alert", "OK")):
                client.element(window, role="button", name=pressed)
                client.call("click", window_id=window["window_id"], query={"role": "button", "name": pressed, "exact": True})
                met = client.call(
                    "wait_for", condition="element_appears", window_id=window["window_id"], role="button", name=appears, timeout_ms=5000,
                )
                assert met["met"], met.structured
            client.element(window, contains="hi there")
    finally:
        processes.end(process)


TAB = """<!doctype html><title>Page {name}</title>
<h1>Head {name}</h1>
<button onclick="document.title = '{name} was pressed'">Press {name}</button>
"""


def test_firefox_shows_the_page_of_the_tab_that_is_shown(desktop, tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.html").write_text(TAB.format(name=name))
    profile = tmp_path / "profile"
    profile.mkdir()
    one, two, three = ((tmp_path / f"{name}.html").as_uri() for name in ("one", "two", "three"))
    process = desktop.start([*firefox(profile, one), two])
    try:
        with Client(desktop) as client:
            # Read before there is a page, and again and again while pages come and go.
            window = client.window(pid=process.pid, timeout=60)
            client.tree(window)

            def pages():
                return [e.name for e in client.tree(window, max_elements=3000).elements if e.role == "document web"]

            def shows(name):
                processes.wait_until(lambda: pages() == [f"Page {name}"], 20, lambda: (name, pages()))
                client.element(window, role="button", name=f"Press {name}")

            def press(keys):
                client.call("press_key", window_id=window["window_id"], key=keys)

            shows("one")
            press("ctrl+t")
            client.call("type_text", window_id=window["window_id"], text=f"{three}\n")
            shows("three")
            for name in ("one", "two", "three", "one"):
                press("ctrl+Tab")
                shows(name)
            for query, code in (({"name": "Press two"}, "element_not_found"), ({"name": "Press"}, None)):
                answer = client.try_call("click", window_id=window["window_id"], query={"role": "button", **query})
                assert answer.code == code, answer.structured
            client.window(title="one was pressed")
    finally:
        processes.end(process)
