//! The private desktop with its real parts: Xvfb, openbox, dbus-daemon, at-spi2-core.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use deskhand_core::desktop::PortError;
use deskhand_linux::apps::{Launcher, LocalLauncher, ProgramStart};
use deskhand_linux::environment::{EnvironmentSource, SessionEnvironment};
use deskhand_linux::private::{PrivateOptions, PrivateSource};
use rustix::process::{Pid, Signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_deskhand");

/// Everything must be gone so soon after the owner.
const GONE: Duration = Duration::from_secs(3);

/// Nothing here takes longer on a machine that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition is looked at that announces itself to nobody.
const LOOK: Duration = Duration::from_millis(10);

/// Marks the processes of one test through an environment variable that all of them inherit.
struct Mark(String);

impl Mark {
    const NAME: &str = "DESKHAND_TEST_MARK";

    fn new() -> Self {
        let nanoseconds = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        Self(format!("{}-{nanoseconds}-{:?}", std::process::id(), std::thread::current().id()))
    }

    fn processes(&self) -> Vec<(u32, String)> {
        let wanted = format!("{}={}", Self::NAME, self.0);
        processes()
            .filter(|pid| {
                std::fs::read(format!("/proc/{pid}/environ"))
                    .is_ok_and(|all| all.split(|byte| *byte == 0).any(|each| each == wanted.as_bytes()))
            })
            .map(|pid| (pid, name(pid)))
            .collect()
    }

    fn named(&self, wanted: &str) -> Option<u32> {
        self.processes().into_iter().find(|(_, name)| name == wanted).map(|(pid, _)| pid)
    }

    #[track_caller]
    fn assert_gone(&self, limit: Duration) {
        until(limit, || self.processes().is_empty(), || format!("left over: {:?}", self.processes()));
    }
}

/// Whatever a failed assertion leaves must not outlive its test.
impl Drop for Mark {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            kill(pid, Signal::KILL);
        }
    }
}

fn processes() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn parent(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    line.trim().parse().unwrap()
}

fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|status| !status.lines().any(|line| line.starts_with("State:") && line.contains('Z')))
}

fn kill(pid: u32, signal: Signal) {
    let _ = rustix::process::kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

#[track_caller]
fn until(limit: Duration, condition: impl Fn() -> bool, message: impl Fn() -> String) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {}", message());
        std::thread::sleep(LOOK);
    }
}

fn desktop_run(mark: &Mark, options: &[&str], command: &[&str]) -> Command {
    let mut run = Command::new(PROGRAM);
    run.args(["desktop", "run"]).args(options).arg("--").args(command);
    run.env(Mark::NAME, &mark.0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    run
}

fn output(run: &mut Command) -> (Output, String, String) {
    let output = run.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

/// A running `desktop run` whose command has printed the desktop's folder and display on its first line.
struct Running {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    folder: PathBuf,
    socket: PathBuf,
}

impl Running {
    fn start(mark: &Mark, script: &str) -> Self {
        let script = format!("echo \"$XDG_RUNTIME_DIR ${{DISPLAY#:}}\"; {script}");
        let mut child = desktop_run(mark, &[], &["sh", "-c", &script]).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut error = String::new();
            child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
            panic!("no desktop: {error}");
        }
        let (runtime, display) = line.trim().split_once(' ').unwrap();
        let folder = Path::new(runtime).parent().unwrap().to_owned();
        let socket = format!("/tmp/.X11-unix/X{display}").into();
        let running = Self { child, output, folder, socket };
        assert!(running.folder.is_dir());
        assert!(running.socket.exists());
        running
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn wait(&mut self) -> (ExitStatus, String) {
        let mut error = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        (self.child.wait().unwrap(), error)
    }

    #[track_caller]
    fn assert_gone(&self) {
        until(GONE, || !self.folder.exists(), || format!("{} is left", self.folder.display()));
        until(GONE, || !self.socket.exists(), || format!("{} is left", self.socket.display()));
        let lock = self.socket.to_string_lossy().replace("/tmp/.X11-unix/X", "/tmp/.X") + "-lock";
        assert!(!Path::new(&lock).exists(), "{lock} is left");
    }
}

/// A program that leaves its parent, its session and `SIGTERM` behind, then two more that only leave their parent.
const STUBBORN: &str = "(trap '' TERM; setsid sleep 1000 >/dev/null 2>&1 &) ; (sleep 1001 >/dev/null 2>&1 &); \
                        (setsid sh -c 'trap \"\" TERM HUP; sleep 1002; sleep 1003' >/dev/null 2>&1 &)";

#[test]
fn a_command_has_our_streams_and_its_exit_code_is_ours() {
    let mark = Mark::new();
    let mut run = desktop_run(&mark, &[], &["sh", "-c", "cat; echo problem >&2; exit 7"]);
    let mut child = run.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all("Grüße\n".as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Grüße\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "problem\n");
    assert_eq!(output.status.code(), Some(7));
    mark.assert_gone(Duration::ZERO);
}

#[test]
fn a_command_that_a_signal_ends_answers_128_plus_the_signal() {
    let mark = Mark::new();
    let (output, ..) = output(&mut desktop_run(&mark, &[], &["sh", "-c", "kill -TERM $$"]));
    assert_eq!(output.status.code(), Some(128 + 15));
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let mark = Mark::new();
    let (output, _, error) = output(&mut desktop_run(&mark, &[], &["no-such-program"]));
    assert_eq!(output.status.code(), Some(127));
    assert!(error.contains("no-such-program was not started: no such program"), "{error}");
    mark.assert_gone(Duration::ZERO);
}

#[test]
fn nothing_leads_to_the_users_own_desktop() {
    let mark = Mark::new();
    let mut run = desktop_run(
        &mark,
        &["--size", "801x602"],
        &["sh", "-c", "env; stat -c 'mode %a' \"$XDG_RUNTIME_DIR\"; xdpyinfo"],
    );
    run.env("WAYLAND_DISPLAY", "wayland-7").env("DISPLAY", ":77").env("XAUTHORITY", "/nowhere");
    run.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere").env("XDG_CONFIG_HOME", "/elsewhere");
    let (output, text, error) = output(&mut run);
    assert!(output.status.success(), "{error}");
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    assert_eq!(value("WAYLAND_DISPLAY"), None);
    let runtime = value("XDG_RUNTIME_DIR").unwrap();
    let folder = runtime.strip_suffix("/run").unwrap();
    for name in ["HOME", "XAUTHORITY", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TMPDIR"] {
        assert!(value(name).unwrap().starts_with(folder), "{name} is {:?}", value(name));
    }
    assert_eq!(value("DBUS_SESSION_BUS_ADDRESS").unwrap(), format!("unix:path={runtime}/bus"));
    assert!(text.contains("mode 700"));
    assert!(text.contains("801x602 pixels"), "{text}");
}

#[test]
fn the_users_home_is_kept_if_asked_for() {
    let mark = Mark::new();
    let home = tempfile::tempdir().unwrap();
    let mut run = desktop_run(&mark, &["--keep-home"], &["sh", "-c", "echo \"$HOME\""]);
    let (_, text, error) = output(run.env("HOME", home.path()));
    assert_eq!(text.trim(), home.path().to_str().unwrap(), "{error}");
    // Switching accessibility on is a setting; it must not be written into the user's.
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn the_parts_work() {
    let mark = Mark::new();
    let script = "xprop -root _NET_SUPPORTING_WM_CHECK; \
        dbus-send --session --print-reply --dest=org.a11y.Bus /org/a11y/bus \
            org.freedesktop.DBus.Properties.Get string:org.a11y.Status string:IsEnabled; \
        dbus-send --session --print-reply --dest=org.a11y.Bus /org/a11y/bus \
            org.freedesktop.DBus.Properties.Get string:org.a11y.Status string:ScreenReaderEnabled";
    let (_, text, error) = output(&mut desktop_run(&mark, &[], &["sh", "-c", script]));
    assert!(text.contains("_NET_SUPPORTING_WM_CHECK(WINDOW)"), "{text} {error}");
    assert!(text.contains("boolean true"), "accessibility is off: {text} {error}");
    // A screen reader would begin to speak.
    assert!(text.contains("boolean false"), "the screen reader is on: {text} {error}");
    assert!(mark.processes().is_empty());
}

#[test]
fn helpers_are_the_build_that_runs_whatever_has_become_of_its_file() {
    let mark = Mark::new();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = folder.path().join("deskhand");
    std::fs::hard_link(PROGRAM, &program).unwrap();
    let mut server = Command::new(&program)
        .args(["mcp", "--private"])
        .env(Mark::NAME, &mark.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut ask = |method: &str, params: serde_json::Value| -> serde_json::Value {
        let request = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(input, "{request}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let client = serde_json::json!({"name": "t", "version": "1"});
    ask(
        "initialize",
        serde_json::json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
    );
    // An update puts another program there.
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "no program").unwrap();
    // The first one starts the supervisor, the second one the guard.
    let windows = ask("tools/call", serde_json::json!({"name": "list_windows", "arguments": {}}));
    assert_ne!(windows["result"]["isError"], true, "{windows}");
    let pressed = ask("tools/call", serde_json::json!({"name": "press_key", "arguments": {"key": "F9"}}));
    let is_guard = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"deskhand\0guard\0")
            && parent(*pid) == server.id()
    };
    assert!(processes().any(|pid| is_guard(&pid)), "{pressed}");
    assert!(mark.processes().iter().any(|(_, name)| name == "deskhand"), "{:?}", mark.processes());
    drop(input);
    server.wait().unwrap();
    mark.assert_gone(GONE);
}

#[test]
fn nothing_survives_an_owner_that_is_killed() {
    let mark = Mark::new();
    let mut run = Running::start(&mark, &format!("{STUBBORN}; echo ready; sleep 1004"));
    assert_eq!(run.line(), "ready");
    until(
        PATIENCE,
        || mark.processes().iter().filter(|(_, name)| name == "sleep").count() == 4,
        || format!("{:?}", mark.processes()),
    );
    kill(run.child.id(), Signal::KILL);
    run.child.wait().unwrap();
    mark.assert_gone(GONE);
    run.assert_gone();
}

#[test]
fn nothing_survives_an_owner_that_is_killed_while_the_desktop_starts() {
    for part in ["Xvfb", "openbox", "dbus-daemon"] {
        let mark = Mark::new();
        let mut child = desktop_run(&mark, &[], &["sleep", "1000"]).spawn().unwrap();
        until(PATIENCE, || mark.named(part).is_some(), || format!("{part} was not started"));
        kill(child.id(), Signal::KILL);
        child.wait().unwrap();
        mark.assert_gone(GONE);
    }
}

#[test]
fn nothing_survives_a_supervisor_that_is_killed() {
    let mark = Mark::new();
    let mut run = Running::start(&mark, &format!("{STUBBORN}; echo ready; sleep 1004"));
    assert_eq!(run.line(), "ready");
    let supervisor = parent(mark.named("Xvfb").unwrap());
    assert_eq!(parent(supervisor), run.child.id());
    kill(supervisor, Signal::KILL);
    let (status, error) = run.wait();
    assert_eq!(status.code(), Some(1), "{error}");
    mark.assert_gone(GONE);
    run.assert_gone();
}

#[test]
fn a_display_server_that_crashes_takes_the_desktop_along_and_is_named() {
    let mark = Mark::new();
    let mut run = Running::start(&mark, &format!("{STUBBORN}; echo ready; sleep 1004"));
    assert_eq!(run.line(), "ready");
    kill(mark.named("Xvfb").unwrap(), Signal::KILL);
    let (status, error) = run.wait();
    assert_eq!(status.code(), Some(1));
    assert!(error.contains("the display server (Xvfb) has ended"), "{error}");
    mark.assert_gone(Duration::ZERO);
    run.assert_gone();
}

#[test]
fn a_supervisor_ends_everything_when_it_is_asked_to() {
    let mark = Mark::new();
    let mut run = Running::start(&mark, "sleep 1004");
    kill(parent(mark.named("Xvfb").unwrap()), Signal::TERM);
    let (status, error) = run.wait();
    assert_eq!(status.code(), Some(1));
    assert!(error.contains("SIGTERM"), "{error}");
    mark.assert_gone(Duration::ZERO);
    run.assert_gone();
}

#[test]
fn signals_reach_the_command() {
    let mark = Mark::new();
    let script =
        "trap 'exit 9' TERM; trap 'echo usr1' USR1; echo ready; while :; do sleep 1000 & wait $!; done";
    let mut run = Running::start(&mark, script);
    assert_eq!(run.line(), "ready");
    kill(run.child.id(), Signal::USR1);
    assert_eq!(run.line(), "usr1");
    kill(run.child.id(), Signal::TERM);
    let (status, error) = run.wait();
    assert_eq!(status.code(), Some(9), "{error}");
    mark.assert_gone(Duration::ZERO);
    run.assert_gone();
}

#[test]
fn another_user_cannot_open_the_display_nor_read_the_cookie() {
    if !rustix::process::getuid().is_root() {
        eprintln!("not root, so there is no other user to be");
        return;
    }
    let mark = Mark::new();
    let other = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let script = format!(
        "xdpyinfo >/dev/null && echo own-ok; \
         {other} true && echo other-ok; \
         {other} xdpyinfo >/dev/null || echo refused; \
         XAUTHORITY=/dev/null {other} xdpyinfo >/dev/null || echo refused; \
         {other} cat \"$XAUTHORITY\" || echo unreadable; \
         {other} dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetId || echo no-bus"
    );
    let (_, text, error) = output(&mut desktop_run(&mark, &[], &["sh", "-c", &script]));
    assert_eq!(text, "own-ok\nother-ok\nrefused\nrefused\nunreadable\nno-bus\n", "{error}");
    assert!(error.contains("uthorization"), "{error}");
}

#[test]
fn ten_desktops_at_the_same_time_have_ten_displays() {
    let mark = Mark::new();
    let start = |_| {
        desktop_run(&mark, &[], &["sh", "-c", "echo $DISPLAY; xdpyinfo >/dev/null && cat"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut children: Vec<Child> = (0..10).map(start).collect();
    let mut displays = Vec::new();
    for child in &mut children {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        displays.push(line);
    }
    for mut child in children {
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    displays.sort();
    displays.dedup();
    assert_eq!(displays.len(), 10, "{displays:?}");
    mark.assert_gone(Duration::ZERO);
}

#[test]
fn missing_programs_are_named_with_their_packages() {
    let mark = Mark::new();
    let (output, _, error) = output(desktop_run(&mark, &[], &["true"]).env("PATH", "/nowhere"));
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("apt-get install xvfb openbox dbus-daemon"), "{error}");
    assert!(error.contains("Xvfb (the display server)"), "{error}");
    mark.assert_gone(Duration::ZERO);
}

#[test]
fn the_command_inherits_three_descriptors_only() {
    let mark = Mark::new();
    let file = tempfile::tempfile().unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap(); // leaks into every child of this test
    let (_, text, error) = output(&mut desktop_run(&mark, &[], &["sh", "-c", "ls /proc/$$/fd"]));
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2"], "{error}");
}

fn source() -> PrivateSource {
    PrivateSource::new(PrivateOptions::default(), PROGRAM.into())
}

fn program(environment: &SessionEnvironment, path: &str, args: &[&str], mark: &Mark) -> ProgramStart {
    let mut variables = environment.variables.clone();
    variables.insert(Mark::NAME.into(), mark.0.clone().into());
    ProgramStart { path: path.into(), args: args.iter().map(Into::into).collect(), variables, folder: None }
}

fn runtime() -> tokio::runtime::Runtime {
    // Threads of the blocking pool end at once when idle, which takes ten seconds by default.
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).thread_keep_alive(Duration::from_millis(1)).enable_all().build().unwrap()
}

#[test]
fn a_source_starts_one_desktop_for_all_who_ask() {
    let mark = Mark::new();
    runtime().block_on(async {
        let source = Arc::new(source());
        let asking: Vec<_> = (0..8)
            .map(|_| {
                let source = Arc::clone(&source);
                tokio::spawn(async move { source.get().await })
            })
            .collect();
        let mut answers = Vec::new();
        for each in asking {
            answers.push(each.await.unwrap().unwrap());
        }
        assert!(answers.iter().all(|answer| Arc::ptr_eq(answer, &answers[0])));
        let environment = &answers[0];
        assert!(environment.private);
        assert!(environment.session_bus.as_deref().unwrap().starts_with("unix:path="));

        let launcher = source.launcher().unwrap();
        let sleeper = launcher.start(program(environment, "/bin/sleep", &["1000"], &mark)).await.unwrap();
        assert!(is_running(sleeper));
        assert!(launcher.components().await.contains(&parent(sleeper)), "the supervisor is its parent");
        assert_eq!(launcher.exited(sleeper).await, None);
        let brief = launcher.start(program(environment, "/bin/sh", &["-c", "exit 5"], &mark)).await.unwrap();
        let started = Instant::now();
        while launcher.exited(brief).await != Some(5) {
            assert!(started.elapsed() < PATIENCE);
            tokio::time::sleep(LOOK).await;
        }
        let missing = launcher.start(program(environment, "/nowhere", &[], &mark)).await;
        assert!(matches!(missing, Err(PortError::LaunchFailed(_))), "{missing:?}");

        let folder = environment.xauthority.as_deref().unwrap().parent().unwrap().to_owned();
        source.shutdown().await;
        assert!(!folder.exists());
        assert!(!is_running(sleeper));
        assert!(matches!(source.get().await, Err(PortError::DesktopLost)));
    });
}

#[test]
fn a_source_that_is_dropped_ends_its_desktop() {
    runtime().block_on(async {
        let source = source();
        let environment = source.get().await.unwrap();
        let launcher = source.launcher();
        let folder = environment.xauthority.as_deref().unwrap().parent().unwrap().to_owned();
        assert!(folder.exists());
        drop(source);
        until(GONE, || !folder.exists(), || "the desktop is still there".to_owned());
        drop(launcher);
    });
}

#[test]
fn a_source_says_that_its_desktop_was_lost() {
    let mark = Mark::new();
    runtime().block_on(async {
        let source = source();
        let environment = source.get().await.unwrap();
        let launcher = source.launcher().unwrap();
        let sleeper = launcher.start(program(&environment, "/bin/sleep", &["1000"], &mark)).await.unwrap();
        let components = launcher.components().await;
        let server = *components.iter().find(|pid| name(**pid) == "Xvfb").unwrap();
        kill(server, Signal::KILL);
        let started = Instant::now();
        while source.get().await.is_ok() {
            assert!(started.elapsed() < GONE);
            tokio::time::sleep(LOOK).await;
        }
        assert!(matches!(source.get().await, Err(PortError::DesktopLost)));
        assert!(!is_running(sleeper));
        mark.assert_gone(Duration::ZERO);
        source.shutdown().await;
    });
}

#[test]
fn programs_outlive_the_thread_that_started_them() {
    let mark = Mark::new();
    let runtime = runtime();
    let source = Arc::new(source());
    let local = Arc::new(LocalLauncher::default());
    let handle = runtime.handle().clone();
    let (theirs, ours) = (Arc::clone(&source), Arc::clone(&local));
    let start = {
        let mark = Mark(mark.0.clone());
        move || {
            let started = handle.block_on(async {
                let environment = theirs.get().await.unwrap();
                let sleep = |mark: &Mark| program(&environment, "/bin/sleep", &["1000"], mark);
                let private = theirs.launcher().unwrap().start(sleep(&mark)).await.unwrap();
                (private, ours.start(sleep(&mark)).await.unwrap())
            });
            std::mem::forget(mark); // its processes are this test's, not this thread's
            (started, rustix::thread::gettid().as_raw_nonzero().get())
        }
    };
    let ((private, ours), thread) = runtime.block_on(runtime.spawn_blocking(start)).unwrap();
    let task = PathBuf::from(format!("/proc/self/task/{thread}"));
    until(PATIENCE, || !task.exists(), || "the thread has not ended".to_owned());
    // A death signal would have been sent while the thread ended, before its entry went away.
    assert!(is_running(private));
    assert!(is_running(ours));
    runtime.block_on(async {
        assert!(source.get().await.is_ok());
        kill(ours, Signal::TERM);
        let started = Instant::now();
        while local.exited(ours).await != Some(128 + 15) {
            assert!(started.elapsed() < PATIENCE);
            tokio::time::sleep(LOOK).await;
        }
        source.shutdown().await;
    });
    assert!(!is_running(private));
}
