"""What `deskhand completions` and `deskhand man` print, as shells and readers of manuals take it."""

import os
import pty
import re
import select
import subprocess
import time

import pytest

from stage import processes
from stage.program import REPOSITORY, deskhand


def run(*command, given=None, **options):
    return subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=True,
        **({"input": given} if given is not None else {"stdin": subprocess.DEVNULL}), **options,
    )


@pytest.fixture(scope="module")
def tools():
    return re.findall(r"^## `(\w+)`", (REPOSITORY / "docs" / "tools.md").read_text(), re.MULTILINE)


def commands():
    return re.findall(r"^  ([a-z-]+)  ", run(deskhand(), "--help").stdout, re.MULTILINE)


@pytest.fixture
def script(request, tmp_path):
    """Path of the completions of the shell that the test is for, and the environment of a shell that knows nothing else."""
    environment = processes.environment(tmp_path, processes.new_mark())
    path = tmp_path / "_deskhand"
    path.write_text(run(deskhand(), "completions", request.param, env=environment).stdout)
    return path, environment


def bash(script, environment, *words):
    """What bash offers for the last of the words."""
    line = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
    line += '_deskhand "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"; printf "%s\\n" "${COMPREPLY[@]}"'
    return run("bash", "--norc", "-c", line, "bash", str(script), *words, env=environment).stdout.split()


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_completes(script, tools):
    assert bash(*script, "deskhand", "ca") == ["call"]
    assert set(commands()) <= set(bash(*script, "deskhand", ""))
    assert set(tools) <= set(bash(*script, "deskhand", "call", ""))
    assert bash(*script, "deskhand", "call", "clip") == ["clipboard_read", "clipboard_write"]
    assert bash(*script, "deskhand", "call", "--json", "get_curs") == ["get_cursor_position"]
    assert bash(*script, "deskhand", "tools", "invoke") == ["invoke_menu"]
    assert bash(*script, "deskhand", "mcp", "--profile", "") == ["default", "full"]
    assert bash(*script, "deskhand", "mcp-config", "co") == ["codex"]
    assert bash(*script, "deskhand", "desktop", "ru") == ["run"]
    assert bash(*script, "deskhand", "call", "no_such") == []


@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish_completes(script, tools):
    path, environment = script

    def fish(line):
        done = run("fish", "--no-config", "-c", 'source $argv[1]; complete -C $argv[2]', str(path), line, env=environment)
        assert not done.stderr
        return {offer.split("\t")[0] for offer in done.stdout.splitlines()}

    assert set(commands()) <= fish("deskhand ")
    assert set(tools) <= fish("deskhand call ")
    assert fish("deskhand call clip") == {"clipboard_read", "clipboard_write"}
    assert fish("deskhand tools invoke") == {"invoke_menu"}
    assert fish("deskhand mcp-config co") == {"codex"}
    assert fish("deskhand completions ") >= {"bash", "zsh", "fish"}
    assert not fish("deskhand call click ") & set(tools), "the arguments come next"


class Terminal:
    """An interactive shell."""

    def __init__(self, command, environment):
        self.descriptor, inner = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, env=environment | {"TERM": "dumb"}, start_new_session=True
        )
        os.close(inner)
        self.seen = ""

    def write(self, text):
        os.write(self.descriptor, text.encode())

    def wait(self, pattern, timeout=20):
        end = time.monotonic() + timeout
        while not re.search(pattern, self.seen):
            ready, _, _ = select.select([self.descriptor], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {pattern}: {self.seen}"
            self.seen += os.read(self.descriptor, 4096).decode(errors="replace")

    def close(self):
        os.close(self.descriptor)  # hangs up
        processes.end(self.process)


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh_completes(script):
    path, environment = script
    terminal = Terminal(["zsh", "-f", "-i"], environment)
    try:
        terminal.write(f"fpath=({path.parent} $fpath); autoload -U compinit; compinit -u -D; echo re''ady\n")
        terminal.wait("ready")
        # The rest of each word can only come from the completion.
        for line, completed in [
            ("deskhand call get_curs", "get_cursor_position"),
            ("deskhand tools debug_w", "debug_window_info"),
            ("deskhand mcp-config vsc", "vscode"),
            ("deskhand doct", "doctor"),
        ]:
            terminal.write(f"{line}\t")
            terminal.wait(completed)
            terminal.write("\x15")  # clears the line
    finally:
        terminal.close()


def test_the_manual_page_is_whole_and_well_formed(tmp_path, tools):
    environment = processes.environment(tmp_path, processes.new_mark(), MANWIDTH="100")
    page = run(deskhand(), "man", env=environment).stdout
    assert page.startswith(".") and page.count("\n.TH ") == 1
    done = run("groff", "-man", "-Tutf8", "-ww", "-P-cbou", given=page, env=environment)
    assert not done.stderr, "warnings of groff"
    text = re.sub("‐\n *", "", done.stdout)
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "TOOLS", "ENVIRONMENT", "FILES"):
        assert re.search(rf"^{heading}$", text, re.MULTILINE), heading
    for command in commands():
        assert re.search(rf"^ +deskhand {command}( run| show| grant| start)?$", text, re.MULTILINE), command
    for tool in tools:
        assert re.search(rf"^ +{tool}\b", text, re.MULTILINE), tool
    for option in ("--private", "--keep-home", "--profile", "--out", "--json", "--size"):
        assert option in text, option
    assert str(REPOSITORY) not in page and environment["HOME"] not in page


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_hold_no_paths(tmp_path, shell):
    environment = processes.environment(tmp_path, processes.new_mark())
    done = run(deskhand(), "completions", shell, env=environment)
    assert not done.stderr
    for path in (str(REPOSITORY), environment["HOME"], deskhand()):
        assert path not in done.stdout
