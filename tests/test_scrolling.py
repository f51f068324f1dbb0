"""Scrolling: in the background where that works, else with the wheel; how far is read back, and an end is called one."""

import pytest

from stage import processes, x11
from stage.application import Fixture, calc, chromium, end_office, firefox

LINES = "\n".join(f"line {number} of a long text" for number in range(500))
PAGE = "<title>Long page</title>" + "".join(f"<p>Paragraph {n}</p><button>Button {n}</button>" for n in range(200))


def scroll(client, window, direction, **arguments):
    return client.call("scroll", window_id=window["window_id"], direction=direction, **arguments)


def bar(client, window):
    """Value of the vertical scroll bar."""
    bars = [e for e in client.tree(window, frames=True, max_elements=2000).elements if e.role == "scroll bar" and "(0.." in e.line]
    return float(bars[-1].line.split("value=")[1].split(" ")[0])


@pytest.fixture(scope="module")
def mousepad(desktop):
    path = desktop.path / "long.txt"
    path.write_text(LINES)
    process = desktop.start(["mousepad", str(path)])
    yield process
    processes.end(process)


def test_a_background_scroll_leaves_focus_stacking_and_pointer_alone(client, desktop, mousepad):
    window = client.window(pid=mousepad.pid)
    client.element(window, role="text")
    with Fixture(desktop, "gtk3", "solid", title="In front", at="300,150", size="700,600"), x11.Server(desktop) as server:
        processes.wait_until(lambda: client.window(title="In front")["focused"], 5, "the fixture has the focus")
        server.move_pointer(17, 23)
        # It is no window of the desktop, but the server's stacking has it.
        client.call("set_agent_cursor_enabled", enabled=False)
        before = (server.focus(), server.stacking(), server.pointer())
        answer = scroll(client, window, "down", by="page", delivery="background")
        assert (server.focus(), server.stacking(), server.pointer()) == before
        assert answer["effect"] == "confirmed" and answer["route"] == "ax_value", answer.structured
        assert bar(client, window) > 100
        scroll(client, window, "up", by="page", amount=90, delivery="background")
        assert bar(client, window) == 0


@pytest.mark.parametrize("delivery", ["auto", "foreground"])
def test_lines_pages_and_pixels_of_an_editor(client, mousepad, delivery):
    window = client.window(pid=mousepad.pid)
    scroll(client, window, "up", by="page", amount=90)
    for by, amount, least, most in (("line", 3, 50, 300), ("pixel", 200, 140, 260), ("page", 1, 300, 500)):
        before = bar(client, window)
        answer = scroll(client, window, "down", by=by, amount=amount, delivery=delivery)
        assert answer["effect"] == "confirmed", answer.structured
        assert least <= bar(client, window) - before <= most, (by, before, bar(client, window))
    answer = scroll(client, window, "up", by="page", amount=90, delivery=delivery)
    assert answer["effect"] == "confirmed" and bar(client, window) == 0, answer.structured


@pytest.mark.parametrize("delivery", ["auto", "foreground"])
def test_an_end_is_a_suspected_noop_that_says_so(client, mousepad, delivery):
    window = client.window(pid=mousepad.pid)
    scroll(client, window, "up", by="page", amount=90)
    answer = scroll(client, window, "up", delivery=delivery)
    assert answer["effect"] == "suspected_noop" and "beginning" in answer["hint"], answer.structured
    scroll(client, window, "down", by="page", amount=90)
    answer = scroll(client, window, "down", delivery=delivery)
    assert answer["effect"] == "suspected_noop" and "end" in answer["hint"], answer.structured


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt5"])
@pytest.mark.parametrize("delivery", ["background", "foreground"])
def test_toolkits(client, desktop, toolkit, delivery):
    title = f"Many {toolkit} {delivery}"
    with Fixture(desktop, toolkit, "many", title=title, count=400):
        window = client.window(title=title)
        button = client.element(window, role="button", name="Button 0")
        target = {"element_index": button.index, "snapshot_id": button.snapshot}
        answer = client.try_call(
            "scroll", window_id=window["window_id"], direction="down", by="page", delivery=delivery, **target
        )
        if toolkit == "gtk4" and delivery == "background":
            assert answer.code == "not_supported", answer.structured
            return
        assert answer["effect"] == "confirmed", answer.structured
        frame = lambda: client.element(window, name="Button 0", frames=True, include_hidden=True).line  # noqa: E731
        assert "@" not in frame() or int(frame().split("@")[1].split(",")[1].split(" ")[0]) < window["frame"]["y"] + 100
        scroll(client, window, "up", by="page", amount=20, delivery=delivery)
        answer = scroll(client, window, "up", delivery=delivery)
        # Without a scroll bar that says so, it may also be slow.
        expected = "unverifiable" if toolkit == "gtk4" else "suspected_noop"
        assert answer["effect"] == expected and "at its" in answer["hint"], answer.structured


def test_a_covered_point_is_not_scrolled_with_the_wheel(client, desktop):
    with Fixture(desktop, "gtk3", "list", title="Below", at="300,200", size="400,300"), \
            Fixture(desktop, "gtk3", "solid", title="The cover", at="280,180", size="500,400") as cover:
        window = client.window(title="Below")
        number = str(client.window(title="The cover")["window_id"])
        cover.ask("above", "above")
        processes.wait_until(
            lambda: "ABOVE" in desktop.run("xprop", "-id", number, "_NET_WM_STATE"), 5, "the cover is kept above"
        )
        answer = client.try_call(
            "scroll", window_id=window["window_id"], direction="down", x=100, y=100, delivery="foreground"
        )
        assert answer.code == "occluded" and "The cover" in answer.error_message, answer.structured


def test_a_terminal_is_judged_by_its_picture(client, desktop):
    terminal = desktop.start(["xterm", "-sl", "2000", "-e", "seq -f 'line %g of many' 1 900; exec sleep 600"])
    try:
        window = client.window(pid=terminal.pid)
        up = lambda: scroll(client, window, "up", amount=1)  # noqa: E731
        processes.wait_until(lambda: up()["effect"] == "confirmed", 10, "the lines are there")
        answer = up()
        assert answer["effect"] == "confirmed" and answer["route"] == "pointer", answer.structured
        scroll(client, window, "down", amount=200)
        answer = scroll(client, window, "down", amount=1)
        assert answer["effect"] == "unverifiable" and "at its end" in answer["hint"], answer.structured
        answer = client.try_call("scroll", window_id=window["window_id"], direction="up", delivery="background")
        assert answer.code == "not_supported", answer.structured
    finally:
        processes.end(terminal)


@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_a_page_in_a_browser(client, desktop, browser):
    path = desktop.path / f"{browser}.html"
    path.write_text(PAGE)
    folder = desktop.path / f"profile-{browser}"
    folder.mkdir()
    make = {"chromium": chromium, "firefox": firefox}[browser]
    process = desktop.start(make(folder, f"file://{path}"))
    try:
        window = client.window(title="Long page", timeout=60)
        client.element(window, name="Button 3", timeout=30)

        def place():
            line = client.element(window, role="button", name="Button 199", frames=True, include_hidden=True, max_elements=3000).line
            return int(line.split("@")[1].split(",")[1].split(" ")[0])

        top = place()
        processes.wait_until(
            lambda: scroll(client, window, "down", by="pixel", amount=200, delivery="background")["effect"] == "confirmed",
            10, "the page is scrolled",
        )
        processes.wait_until(lambda: abs(top - place() - 200) <= 1, 5, lambda: (top, place()))
        for delivery in ("background", "foreground"):
            answer = scroll(client, window, "down", by="page", delivery=delivery)
            assert answer["effect"] == "confirmed", answer.structured
            answer = scroll(client, window, "up", by="page", amount=90, delivery=delivery)
            processes.wait_until(lambda: place() == top, 5, lambda: (top, place(), answer.structured))
            answer = scroll(client, window, "up", delivery=delivery)
            assert answer["effect"] != "confirmed", answer.structured
    finally:
        processes.end(process)


# Says in its title how far the page and the box are scrolled.
BOX = """<!doctype html><title>-</title>
<style>#box { width: 400px; height: 200px; overflow: auto }</style>
<h1>Head</h1>
<div id=box></div>
<script>
const fill = (parent, kind, count) => {
  for (let n = 0; n < count; n++) parent.append(Object.assign(document.createElement(kind), {textContent: `${kind} ${n}`}));
};
fill(box, 'p', 40);
for (let n = 0; n < 80; n++) { fill(document.body, 'p', 1); fill(document.body, 'button', 1); }
const tell = () => document.title = `Scrolled ${Math.round(scrollY)} ${Math.round(box.scrollTop)} .`;
addEventListener('scroll', tell);
box.addEventListener('scroll', tell);
tell();
</script>"""


@pytest.mark.parametrize("browser", [chromium, firefox])
def test_distances_in_a_page_are_those_of_what_was_scrolled(client, desktop, tmp_path, browser):
    path = tmp_path / "box.html"
    path.write_text(BOX)
    process = desktop.start(browser(tmp_path, path.as_uri()))
    try:
        window = client.window(title="Scrolled", timeout=60)
        client.element(window, role="heading", name="Head", timeout=30)

        def places():
            return tuple(int(word) for word in client.window(title="Scrolled")["title"].split()[1:3])

        def rest():
            seen = [places()]
            processes.wait_until(lambda: (seen.append(places()), len(seen) > 6 and len(set(seen[-6:])) == 1)[1], 10, "it rests")
            return seen[-1]

        def moved(direction, **arguments):
            """What was told, and how far the page and the box really went."""
            before = rest()
            answer = client.try_call("scroll", window_id=window["window_id"], direction=direction, **arguments)
            after = rest()
            sign = 1 if direction == "down" else -1
            return answer, sign * (after[0] - before[0]), sign * (after[1] - before[1])

        def told(answer):
            assert answer.structured.get("effect") == "confirmed", answer.text
            return int(answer["after"].split("moved by ")[1].split()[0])

        heading = client.element(window, role="heading", name="Head", contains="@", frames=True)
        left, top = (int(part) for part in heading.line.split("@")[1].split(" ")[0].split(","))
        inside = {"x": left + 100, "y": top + 140, "space": "screen"}
        # A browser that has just shown its page may take the first turn of the wheel late.
        processes.wait_until(lambda: moved("down", delivery="foreground", amount=1)[1] > 0, 20, "the page is scrolled")
        moved("up", by="page", amount=9, delivery="background")
        for direction in ("down", "up"):
            for way in ({"amount": 2}, {"by": "page"}):
                answer, page, inner = moved(direction, delivery="foreground", x=left + 700, y=top + 300, space="screen", **way)
                assert inner == 0 and abs(told(answer) - page) <= 1 < page, (answer.structured, page, inner)
                answer, page, inner = moved(direction, delivery="background", **way)
                assert inner == 0 and abs(told(answer) - page) <= 1 < page, (answer.structured, page, inner)
        assert rest() == (0, 0)
        for direction in ("down", "up"):
            for way in ({"amount": 1}, {"by": "page"}):
                answer, page, inner = moved(direction, delivery="foreground", **inside, **way)
                assert page == 0 and abs(told(answer) - inner) <= 1 < inner, (answer.structured, page, inner)
                answer, page, inner = moved(direction, delivery="background", **inside, **way)
                assert answer.code == "not_supported" and (page, inner) == (0, 0), (answer.structured, page, inner)
        answer, page, inner = moved("up", delivery="foreground", **inside)
        assert answer["effect"] == "unverifiable" and "at its end" in answer["hint"], answer.structured
        answer, page, inner = moved("down", by="page", amount=30, delivery="foreground", **inside)
        assert page == 0 and abs(told(answer) - inner) <= 1, (answer.structured, page, inner)
    finally:
        processes.end(process)


def test_a_sheet_is_scrolled_with_the_wheel(client, desktop):
    process = desktop.start(calc(desktop.path / "office"))
    try:
        window = client.window(title="Calc", timeout=60)
        client.element(window, role="table cell", timeout=30)
        answer = scroll(client, window, "down")
        assert answer["effect"] == "confirmed" and answer["route"] == "pointer", answer.structured
        answer = client.try_call("scroll", window_id=window["window_id"], direction="down", delivery="background")
        assert answer.code == "not_supported", answer.structured
        scroll(client, window, "up", amount=20)
        answer = scroll(client, window, "up")
        assert answer["effect"] == "suspected_noop" and "beginning" in answer["hint"], answer.structured
    finally:
        end_office(desktop, process)
