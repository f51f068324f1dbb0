"""Values that toolkits take in no simple way: dates and times of pages, sliders that ignore what they are set to."""

import json

import pytest

from stage import application, processes
from stage.application import Fixture, swing

PAGE = """<!doctype html><title>Inputs</title>
<label>When <input type=date value="2024-05-06"></label><label>Clock <input type=time value="10:20"></label>
<label>Empty <input type=date></label>
<script>document.oninput = () => {
  document.title = "Inputs: " + [...document.querySelectorAll("input")].map(input => input.value).join("|") + ";" }</script>"""


@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_dates_and_times_of_pages_are_set_in_parts(client, desktop, browser, tmp_path):
    """The page tells in its title what it holds."""
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    profile = tmp_path / "profile"
    profile.mkdir()
    process = desktop.start(getattr(application, browser)(profile, page.as_uri()))
    try:
        window = client.window(title="Inputs", timeout=40)
        client.element(window, contains='"Empty"', role="date editor", timeout=20)

        def set_parts(name, values):
            """Asks for the whole, and sets the parts that the refusal names."""
            whole = [e for e in client.tree(window).elements if e.name == name and e.role in ("date editor", "panel")][-1]
            refused = client.try_call("set_value", window_id=window["window_id"], element_index=whole.index, value="2025-12-24")
            assert refused.code == "not_supported" and "set_value on each" in refused.error_message, refused.structured
            parts = [
                int(part.split("]")[0]) for part in refused.error_message.split("set_value on each of ")[1].split("[")[1:]
            ]
            assert len(parts) == len(values), refused.error_message
            for part, value in zip(parts, values):
                answer = client.call("set_value", window_id=window["window_id"], element_index=part, value=value)
                assert answer["effect"] != "suspected_noop" and answer["route"] == "keyboard", (part, answer.structured)

        set_parts("When", (12, 24, 2025))
        client.window(title="Inputs: 2025-12-24|10:20|;")
        set_parts("Clock", (5, 45, 2 if browser == "chromium" else "PM"))
        client.window(title="Inputs: 2025-12-24|17:45|;")
        set_parts("Empty", (1, 2, 1999))
        client.window(title="Inputs: 2025-12-24|17:45|1999-01-02;")
    finally:
        processes.end(process)


TOGGLES = """<!doctype html><title>Toggles</title>
<button id=b aria-pressed=false onclick="b.setAttribute('aria-pressed', b.getAttribute('aria-pressed') != 'true'); tell()">Bold</button>
<details id=d ontoggle="tell()"><summary>More</summary><p>Inside</p></details>
<form onsubmit="document.title += ' SUBMITTED'; return false"><input aria-label=First><input aria-label=Second value=keep>
<textarea aria-label=Area></textarea></form>
<script>const tell = () => { document.title = `Toggles: ${b.getAttribute("aria-pressed")}|${d.open}` }</script>"""


@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_values_press_no_keys_and_states_are_not_typed(client, desktop, browser, tmp_path):
    """Tab would write into the next field, Return would submit, and `true` is no word."""
    page = tmp_path / "page.html"
    page.write_text(TOGGLES)
    profile = tmp_path / "profile"
    profile.mkdir()
    process = desktop.start(getattr(application, browser)(profile, page.as_uri()))
    try:
        window = client.window(title="Toggles", timeout=40)
        client.element(window, contains='"Area"', timeout=20)

        def set_value(name, value):
            query = {"name": name, "exact": True}
            return client.try_call("set_value", window_id=window["window_id"], query=query, value=value)

        for name, values in (("First", ("Bob\tJones", "a\nb")), ("Area", ("Bob\tJones",))):
            for value in values:
                refused = set_value(name, value)
                assert refused.code == "invalid_argument" and "nothing was typed" in refused.error_message, refused.structured
        client.element(window, name="Second", contains='text="keep"')
        assert set_value("First", "Bob")["effect"] == "confirmed"
        for value in (True, True, False, True):
            answer = set_value("More", value)
            assert answer["effect"] == "confirmed", answer.structured
            client.window(title=f"Toggles: false|{str(value).lower()}")
        for value in (True, True, False):
            answer = set_value("Bold", value)
            if browser == "firefox":  # it tells nothing of the state
                assert answer.code == "not_supported" and "click it" in answer.error_message, answer.structured
            else:
                assert answer["effect"] == "confirmed", answer.structured
                client.window(title=f"Toggles: {str(value).lower()}|true")
        assert "SUBMITTED" not in client.window(title="Toggles")["title"]
    finally:
        processes.end(process)


LINES = """<!doctype html><title>Lines: []</title>
<form onsubmit="document.title += ' SUBMITTED'; return false">
<textarea aria-label=Area>old</textarea>
<textarea aria-label=Chat onkeydown="if (event.key == 'Enter' && !event.shiftKey) { event.preventDefault(); document.title += ' SENT' }"></textarea>
<div contenteditable role=textbox aria-multiline=true aria-label=Editor>rich</div></form>
<script>document.oninput = event => {
  const text = event.target.value ?? event.target.innerText
  document.title = `Lines: ${JSON.stringify(text)};` }</script>"""


@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_the_lines_of_a_value_arrive_in_pages(client, desktop, browser, tmp_path):
    """Return alone would send what was written, or submit its form."""
    page = tmp_path / "page.html"
    page.write_text(LINES)
    profile = tmp_path / "profile"
    profile.mkdir()
    process = desktop.start(getattr(application, browser)(profile, page.as_uri()))
    try:
        window = client.window(title="Lines", timeout=40)
        client.element(window, contains='"Editor"', timeout=20)
        for name, value in (
            ("Area", "a\nb\n\nc"), ("Area", "\none\r\ntwo\n"), ("Area", ""), ("Chat", "hello\nworld"), ("Editor", "a\nb\n\nc"),
        ):
            query = {"name": name, "role": "entry"}
            answer = client.call("set_value", window_id=window["window_id"], query=query, value=value)
            assert answer["effect"] == "confirmed", (name, answer.structured)
            wanted = json.dumps(value.replace("\r\n", "\n"))
            title = client.window(title=f"Lines: {wanted};")["title"]
            assert "SENT" not in title and "SUBMITTED" not in title
    finally:
        processes.end(process)


BUSY = """<!doctype html><title>Box: false</title>
<input type=checkbox id=box aria-label=Slow onchange="document.title = `Box: ${box.checked}`">
<button onclick="document.title = 'Going'; setTimeout(() => {
  const begin = performance.now(); while (performance.now() - begin < 4000); }, 100)">Occupy</button>"""


@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_a_box_of_a_page_that_is_busy_is_not_denied(client, desktop, browser, tmp_path):
    """A browser answers for its page, which takes the click when it has time."""
    page = tmp_path / "page.html"
    page.write_text(BUSY)
    profile = tmp_path / "profile"
    profile.mkdir()
    process = desktop.start(getattr(application, browser)(profile, page.as_uri()))
    try:
        window = client.window(title="Box", timeout=40)
        box = {"name": "Slow", "role": "check box"}
        client.element(window, **box, timeout=20)
        client.call("click", window_id=window["window_id"], query={"name": "Occupy", "role": "button"})
        client.window(title="Going", timeout=10)
        answer = client.call("click", window_id=window["window_id"], query=box)
        assert answer["effect"] == "unverifiable" and "busy" in answer["hint"], answer.structured
        client.window(title="Box: true", timeout=20)
    finally:
        processes.end(process)


COLOUR = """<!doctype html><title>Colour: #112233</title>
<input type=color aria-label=Paint value="#112233"><script>document.oninput = event => { document.title = `Colour: ${event.target.value}` }</script>"""


@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_a_colour_is_chosen_as_the_refusal_says(client, desktop, browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(COLOUR)
    profile = tmp_path / "profile"
    profile.mkdir()
    process = desktop.start(getattr(application, browser)(profile, page.as_uri()))
    try:
        number = client.window(title="Colour", timeout=40)["window_id"]
        paint = {"name": "Paint", "role": "button"}
        client.element({"window_id": number}, **paint, timeout=20)
        refused = client.try_call("set_value", window_id=number, query=paint, value="#ff8800")
        assert refused.code == "not_supported" and "colour, click it" in refused.error_message, refused.structured
        assert "#112233" in client.window(title="Colour")["title"]
        client.call("click", window_id=number, query=paint)
        if browser == "chromium":
            client.element({"window_id": number}, role="entry", name="Red channel", timeout=5)
            for channel, value in (("Red", 255), ("Green", 136), ("Blue", 0)):
                query = {"role": "entry", "name": f"{channel} channel"}
                assert client.call("set_value", window_id=number, query=query, value=value)["effect"] == "confirmed"
            client.call("press_key", window_id=number, key="Return")
        else:
            chooser = client.window(title="Choose a color")["window_id"]
            client.call("click", window_id=chooser, query={"role": "button", "name": "Custom color"})
            code = client.element({"window_id": chooser}, role="text", name="Color Name", timeout=5)
            client.call("type_text", window_id=chooser, element_index=code.index, text="#ff8800\n", clear=True, delivery="foreground")
            client.call("click", window_id=chooser, query={"role": "button", "name": "Select"})
        client.window(title="Colour: #ff8800", timeout=10)
    finally:
        processes.end(process)


def test_a_slider_that_ignores_its_value_is_moved_by_keys(client, desktop, tmp_path):
    with Fixture(desktop, "swing", "gallery", title="Swing values", program=swing(tmp_path)) as fixture:
        window = client.window(title="Swing values")
        slider = client.element(window, role="slider")
        where = {"window_id": window["window_id"], "element_index": slider.index}
        refused = client.call("set_value", **where, value=70, delivery="background")
        assert refused["effect"] == "suspected_noop" and "foreground" in refused["hint"], refused.structured
        for value in (70, 7, 100, 0, 33):
            start = len(fixture.events)
            answer = client.call("set_value", **where, value=value)
            assert (answer["effect"], answer["route"], answer["after"]) == ("confirmed", "keyboard", str(value)), answer.structured
            told = fixture.matching("value", start)
            assert told and told[-1]["value"] == value, json.dumps(told[-3:])
