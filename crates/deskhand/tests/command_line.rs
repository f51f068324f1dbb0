//! The command line, on a machine without a desktop: nothing of the environment is passed on.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn deskhand(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deskhand"));
    command.args(arguments).env_clear().env("ACPMUX_HOME", "/nowhere").stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn version_is_printed() {
    let output = deskhand(&["--version"]);
    assert_eq!(stdout(&output), format!("deskhand {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn tools_are_listed_and_described() {
    let list = stdout(&deskhand(&["tools"]));
    let full = stdout(&deskhand(&["tools", "--profile", "full"]));
    assert!(list.lines().any(|line| line.starts_with("list_windows ")), "{list}");
    assert!(list.lines().count() < full.lines().count());
    let one = stdout(&deskhand(&["tools", "click"]));
    assert!(one.starts_with("click\n\n") && one.contains("  window_id (integer"), "{one}");
    let json: Value = serde_json::from_slice(&deskhand(&["tools", "click", "--json"]).stdout).unwrap();
    assert_eq!(json["inputSchema"]["type"], "object");
}

#[test]
fn the_documentation_of_the_tools_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");
    let made = stdout(&deskhand(&["tools", "--markdown"]));
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        made == kept,
        "out of date; mend it with: cargo run -p deskhand -- tools --markdown > docs/tools.md"
    );
}

#[test]
fn mistakes_are_named_and_answered_with_2() {
    for (arguments, part) in [
        (&["call", "no_such"][..], "no_such"),
        (&["call", "click", "{"], "JSON"),
        (&["call", "click", "[]"], "object"),
        (&["call", "click", "--keep-home"], "--private"),
        (&["mcp", "--private", "1x"], "WIDTHxHEIGHT"),
        (&["tools", "no_such"], "no_such"),
        (&["mcp-config", "emacs"], "claude-code"),
        (&[], "Usage"),
    ] {
        let output = deskhand(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn a_call_that_fails_answers_with_1_and_says_the_code() {
    let output = deskhand(&["call", "list_windows"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("desktop_unavailable: "), "{}", stderr(&output));
    let output = deskhand(&["call", "click", r#"{"window_id": "x"}"#, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["code"], "invalid_argument");
}

#[test]
fn a_call_that_needs_no_desktop_answers() {
    let output = deskhand(&["call", "get_config", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(serde_json::from_slice::<Value>(&output.stdout).unwrap().is_object());
}

#[test]
fn doctor_says_what_is_missing_and_how_to_mend_it() {
    let output = deskhand(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["desktop"], false);
    // Whether a private desktop can be started depends on the machine.
    assert_eq!(output.status.code(), Some(i32::from(report["works"] == false)));
    let session =
        report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "session").unwrap();
    assert_eq!(session["status"], "missing");
    assert!(session["fix"].as_str().unwrap().contains("deskhand mcp --private"));
}

#[test]
fn a_client_is_told_the_real_path() {
    for client in ["claude-code", "codex", "vscode"] {
        let snippet = stdout(&deskhand(&["mcp-config", client]));
        assert!(snippet.contains(env!("CARGO_BIN_EXE_deskhand")), "{snippet}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_deskhand"))
        .args(["tools", "--profile", "full", "--json"])
        .env_clear()
        .env("ACPMUX_HOME", "/nowhere")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}
