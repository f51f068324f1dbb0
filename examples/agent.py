"""A client in a few lines: opens an editor on a private desktop, writes into it, and reads it back.

    pip install mcp
    python examples/agent.py target/release/deskhand
"""

import asyncio
import re
import sys

from mcp import Client, StdioServerParameters


async def call(client, tool, **arguments):
    answer = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in answer.content if block.type == "text")
    if answer.is_error:
        raise SystemExit(f"{tool} failed: {text}")
    return answer.structured_content, text


async def main(program):
    async with Client(StdioServerParameters(command=program, args=["mcp", "--private"])) as client:
        launched, _ = await call(client, "launch_app", app="mousepad")
        window = launched["windows"][0]["window_id"]

        # The outline has one line for each element: [12] text "…" focused
        _, outline = await call(client, "get_window_state", window_id=window)
        field = int(re.search(r"\[(\d+)\] text", outline)[1])

        report, _ = await call(client, "type_text", window_id=window, element_index=field, text="Hello, 世界 👋")
        print("effect:", report["effect"], "by", report["route"])

        _, outline = await call(client, "get_window_state", window_id=window)
        print(next(line for line in outline.splitlines() if f"[{field}]" in line).strip())


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "deskhand"))
