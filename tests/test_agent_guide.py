"""The guide for agents: short, served, and every call in it works as it says on a real window."""

import json
import re

import pytest

from stage import processes
from stage.application import Fixture
from stage.client import Client, outline
from stage.program import REPOSITORY

GUIDE = REPOSITORY / "docs" / "agent-guide.md"
TEXT = GUIDE.read_text()

# What it may cost. Both counts are high for English with some JSON in it, where a token has four bytes and more.
MAX_TOKENS = 1500
BYTES_PER_TOKEN = 3.5
TOKENS_PER_PART = 1.1

# The window of the examples.
WINDOW_ID = 42


class Example:
    """A call of the guide, and the lines below it: what it answers."""

    def __init__(self, line):
        self.tool, _, arguments = line.partition(" ")
        self.arguments = json.loads(arguments)
        self.said = []


def examples():
    found = []
    for block in re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("  "):
                found[-1].said.append(line.strip())
            else:
                found.append(Example(line))
    return found


class Session:
    """Runs the examples in their order. What they call window 42, snapshot s1 and [5] is looked up in the real window."""

    def __init__(self, client, window):
        self.client = client
        self.window = window
        self.snapshots = []
        # The guide's number of an element: its role and name.
        self.elements = {
            element.index: (element.role, element.name)
            for example in examples() for element in outline("\n".join(example.said))
        }
        self.indices = {}

    def real(self, key, value):
        if isinstance(value, dict):
            return {inner: self.real(inner, of) for inner, of in value.items()}
        match key:
            case "window_id":
                assert value == WINDOW_ID
                return self.window["window_id"]
            case "element_index":
                return self.indices[self.elements[value]]
            case "since":
                return self.snapshots[int(value.removeprefix("s")) - 1]
        return value

    def run(self, example):
        answer = self.client.try_call(example.tool, **self.real(None, example.arguments))
        if "snapshot_id" in answer.structured:
            self.snapshots.append(answer["snapshot_id"])
        for element in answer.elements:
            self.indices.setdefault((element.role, element.name), element.index)
        return answer

    def holds(self, said, answer):
        """Whether the answer is what the guide says below the call."""
        if said.startswith("effect: "):
            return answer.structured.get("effect") == said.removeprefix("effect: ")
        if said.startswith("error: "):
            return answer.is_error and answer.code == said.removeprefix("error: ")
        shown = outline(said)[0]
        return any(
            (element.role, element.name) == (shown.role, shown.name) and set(shown.words) <= set(element.words)
            for element in answer.elements
        )


def test_the_guide_is_short():
    parts = re.findall(r"\w+|[^\w\s]", TEXT)
    counts = {"bytes": len(TEXT.encode()) / BYTES_PER_TOKEN, "words and signs": len(parts) * TOKENS_PER_PART}
    assert max(counts.values()) < MAX_TOKENS, counts


def test_every_example_does_what_the_guide_says(desktop):
    with Client(desktop) as client, Fixture(desktop, "gtk3", "gallery", title="The guide's window", size="380,560") as fixture:
        session = Session(client, client.window(title=fixture.title))
        ran = examples()
        assert len(ran) >= 15
        for example in ran:
            answer = session.run(example)
            context = f"{example.tool} {example.arguments}: {answer.text}"
            assert answer.is_error == any(said.startswith("error: ") for said in example.said), context
            for said in example.said:
                assert session.holds(said, answer), f"{said}: {context}"
            if "effect" in answer.structured:
                assert any(said.startswith("effect: ") for said in example.said), f"the effect is not said: {context}"
        # What the window says happened to it.
        assert fixture.text("Name") == "Ada Lovelace"
        assert len(fixture.matching("click", name="Press")) == 2, "once by a point of the picture, once by its name"
        assert fixture.matching("select", name="Fruit", row="Banana")
        assert fixture.matching("select", name="Colour", row="Green")
        assert len(fixture.matching("click", name="Mark")) == 1
        assert fixture.matching("scroll", name="Long")
        assert fixture.matching("drop"), fixture.events
        assert client.call("clipboard_read")["text"] == "Ada"


def test_the_guide_names_only_tools_and_arguments_that_exist(desktop):
    with Client(desktop, arguments=["--profile", "full"]) as client:
        tools = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
    with Client(desktop) as client:
        listed = {tool["name"] for tool in client.request("tools/list")["result"]["tools"]}
    for example in examples():
        assert example.tool in listed, "a model that has only the list can follow"
        assert set(example.arguments) <= set(tools[example.tool]["inputSchema"]["properties"])
    codes = set(re.findall(r"^\| `(\w+)` \|", (REPOSITORY / "docs" / "errors.md").read_text(), re.MULTILINE))
    arguments = {name for tool in tools.values() for name in tool["inputSchema"]["properties"]}
    known = set(tools) | codes | arguments | {"snapshot_id", "effect", "hint", "recovery"}
    known |= {"confirmed", "unverifiable", "suspected_noop", "background", "foreground"}
    for word in re.findall(r"`([a-z_]+)`", TEXT):
        assert word in known, word
    recovery = set(re.findall(r"^\| `(\w+)` \| [^`|]* \|$", (REPOSITORY / "docs" / "errors.md").read_text(), re.MULTILINE))
    assert len(recovery) == 6
    for name in recovery:
        assert re.search(rf"^- .*`{name}`", TEXT, re.MULTILINE), name


def test_the_guide_is_served_without_a_desktop(tmp_path):
    """Nothing that a client reads at its start opens a display: there is none here."""
    environment = processes.environment(tmp_path, processes.new_mark())
    with Client(command=None, env=environment, arguments=["--no-daemon-relaunch"]) as client:
        server = client.server
        assert {"tools", "prompts", "resources"} <= set(server["capabilities"])
        assert len(server["instructions"]) <= 300 and "agent-guide" in server["instructions"]
        [prompt] = client.request("prompts/list")["result"]["prompts"]
        message = client.request("prompts/get", {"name": prompt["name"]})["result"]["messages"][0]
        assert message["content"]["text"] == TEXT
        [resource] = client.request("resources/list")["result"]["resources"]
        assert resource["mimeType"] == "text/markdown" and resource["size"] == len(TEXT.encode())
        [contents] = client.request("resources/read", {"uri": resource["uri"]})["result"]["contents"]
        assert contents["text"] == TEXT
        assert client.request("tools/list")["result"]["tools"]


@pytest.mark.parametrize(
    "method, params, code",
    [
        ("prompts/get", {"name": "no-such"}, -32602),
        ("prompts/get", {}, -32602),
        ("resources/read", {"uri": "deskhand://no-such"}, -32002),
        ("resources/read", {"uri": "file:///etc/passwd"}, -32002),
        ("resources/read", {"uri": ["x"]}, -32602),
        ("resources/subscribe", {"uri": "deskhand://agent-guide"}, -32601),
    ],
)
def test_what_is_not_served_is_an_error(client, method, params, code):
    assert client.request(method, params)["error"]["code"] == code
    assert client.request("ping")["result"] == {}
