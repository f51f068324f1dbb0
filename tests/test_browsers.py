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
