"""An agent's errands in three applications, through `deskhand mcp --private` and the official MCP client.

Prints each step with its effect and time, writes a picture at the end, and fails if anything is not as expected.
"""

import argparse
import asyncio
import base64
import contextlib
import http.server
import os
import re
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

from mcp import Client, StdioServerParameters

REPOSITORY = Path(__file__).resolve().parent.parent
TEXT = "Grüße aus dem Editor\n漢字 and 😀, all of it exact."

FORM = """<!doctype html><html lang=en><meta charset=utf-8><title>Order form</title>
<h1>Order</h1><form method=post action=/order>
<p><label>Name <input name=name></label>
<p><label>City <input name=city></label>
<p><label><input type=checkbox name=express value=yes> Express delivery</label>
<p><button>Send order</button></form>"""

THANKS = "<!doctype html><html lang=en><meta charset=utf-8><title>Thank you</title><h1>Thank you, {}</h1>"


class Unexpected(Exception):
    """Something is not as the demo expects."""


class Shop(http.server.BaseHTTPRequestHandler):
    """The page with the form; keeps the orders it gets."""

    orders = []

    def do_GET(self):
        self.answer(FORM)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        order = {name: values[0] for name, values in urllib.parse.parse_qs(body).items()}
        self.orders.append(order)
        self.answer(THANKS.format(order.get("name", "nobody")))

    def answer(self, page):
        data = page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Agent:
    """Calls tools, and tells what they did."""

    def __init__(self, client):
        self.client = client

    async def quiet(self, tool, **arguments):
        answer = await self.client.call_tool(tool, arguments)
        if answer.is_error:
            raise Unexpected(f"{tool}: {answer.structured_content}")
        return answer

    async def step(self, what, tool, **arguments):
        start = time.monotonic()
        answer = await self.quiet(tool, **arguments)
        report = answer.structured_content or {}
        how = " by ".join(report[key] for key in ("effect", "route") if key in report) or "done"
        tell(what, how, time.monotonic() - start)
        if report.get("effect") == "suspected_noop":
            raise Unexpected(f"{what}: nothing happened: {report}")
        return answer

    async def tree(self, window):
        answer = await self.quiet("get_window_state", window_id=window, capture_mode="ax")
        return "\n".join(block.text for block in answer.content if block.type == "text")

    async def find(self, window, pattern, seconds=20):
        """Index of the element whose line matches, as soon as there is one."""
        end = time.monotonic() + seconds
        while True:
            tree = await self.tree(window)
            if match := re.search(rf"^ *\[(\d+)\] {pattern}", tree, re.MULTILINE):
                return int(match[1])
            if time.monotonic() > end:
                raise Unexpected(f"no element like {pattern!r} in\n{tree}")
            await asyncio.sleep(0.1)

    async def window(self, fits, seconds=30):
        end = time.monotonic() + seconds
        while True:
            windows = (await self.quiet("list_windows")).structured_content["windows"]
            for window in windows:
                if fits(window):
                    return window["window_id"]
            if time.monotonic() > end:
                raise Unexpected(f"no such window among {[window['title'] for window in windows]}")
            await asyncio.sleep(0.1)


def tell(what, how, seconds):
    print(f"  {what:<52} {how:<26} {seconds * 1000:7.0f} ms", flush=True)


def expect(fact, what):
    if not fact:
        raise Unexpected(what)


async def until(condition, what, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, what)
        await asyncio.sleep(0.02)


async def write_a_letter(agent, folder):
    print("Mousepad: write, read back, save")
    await agent.step("open Mousepad", "launch_app", app="mousepad")
    window = await agent.window(lambda window: "mousepad" in window["app"].lower())
    field = await agent.find(window, "text")
    await agent.step(
        "type two lines with ü, 漢字 and 😀", "type_text", window_id=window, element_index=field, text=TEXT
    )
    start = time.monotonic()
    tree = await agent.tree(window)
    expect(TEXT.replace("\n", "\\n") in tree, f"the text is not in the tree:\n{tree}")
    tell("read it back from the tree", "exact", time.monotonic() - start)
    path = folder / "letter.txt"
    await agent.step("press ctrl+s", "press_key", window_id=window, key="ctrl+s")
    dialog = await agent.window(lambda other: "mousepad" in other["app"].lower() and other["window_id"] != window)
    name = await agent.find(dialog, "text")
    await agent.step(
        "type a file name into the dialogue", "type_text", window_id=dialog, element_index=name, text=str(path),
        clear=True, delivery="foreground",
    )
    save = await agent.find(dialog, 'button "_?Save"$')
    await agent.step("click Save", "click", window_id=dialog, element_index=save)
    await until(lambda: path.exists() and path.read_bytes(), f"{path} was not written")
    saved = path.read_text(encoding="utf-8")
    expect(saved.rstrip("\n") == TEXT, f"the file holds {saved!r}")
    tell("check the file", f"{len(path.read_bytes())} bytes, exact", 0)


async def calculate(agent):
    print("galculator: 12 × 34")
    await agent.step("open galculator", "launch_app", app="galculator")
    window = await agent.window(lambda window: "galculator" in window["app"].lower())
    for key in ("1", "2", "*", "3", "4", "="):
        names = {"*": "(\\*|×|x)"}.get(key, re.escape(key))
        button = await agent.find(window, f'toggle button "{names}"')
        await agent.step(f"click {key}", "click", window_id=window, element_index=button, delivery="background")
    start = time.monotonic()
    await agent.find(window, '.*text="408"', seconds=5)
    tell("read the display", "408", time.monotonic() - start)


async def order(agent, folder):
    print("Chromium: fill in a form and send it")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        flags = [
            "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--password-store=basic", f"--user-data-dir={folder / 'chromium'}",
        ]
        if os.getuid() == 0:
            # Chromium refuses to run as root otherwise. It only sees our own page.
            flags.append("--no-sandbox")
        await agent.step(
            "open Chromium on a page", "launch_app", app="chromium",
            args=[*flags, f"http://127.0.0.1:{server.server_port}/"],
        )
        window = await agent.window(lambda window: "Order form" in window["title"], seconds=60)
        for label, value in (("Name", "Ada Lovelace"), ("City", "Köln")):
            field = await agent.find(window, f'(entry|text) "{label}"')
            await agent.step(f"type into {label}", "type_text", window_id=window, element_index=field, text=value)
        box = await agent.find(window, 'check box "Express delivery"')
        await agent.step("tick Express delivery", "click", window_id=window, element_index=box)
        button = await agent.find(window, 'button "Send order"')
        await agent.step("click Send order", "click", window_id=window, element_index=button)
        await until(lambda: Shop.orders, "no order arrived")
        wanted = {"name": "Ada Lovelace", "city": "Köln", "express": "yes"}
        expect(Shop.orders == [wanted], f"the server got {Shop.orders}")
        tell("check what the server got", "exact", 0)
        start = time.monotonic()
        await agent.find(window, '.*"Thank you, Ada Lovelace"')
        tell("read the page's answer from the tree", "exact", time.monotonic() - start)
    finally:
        server.shutdown()
        server.server_close()


async def run(program, picture):
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deskhand-demo-")))
        begin = time.monotonic()
        async with Client(StdioServerParameters(command=program, args=["mcp", "--private", "1280x800"])) as client:
            tools = (await client.list_tools()).tools
            tell("connect and list the tools", f"{len(tools)} tools", time.monotonic() - begin)
            agent = Agent(client)
            start = time.monotonic()
            await agent.quiet("list_windows")
            tell("start a private desktop", "1280x800", time.monotonic() - start)
            await write_a_letter(agent, folder)
            await calculate(agent)
            await order(agent, folder)
            answer = await agent.step("take a picture of the desktop", "screenshot")
            image = next(block for block in answer.content if block.type == "image")
            picture.parent.mkdir(parents=True, exist_ok=True)
            picture.write_bytes(base64.b64decode(image.data))
        print(f"All as expected in {time.monotonic() - begin:.1f} s. The picture: {picture}")


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(target / "release" / "deskhand"), help="the deskhand to use")
    parser.add_argument("--picture", type=Path, default=target / "demo.png", help="where the picture goes")
    options = parser.parse_args()
    try:
        asyncio.run(asyncio.wait_for(run(options.program, options.picture), 240))
    except Exception as error:
        for each in leaves(error):
            print(f"NOT as expected: {str(each) or repr(each)}", file=sys.stderr)
        sys.exit(1)


def leaves(error):
    """The client's task groups wrap what happened in groups of one."""
    if isinstance(error, ExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]


main()
