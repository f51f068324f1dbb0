"""Parts of texts are selected, and what is selected then is what was asked for: typing replaces exactly that."""

import pytest

from stage import application, processes, reference
from stage.application import Fixture

TEXT = "Grüße 漢字 😀 one two one end"
FIELDS = [
    ("gtk3", "widgets", "Name"), ("gtk3", "pad", "Pad"), ("gtk4", "widgets", "Name"), ("gtk4_pad", "pad", "Pad"),
    ("qt5", "widgets", "Name"), ("qt5", "pad", "Pad"),
]
PAGE = '<title>Selecting</title><input aria-label="Name"><textarea aria-label="Pad"></textarea>'


def select(client, window, field, **arguments):
    return client.call(
        "select_text", window_id=window["window_id"], element_index=field.index, snapshot_id=field.snapshot, **arguments
    )


def select_and_replace(client, window, role, name, read, emoji_is_told=True):
    """Selects in each way, and types over it."""
    for delivery in ("auto", "foreground"):
        field = client.element(window, role=role, name=name)
        client.call(
            "type_text", window_id=window["window_id"], element_index=field.index, text=TEXT, clear=True, delivery="foreground"
        )
        processes.wait_until(lambda: read() == TEXT, 5, read)
        answer = select(client, window, field, text="two", delivery=delivery)
        assert answer["effect"] == "confirmed", (delivery, answer.structured)
        assert answer["after"] == '15..18 "two"', answer.structured
        answer = client.try_call(
            "select_text", window_id=window["window_id"], element_index=field.index, text="one", delivery=delivery
        )
        assert answer.code == "ambiguous" and "2 times" in answer.error_message
        answer = select(client, window, field, text="one", occurrence=2, delivery=delivery)
        assert answer["effect"] == "confirmed", (delivery, answer.structured)
        client.call("press_key", key="X", window_id=window["window_id"])
        replaced = TEXT.replace("two one", "two X")
        processes.wait_until(lambda: read() == replaced, 5, read)
        answer = select(client, window, field, range={"start": 6, "end": 10}, delivery=delivery)
        if emoji_is_told:
            assert answer["effect"] == "confirmed", (delivery, answer.structured)
            assert answer["after"] == '6..10 "漢字 😀"', answer.structured
        else:
            assert answer["effect"] == "unverifiable", (delivery, answer.structured)
        client.call("press_key", key="Y", window_id=window["window_id"])
        processes.wait_until(lambda: read() == replaced.replace("漢字 😀", "Y"), 5, read)
        answer = select(client, window, field, range={"start": 2, "end": 2}, delivery=delivery)
        assert answer["effect"] == "confirmed" and answer["after"] == "caret at 2", answer.structured


@pytest.mark.parametrize(("toolkit", "page", "name"), FIELDS)
def test_fields_and_text_views(client, desktop, toolkit, page, name):
    title = f"Select {toolkit} {page}"
    with Fixture(desktop, toolkit, page, title=title) as fixture:
        window = client.window(title=title)
        select_and_replace(client, window, "text", name, lambda: fixture.text(name))


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt5"])
def test_in_the_background_no_focus_is_taken(client, desktop, toolkit):
    with Fixture(desktop, toolkit, "widgets", title="Back") as back, Fixture(desktop, "gtk3", "form", title="Front"):
        window = client.window(title="Back")
        front = client.window(title="Front")["window_id"]
        client.call("press_key", key="shift", window_id=front)
        field = client.element(window, role="text", name="Name")
        answer = select(client, window, field, text="Love", delivery="background")
        assert answer["effect"] == "confirmed" and answer["route"] == "ax_text"
        assert [each["window_id"] for each in client.windows() if each["focused"]] == [front]
        assert back.text("Name") == "Ada Lovelace"


def test_mousepad(client, desktop):
    process = desktop.start(["mousepad"])
    try:
        window = client.window(pid=process.pid)
        client.element(window, role="text")
        select_and_replace(client, window, "text", None, lambda: reference.text_of(desktop, "Mousepad"))
    finally:
        processes.end(process)


PARAGRAPHS = """<!doctype html><title>Paragraphs</title><p>The quick brown fox jumps.</p>
<p>Some <b>bold words</b> and a <a href="#x">link here</a>, then the end.</p><ul><li>First point of it</ul><h1>Heading one</h1>
<p style="width:150px">Words that wrap over several lines because the box is narrow indeed.</p>
<script>document.onselectionchange = () => { document.title = `Paragraphs: ${getSelection()}.` }</script>"""


@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_text_of_a_page(client, desktop, browser, tmp_path):
    """The page tells in its title what is selected."""
    page = tmp_path / "page.html"
    page.write_text(PARAGRAPHS)
    profile = tmp_path / "profile"
    profile.mkdir()
    process = desktop.start(getattr(application, browser)(profile, page.as_uri()))
    try:
        window = client.window(title="Paragraphs", timeout=40)
        client.element(window, contains="brown fox", timeout=20)
        for text, inside in (
            ("brown fox", "quick brown"), ("bold words", "bold words"), ("link here", "link here"), ("point", "First point"),
            ("Heading", "Heading one"), ("several lines", "Words that wrap"),
        ):
            for delivery in ("auto", "background"):
                # The last one: what holds the words itself.
                field = [e for e in client.tree(window).elements if inside in e.line and e.role not in ("frame", "page tab")][-1]
                answer = client.call("select_text", window_id=window["window_id"], element_index=field.index, text=text, delivery=delivery)
                assert answer["effect"] == "confirmed" and f'"{text}"' in answer["after"], answer.structured
                client.window(title=f"Paragraphs: {text}.")
            # It has no caret: keys would select something else, and a click would lose what is selected.
            answer = client.try_call(
                "select_text", window_id=window["window_id"], element_index=field.index, range={"start": 0, "end": 1}, delivery="foreground"
            )
            assert answer.code == "not_supported" and "no caret" in answer.error_message, answer.structured
            client.window(title=f"Paragraphs: {text}.")
    finally:
        processes.end(process)


@pytest.mark.parametrize("browser", ["chromium", "firefox"])
def test_browsers(client, desktop, browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    profile = tmp_path / "profile"
    profile.mkdir()
    process = desktop.start(getattr(application, browser)(profile, f"file://{page}"))
    try:
        window = client.window(title="Selecting", timeout=40)
        for name in ("Name", "Pad"):
            field = client.element(window, role="entry", name=name, timeout=20)

            def read():
                said = client.tree(window, query=name).text
                line = next(line for line in said.splitlines() if f'entry "{name}"' in line)
                return line.split('text="')[1].split('"')[0] if 'text="' in line else ""

            assert field
            # Chromium tells no selection that ends behind a character of two units.
            select_and_replace(client, window, "entry", name, read, emoji_is_told=browser != "chromium")
    finally:
        processes.end(process)
