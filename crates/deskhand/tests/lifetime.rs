//! The end of `deskhand mcp`: its client leaves in every way there is, and it ends within 2 s, with exit code 0, having
//! said nothing on stderr.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_deskhand");

/// The promise.
const END: Duration = Duration::from_secs(2);

/// A server, or a shell that starts one.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Server {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("DESKHAND_MCP_NO_RELAUNCH", "1")
            // Not the records of whoever runs the tests.
            .env("ACPMUX_HOME", "/nowhere")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        let mut server = Self { child, input, output };
        let answer = server.request("initialize", json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}));
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        server
    }

    fn direct() -> Self {
        Self::start(Command::new(PROGRAM).arg("mcp"))
    }

    fn send(&mut self, method: &str, params: Value) {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params);
        self.receive()
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no answer: {line:?}"))
    }

    fn kill(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until everybody who could write to the output has ended.
    fn until_end(&mut self, since: Instant) {
        let mut rest = String::new();
        self.output.as_mut().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert!(since.elapsed() < END, "took {:?}", since.elapsed());
    }

    /// Waits for the end of the child itself.
    fn assert_ends_well(mut self, since: Instant) {
        drop(self.output.take());
        let output = self.child.wait_with_output().unwrap();
        assert!(since.elapsed() < END, "took {:?}", since.elapsed());
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    }
}

#[test]
fn f1_the_end_of_input_ends_it() {
    let mut server = Server::direct();
    let begin = Instant::now();
    server.input = None;
    server.until_end(begin);
    server.assert_ends_well(begin);
}

#[test]
fn f1_without_input_it_ends_at_once() {
    let begin = Instant::now();
    let output = Command::new(PROGRAM)
        .arg("mcp")
        .env("DESKHAND_MCP_NO_RELAUNCH", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(begin.elapsed() < END);
    assert_eq!((output.status.code(), output.stdout, output.stderr), (Some(0), Vec::new(), Vec::new()));
}

#[test]
fn f1_a_signal_ends_it() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut server = Server::direct();
        let begin = Instant::now();
        server.kill(signal);
        server.until_end(begin);
        server.assert_ends_well(begin);
    }
}

#[test]
fn a_hang_up_that_it_was_told_to_ignore_does_not_end_it() {
    let mut server = Server::start(Command::new("nohup").args([PROGRAM, "mcp"]));
    server.kill(Signal::HUP);
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn f1_an_output_that_nobody_reads_any_more_ends_it() {
    let mut server = Server::direct();
    let begin = Instant::now();
    // The input stays open, and nothing is sent.
    server.output = None;
    server.assert_ends_well(begin);
}

#[test]
fn f2_the_end_of_the_client_is_seen_through_a_shell_that_keeps_the_pipe_open() {
    // The client is a shell under another name. We keep the pipe open, and the inner shell waits.
    let folder = tempfile::tempdir().unwrap();
    let client = folder.path().join("client");
    symlink("/bin/sh", &client).unwrap();
    let script = r#"sh -c '"$0" mcp; :' "$0"; :"#;
    let mut server = Server::start(Command::new(client).args(["-c", script, PROGRAM]));
    let begin = Instant::now();
    server.kill(Signal::KILL);
    server.until_end(begin);
    server.child.wait().unwrap();
}

#[test]
fn f2_the_end_of_the_shell_between_is_seen() {
    let mut server = Server::start(Command::new("sh").args(["-c", r#""$0" mcp; :"#, PROGRAM]));
    // A parent that ends at once is taken for one that passes us on.
    std::thread::sleep(Duration::from_millis(150));
    let begin = Instant::now();
    server.kill(Signal::KILL);
    server.until_end(begin);
    server.child.wait().unwrap();
}

#[test]
fn a_shell_that_starts_it_in_the_background_and_ends_does_not_end_it() {
    for script in [r#""$0" mcp <&3 &"#, r#"(setsid "$0" mcp <&3 &) &"#] {
        let script = format!("exec 3<&0; {script}");
        let mut server = Server::start(Command::new("sh").args(["-c", &script, PROGRAM]));
        server.child.wait().unwrap();
        for _ in 0..3 {
            assert_eq!(server.request("ping", json!({}))["result"], json!({}));
        }
        let begin = Instant::now();
        server.input = None;
        server.until_end(begin);
    }
}

#[test]
fn f13_initialize_and_the_tool_list_open_no_display_and_no_bus() {
    // Where a display and the buses would be, there is somebody who notices.
    let folder = tempfile::tempdir().unwrap();
    let bus = UnixListener::bind(folder.path().join("bus")).unwrap();
    bus.set_nonblocking(true).unwrap();
    let (display, number) = (0..100)
        .find_map(|number| Some((TcpListener::bind(("127.0.0.1", 6100 + number)).ok()?, 100 + number)))
        .expect("a free port");
    display.set_nonblocking(true).unwrap();
    let address = format!("unix:path={}", folder.path().join("bus").display());
    let mut command = Command::new("env");
    command.arg(format!("DISPLAY=127.0.0.1:{number}"));
    command.arg(format!("DBUS_SESSION_BUS_ADDRESS={address}")).arg(format!("AT_SPI_BUS_ADDRESS={address}"));
    let mut server = Server::start(command.args([PROGRAM, "mcp"]));
    assert!(server.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().len() > 5);
    let guide = server.request("prompts/get", json!({"name": "agent-guide"}));
    assert!(guide["result"]["messages"][0]["content"]["text"].is_string(), "{guide}");
    let guide = server.request("resources/read", json!({"uri": "deskhand://agent-guide"}));
    assert!(guide["result"]["contents"][0]["text"].is_string(), "{guide}");
    let called = |connected: bool, who: &str| assert!(!connected, "{who} was connected to");
    called(display.accept().is_ok(), "the display");
    called(bus.accept().is_ok(), "the bus");
    // And they would have noticed.
    server.send("tools/call", json!({"name": "list_windows", "arguments": {}}));
    display.set_nonblocking(false).unwrap();
    drop(display.accept().unwrap());
    server.kill(Signal::KILL);
    server.child.wait().unwrap();
}

#[test]
fn what_is_typed_reaches_no_log() {
    let mut server =
        Server::start(Command::new("env").args(["DESKHAND_LOG=trace", PROGRAM, "mcp", "--private"]));
    let canary = "canary-7391";
    for (tool, arguments) in [
        ("type_text", json!({"text": canary, "delivery": "foreground"})),
        ("list_windows", json!({canary: canary})),
        (canary, json!({})),
    ] {
        server.request("tools/call", json!({"name": tool, "arguments": arguments}));
    }
    writeln!(server.input.as_mut().unwrap(), "{{{canary}").unwrap();
    server.receive();
    server.kill(Signal::TERM);
    let output = server.child.wait_with_output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("ended by a signal"), "there is a log: {log}");
    assert!(!log.contains(canary), "{log}");
}
