"""The official clients connect, list and call, with every protocol version that they offer."""

import asyncio
import json
import shutil
import subprocess

import jsonschema
import pytest
from mcp import Client as SdkClient
from mcp import MCPError, StdioServerParameters
from mcp.client import session as sdk_session
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from stage import processes
from stage.client import Client
from stage.program import REPOSITORY, deskhand

TYPESCRIPT = REPOSITORY / "tests" / "typescript"
GUIDE = (REPOSITORY / "docs" / "agent-guide.md").read_text()

# What every agent needs to see in the list that it gets without asking for more.
EXPECTED_TOOLS = {
    "list_windows", "list_apps", "launch_app", "kill_app", "get_window_state", "screenshot", "click", "type_text",
    "press_key", "set_value", "wait_for",
}

ALL_TOOLS = EXPECTED_TOOLS | {
    "hotkey",
    "get_accessibility_tree", "get_desktop_state", "get_screen_size", "get_cursor_position", "move_cursor",
    "perform_secondary_action", "get_config", "set_config", "health_report", "double_click", "right_click",
}

# spec: what the whole tool list may cost, in bytes of its answer.
TOOL_LIST_BYTES = 24_000


def run_sdk(environment, mode):
    """A session of the Python SDK: list, call, picture, refusal."""

    async def session():
        server = StdioServerParameters(command=deskhand(), args=["mcp"], env=environment)
        async with SdkClient(server, mode=mode) as client:
            tools = await client.list_tools()
            windows = await client.call_tool("list_windows", {})
            picture = await client.call_tool("screenshot", {})
            refused = await client.call_tool("click", {"window_id": "x"})
            return client.protocol_version, tools.tools, windows, picture, refused

    return asyncio.run(asyncio.wait_for(session(), 60))


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS, "auto"])
def test_f85_python_sdk(desktop, monkeypatch, version):
    mode = version
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        mode = "legacy"
        monkeypatch.setattr(sdk_session, "LATEST_HANDSHAKE_VERSION", version)
    negotiated, tools, windows, picture, refused = run_sdk(desktop.env, mode)
    if version != "auto":
        assert negotiated == version
    assert EXPECTED_TOOLS <= {tool.name for tool in tools}
    assert not windows.is_error and "windows" in windows.structured_content
    assert [block.mime_type for block in picture.content if block.type == "image"] == ["image/png"]
    assert refused.is_error and refused.structured_content["code"] == "invalid_argument"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_guide_by_the_python_sdk(desktop, mode):
    async def code_of(asked):
        with pytest.raises(MCPError) as refused:
            await asked
        return refused.value.error.code

    async def session():
        server = StdioServerParameters(command=deskhand(), args=["mcp"], env=desktop.env)
        async with SdkClient(server, mode=mode) as client:
            assert client.server_capabilities.prompts is not None
            assert client.server_capabilities.resources is not None
            assert "deskhand://agent-guide" in client.instructions
            [prompt] = (await client.list_prompts()).prompts
            [message] = (await client.get_prompt(prompt.name)).messages
            [resource] = (await client.list_resources()).resources
            [contents] = (await client.read_resource(resource.uri)).contents
            assert (prompt.name, resource.uri) == ("agent-guide", "deskhand://agent-guide")
            assert message.content.text == contents.text == GUIDE
            assert await code_of(client.get_prompt("no-such")) == -32602
            # The newest protocol has no code of its own for it.
            not_found = -32602 if client.protocol_version in MODERN_PROTOCOL_VERSIONS else -32002
            assert await code_of(client.read_resource("deskhand://no-such")) == not_found

    asyncio.run(asyncio.wait_for(session(), 60))


def test_python_sdk_with_a_private_desktop(tmp_path):
    """What the README says: one command, nothing else set up."""
    mark = processes.new_mark()

    async def session():
        server = StdioServerParameters(
            command=deskhand(), args=["mcp", "--private", "1024x768"], env=processes.environment(tmp_path, mark)
        )
        async with SdkClient(server) as client:
            return await client.call_tool("get_screen_size", {})

    answer = asyncio.run(asyncio.wait_for(session(), 60))
    assert answer.structured_content["displays"][0]["frame"]["width"] == 1024
    processes.wait_until(lambda: not processes.marked(mark), 2, lambda: f"all ends: {processes.marked(mark)}")


def typescript_versions():
    """The versions are in the package; without it there is nothing to ask, and the tests below fail."""
    try:
        done = subprocess.run(["node", "client.mjs", "versions"], cwd=TYPESCRIPT, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)
    except (OSError, subprocess.CalledProcessError):
        return ["typescript packages are missing: run scripts/setup test"]


@pytest.mark.parametrize("version", typescript_versions())
def test_f85_typescript_sdk(desktop, version):
    done = subprocess.run(
        ["node", "client.mjs", "connect", version, deskhand(), "mcp"], cwd=TYPESCRIPT, env=desktop.env,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    # A server that does not know a version answers with one that it does, and the client goes on.
    assert seen["negotiated"] == version or version == "2024-10-07"
    assert EXPECTED_TOOLS <= set(seen["tools"])
    assert "windows" in seen["windows"]
    assert seen["picture"] == ["image/png"]
    assert seen["refused"] == {"isError": True, "code": "invalid_argument"}
    assert seen["guide"] == {
        "prompts": ["agent-guide"],
        "prompt": [GUIDE],
        "resources": [["deskhand://agent-guide", "text/markdown"]],
        "resource": [GUIDE],
        "unknownPrompt": -32602,
        "unknownResource": -32002,
    }


def inspector(desktop, *arguments):
    program = TYPESCRIPT / "node_modules" / ".bin" / "mcp-inspector"
    done = subprocess.run(
        [str(program), "--cli", deskhand(), "mcp", *arguments], cwd=TYPESCRIPT, env=desktop.env,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def test_f85_inspector_lists_and_calls(desktop):
    assert shutil.which("node")
    tools = inspector(desktop, "--method", "tools/list")["tools"]
    assert EXPECTED_TOOLS <= {tool["name"] for tool in tools}
    assert [prompt["name"] for prompt in inspector(desktop, "--method", "prompts/list")["prompts"]] == ["agent-guide"]
    answer = inspector(desktop, "--method", "tools/call", "--tool-name", "list_windows")
    assert "windows" in answer["structuredContent"]
    answer = inspector(
        desktop, "--method", "tools/call", "--tool-name", "move_cursor", "--tool-arg", "x=40", "--tool-arg", "y=50"
    )
    assert not answer.get("isError")


def test_f81_the_tool_list_is_short_and_its_schemas_are_plain_objects(desktop):
    with Client(desktop) as client:
        before = client.received_bytes
        tools = client.request("tools/list")["result"]["tools"]
        assert client.received_bytes - before <= TOOL_LIST_BYTES
        for tool in tools:
            schema = tool["inputSchema"]
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert schema["additionalProperties"] is False
            # Some clients refuse a schema whose top is a choice.
            assert not {"anyOf", "oneOf", "allOf", "not", "enum"} & set(schema)
            assert tool["description"]
            assert "readOnlyHint" in tool["annotations"]
        assert EXPECTED_TOOLS <= {tool["name"] for tool in tools}


def test_the_full_profile_lists_all_and_hidden_tools_can_be_called(desktop):
    with Client(desktop, arguments=["--profile", "full"]) as client:
        names = {tool["name"] for tool in client.request("tools/list")["result"]["tools"]}
        assert ALL_TOOLS <= names
    with Client(desktop) as client:
        shown = {tool["name"] for tool in client.request("tools/list")["result"]["tools"]}
        assert shown < names
        assert client.call("get_cursor_position").structured


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_f85_the_clients_version_is_echoed(desktop, version):
    with Client(desktop, initialize=False) as client:
        assert client.initialize(version)["protocolVersion"] == version
        assert client.request("tools/list")["result"]["tools"]


@pytest.mark.parametrize("version", ["1999-01-01", "2999-12-31", "latest", ""])
def test_f85_an_unknown_version_gets_one_that_is_known(desktop, version):
    with Client(desktop, initialize=False) as client:
        assert client.initialize(version)["protocolVersion"] in HANDSHAKE_PROTOCOL_VERSIONS
        assert client.request("tools/list")["result"]["tools"]


def test_the_contract_of_list_windows_and_get_window_state(desktop):
    process = desktop.start(["mousepad"])
    try:
        with Client(desktop) as client:
            window = client.window(pid=process.pid)
            assert {"window_id", "pid", "app", "title", "frame", "focused", "minimized", "z"} <= set(window)
            assert set(window["frame"]) == {"x", "y", "width", "height"}
            answer = client.call("get_window_state", window_id=window["window_id"])
            assert {"snapshot_id", "element_count", "shown", "truncated"} <= set(answer.structured)
            assert answer.elements
            for tool in ("get_accessibility_tree",):
                assert client.call(tool, window_id=window["window_id"]).elements
            assert client.call("get_window_state", app="mousepad").elements
            assert client.call("get_window_state", pid=process.pid).elements
    finally:
        processes.end(process)
