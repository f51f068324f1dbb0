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


COVERED = """<!doctype html><title>-</title>
<style>
  div.place { position: relative; height: 40px; width: 260px }
  div.cover { position: absolute; left: 0; top: 0; width: 150px; height: 40px; background: orange }
  div.glass { position: absolute; left: 0; top: 0; width: 150px; height: 40px; pointer-events: none; border: 1px dashed }
  label.switch input { opacity: 0; position: absolute }
  label.switch span { display: inline-block; width: 40px; height: 20px; background: silver }
  label.floating { position: absolute; left: 5px; top: 8px }
  div.box { width: 400px; height: 120px; overflow: auto }
</style>
<div class=place><button onclick="hit('under')">Under</button><div class=cover onclick="hit('cover')">Some notice</div></div>
<div class=place><button onclick="hit('glass')">Glazed</button><div class=glass></div></div>
<div class=place><input id=field onfocus="hit('field')"><label class=floating for=field>Floating</label></div>
<label class=switch><input type=checkbox onchange="hit('switch')"><span></span> Switch</label>
<button onclick="hit('icon')"><span><b>Icon</b> text</span></button>
<div role=button tabindex=0 onclick="hit('division')"><div style="display: flex"><i>x</i><span>Division</span></div></div>
<div class=box></div>
<script>
function hit(name) { document.title = `Pressed ${name}` }
const box = document.querySelector('.box');
for (let n = 0; n < 40; n++) {
  const row = document.createElement('p');
  row.innerHTML = `<button onclick="hit('row ${n}')">Row ${n}.</button>`;
  box.append(row);
}
hit('nothing');
</script>"""


@pytest.mark.parametrize("browser", [chromium, firefox])
def test_what_covers_an_element_of_a_page_is_not_clicked(desktop, tmp_path, browser):
    page = tmp_path / "covered.html"
    page.write_text(COVERED)
    profile = tmp_path / "profile"
    profile.mkdir()
    process = desktop.start(browser(profile, page.as_uri()))
    try:
        with Client(desktop) as client:
            window = client.window(title="Pressed", timeout=60)
            client.element(window, role="button", name="Icon text", timeout=30)

            def click(role, name):
                query = {"role": role, "name": name}
                return client.try_call("click", window_id=window["window_id"], query=query, delivery="foreground")

            answer = click("button", "Under")
            assert answer.code == "occluded" and "Some notice" in answer.error_message, answer.structured
            assert "Pressed nothing" in client.window(title="Pressed")["title"]
            reached = [
                ("button", "Glazed", "glass"), ("entry", "Floating", "field"), ("check box", "Switch", "switch"),
                ("button", "Icon text", "icon"), ("button", "Division", "division"),
                # Scrolled out of its box, whichever way.
                ("button", "Row 30.", "row 30"), ("button", "Row 2.", "row 2"),
            ]
            for role, name, pressed in reached:
                answer = click(role, name)
                assert not answer.is_error, (name, answer.structured)
                client.window(title=f"Pressed {pressed}", timeout=10)
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

            tab = client.element(window, role="page tab", timeout=30)
            answer = client.try_call("select_text", window_id=window["window_id"], element_index=tab.index, text=tab.name[:3])
            assert answer.code == "not_supported", answer.structured

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
