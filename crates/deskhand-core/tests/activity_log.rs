//! The activity log: a line for every call, what is in it and what is never, its bounds, and what happens where it cannot be
//! written.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::activity_log::{ActivityLog, Bounds, Line};
use deskhand_core::consent::{ConsentSource, Grant, Refusal};
use deskhand_core::{Call, Code, Driver, Error, Host, Limits, SessionId};
use deskhand_testkit::fake::FakeDesktop;
use deskhand_testkit::transcript::Script;
use serde_json::{Map, json};

const EDITOR: &str = r#"
window 1 "Canary title" app=editor pid=100 800x600+100+50 focused
  push button "Save" @10,10 80x30 changes=2
  label "Canary label"
  text "Body" @10,140 400x200 text="" focused multi-line
  password text "Password" @10,400 100x30 text=""
"#;

/// A small window: encoding takes its time in a build for tests.
const SMALL: &str = r#"
window 1 "Small" app=editor pid=100 100x80+100+50 focused
  push button "Save" @10,10 80x30 changes=2
  label "Draft"
"#;

const CLICK: &str = r#"click {"window_id": 1, "query": {"name": "Save"}}"#;

/// A log in a folder of its own, and an engine that writes it.
struct Logged {
    script: Script,
    log: ActivityLog,
    folder: PathBuf,
    _parent: tempfile::TempDir,
}

fn open(folder: &Path, bounds: Bounds) -> Result<ActivityLog, Error> {
    ActivityLog::open(folder, "1.0", Some("digest"), bounds)
}

impl Logged {
    fn new(bounds: Bounds, host: Host) -> Self {
        Self::on(SMALL, bounds, host)
    }

    fn on(desktop: &str, bounds: Bounds, host: Host) -> Self {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("deep/log");
        let log = open(&folder, bounds).unwrap();
        let script = Script::on(desktop, Host { activity_log: Some(log.clone()), ..host });
        Self { script, log, folder, _parent: parent }
    }

    async fn call(&self, line: &str) -> deskhand_core::Outcome {
        self.script.call(line).await
    }

    /// All lines, when so many are written.
    async fn lines(&self, number: u64) -> Vec<Line> {
        self.settled(number).await;
        self.log.close().await;
        lines(&self.folder.join("activity.jsonl"))
    }

    fn frames(&self) -> Vec<String> {
        names(&self.folder.join("frames"))
    }

    /// Waits until so many lines are written or dropped, which takes the time of a disk.
    async fn settled(&self, lines: u64) {
        for _ in 0..1000 {
            let state = self.log.state();
            if state.lines + state.lines_dropped >= lines {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.log.state());
    }
}

fn lines(file: &Path) -> Vec<Line> {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "whole lines: {text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn size(folder: &Path) -> u64 {
    let of = |name: &String| match folder.join(name) {
        path if path.is_dir() => size(&path),
        path => fs::metadata(path).unwrap().len(),
    };
    names(folder).iter().map(of).sum()
}

/// Whether the text stands anywhere in the folder, in whatever case.
fn holds(folder: &Path, text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    names(folder).iter().any(|name| {
        let path = folder.join(name);
        name.to_ascii_lowercase().contains(&text)
            || match path.is_dir() {
                true => holds(&path, &text),
                false => {
                    let bytes = fs::read(path).unwrap().to_ascii_lowercase();
                    bytes.windows(text.len()).any(|part| part == text.as_bytes())
                }
            }
    })
}

#[tokio::test]
async fn every_call_is_a_line_that_says_what_came_of_it_and_nothing_that_was_typed() {
    let limits = Limits { calls: 1, ..Limits::default() };
    let logged = Logged::on(EDITOR, Bounds::default(), Host { limits, ..Host::default() });
    let script = &logged.script;
    script.engine.open_session(&SessionId::new("test"), false, Some("Ada")).unwrap();
    logged.call("list_windows").await.unwrap();
    logged.call(CLICK).await.unwrap();
    let text =
        r#"type_text {"window_id": 1, "query": {"name": "Body"}, "text": "Canary", "_secret": "Canary"}"#;
    logged.call(text).await.unwrap();
    let _ = logged
        .call(r#"type_text {"window_id": 1, "query": {"role": "password text"}, "text": "Canary"}"#)
        .await;
    // Errors say what was asked for.
    let failed = logged.call(r#"click {"window_id": 1, "query": {"name": "Canary 2"}}"#).await.unwrap_err();
    assert!(failed.message.contains("Canary"), "{}", failed.message);
    let unknown = r#"click {"window_id": 1, "x": "Canary", "Canary argument": "Canary", "count": 1}"#;
    assert_eq!(logged.call(unknown).await.unwrap_err().code, Code::InvalidArgument);
    assert_eq!(logged.call(r#"Canary {"window_id": 1}"#).await.unwrap_err().code, Code::UnknownTool);
    script.anonymous().call("get_screen_size").await.unwrap();
    // One is under way, and another one is one too many.
    let first = script.engine.invoke(script.parse("list_windows"));
    assert_eq!(logged.call("list_windows").await.unwrap_err().code, Code::LimitExceeded);
    first.await.unwrap();
    script.engine.end_session(SessionId::new("test")).await;
    assert_eq!(logged.call("list_windows").await.unwrap_err().code, Code::SessionEnded);
    // Given up before it began.
    let other = script.as_session("b");
    drop(other.engine.invoke(other.parse(CLICK)));

    let lines = logged.lines(12).await;
    let said = |line: &Line| {
        let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".to_owned());
        let outcome = line.code.as_ref().or(line.effect.as_ref()).cloned();
        (
            word(&line.session),
            word(&line.tool),
            line.arguments.join(" "),
            word(&outcome),
            line.frame.is_some(),
        )
    };
    let told: Vec<_> = lines.iter().map(said).collect();
    let told: Vec<_> = told.iter().map(|(a, b, c, d, e)| (&**a, &**b, &**c, &**d, *e)).collect();
    let mut expected = vec![
        ("Ada", "list_windows", "", "-", false),
        ("Ada", "click", "window_id query", "confirmed", true),
        ("Ada", "type_text", "window_id query text", "confirmed", true),
        ("Ada", "type_text", "window_id query text", "confirmed", true),
        ("Ada", "click", "window_id query", "element_not_found", true),
        ("Ada", "click", "window_id x count", "invalid_argument", false),
        ("Ada", "-", "", "unknown_tool", false),
        ("-", "get_screen_size", "", "-", false),
        ("Ada", "list_windows", "", "limit_exceeded", false),
        ("Ada", "list_windows", "", "-", false),
        ("test", "list_windows", "", "session_ended", false),
        ("b", "click", "window_id query", "cancelled", false),
    ];
    // Those that wait for a frame come when they have it.
    let order = |told: &mut Vec<(&str, &str, &str, &str, bool)>| told.sort_unstable();
    let mut sorted = told.clone();
    order(&mut sorted);
    order(&mut expected);
    assert_eq!(sorted, expected);
    assert_eq!(lines.iter().map(|line| line.line).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());

    let strange = lines.iter().find(|line| line.code.as_deref() == Some("invalid_argument")).unwrap();
    assert_eq!(strange.unknown_arguments, 1);
    let without_tool = lines.iter().find(|line| line.tool.is_none()).unwrap();
    assert_eq!((without_tool.arguments.len(), without_tool.unknown_arguments), (0, 1));
    let dropped = lines.iter().find(|line| line.session.as_deref() == Some("b")).unwrap();
    assert_eq!(dropped.delivery.as_deref(), Some("not_delivered"));
    for line in &lines {
        let session_id = line.session.as_deref().map(|title| if title == "Ada" { "test" } else { title });
        assert_eq!(line.session_id.as_deref(), session_id, "{line:?}");
        assert!(line.time.len() == "2026-12-01T03:18:14.123Z".len() && line.time.ends_with('Z'), "{line:?}");
        let frame = line.frame.as_deref();
        assert!(frame.is_none_or(|frame| frame == format!("frames/{:07}.jpg", line.line)), "{line:?}");
        assert!(frame.is_none_or(|frame| logged.folder.join(frame).is_file()), "{line:?}");
        assert_eq!((line.frame_missing.as_deref(), line.lines_dropped), (None, 0));
    }
    assert_eq!(logged.frames().len(), 4, "no frame without a line");
    assert!(!holds(&logged.folder, "Canary") && !holds(&logged.folder, "secret"));
    assert!(
        !holds(&logged.folder, "hunter") && holds(&logged.folder, "window_id"),
        "the search finds what is there"
    );
}

#[tokio::test]
async fn a_line_has_the_documented_fields() {
    let logged = Logged::new(Bounds::default(), Host::default());
    logged.call(CLICK).await.unwrap();
    logged.call("get_screen_size").await.unwrap();
    logged.settled(2).await;
    let text = fs::read_to_string(logged.folder.join("activity.jsonl")).unwrap();
    let fields = |line: &str| {
        let line: Map<_, _> = serde_json::from_str(line).unwrap();
        line.keys().cloned().collect::<Vec<_>>()
    };
    let told: Vec<_> = text.lines().map(fields).collect();
    let [acting, reading] = told.as_slice() else { panic!("{text}") };
    assert_eq!(
        acting,
        &["line", "time", "session", "session_id", "tool", "arguments", "effect", "duration_ms", "frame"]
    );
    assert_eq!(reading, &["line", "time", "session", "session_id", "tool", "arguments", "duration_ms"]);
    let document =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recording.md")).unwrap();
    let all = ["unknown_arguments", "code", "delivery", "frame_missing", "lines_dropped"];
    for field in acting.iter().map(String::as_str).chain(all) {
        assert!(document.contains(&format!("`{field}`")), "{field} is not documented");
    }

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |name: &str| fs::metadata(logged.folder.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(""), mode("frames")), (0o700, 0o700));
        assert_eq!((mode("activity.jsonl"), mode("activity-log.json")), (0o600, 0o600));
        assert_eq!(mode("frames/0000001.jpg"), 0o600);
    }
}

#[tokio::test]
async fn the_frame_is_of_what_was_acted_on() {
    let logged = Logged::on(EDITOR, Bounds::default(), Host::default());
    let size = |line: &Line| {
        // SOF0: height and width stand behind the marker, the length and the precision.
        let jpeg = fs::read(logged.folder.join(line.frame.as_ref().unwrap())).unwrap();
        let at = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
        let number = |at: usize| u16::from_be_bytes([jpeg[at], jpeg[at + 1]]);
        (number(at + 7), number(at + 5))
    };
    logged.call(CLICK).await.unwrap();
    logged.call(r#"press_key {"key": "a"}"#).await.unwrap();
    logged.call(r#"move_cursor {"x": 5, "y": 5}"#).await.unwrap();
    let lines = logged.lines(3).await;
    let of = |tool: &str| size(lines.iter().find(|line| line.tool.as_deref() == Some(tool)).unwrap());
    assert_eq!(of("click"), (800, 600), "the window");
    assert_eq!(of("press_key"), (800, 600), "the one with the focus");
    let (width, height) = of("move_cursor");
    assert_eq!(width.max(height), 1280, "the display, smaller: {width}x{height}");
}

/// A person who changes their mind after having been asked so often.
#[derive(Debug)]
struct Person {
    left: AtomicUsize,
    desktop: OnceLock<FakeDesktop>,
    /// How many pictures had been taken then.
    captures: Mutex<Option<usize>>,
}

#[async_trait]
impl ConsentSource for Person {
    async fn grant(&self) -> Grant {
        let asked = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if asked.is_err() {
            let captures = self.desktop.get().map(FakeDesktop::captures);
            let mut first = self.captures.lock().unwrap();
            *first = first.or(captures);
        }
        Grant { joined: true, screen: asked.is_ok(), control: true }
    }

    async fn refused(&self, _: Refusal) {}
}

#[tokio::test]
async fn whenever_the_screen_may_no_longer_be_seen_there_is_no_frame_of_it() {
    let mut seen = Vec::new();
    for times in 0..12 {
        let person = Arc::new(Person {
            left: AtomicUsize::new(times),
            desktop: OnceLock::new(),
            captures: Mutex::default(),
        });
        let host = Host { consent: Arc::clone(&person) as _, ..Host::default() };
        let logged = Logged::new(Bounds::default(), host);
        person.desktop.set(logged.script.desktop.clone()).unwrap();
        let outcome = logged.call(CLICK).await;
        let [line] = &logged.lines(1).await[..] else { panic!("one line") };
        let after = *person.captures.lock().unwrap();
        assert!(
            after.is_none_or(|captures| captures == logged.script.desktop.captures()),
            "{times}: {line:?}"
        );
        assert_eq!(logged.frames().len(), usize::from(line.frame.is_some()));
        assert_eq!(outcome.as_ref().err().map(|error| error.code.name()), line.code.as_deref());
        seen.push((outcome.is_ok(), line.frame.is_some(), line.frame_missing.clone()));
    }
    let missing = || Some("consent_required".to_owned());
    assert_eq!(seen.first(), Some(&(false, false, None)), "refused: {seen:?}");
    assert!(seen.contains(&(true, false, missing())), "done, and not looked at: {seen:?}");
    assert_eq!(seen.last(), Some(&(true, true, None)), "{seen:?}");
}

#[tokio::test]
async fn the_folder_stays_within_its_bounds_and_keeps_the_newest() {
    let bounds = Bounds { file_bytes: 1000, files: 3, frames: 4, frames_bytes: 100_000, ..Bounds::default() };
    let logged = Logged::new(bounds, Host::default());
    for calls in 1..=30 {
        logged.call(CLICK).await.unwrap();
        logged.settled(calls).await;
        let of_lines = ["activity.jsonl", "activity.1.jsonl", "activity.2.jsonl"]
            .map(|name| fs::metadata(logged.folder.join(name)).map_or(0, |found| found.len()));
        assert!(of_lines.iter().all(|bytes| *bytes <= bounds.file_bytes), "{of_lines:?}");
        let frames = logged.folder.join("frames");
        assert!(names(&frames).len() <= bounds.frames && size(&frames) <= bounds.frames_bytes);
    }
    logged.log.close().await;
    assert_eq!(
        names(&logged.folder),
        ["activity-log.json", "activity.1.jsonl", "activity.2.jsonl", "activity.jsonl", "frames"]
    );
    let numbers =
        |name: &str| -> Vec<u64> { lines(&logged.folder.join(name)).iter().map(|line| line.line).collect() };
    let all = [numbers("activity.2.jsonl"), numbers("activity.1.jsonl"), numbers("activity.jsonl")].concat();
    assert_eq!(all, (31 - all.len() as u64..=30).collect::<Vec<_>>(), "the newest, in order");
    assert!(all.len() >= 6);
    let newest: Vec<_> = (27..=30).map(|number| format!("{number:07}.jpg")).collect();
    assert_eq!(logged.frames(), newest);
}

#[tokio::test]
async fn a_log_goes_on_where_a_killed_process_left_it() {
    let logged = Logged::new(Bounds::default(), Host::default());
    logged.call(CLICK).await.unwrap();
    logged.call("list_windows").await.unwrap();
    logged.settled(2).await;
    let again = open(&logged.folder, Bounds::default()).unwrap_err();
    assert!(
        again.code == Code::FileError && again.message.contains("something writes into it already"),
        "{again}"
    );
    let Logged { script, log, folder, _parent } = logged;
    log.close().await;
    drop((script, log));
    // What the end of a process leaves of a line and of a frame.
    let file = folder.join("activity.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{whole}{{\"line\":3,\"time\":\"2026")).unwrap();
    fs::write(folder.join("frames/.0000003.jpg.part"), "half").unwrap();
    fs::write(folder.join("frames/0000007.jpg"), "of a line that was not written").unwrap();
    let log = open(&folder, Bounds { frames: 2, ..Bounds::default() }).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), whole, "whole lines, before the first call");
    let script = Script::on(SMALL, Host { activity_log: Some(log.clone()), ..Host::default() });
    script.call(CLICK).await.unwrap();
    log.close().await;
    let numbers: Vec<_> = lines(&file).iter().map(|line| line.line).collect();
    assert_eq!(numbers, [1, 2, 8]);
    assert_eq!(
        names(&folder.join("frames")),
        ["0000007.jpg", "0000008.jpg"],
        "bounds hold for what was there"
    );
}

#[test]
fn folders_that_must_not_be_used_are_refused_and_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    fs::write(at("file"), "mine").unwrap();
    for (name, file, text) in [
        ("full", "notes", "mine"),
        (
            "other",
            "activity-log.json",
            r#"{"format": "shopping", "version": 1, "driver": {"name": "", "version": ""}}"#,
        ),
        ("broken", "activity-log.json", "{"),
        (
            "newer",
            "activity-log.json",
            r#"{"format": "deskhand-activity-log", "version": 2, "driver": {"name": "", "version": ""}}"#,
        ),
    ] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join(file), text).unwrap();
    }
    fs::create_dir(at("empty")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(at("empty"), at("link")).unwrap();
    let refused = [
        (PathBuf::from("relative"), "absolute"),
        (at("file"), "no folder"),
        (at("file").join("below"), "Not a directory"),
        (at("full"), "not empty"),
        (at("other"), "not that of an activity log"),
        (at("broken"), "activity-log.json: EOF"),
        (at("newer"), "version 2"),
        #[cfg(unix)]
        (at("link"), "link"),
    ];
    for (path, why) in refused {
        let error = open(&path, Bounds::default()).unwrap_err();
        assert_eq!(error.code, Code::FileError, "{error}");
        assert!(error.message.contains(why) && error.message.contains(&*path.to_string_lossy()), "{error}");
    }
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "mine");
    assert_eq!(
        (names(&at("full")), names(&at("other"))),
        (vec!["notes".to_owned()], vec!["activity-log.json".to_owned()])
    );
    assert!(names(&at("empty")).is_empty());
    let _log = open(&at("empty"), Bounds::default()).unwrap();
}

/// Puts something into the place of the newest lines that cannot be appended to.
fn spoil(folder: &Path) {
    let file = folder.join("activity.jsonl");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
}

#[tokio::test]
async fn where_it_cannot_be_written_calls_go_on_that_is_told_and_it_goes_on_by_itself() {
    let logged = Logged::new(Bounds::default(), Host::default());
    let health = async || {
        let report = logged.call("health_report").await.unwrap().structured;
        let checks = report["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "activity_log").unwrap()
    };
    assert_eq!(health().await["status"], "ok");
    logged.settled(1).await;
    spoil(&logged.folder);
    logged.call(CLICK).await.unwrap();
    logged.call("list_windows").await.unwrap();
    logged.settled(3).await;
    let state = logged.log.state();
    assert!((state.lines, state.lines_dropped) == (1, 2) && state.stopped.is_some(), "{state:?}");
    assert!(logged.frames().is_empty(), "no frame without a line");
    let check = health().await;
    assert_eq!(check["status"], "degraded");
    assert!(check["detail"].as_str().unwrap().contains("2 lines are missing"), "{check}");
    assert!(!check.to_string().contains(&*logged.folder.to_string_lossy()), "not for agents: {check}");
    logged.settled(4).await;
    fs::remove_dir(logged.folder.join("activity.jsonl")).unwrap();
    logged.call(CLICK).await.unwrap();
    logged.call("list_windows").await.unwrap();
    let lines = logged.lines(6).await;
    let told: Vec<_> = lines.iter().map(|line| (line.line, line.lines_dropped)).collect();
    assert_eq!(told, [(2, 3), (3, 0)], "numbers have no gaps; what is missing is said");
    let state = logged.log.state();
    assert!((state.lines, state.lines_dropped, state.stopped) == (3, 3, None));
    assert_eq!(logged.frames(), ["0000002.jpg"]);
}

#[tokio::test]
async fn frames_that_cannot_be_written_cost_no_line() {
    let logged = Logged::new(Bounds::default(), Host::default());
    fs::remove_dir(logged.folder.join("frames")).unwrap();
    logged.call(CLICK).await.unwrap();
    logged.settled(1).await;
    assert!(logged.log.state().frames_stopped.is_some());
    let [line] = &logged.lines(1).await[..] else { panic!("one line") };
    assert_eq!(line.frame_missing.as_deref(), Some("write_failed"));
}

/// A disk that hangs, as a pipe does that nobody reads.
#[cfg(unix)]
#[tokio::test]
async fn a_disk_that_hangs_stalls_no_call() {
    let bounds = Bounds { waiting: 5, waiting_bytes: 1, ..Bounds::default() };
    let logged = Logged::new(bounds, Host::default());
    let file = logged.folder.join("activity.jsonl");
    fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    // The first one hangs, and of the next five each waits without its picture, for which there is no room.
    for _ in 0..10 {
        tokio::time::timeout(Duration::from_secs(10), logged.call(CLICK)).await.unwrap().unwrap();
    }
    // Their frames are taken beside them.
    while logged.log.state().lines_dropped < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let pipe = fs::OpenOptions::new().read(true).write(true).open(&file).unwrap();
    logged.settled(10).await;
    let state = logged.log.state();
    assert!(state.lines >= 5 && state.lines + state.lines_dropped == 10, "{state:?}");
    let text = std::io::BufReader::new(pipe).lines().take(usize::try_from(state.lines).unwrap());
    let lines: Vec<Line> = text.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(lines[1..].iter().all(|line| line.frame_missing.as_deref() == Some("slow_disk")), "{lines:?}");
    assert!(lines.iter().any(|line| line.lines_dropped >= 3), "{lines:?}");
}

#[tokio::test]
async fn a_call_that_is_part_of_another_is_of_its_session() {
    let parent = tempfile::tempdir().unwrap();
    let logged = Logged::new(Bounds::default(), Host::default());
    let dir = parent.path().join("r");
    logged.call(&format!("start_recording {}", json!({"output_dir": dir}))).await.unwrap();
    logged.call(CLICK).await.unwrap();
    logged.call("stop_recording").await.unwrap();
    logged.call(&format!("replay_trajectory {}", json!({"dir": dir}))).await.unwrap();
    let lines = logged.lines(5).await;
    let clicks: Vec<_> = lines.iter().filter(|line| line.tool.as_deref() == Some("click")).collect();
    assert_eq!(clicks.len(), 2, "{lines:?}");
    assert!(clicks.iter().all(|line| line.session_id.as_deref() == Some("test")));
}

#[tokio::test]
async fn an_engine_without_a_log_says_nothing_of_one() {
    let script = Script::new(SMALL);
    let report = script.engine.invoke(Call::anonymous("health_report", Map::new())).await.unwrap();
    assert!(!report.structured.to_string().contains("activity_log"));
    assert_eq!(script.engine.activity_log(), None);
}
