"""Applications are listed, launched and ended as a person would expect."""

import ast
import re
import threading

import pytest

from stage import processes
from stage.application import chromium
from stage.client import Client
from stage.desktop import OwnDesktop
from stage.program import FIXTURES, SYSTEM_PYTHON


# What libraries take apart: launcher, program, something unique, and the moment of the wish by the server's clock.
STARTUP_ID = re.compile(r"deskhand/[\w.]+/[\w.-]+_TIME[1-9]\d*")


def entry(desktop, name, command, *lines):
    """Writes a desktop entry of the user."""
    folder = desktop.path / "home" / ".local" / "share" / "applications"
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["[Desktop Entry]", "Type=Application", f"Name={name}", f"Exec={command}", *lines, ""])
    (folder / f"{name.lower().replace(' ', '-')}.desktop").write_text(text)


def test_a_start_is_told_by_an_id_where_the_entry_says_so(own_desktop, tmp_path):
    said = tmp_path / "said"
    command = f'sh -c "env > {said}.new; mv {said}.new {said}"'
    entry(own_desktop, "Telling", command, "StartupNotify=true")
    entry(own_desktop, "Silent", command, "StartupNotify=false")
    entry(own_desktop, "Saying nothing", command)

    def start(client, app, **arguments):
        said.unlink(missing_ok=True)
        client.call("launch_app", app=app, wait_for_window=False, **arguments)
        processes.wait_until(said.exists, 5, "the program ran")
        lines = dict(line.split("=", 1) for line in said.read_text().splitlines() if "=" in line)
        return lines.get("DESKTOP_STARTUP_ID"), lines.get("XDG_ACTIVATION_TOKEN")

    # The id with which the driver itself was started is nobody else's.
    stale = {"DESKTOP_STARTUP_ID": "panel/deskhand/1-0-host_TIME1", "XDG_ACTIVATION_TOKEN": "old"}
    with Client(own_desktop, env={**own_desktop.env, **stale}) as client:
        one, two = start(client, "Telling"), start(client, "Telling")
        assert one[0] == one[1] and two[0] == two[1] and one != two
        assert STARTUP_ID.fullmatch(one[0]) and STARTUP_ID.fullmatch(two[0]), (one, two)
        assert start(client, "Silent") == start(client, "Saying nothing") == (None, None)
        given = start(client, "Telling", env={"DESKTOP_STARTUP_ID": "mine_TIME5"})
        assert given == ("mine_TIME5", None)


@pytest.mark.parametrize("opens_window", [True, False])
def test_a_window_is_known_by_the_id_of_its_start(tmp_path, opens_window):
    """The program hands over to one that runs already, and somebody else's window opens meanwhile."""
    script, asked, open_now = tmp_path / "pad", tmp_path / "asked", tmp_path / "open"
    script.write_text(f'#!/bin/sh\ntouch {asked}\nwhile [ ! -e {open_now} ]; do sleep 0.02; done\nexec mousepad "$@"\n')
    script.chmod(0o755)
    (tmp_path / "new note.txt").write_text("new")
    with OwnDesktop() as desktop:
        mode = "window" if opens_window else "tab"
        entry(desktop, "Pad", f"{script} --opening-mode={mode} %U", "StartupNotify=true")
        desktop.start(["mousepad"])
        with Client(desktop) as client, Client(desktop) as other:
            first = client.window(app="mousepad")
            # An empty document would give its place to the file.
            client.call("type_text", window_id=first["window_id"], text="old")

            def interfere():
                processes.wait_until(asked.exists, 10, "the program was started")
                desktop.start(["xterm", "-title", "Somebody else's"])
                other.window(title="Somebody else's")
                open_now.touch()

            thread = threading.Thread(target=interfere)
            thread.start()
            answer = client.call("launch_app", app="Pad", files=[str(tmp_path / "new note.txt")])
            thread.join()
            titles = [window["title"] for window in answer["windows"]]
            assert len(titles) == 1 and "new note.txt" in titles[0], answer.structured
            assert answer["windows"][0]["pid"] == first["pid"]
            is_new = answer["windows"][0]["window_id"] != first["window_id"]
            assert is_new == opens_window and ("running already" in answer["hint"] if not is_new else "hint" not in answer.structured)


def test_launch_by_name_desktop_id_and_command(client):
    for app in ("galculator", "mousepad", "xterm"):
        answer = client.call("launch_app", app=app, wait_for_window=True)
        assert processes.alive(answer["pid"])
        assert answer["windows"], answer.structured
        ended = client.call("kill_app", pid=answer["pid"], force=True)
        assert ended.structured
        processes.wait_until(lambda: not processes.alive(answer["pid"]), 5, f"{app} ends")


def test_launch_opens_files(client, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk")
    answer = client.call("launch_app", app="mousepad", files=[str(path)], wait_for_window=True)
    window = client.window(title="notes.txt")
    client.element(window, contains="remember the milk")
    client.call("kill_app", pid=answer["pid"], force=True)


def test_launch_passes_arguments_and_environment(client, tmp_path):
    path = tmp_path / "said"
    client.call(
        "launch_app", app="sh", args=["-c", f'echo "$WORD $1" > {path}', "sh", "two words"], env={"WORD": "hello"},
        wait_for_window=False,
    )
    processes.wait_until(lambda: path.exists() and path.read_text(), 5, "the program ran")
    assert path.read_text() == "hello two words\n"


@pytest.mark.parametrize("app", ["no-such-program-anywhere", "/etc/passwd", "", " "])
def test_a_program_that_cannot_be_started_is_named(client, app):
    answer = client.try_call("launch_app", app=app)
    assert answer.is_error
    assert answer.code in ("launch_failed", "app_gone", "invalid_argument"), answer.structured
    if app.strip():
        assert app in answer.error_message


def test_a_program_that_ends_at_once_is_said(client):
    answer = client.try_call("launch_app", app="sh", args=["-c", "exit 3"], wait_for_window=True)
    assert answer.is_error or "3" in answer.text, answer.message
    assert answer.code in (None, "launch_failed")


def test_a_program_is_started_through_the_session_bus():
    with OwnDesktop() as desktop:
        data, runtime = desktop.path / "home" / ".local" / "share", desktop.path / "run"
        for folder, name, text in (
            (data / "applications", "org.example.Activatable.desktop",
             "[Desktop Entry]\nType=Application\nName=Activatable thing\nDBusActivatable=true\n"),
            (runtime / "dbus-1" / "services", "org.example.Activatable.service",
             f"[D-BUS Service]\nName=org.example.Activatable\nExec={SYSTEM_PYTHON} {FIXTURES / 'activatable.py'}\n"),
        ):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        # The bus starts its services with its own environment, and has read its folders already.
        desktop.run("dbus-update-activation-environment", "DISPLAY", "XAUTHORITY")
        desktop.run(
            "gdbus", "call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/",
            "--method", "org.freedesktop.DBus.ReloadConfig",
        )
        with Client(desktop) as client:
            answer = client.call("launch_app", app="activatable thing")
            assert [window["title"] for window in answer["windows"]] == ["Activated"], answer.structured
            again = client.call("launch_app", app="org.example.Activatable", files=["/some file"])
            assert [window["title"] for window in again["windows"]] == ["Opened /some file"], again.structured
            assert again["pid"] == answer["pid"]
            assert client.try_call("launch_app", app="activatable thing", args=["x"]).code == "launch_failed"
            told = [ast.literal_eval(line) for line in (runtime / "platform-data").read_text().splitlines()]
            ids = [data["desktop-startup-id"] for data in told]
            assert ids == [data["activation-token"] for data in told] and len(set(ids)) == 2, told
            assert all(STARTUP_ID.fullmatch(each) for each in ids), told
            client.call("kill_app", pid=answer["pid"], force=True)


def test_a_second_launch_answers_the_window_of_the_first(client, desktop, tmp_path):
    first = client.call("launch_app", app="mousepad")
    second = client.call("launch_app", app="mousepad")
    assert second["windows"], second.structured
    assert {window["pid"] for window in second["windows"]} == {first["pid"]}
    client.call("kill_app", pid=first["pid"], force=True)


def test_a_second_launch_of_a_browser_answers_its_window(client, desktop, tmp_path):
    command, *arguments = chromium(tmp_path / "profile", "data:text/html,<title>First page</title>")
    first = client.call("launch_app", app=command, args=arguments, timeout_ms=40000, timeout=60)
    try:
        client.window(title="First page", timeout=30)
        again = chromium(tmp_path / "profile", "data:text/html,<title>Second page</title>")[1:]
        second = client.call("launch_app", app=command, args=again, timeout_ms=40000, timeout=60)
        assert second["windows"], second.structured
        assert {window["pid"] for window in second["windows"]} == {window["pid"] for window in first["windows"]}
        client.window(title="Second page")
    finally:
        client.call("kill_app", pid=first["windows"][0]["pid"], force=True)


def test_running_applications_are_listed_by_name(client, desktop):
    process = desktop.start(["galculator"])
    try:
        client.window(pid=process.pid)
        apps = client.call("list_apps")
        assert any(process.pid in app.get("pids", []) for app in apps["running"]), apps.structured
        installed = client.call("list_apps", include_installed=True)
        assert any("galculator" in app["desktop_id"] for app in installed["installed"])
    finally:
        processes.end(process)


def test_kill_app_refuses_what_is_not_its_business(client):
    for pid in (1, client.pid):
        answer = client.try_call("kill_app", pid=pid, force=True)
        assert answer.is_error, answer.structured
    assert processes.alive(client.pid)
    answer = client.try_call("kill_app", pid=2**22 - 3)
    assert answer.is_error
    assert client.windows() is not None


def test_settings_of_one_client_are_its_own(desktop):
    with Client(desktop) as one, Client(desktop) as two:
        one.call("set_config", max_elements=7)
        assert "7" in one.call("get_config").text or one.call("get_config").structured
        assert one.call("get_config").structured != two.call("get_config").structured
    with Client(desktop) as three, Client(desktop) as four:
        assert three.call("get_config").structured == four.call("get_config").structured


def test_health_report(client):
    answer = client.call("health_report")
    assert answer.structured and answer.text
