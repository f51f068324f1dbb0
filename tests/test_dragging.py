"""Dragging with the real pointer: what was dragged arrives, answers say what happened, and no button stays down."""

import re
import time

import pytest

from stage import processes, x11
from stage.application import Fixture, chromium
from stage.client import Client

BUTTON_1 = 1 << 8
WORDS = "The quick brown fox jumps over the lazy dog"


@pytest.fixture
def parcel(desktop):
    with Fixture(desktop, "gtk3", "source", title="Sender", at="100,100", size="300,200") as source, \
            Fixture(desktop, "gtk3", "target", title="Receiver", at="600,300", size="300,300") as target:
        yield source, target


def windows_of(client, parcel):
    sender, receiver = client.window(title="Sender"), client.window(title="Receiver")
    client.element(sender, name="Parcel")
    client.element(receiver, name="Taker")
    return sender, receiver


def test_drag_and_drop_between_two_windows_delivers_the_data(client, parcel):
    sender, receiver = windows_of(client, parcel)
    answer = client.call(
        "drag", **{"from": {"window_id": sender["window_id"], "query": {"name": "Parcel"}},
                   "to": {"window_id": receiver["window_id"], "query": {"name": "Taker"}}},
    )
    assert parcel[1].wait("drop")["text"] == "what is in the parcel"
    assert answer["effect"] == "confirmed", answer.structured
    assert answer["window_id"] == receiver["window_id"]


def test_a_drop_that_nothing_takes_is_not_confirmed(client, parcel):
    sender, receiver = windows_of(client, parcel)
    answer = client.call(
        "drag", **{"from": {"window_id": sender["window_id"], "query": {"name": "Parcel"}},
                   "to": {"window_id": receiver["window_id"], "query": {"name": "Nothing"}}},
    )
    parcel[0].wait("drag end")
    assert parcel[1].matching("drop") == []
    assert answer["effect"] != "confirmed", answer.structured


def test_f54_both_ends_of_a_drag_must_be_uncovered(client, desktop, parcel):
    sender, receiver = windows_of(client, parcel)
    with Fixture(desktop, "gtk3", "solid", title="The cover", at="580,280", size="400,400") as cover:
        number = str(client.window(title="The cover")["window_id"])
        cover.ask("above", "above")
        processes.wait_until(
            lambda: "ABOVE" in desktop.run("xprop", "-id", number, "_NET_WM_STATE"), 5, "the cover is kept above"
        )
        answer = client.try_call(
            "drag", **{"from": {"window_id": sender["window_id"], "x": 150, "y": 100},
                       "to": {"window_id": receiver["window_id"], "x": 150, "y": 100}},
        )
        assert answer.code == "occluded", answer.structured
        assert "`to`" in answer.error_message and "The cover" in answer.error_message
        assert cover.matching("press") == []
        assert parcel[0].matching("drag") == []


def test_a_drag_over_text_selects_it_and_tells_the_range(client, desktop):
    with Fixture(desktop, "gtk3", "pad", title="Pad window", at="300,300", size="500,200") as pad:
        window = client.window(title="Pad window")
        field = client.element(window, role="text")
        client.call("set_value", window_id=window["window_id"], element_index=field.index, value=WORDS)
        frame = window["frame"]
        line = {"space": "screen", "y": frame["y"] + frame["height"] // 2}
        top = client.element(window, role="text", frames=True)
        left, y = (int(number) for number in top.line.split("@")[1].split(" ")[0].split(","))
        line["y"] = y + 8
        answer = client.call(
            "drag", window_id=window["window_id"], **{"from": {"x": left + 30, **line}, "to": {"x": left + 200, **line}}
        )
        assert answer["effect"] == "confirmed", answer.structured
        assert answer["after"].startswith("selected "), answer.structured
        start, end = (int(number) for number in answer["after"].split(" ")[1].split("–"))
        assert 0 < start < end <= len(WORDS)
        assert f'"{WORDS[start:end]}"' in answer["after"]
        client.call("hotkey", window_id=window["window_id"], keys=["ctrl", "x"])
        processes.wait_until(
            lambda: pad.text("Pad") == WORDS[:start] + WORDS[end:], 5, lambda: (pad.text("Pad"), answer["after"])
        )


def test_a_slider_is_dragged_and_its_value_read_back(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Slide", size="400,700") as fixture:
        window = client.window(title="Slide")
        volume = client.element(window, role="slider", name="Volume", frames=True)
        x, y = (int(number) for number in volume.line.split("@")[1].split(" ")[0].split(","))
        width, height = (int(number) for number in volume.line.split("@")[1].split(" ")[1].split("x"))
        at = lambda share: {"x": x + int(width * share), "y": y + int(height * 0.7), "space": "screen"}  # noqa: E731
        answer = client.call("drag", window_id=window["window_id"], **{"from": at(0.41), "to": at(0.8)})
        assert answer["effect"] == "confirmed", answer.structured
        value = fixture.matching("value", name="Volume")[-1]["value"]
        assert value > 60
        assert answer["after"].startswith(str(value).removesuffix(".0")), (answer.structured, value)


def test_a_window_is_dragged_by_its_title(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="Movable", at="300,300"):
        window = client.window(title="Movable")
        answer = client.call(
            "drag", window_id=window["window_id"],
            **{"from": {"x": 150, "y": 8}, "to": {"x": window["frame"]["x"] + 250, "y": window["frame"]["y"] + 108, "space": "screen"}},
        )
        assert answer["effect"] == "confirmed", answer.structured
        frame = client.window(title="Movable")["frame"]
        assert (frame["x"], frame["y"]) == (window["frame"]["x"] + 100, window["frame"]["y"] + 100)


def test_a_drag_whose_effect_shows_nowhere_is_not_said_to_do_nothing(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="Solid", at="300,300") as fixture:
        window = client.window(title="Solid")
        answer = client.call(
            "drag", window_id=window["window_id"], **{"from": {"x": 100, "y": 100}, "to": {"x": 200, "y": 150}}
        )
        assert fixture.wait("press")
        assert answer["effect"] == "unverifiable", answer.structured


def test_a_window_without_a_tree_is_judged_by_its_pixels(client, desktop):
    terminal = desktop.start(["xterm", "-geometry", "60x10+200+200", "-e", "printf 'some words to select'; exec sleep 600"])
    try:
        window = client.window(pid=terminal.pid)
        drag = lambda: client.call(  # noqa: E731
            "drag", window_id=window["window_id"], **{"from": {"x": 10, "y": 30}, "to": {"x": 150, "y": 30}}
        )
        processes.wait_until(lambda: drag()["effect"] == "confirmed", 10, "the words are there")
        assert desktop.run("xprop", "-id", str(window["window_id"]), "WM_CLASS")
    finally:
        processes.end(terminal)


QT_LISTS = """
import sys
from PyQt5.QtWidgets import *
app = QApplication(sys.argv)
window = QWidget()
window.setWindowTitle("Qt lists")
layout = QHBoxLayout(window)
for name in "AB":
    rows = QListWidget()
    rows.addItems([f"{name}{number}" for number in range(6)])
    rows.setDragDropMode(QAbstractItemView.DragDrop)
    rows.setDefaultDropAction(2)
    layout.addWidget(rows)
window.resize(500, 300)
window.move(200, 200)
window.show()
app.exec_()
"""


def test_rows_of_a_qt_list_are_moved_to_another_and_put_in_another_order(client, desktop):
    """Qt tells nobody that the rows are others: the tree is read again."""
    process = desktop.start(["/usr/bin/python3", "-c", QT_LISTS])
    try:
        window = client.window(title="Qt lists")
        client.element(window, name="A1")
        rows = lambda: [e.name for e in client.tree(window).elements if e.role == "list item"]  # noqa: E731
        for moved, on in (("A1", "B3"), ("B0", "B4")):
            before = rows()
            answer = client.call(
                "drag", window_id=window["window_id"], **{"from": {"query": {"name": moved}}, "to": {"query": {"name": on}}}
            )
            assert rows() != before and sorted(rows()) == sorted(before)
            assert abs(rows().index(moved) - rows().index(on)) == 1
            assert answer["effect"] == "confirmed", answer.structured
    finally:
        processes.end(process)


def test_a_drag_in_the_background_is_not_supported(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="Quiet") as fixture:
        window = client.window(title="Quiet")
        answer = client.try_call(
            "drag", window_id=window["window_id"], delivery="background",
            **{"from": {"x": 10, "y": 30}, "to": {"x": 150, "y": 130}},
        )
        assert answer.code == "not_supported", answer.structured
        assert fixture.matching("press") == []


def begin_slow_drag(client, server, fixture):
    window = client.window(title="Stuck")
    seen = len(fixture.events)
    number = client.start(
        "drag", window_id=window["window_id"], duration_ms=15000, modifiers=["ctrl"],
        **{"from": {"x": 60, "y": 60}, "to": {"x": 300, "y": 200}},
    )
    fixture.wait("press", start=seen)
    processes.wait_until(lambda: server.pointer()[1] & BUTTON_1, 5, "the button is down")
    start = server.pointer()[0]
    processes.wait_until(lambda: server.pointer()[0] != start, 5, "the pointer is on its way")
    return number


def test_f43_a_button_and_a_modifier_are_released_when_the_driver_is_killed(desktop):
    with Fixture(desktop, "gtk3", "solid", title="Stuck") as fixture, x11.Server(desktop) as server:
        with Client(desktop) as client:
            begin_slow_drag(client, server, fixture)
            assert server.pointer()[1] & x11.CONTROL
            client.kill()
            killed = time.monotonic()
        processes.wait_until(lambda: not server.pointer()[1], 5, lambda: server.pointer())
        assert time.monotonic() - killed < 1.0


def test_f43_a_button_is_released_when_the_client_leaves(desktop):
    with Fixture(desktop, "gtk3", "solid", title="Stuck") as fixture, x11.Server(desktop) as server:
        with Client(desktop) as client:
            begin_slow_drag(client, server, fixture)
            client.process.terminate()
            client.wait_exit(10)
        assert not server.pointer()[1]


def test_f86_a_cancelled_drag_releases_at_once_where_it_began(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="Stuck") as fixture, x11.Server(desktop) as server:
        number = begin_slow_drag(client, server, fixture)
        client.notify("notifications/cancelled", {"requestId": number, "reason": "test"})
        cancelled = time.monotonic()
        processes.wait_until(lambda: not server.pointer()[1], 5, lambda: server.pointer())
        assert time.monotonic() - cancelled < 0.3
        frame = client.window(title="Stuck")["frame"]
        assert server.pointer()[0] == (frame["x"] + 60, frame["y"] + 60)
        assert client.call("get_cursor_position").structured
        assert not client.answered(number), "a cancelled request gets no answer"


def test_text_of_a_page_is_selected_by_a_drag(client, desktop, tmp_path):
    page = tmp_path / "passage.html"
    page.write_text("<!doctype html><title>Passage</title><p style='font: 30px monospace'>The quick brown fox jumps</p>")
    profile = tmp_path / "profile"
    profile.mkdir()
    process = desktop.start(chromium(profile, page.as_uri()))
    try:
        window = client.window(title="Passage", timeout=60)
        document = client.element(window, role="document web", name="Passage", contains="@", frames=True)
        x, y = [int(part) for part in re.search(r"@(-?\d+),(-?\d+)", document.line).groups()]
        letter = 18  # pixels wide, of 30 high; the page begins with a margin of 8, the passage with one of 30
        x, y = x + 8, y + 30 + 17
        answer = client.call(
            "drag", window_id=window["window_id"],
            **{"from": {"x": x + 1, "y": y, "space": "screen"}, "to": {"x": x + 9 * letter, "y": y, "space": "screen"}},
        )
        assert answer["effect"] == "confirmed", answer.structured
        assert '"The qui' in answer["after"], answer.structured
    finally:
        processes.end(process)


def test_a_text_on_a_page_of_a_notebook_tells_its_selection(desktop, client):
    """GTK 3 finds nothing at a point of a notebook but its tabs."""
    process = desktop.start(["mousepad"])
    try:
        window = client.window(title="Mousepad")
        number = window["window_id"]
        client.call("type_text", window_id=number, query={"role": "text"}, text="one two three four five\n" * 8)
        text = next(element for element in client.tree(window, frames=True).elements if element.role == "text")
        x, y = (int(part) for part in re.search(r"@(-?\d+),(-?\d+) ", text.rest).groups())
        start, end = ({"x": x + dx, "y": y + dy, "space": "screen"} for dx, dy in ((30, 30), (150, 60)))
        answer = client.call("drag", window_id=number, **{"from": start, "to": end})
        assert answer["effect"] == "confirmed", answer.structured
        assert answer["after"].startswith("selected ") and "two three" in answer["after"], answer.structured
    finally:
        processes.end(process)
