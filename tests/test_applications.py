"""Applications are listed, launched and ended as a person would expect."""

import pytest

from stage import processes
from stage.application import chromium
from stage.client import Client
from stage.desktop import OwnDesktop
from stage.program import FIXTURES, SYSTEM_PYTHON


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
