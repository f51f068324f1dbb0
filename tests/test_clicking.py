"""Clicks reach what they name and nothing else."""

import time

import pytest

from stage import processes, x11
from stage.application import Fixture
from stage.client import Client
from stage.desktop import OwnDesktop


def click(client, window, element, **arguments):
    return client.call(
        "click", window_id=window["window_id"], element_index=element.index, snapshot_id=element.snapshot, **arguments
    )


@pytest.fixture(scope="module")
def galculator(desktop):
    process = desktop.start(["galculator"])
    yield process
    processes.end(process)


def display_of(client, window):
    return next(element for element in client.tree(window).elements if element.role in ("text", "editbar"))


def test_a_background_click_on_a_7_leaves_focus_stacking_and_pointer_alone(client, desktop, galculator):
    window = client.window(pid=galculator.pid)
    with Fixture(desktop, "gtk3", "form", title="In front", at="200,150", size="600,500") as front, x11.Server(desktop) as server:
        client.window(title="In front")
        front.ask("raise", "raised")
        processes.wait_until(lambda: client.window(title="In front")["focused"], 5, "the fixture has the focus")
        server.move_pointer(17, 23)
        # It is no window of the desktop, but the server's stacking has it.
        client.call("set_agent_cursor_enabled", enabled=False)
        seven = client.element(window, role="toggle button", name="7")
        before = (server.focus(), server.stacking(), server.pointer(), client.windows())
        answer = click(client, window, seven, delivery="background")
        after = (server.focus(), server.stacking(), server.pointer(), client.windows())
        assert answer["effect"] == "confirmed", answer.structured
        assert answer["route"] == "ax_action"
        assert "7" in client.tree(window).text
        titles = lambda windows: [(w["window_id"], w["frame"], w["focused"], w["z"]) for w in windows]  # noqa: E731
        assert before[:3] == after[:3]
        assert titles(before[3]) == titles(after[3])


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt5"])
@pytest.mark.parametrize("delivery", ["auto", "foreground"])
def test_each_button_of_a_grid_is_hit(client, desktop, toolkit, delivery):
    title = f"Grid {toolkit} {delivery}"
    with Fixture(desktop, toolkit, "grid", title=title, **({} if toolkit == "gtk4" else {"at": "333,217"})) as fixture:
        window = client.window(title=title)
        client.element(window, role="button", name="R2C2")
        for name in [f"R{row}C{column}" for row in range(3) for column in range(3)]:
            button = client.element(window, role="button", name=name)
            seen = len(fixture.events)
            answer = click(client, window, button, delivery=delivery)
            assert answer["effect"] in ("confirmed", "unverifiable"), answer.structured
            fixture.wait("click", start=seen, name=name)
            assert len(fixture.matching("click", seen)) == 1


@pytest.mark.parametrize("space", ["screen", "window", "image"])
def test_points_of_every_space_land_in_the_middle_of_a_button(client, desktop, space):
    with Fixture(desktop, "gtk3", "grid", title="Points", at="420,260", size="500,360") as fixture:
        window = client.window(title="Points")
        processes.wait_until(lambda: client.windows() == client.windows(), 5, "the window stands still")
        frame = window["frame"]
        middle = (frame["width"] // 2, frame["height"] // 2)
        arguments = {"space": space, "window_id": window["window_id"]}
        if space == "screen":
            point = (frame["x"] + middle[0], frame["y"] + middle[1])
        elif space == "window":
            point = middle
        else:
            picture = client.call("screenshot", window_id=window["window_id"])
            assert picture.images
            info = picture["picture"]
            point = (middle[0] / info["scale_x"], middle[1] / info["scale_y"])
        client.call("click", x=point[0], y=point[1], **arguments)
        fixture.wait("click", name="R1C1")


def test_click_type_and_key_of_one_burst_act_in_order_200_times(client, desktop):
    with Fixture(desktop, "gtk3", "pad", title="Order", at="300,200", size="700,300") as fixture:
        window = client.window(title="Order")["window_id"]
        mark = client.element({"window_id": window}, role="button", name="Mark")
        field = client.element({"window_id": window}, role="text")
        client.call("click", window_id=window, element_index=field.index, snapshot_id=field.snapshot, delivery="foreground")
        for place in range(200):
            burst, numbers = b"", []
            for tool, arguments in (
                ("click", {"element_index": mark.index, "snapshot_id": mark.snapshot}),
                ("type_text", {"text": f"{place}", "delivery": "foreground"}),
                ("press_key", {"key": "comma"}),
            ):
                number, line = client.tool_line(tool, window_id=window, **arguments)
                numbers.append(number)
                burst += line
            client.send_bytes(burst)
            for number in numbers:
                answer = client.finish(number)
                assert not answer.is_error, answer.structured
        expected = "".join(f"|{place}," for place in range(200))
        assert fixture.text("Pad") == expected


def test_f35_an_element_that_was_removed_is_gone_and_nothing_is_clicked(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Removed") as fixture:
        window = client.window(title="Removed")
        save = client.element(window, role="button", name="Save")
        fixture.ask("remove Save", "removed")
        answer = client.try_call(
            "click", window_id=window["window_id"], element_index=save.index, snapshot_id=save.snapshot
        )
        assert answer.code == "element_gone", answer.structured
        assert answer["recovery"] == "snapshot"
        assert fixture.matching("click") == []


def test_f35_a_look_alike_in_the_same_place_is_not_clicked(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Replaced") as fixture:
        window = client.window(title="Replaced")
        delete = client.element(window, role="button", name="Delete")
        fixture.ask("replace Delete", "replaced")
        answer = client.try_call(
            "click", window_id=window["window_id"], element_index=delete.index, snapshot_id=delete.snapshot
        )
        assert answer.code == "element_gone", answer.structured
        assert fixture.matching("click") == []


def test_f35_rows_that_were_rebuilt_are_gone(client, desktop):
    with Fixture(desktop, "gtk3", "list", title="Rebuilt", count=5) as fixture:
        window = client.window(title="Rebuilt")
        third = client.element(window, contains='"Row 3"')
        fixture.ask("rows 5", "rows")
        rebuilt = len(fixture.events)
        answer = client.try_call(
            "click", window_id=window["window_id"], element_index=third.index, snapshot_id=third.snapshot
        )
        assert answer.code in ("element_gone", "stale_snapshot"), answer.structured
        assert fixture.matching("select", rebuilt) == []


def test_f35_a_closed_window_is_gone(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Closed") as fixture:
        window = client.window(title="Closed")
        save = client.element(window, role="button", name="Save")
        fixture.command("close")
        fixture.process.wait(5)
        answer = client.try_call(
            "click", window_id=window["window_id"], element_index=save.index, snapshot_id=save.snapshot
        )
        assert answer.code in ("window_gone", "element_gone", "app_gone", "unknown_window"), answer.structured


def test_f54_a_covered_point_is_refused_and_the_cover_named(client, desktop):
    with Fixture(desktop, "gtk3", "grid", title="Below", at="300,200", size="400,300") as below:
        window = client.window(title="Below")
        button = client.element(window, role="button", name="R1C1")
        with Fixture(desktop, "gtk3", "solid", title="The cover", at="280,180", size="500,400") as cover:
            client.window(title="The cover")
            frame = window["frame"]
            middle = {"x": frame["width"] // 2, "y": frame["height"] // 2, "space": "window"}
            cover.ask("above", "above")
            number = str(client.window(title="The cover")["window_id"])
            processes.wait_until(
                lambda: "ABOVE" in desktop.run("xprop", "-id", number, "_NET_WM_STATE"), 5, "the cover is kept above"
            )
            answer = client.try_call("click", window_id=window["window_id"], delivery="foreground", **middle)
            assert answer.code == "occluded", answer.structured or answer.text
            assert "The cover" in answer.error_message
            answer = client.try_call(
                "click", window_id=window["window_id"], element_index=button.index, snapshot_id=button.snapshot,
                delivery="foreground",
            )
            assert answer.code == "occluded", answer.structured or answer.text
            assert "The cover" in answer.error_message
            assert below.matching("click") == []
            assert cover.matching("press") == []


def test_f60_an_open_menu_over_the_point_is_an_occlusion_and_stays_open(client, desktop):
    with Fixture(desktop, "gtk3", "menu", title="Menus", at="300,200") as fixture:
        window = client.window(title="Menus")
        below = client.element(window, role="button", name="Below")
        things = client.element(window, role="menu", name="Things")
        click(client, window, things, delivery="foreground")
        popup = processes.wait_until(
            lambda: [w for w in client.windows() if w.get("kind") == "popup"], 5, "the menu opens"
        )
        answer = client.try_call(
            "click", window_id=window["window_id"], element_index=below.index, snapshot_id=below.snapshot,
            delivery="foreground",
        )
        assert answer.code in ("occluded", "not_supported") or fixture.matching("click", name="Below"), answer.structured
        if answer.code == "occluded":
            assert [w["window_id"] for w in client.windows() if w.get("kind") == "popup"] == [
                w["window_id"] for w in popup
            ]


def test_f38_a_menu_item_is_really_chosen(client, desktop):
    with Fixture(desktop, "gtk3", "menu", title="Choosing", at="300,200") as fixture:
        window = client.window(title="Choosing")
        things = client.element(window, role="menu", name="Things")
        click(client, window, things, delivery="foreground")
        two = client.element(window, role="menu item", name="Two")
        click(client, window, two)
        fixture.wait("click", name="Two")


def test_f53_a_disabled_button_is_no_success(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Disabled", size="400,700") as fixture:
        window = client.window(title="Disabled")
        locked = client.element(window, role="button", name="Locked")
        assert "disabled" in locked.words
        answer = client.try_call(
            "click", window_id=window["window_id"], element_index=locked.index, snapshot_id=locked.snapshot
        )
        assert answer.is_error or answer["effect"] != "confirmed", answer.structured
        assert fixture.matching("click") == []


@pytest.mark.parametrize("delivery", ["background", "foreground"])
def test_f53_a_button_that_works_and_shows_nothing_is_neither_confirmed_nor_a_noop(client, desktop, delivery):
    with Fixture(desktop, "gtk3", "form", title="Shows nothing") as fixture:
        window = client.window(title="Shows nothing")
        submit = client.element(window, role="button", name="Submit")
        answer = click(client, window, submit, delivery=delivery)
        fixture.wait("click", name="Submit")
        assert answer["effect"] == "unverifiable", answer.structured


def test_f54_a_click_in_a_lower_window_raises_it_and_lands_there(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="Lower one", at="300,200") as lower, \
            Fixture(desktop, "gtk3", "solid", title="Upper one", at="340,240") as upper:
        window = client.window(title="Lower one")
        client.window(title="Upper one")
        upper.ask("raise", "raised")
        processes.wait_until(lambda: client.window(title="Upper one")["focused"], 5, "it lies above")
        client.call("click", window_id=window["window_id"], x=200, y=150, space="window")
        lower.wait("press")
        assert upper.matching("press") == []
        windows = {w["title"]: w["z"] for w in client.windows()}
        assert windows["Lower one"] > windows["Upper one"]


def dialog_of(client, fixture, window):
    return processes.wait_until(
        lambda: [w for w in client.windows() if w["pid"] == fixture.pid and w["window_id"] != window["window_id"]],
        5, "the dialogue opens",
    )[0]


def test_an_action_that_opens_a_modal_dialogue_does_not_wait_for_its_end(client, desktop):
    """GTK 3 runs the dialogue within the accessibility call, and answers no other until it is closed."""
    with Fixture(desktop, "gtk3", "modal", title="Modal") as fixture:
        window = client.window(title="Modal")
        ask = client.element(window, role="button", name="Ask")
        answer = click(client, window, ask)
        assert answer["effect"] == "confirmed", answer.structured
        dialog = dialog_of(client, fixture, window)
        client.call("press_key", window_id=dialog["window_id"], key="alt+y")
        assert fixture.wait("answer")["yes"] is True
        client.element(window, role="button", name="Ask")


def test_keys_reach_a_modal_dialogue_that_has_been_open_for_long(client, desktop):
    """An agent thinks for longer than any time-out of ours; the action that opened the dialogue is still unanswered."""
    with Fixture(desktop, "gtk3", "modal", title="Modal for long") as fixture:
        window = client.window(title="Modal for long")
        client.call("click", window_id=window["window_id"], query={"name": "Ask"})
        dialogue = processes.wait_until(
            lambda: next((found for found in client.windows() if found["pid"] == fixture.pid and found != window and found["kind"] == "dialog"), None),
            5, "the dialogue",
        )
        time.sleep(8)  # it is the time itself that is tried here
        client.call("press_key", window_id=dialogue["window_id"], key="Escape")
        assert fixture.wait("answer")["yes"] is False


def test_a_modal_dialogue_is_read_and_answered(client, desktop):
    with Fixture(desktop, "gtk3", "modal", title="Modal again") as fixture:
        window = client.window(title="Modal again")
        ask = client.element(window, role="button", name="Ask")
        click(client, window, ask, delivery="foreground")
        dialog = dialog_of(client, fixture, window)
        yes = client.element(dialog, role="button", name="Yes")
        click(client, dialog, yes)
        assert fixture.wait("answer")["yes"] is True


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt5"])
def test_check_box_slider_and_rows(client, desktop, toolkit):
    title = f"Acting {toolkit}"
    with Fixture(desktop, toolkit, "widgets", title=title, size="400,700") as fixture:
        window = client.window(title=title)
        news = client.element(window, role="check box", name="Send news")
        assert "unchecked" in news.words
        click(client, window, news)
        fixture.wait("toggle", name="Send news", active=True)
        client.element(window, role="check box", name="Send news", contains=" checked")
        volume = client.element(window, role="slider", name="Volume")
        answer = client.try_call("set_value", window_id=window["window_id"], element_index=volume.index, value=70)
        if answer.is_error:
            assert answer.code == "not_supported", answer.structured
        elif answer["effect"] == "confirmed":
            assert fixture.wait("value", name="Volume")["value"] == 70
        cherry = client.element(window, contains='"Cherry"')
        click(client, window, cherry)
        fixture.wait("select", name="Fruit", row="Cherry")


def test_a_query_acts_in_one_call_and_refuses_what_is_ambiguous(client, desktop):
    with Fixture(desktop, "gtk3", "widgets", title="Query", size="400,700") as fixture:
        window = client.window(title="Query")["window_id"]
        client.element({"window_id": window}, role="button", name="Save")
        client.call("click", window_id=window, query={"role": "button", "name": "Save"})
        fixture.wait("click", name="Save")
        answer = client.try_call("click", window_id=window, query={"role": "check box"})
        assert answer.code == "ambiguous", answer.structured
        assert "Remember me" in str(answer.structured) and "Send news" in str(answer.structured)
        answer = client.try_call("click", window_id=window, query={"role": "button", "name": "No such"})
        assert answer.code == "element_not_found", answer.structured


def test_f58_without_a_window_manager_windows_are_listed_clicked_and_typed_into():
    with OwnDesktop(window_manager=False) as bare, Client(bare) as client:
        with Fixture(bare, "gtk3", "form", title="Bare") as fixture:
            window = client.window(title="Bare")
            first = client.element(window, role="text", name="First")
            client.call(
                "type_text", window_id=window["window_id"], element_index=first.index, text="no manager",
                delivery="foreground",
            )
            processes.wait_until(lambda: fixture.text("First") == "no manager", 5, lambda: fixture.text("First"))
            submit = client.element(window, role="button", name="Submit")
            click(client, window, submit, delivery="foreground")
            fixture.wait("click", name="Submit")


def test_f59_a_window_without_a_pid_property_is_fully_usable(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="No pid", at="200,200") as fixture:
        number = str(client.window(title="No pid")["window_id"])
        desktop.run("xprop", "-id", number, "-remove", "_NET_WM_PID")
        window = client.window(title="No pid")
        assert window["pid"] == fixture.pid
        client.call("screenshot", window_id=window["window_id"])
        client.call("click", window_id=window["window_id"], x=50, y=60, space="window")
        fixture.wait("press")


def test_f64_stacking_order_is_the_servers(client, desktop):
    with Fixture(desktop, "gtk3", "solid", title="Lower", at="100,100"), \
            Fixture(desktop, "gtk3", "solid", title="Middle", at="150,150") as middle, \
            Fixture(desktop, "gtk3", "solid", title="Upper", at="200,200"):
        for title in ("Lower", "Middle", "Upper"):
            client.window(title=title)
        order = lambda: [w["title"] for w in sorted(client.windows(), key=lambda w: w["z"]) if w["title"] in ("Lower", "Middle", "Upper")]  # noqa: E731
        processes.wait_until(lambda: order() == ["Lower", "Middle", "Upper"], 5, order)
        middle.ask("raise", "raised")
        processes.wait_until(lambda: order() == ["Lower", "Upper", "Middle"], 5, order)


def test_moving_the_pointer(client, desktop):
    with x11.Server(desktop) as server:
        client.call("move_cursor", x=321, y=234)
        assert server.pointer()[0] == (321, 234)
        position = client.call("get_cursor_position")
        assert (position["x"], position["y"]) == (321, 234)


def test_a_click_has_a_human_hold(client, desktop):
    """Applications that poll the button state, and those that debounce, miss a press that lasts no time."""
    with Fixture(desktop, "gtk3", "solid", title="Hold") as fixture:
        window = client.window(title="Hold")
        start = time.monotonic()
        client.call("click", window_id=window["window_id"], x=50, y=60, space="window", delivery="foreground")
        assert time.monotonic() - start >= 0.01
        fixture.wait("press")
