"""What the documents promise is so: links lead somewhere, commands exist, examples run."""

import re
import subprocess
import sys

import pytest

from stage import processes
from stage.program import REPOSITORY, deskhand

PAGES = sorted(
    path for path in (*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("crates/*/README.md"))
)

# Kept for those who know them by these names.
DEPRECATED = {"type_text_chars"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_commands_of_the_readme_exist():
    readme = (REPOSITORY / "README.md").read_text()
    for script in set(re.findall(r"(?:scripts|examples)/[\w.]+", readme)):
        assert (REPOSITORY / script).exists(), script
    usage = subprocess.run([deskhand(), "--help"], capture_output=True, text=True, check=True).stdout
    for command in set(re.findall(r"deskhand (mcp-config|doctor|tools|mcp|call|desktop|completions|man)\b", readme)):
        assert command in usage


def test_the_readme_names_every_tool():
    readme = (REPOSITORY / "README.md").read_text()
    table = readme[readme.index("| to see") : readme.index("[docs/tools.md]")]
    known = subprocess.run([deskhand(), "tools", "--profile", "full"], capture_output=True, text=True, check=True).stdout
    named = set(re.findall(r"`(\w+)`", table))
    assert named == {line.split()[0] for line in known.splitlines()} - DEPRECATED


def test_the_page_of_tools_is_the_one_the_program_writes():
    written = subprocess.run([deskhand(), "tools", "--markdown"], capture_output=True, text=True, check=True).stdout
    assert (REPOSITORY / "docs" / "tools.md").read_text() == written


def test_the_example_client_runs(tmp_path):
    example = REPOSITORY / "examples" / "agent.py"
    assert len(example.read_text().splitlines()) < 50
    mark = processes.new_mark()
    done = subprocess.run(
        [sys.executable, str(example), deskhand()], env=processes.environment(tmp_path, mark),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "effect: confirmed" in done.stdout
    assert 'text="Hello, 世界 👋"' in done.stdout
    processes.wait_until(lambda: not processes.marked(mark), 2, lambda: f"all ends: {processes.marked(mark)}")


def test_the_demo_does_all_it_says(tmp_path):
    mark = processes.new_mark()
    picture = tmp_path / "demo.png"
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "scripts" / "demo.py"), "--program", deskhand(), "--picture", str(picture)],
        env=processes.environment(tmp_path, mark), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All as expected" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    processes.wait_until(lambda: not processes.marked(mark), 2, lambda: f"all ends: {processes.marked(mark)}")


def test_the_demo_fails_when_something_is_not_as_expected(tmp_path):
    mark = processes.new_mark()
    environment = processes.environment(tmp_path, mark)
    # A server that answers nothing sensible.
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "scripts" / "demo.py"), "--program", "/bin/cat", "--picture", str(tmp_path / "x.png")],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250,
    )
    assert done.returncode != 0
    assert "All as expected" not in done.stdout


def test_scripts_are_executable_and_sound():
    for script in ("scripts/setup", "scripts/test", "scripts/demo", "scripts/bench", ".ci/run"):
        path = REPOSITORY / script
        assert path.stat().st_mode & 0o111, script
        subprocess.run(["bash", "-n", str(path)], check=True)
