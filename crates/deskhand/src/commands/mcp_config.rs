//! `deskhand mcp-config`: how to connect a client.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::cli::Client;

pub(crate) fn run(client: Client, private: bool) -> io::Result<ExitCode> {
    let program = std::env::current_exe()?.canonicalize()?;
    super::print(&snippet(client, &program, private))?;
    Ok(ExitCode::SUCCESS)
}

fn snippet(client: Client, program: &Path, private: bool) -> String {
    let path = program.to_string_lossy();
    let arguments: &[&str] = if private { &["mcp", "--private"] } else { &["mcp"] };
    match client {
        Client::ClaudeCode => format!(
            "# Run this:\nclaude mcp add deskhand -- {} {}\n\n# or put this into .mcp.json of a project:\n{}\n",
            shell_word(&path),
            arguments.join(" "),
            pretty(
                &json!({"mcpServers": {"deskhand": {"type": "stdio", "command": path, "args": arguments}}})
            ),
        ),
        // A JSON string is a TOML string: TOML took its escapes from there.
        Client::Codex => format!(
            "# Add this to ~/.codex/config.toml:\n[mcp_servers.deskhand]\ncommand = {}\nargs = {}\n",
            json!(path),
            json!(arguments),
        ),
        Client::Vscode => format!(
            "// Put this into .vscode/mcp.json of a project:\n{}\n",
            pretty(&json!({"servers": {"deskhand": {"type": "stdio", "command": path, "args": arguments}}})),
        ),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// `word` as a shell reads it as one word.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_name_the_program() {
        let program = Path::new("/opt/my tools/deskhand");
        let claude = snippet(Client::ClaudeCode, program, true);
        assert!(
            claude.contains("claude mcp add deskhand -- '/opt/my tools/deskhand' mcp --private\n"),
            "{claude}"
        );
        let codex = snippet(Client::Codex, program, false);
        assert!(codex.contains("command = \"/opt/my tools/deskhand\"\nargs = [\"mcp\"]\n"), "{codex}");
        let code = snippet(Client::Vscode, program, false);
        let (_, json) = code.split_once('\n').unwrap();
        let json: Value = serde_json::from_str(json).unwrap();
        assert_eq!(json["servers"]["deskhand"]["args"], json!(["mcp"]));
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(shell_word("/usr/bin/deskhand"), "/usr/bin/deskhand");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
    }
}
