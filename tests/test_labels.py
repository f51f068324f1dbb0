"""Fields that have no name of their own are found by the label that stands for them."""

import pytest

from stage import processes
from stage.application import Fixture


def field(client, window, role, name):
    return client.element(window, role=role, name=name)


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt5"])
def test_labels_name_their_fields(client, desktop, toolkit):
    title = f"Labelled {toolkit}"
    with Fixture(desktop, toolkit, "labelled", title=title):
        window = client.window(title=title)
        assert field(client, window, "text", "Town:")
        assert field(client, window, "spin button", "Guests:")


def test_a_field_is_acted_on_by_its_label(client, desktop):
    with Fixture(desktop, "gtk3", "labelled", title="By label") as fixture:
        window = client.window(title="By label")
        field(client, window, "text", "Town:")
        for role, label, name in (
            ("text", "Town", "Town"), ("text", "Street", "Street"), ("text", "Remarks", "Remarks"),
            ("password text", "Secret", "Secret"),
        ):
            query = {"role": role, "name": label}
            client.call("set_value", window_id=window["window_id"], query=query, value="München")
            fixture.wait("text", name=name, text="München")


def test_a_field_is_called_as_its_label_is_now(client, desktop):
    with Fixture(desktop, "gtk3", "labelled", title="Renamed") as fixture:
        window = client.window(title="Renamed")
        field(client, window, "text", "Town:")
        fixture.ask("rename label _Town: = City", "renamed")
        assert [element for element in client.tree(window).elements if (element.role, element.name) == ("text", "City")]
        nameless = [element for element in client.tree(window).elements if element.role == "text" and not element.name]
        assert len(nameless) == 1, "a field that stands alone has no label"


def test_zenity_fields_have_the_label_beside_them(client, desktop):
    command = ["zenity", "--forms", "--title", "Zenity form", "--text", "Order", "--add-entry", "First", "--add-password", "Pass"]
    process = desktop.start(command)
    try:
        window = client.window(title="Zenity form")
        assert field(client, window, "text", "First")
        assert field(client, window, "password text", "Pass")
    finally:
        processes.end(process)
    process = desktop.start(["zenity", "--password", "--username", "--title", "Zenity login"])
    try:
        window = client.window(title="Zenity login")
        assert field(client, window, "text", "Username:")
        assert field(client, window, "password text", "Password:")
    finally:
        processes.end(process)


def test_the_name_of_a_file_to_save(client, desktop):
    process = desktop.start(["mousepad"])
    try:
        window = client.window(pid=process.pid)
        client.element(window, role="text")
        client.call("press_key", window_id=window["window_id"], key="ctrl+shift+s")
        dialogue = client.window(title="Save As")
        assert field(client, dialogue, "text", "Name:")
    finally:
        processes.end(process)
