//! Recordings: whose turns they hold, what is in them and what is never, and what ends them.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::consent::{Background, ConsentSource, Grant, Refusal};
use deskhand_core::recording::report;
use deskhand_core::recording::trajectory::{Action, Reason, Shot, Trajectory};
use deskhand_core::{Code, Driver, Host, SessionId};
use deskhand_testkit::transcript::Script;
use serde_json::{Value, json};

const EDITOR: &str = r#"
window 1 "Editor" app=editor pid=100 800x600+100+50 focused
  push button "Save" @10,10 80x30 changes=2
  label "Draft"
  text "Body" @10,140 400x200 text="" focused multi-line
  password text "Password" @10,400 100x30 text=""
"#;

const CLICK: &str = r#"click {"window_id": 1, "query": {"name": "Save"}, "_secret": "never"}"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

async fn start(script: &Script, folder: &Path, more: &Value) -> deskhand_core::Outcome {
    let mut arguments = more.clone();
    arguments["output_dir"] = json!(folder);
    script.call(&format!("start_recording {arguments}")).await
}

async fn stop(script: &Script) -> Value {
    script.call("stop_recording").await.unwrap().structured["recordings"].clone()
}

async fn states(script: &Script) -> Value {
    script.call("get_recording_state").await.unwrap().structured["recordings"].clone()
}

/// Waits until the newest recording has ended. What ends it takes real time: files are written.
async fn ended(script: &Script) -> Value {
    for _ in 0..1000 {
        let states = states(script).await;
        let newest = states.as_array().unwrap().last().unwrap().clone();
        if newest["running"] == false {
            return newest;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the recording does not end");
}

fn turns(folder: &Path) -> Vec<Action> {
    Trajectory::turns(folder).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Whether the bytes stand anywhere in the folder.
fn holds(folder: &Path, text: &str) -> bool {
    names(folder).iter().any(|name| {
        let path = folder.join(name);
        if path.is_dir() {
            return holds(&path, text);
        }
        fs::read(path).unwrap().windows(text.len()).any(|part| part == text.as_bytes())
    })
}

#[tokio::test]
async fn a_turn_is_an_acting_call_with_what_was_to_be_seen() {
    let (script, folder) = (Script::new(EDITOR), Folder::new());
    let dir = folder.at("deep/er");
    start(&script, &dir, &json!({})).await.unwrap();
    script.call("list_windows").await.unwrap();
    script.call(CLICK).await.unwrap();
    script.call(r#"click {"window_id": 1, "query": {"name": "Nothing"}}"#).await.unwrap_err();
    script.call(r#"click {"window_id": 1, "x": 20, "y": 150, "delivery": "foreground"}"#).await.unwrap();
    let stopped = stop(&script).await;
    assert_eq!((&stopped[0]["turns"], &stopped[0]["reason"]), (&json!(3), &json!("stopped")));
    assert_eq!(stop(&script).await, json!([]), "stopping twice does no harm");

    let turns = turns(&dir);
    let [by_element, failed, by_point] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!(by_element.tool, "click");
    assert_eq!(by_element.effect.as_deref(), Some("confirmed"));
    assert_eq!(json!(by_element.arguments), json!({"window_id": 1, "query": {"name": "Save"}}));
    assert_eq!(by_element.elements[0].name, "Save");
    let path: Vec<_> = by_element.elements[0].path.iter().map(|step| step.role.as_str()).collect();
    assert_eq!(path, ["frame", "push button"]);
    assert_eq!(by_element.window.as_ref().unwrap().title, "Editor");
    assert!(matches!(&by_element.before, Shot::Taken { file, .. } if file == "before.png"), "{by_element:?}");
    assert!(matches!(&by_element.after, Shot::Taken { file, .. } if file == "after.png"));
    assert_eq!(failed.error.as_ref().unwrap().code, "element_not_found");
    assert_eq!((by_point.points[0].x, by_point.points[0].y), (120, 200), "in screen coordinates");
    assert_eq!(names(&dir), ["trajectory.json", "turn-00001", "turn-00002", "turn-00003"]);
    assert_eq!(names(&dir.join("turn-00001")), ["action.json", "after.png", "before.png", "tree.txt"]);
    let tree = fs::read_to_string(dir.join("turn-00001/tree.txt")).unwrap();
    assert!(tree.contains(r#"button "Save""#), "{tree}");
    assert!(!holds(&dir, "_secret") && !holds(&dir, "never"));
    let trajectory = Trajectory::read(&dir).unwrap();
    assert_eq!(trajectory.session.as_deref(), Some("test"));
    assert_eq!((trajectory.parts[0].turns, trajectory.parts[0].reason), (3, Some(Reason::Stopped)));

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&dir.join("turn-00001"))), (0o700, 0o700));
        assert_eq!(mode(&dir.join("turn-00001/action.json")), 0o600);
    }
}

#[tokio::test]
async fn each_session_has_its_own_and_the_operator_has_all() {
    let (a, folder) = (Script::new(EDITOR), Folder::new());
    let (b, operator) = (a.as_session("b"), a.anonymous());
    a.engine.open_session(&SessionId::new("test"), false, Some("Ada")).unwrap();
    for (script, name) in [(&a, "a"), (&b, "b"), (&operator, "all")] {
        start(script, &folder.at(name), &json!({})).await.unwrap();
    }
    assert_eq!(*a.engine.recordings().borrow(), 1, "what keeps a service alive is the operator's");
    a.call(CLICK).await.unwrap();
    b.call(CLICK).await.unwrap();
    assert_eq!(stop(&b).await.as_array().unwrap().len(), 1);
    a.call(CLICK).await.unwrap();
    b.call(CLICK).await.unwrap();
    assert_eq!(states(&a).await[0]["running"], true, "B's stop is not A's");
    a.engine.end_session(SessionId::new("test")).await;
    let reason = |name: &str| Trajectory::read(&folder.at(name)).unwrap().parts[0].reason;
    assert_eq!(
        (reason("a"), reason("b"), reason("all")),
        (Some(Reason::SessionEnd), Some(Reason::Stopped), None)
    );
    assert_eq!(stop(&operator).await.as_array().unwrap().len(), 1);
    let of = |name: &str| -> Vec<_> {
        turns(&folder.at(name)).into_iter().map(|turn| turn.session.unwrap()).collect()
    };
    assert_eq!(of("a"), ["Ada", "Ada"]);
    assert_eq!(of("b"), ["b"]);
    assert_eq!(of("all"), ["Ada", "b", "Ada", "b"]);
    assert_eq!(*b.engine.recordings().borrow(), 0);
}

#[tokio::test]
async fn the_operator_stops_all_or_those_of_one_session_and_a_session_only_its_own() {
    let (a, folder) = (Script::new(EDITOR), Folder::new());
    let (b, operator) = (a.as_session("b"), a.anonymous());
    for (script, name) in [(&a, "a"), (&b, "b")] {
        start(script, &folder.at(name), &json!({})).await.unwrap();
    }
    let of_another = b.call(r#"stop_recording {"session": "test"}"#).await.unwrap_err();
    assert_eq!(of_another.code, Code::InvalidArgument);
    let again = start(&b, &folder.at("c"), &json!({})).await.unwrap_err();
    assert_eq!(again.code, Code::RecordingActive);
    assert!(!folder.at("c").exists(), "nothing is left of what did not begin");
    let stopped = operator.call(r#"stop_recording {"session": "b"}"#).await.unwrap();
    assert_eq!(stopped.structured["recordings"].as_array().unwrap().len(), 1);
    assert_eq!(ended(&b).await["reason"], "operator_stop");
    assert_eq!(states(&a).await[0]["running"], true);
    stop(&operator).await;
    assert_eq!(ended(&a).await["reason"], "operator_stop");
}

#[tokio::test]
async fn what_goes_into_a_password_field_is_in_no_file() {
    let (script, folder) = (Script::new(EDITOR), Folder::new());
    let dir = folder.at("r");
    start(&script, &dir, &json!({})).await.unwrap();
    let password = r#""window_id": 1, "query": {"role": "password text"}"#;
    let _ = script.call(&format!(r#"type_text {{{password}, "text": "Canary-1"}}"#)).await;
    let _ = script.call(&format!(r#"set_value {{{password}, "value": "Canary-2"}}"#)).await;
    // Nobody knows what this would have gone into.
    script
        .call(r#"type_text {"window_id": 1, "query": {"name": "Gone"}, "text": "Canary-3"}"#)
        .await
        .unwrap_err();
    script.call(r#"type_text {"window_id": 1, "query": {"name": "Body"}, "text": "Visible"}"#).await.unwrap();
    stop(&script).await;
    for canary in ["Canary-1", "Canary-2", "Canary-3"] {
        assert!(!holds(&dir, canary), "{canary}");
    }
    assert!(holds(&dir, "Visible"));
    let withheld: Vec<_> = turns(&dir).into_iter().map(|turn| turn.withheld).collect();
    assert_eq!(withheld, [vec!["text"], vec!["value"], vec!["text"], vec![]]);
}

#[tokio::test]
async fn folders_that_must_not_be_used_are_refused_and_left_alone() {
    let (script, folder) = (Script::new(EDITOR), Folder::new());
    let file = folder.at("file");
    fs::write(&file, "mine").unwrap();
    fs::create_dir(folder.at("full")).unwrap();
    fs::write(folder.at("full/notes"), "mine").unwrap();
    fs::create_dir(folder.at("empty")).unwrap();
    fs::create_dir(folder.at("outer")).unwrap();
    fs::write(folder.at("outer/trajectory.json"), "{}").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.at("empty"), folder.at("link")).unwrap();
    let refused = [
        (PathBuf::from("relative"), Code::InvalidArgument, "absolute"),
        (folder.at("a/../b"), Code::InvalidArgument, ".."),
        (file.clone(), Code::FileError, "no folder"),
        (file.join("below"), Code::FileError, "Not a directory"),
        (folder.at("full"), Code::FileError, "not empty"),
        (folder.at("outer/in/it"), Code::FileError, "lies in the recording"),
        #[cfg(unix)]
        (folder.at("link"), Code::FileError, "link"),
    ];
    for (path, code, why) in refused {
        let error = start(&script, &path, &json!({})).await.unwrap_err();
        assert_eq!(error.code, code, "{}: {}", path.display(), error.message);
        assert!(error.message.contains(why), "{}", error.message);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!((names(&folder.at("full")), names(&folder.at("empty"))), (vec!["notes".to_owned()], vec![]));
    assert_eq!(names(&folder.at("outer")), ["trajectory.json"]);
    assert_eq!(states(&script).await, json!([]));
    start(&script, &folder.at("empty"), &json!({})).await.unwrap();
    let of_another = start(&script.as_session("b"), &folder.at("empty"), &json!({})).await.unwrap_err();
    assert!(of_another.message.contains("writes into it already"), "{}", of_another.message);
}

#[tokio::test]
async fn a_recording_is_added_to() {
    let (script, folder) = (Script::new(EDITOR), Folder::new());
    let dir = folder.at("r");
    for _ in 0..2 {
        start(&script, &dir, &json!({})).await.unwrap();
        script.call(CLICK).await.unwrap();
        stop(&script).await;
    }
    // What a driver that was killed leaves of a turn is none.
    fs::create_dir(dir.join(".turn-00003.part")).unwrap();
    start(&script, &dir, &json!({})).await.unwrap();
    script.call(CLICK).await.unwrap();
    stop(&script).await;
    assert_eq!(turns(&dir).iter().map(|turn| turn.turn).collect::<Vec<_>>(), [1, 2, 3]);
    let parts = Trajectory::read(&dir).unwrap().parts;
    assert_eq!(
        parts.iter().map(|part| (part.first_turn, part.turns)).collect::<Vec<_>>(),
        [(1, 1), (2, 1), (3, 1)]
    );
    assert!(!dir.join(".turn-00003.part").exists());

    let text = fs::read_to_string(dir.join("trajectory.json")).unwrap();
    fs::write(dir.join("trajectory.json"), text.replace("\"version\": 1", "\"version\": 2")).unwrap();
    let error = start(&script, &dir, &json!({})).await.unwrap_err();
    assert!(error.code == Code::FileError && error.message.contains("version 2"), "{}", error.message);
}

#[tokio::test]
async fn limits_end_a_recording_and_are_told() {
    let folder = Folder::new();
    let script =
        Script::on(EDITOR, Host { recording_idle: Some(Duration::from_millis(300)), ..Host::default() });
    start(&script, &folder.at("time"), &json!({"max_duration_s": 1})).await.unwrap();
    let waiting = script.call(r#"wait_for {"condition": "window_opens", "title": "No", "timeout_ms": 1500}"#);
    waiting.await.unwrap_err();
    assert_eq!(ended(&script).await["reason"], "max_duration", "a call in flight is not idle");

    start(&script, &folder.at("idle"), &json!({})).await.unwrap();
    // Asking keeps it from being idle.
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(ended(&script).await["reason"], "idle");

    let error = start(&script, &folder.at("none"), &json!({"max_bytes": 5})).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    let error = start(&script, &folder.at("none"), &json!({"record_video": true})).await.unwrap_err();
    assert_eq!(error.code, Code::VideoUnavailable);
    assert!(!folder.at("none").exists());
}

/// A person who changes their mind.
#[derive(Debug)]
struct Person(Mutex<Grant>);

#[async_trait]
impl ConsentSource for Person {
    async fn grant(&self) -> Grant {
        *self.0.lock().unwrap()
    }

    async fn refused(&self, _: Refusal) {}
}

const BOTH: Grant = Grant { joined: true, screen: true, control: true };

#[tokio::test]
async fn a_revoke_ends_a_recording_between_calls_and_nothing_is_seen_after_it() {
    let (person, folder) = (Arc::new(Person(Mutex::new(BOTH))), Folder::new());
    let script = Script::on(EDITOR, Host { consent: Arc::clone(&person) as _, ..Host::default() });
    start(&script, &folder.at("r"), &json!({})).await.unwrap();
    script.call(CLICK).await.unwrap();
    *person.0.lock().unwrap() = Grant { screen: false, ..BOTH };
    let revoked = std::time::Instant::now();
    let state = ended(&script).await;
    assert_eq!((&state["reason"], &state["turns"]), (&json!("consent_revoked"), &json!(1)));
    assert!(revoked.elapsed() < Duration::from_secs(5), "a watcher saw it");
    let captures = script.desktop.captures();
    script.call(CLICK).await.unwrap_err();
    assert_eq!(script.desktop.captures(), captures);
    assert_eq!(turns(&folder.at("r")).len(), 1);
}

#[tokio::test]
async fn nothing_is_recorded_where_a_revoke_cannot_be_watched_for() {
    let (person, folder) = (Arc::new(Person(Mutex::new(BOTH))), Folder::new());
    let background = Background::new(|_| false);
    let script = Script::on(EDITOR, Host { consent: person as _, background, ..Host::default() });
    let error = start(&script, &folder.at("r"), &json!({})).await.unwrap_err();
    assert_eq!(error.code, Code::ConsentWatchUnavailable);
    assert!(!folder.at("r").exists());
    assert_eq!(states(&script).await, json!([]));
}

#[tokio::test]
async fn a_replay_does_the_same_again_and_stops_where_the_application_has_changed() {
    let (script, folder) = (Script::new(EDITOR), Folder::new());
    let dir = folder.at("r");
    start(&script, &dir, &json!({})).await.unwrap();
    script.call(CLICK).await.unwrap();
    script.call(r#"type_text {"window_id": 1, "query": {"name": "Body"}, "text": "Visible"}"#).await.unwrap();
    stop(&script).await;
    let replay = format!("replay_trajectory {}", json!({"dir": dir}));

    let moved = EDITOR.replace("window 1", "window 7").replace("+100+50", "+300+20");
    let again = Script::new(&moved);
    let answer = again.call(&replay).await.unwrap();
    assert_eq!(answer.structured["completed"], true, "{}", answer.text);
    let statuses: Vec<_> =
        answer.structured["turns"].as_array().unwrap().iter().map(|turn| turn["status"].clone()).collect();
    assert_eq!(statuses, ["done", "done"], "{}", answer.text);

    let changed = Script::new(&EDITOR.replace("Save", "Store"));
    let error = changed.call(&replay).await.unwrap_err();
    assert_eq!(error.code, Code::ElementNotFound);
    assert!(error.message.starts_with("stopped at turn 1 of 2 (click): the "), "{}", error.message);
    let report = error.details.unwrap();
    assert_eq!(
        (&report["completed"], &report["done"], &report["recorded"]),
        (&json!(false), &json!(0), &json!(2))
    );
    assert_eq!(report["turns"][0]["code"], "element_not_found", "{report}");
    assert_eq!(changed.desktop.take_journal(), Vec::<String>::new(), "nothing was done");

    let person = Arc::new(Person(Mutex::new(Grant { control: false, ..BOTH })));
    let refused = Script::on(EDITOR, Host { consent: person as _, ..Host::default() });
    assert_eq!(refused.call(&replay).await.unwrap_err().code, Code::ConsentRequired);
}

#[tokio::test]
async fn a_folder_that_is_no_recording_is_refused_before_anything_is_done() {
    let (script, folder) = (Script::new(EDITOR), Folder::new());
    let dir = folder.at("r");
    start(&script, &dir, &json!({})).await.unwrap();
    script.call(CLICK).await.unwrap();
    script.call(CLICK).await.unwrap();
    stop(&script).await;
    script.desktop.take_journal();
    let replay = format!("replay_trajectory {}", json!({"dir": dir}));
    let action = dir.join("turn-00002/action.json");
    let good = fs::read_to_string(&action).unwrap();
    let broken = [
        good.replace("\"click\"", "\"run_shell\""),
        good.replace("\"click\"", "\"list_windows\""),
        good.replace("\"before.png\"", "\"../../before.png\""),
        good.replace("\"turn\": 2", "\"turn\": 1"),
        good.replace("\"query\"", "\"quarry\""),
        good.split_at(good.len() / 2).0.to_owned(),
    ];
    for text in broken {
        fs::write(&action, &text).unwrap();
        let error = script.call(&replay).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidTrajectory, "{}", error.message);
        assert!(error.message.contains("2"), "{}", error.message);
    }
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());
    let nothing = format!("replay_trajectory {}", json!({"dir": folder.at("nowhere")}));
    assert_eq!(script.call(&nothing).await.unwrap_err().code, Code::InvalidTrajectory);
}

#[tokio::test]
async fn a_replay_that_goes_on_after_failures_says_how_much_it_did_and_waits_once_for_what_is_not_there() {
    let (script, folder) = (Script::new(EDITOR), Folder::new());
    let dir = folder.at("r");
    start(&script, &dir, &json!({})).await.unwrap();
    for _ in 0..3 {
        script.call(CLICK).await.unwrap();
    }
    script.call(r#"click {"window_id": 1, "query": {"name": "Nothing"}}"#).await.unwrap_err();
    // What it typed is withheld, so it cannot be done again.
    let _ =
        script.call(r#"type_text {"window_id": 1, "query": {"role": "password text"}, "text": "x"}"#).await;
    stop(&script).await;
    let replay = format!("replay_trajectory {}", json!({"dir": dir, "stop_on_error": false}));

    let again = Script::new(EDITOR).call(&replay).await.unwrap();
    assert!(again.text.starts_with("did 3 of 5 turns again, 1 failed, 1 left out"), "{}", again.text);

    tokio::time::pause();
    let elsewhere = Script::new(&EDITOR.replace("app=editor", "app=other"));
    let begun = tokio::time::Instant::now();
    let answer = elsewhere.call(&replay).await.unwrap();
    let took = begun.elapsed();
    assert!(answer.text.starts_with("did 0 of 5 turns again, 4 failed, 1 left out"), "{}", answer.text);
    assert_eq!(answer.structured["completed"], false);
    assert!(took < Duration::from_secs(15), "one wait for the application, not one for each turn: {took:?}");
}

/// A folder of a recording with two clicks in it.
async fn two_clicks(folder: &Folder) -> (Script, PathBuf) {
    let (script, dir) = (Script::new(EDITOR), folder.at("r"));
    start(&script, &dir, &json!({})).await.unwrap();
    script.call(CLICK).await.unwrap();
    script.call(CLICK).await.unwrap();
    stop(&script).await;
    (script, dir)
}

#[cfg(unix)]
#[tokio::test]
async fn only_plain_files_are_read_of_a_recording() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new();
    let (script, dir) = two_clicks(&folder).await;
    script.desktop.take_journal();
    let pipe =
        |path: &Path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    let replay = format!("replay_trajectory {}", json!({"dir": dir}));
    let action = dir.join("turn-00002/action.json");
    let good = fs::read(&action).unwrap();

    fs::remove_file(&action).unwrap();
    pipe(&action);
    let refused = script.call(&replay).await.unwrap_err();
    assert!(refused.message.ends_with("turn-00002/action.json: it is no plain file"), "{}", refused.message);
    let page = report::write(&dir, None).unwrap();
    assert_eq!((page.turns, page.turns_unreadable), (2, 1));

    fs::remove_file(&action).unwrap();
    fs::write(folder.at("action.json"), &good).unwrap();
    symlink(folder.at("action.json"), &action).unwrap();
    let refused = script.call(&replay).await.unwrap_err();
    assert!(refused.message.contains("it is a link"), "{}", refused.message);

    fs::remove_file(&action).unwrap();
    fs::write(&action, &good).unwrap();
    fs::rename(dir.join("turn-00002"), folder.at("elsewhere")).unwrap();
    symlink(folder.at("elsewhere"), dir.join("turn-00002")).unwrap();
    let refused = script.call(&replay).await.unwrap_err();
    assert!(refused.message.contains("a link or no folder"), "{}", refused.message);
    fs::remove_file(dir.join("turn-00002")).unwrap();
    fs::rename(folder.at("elsewhere"), dir.join("turn-00002")).unwrap();

    for name in ["before.png", "tree.txt"] {
        let file = dir.join("turn-00002").join(name);
        fs::remove_file(&file).unwrap();
        pipe(&file);
    }
    assert_eq!(report::write(&dir, None).unwrap().turns_unreadable, 0, "the rest of the turn is there");
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());

    let whole = dir.join("trajectory.json");
    fs::remove_file(&whole).unwrap();
    pipe(&whole);
    assert_eq!(script.call(&replay).await.unwrap_err().code, Code::InvalidTrajectory);
    assert!(report::write(&dir, None).unwrap_err().message.contains("no plain file"));
    let error = start(&script, &dir, &json!({})).await.unwrap_err();
    assert_eq!(error.code, Code::FileError, "{}", error.message);
}

#[tokio::test]
async fn what_is_wrong_with_a_record_is_said_in_plain_words() {
    let folder = Folder::new();
    let (script, dir) = two_clicks(&folder).await;
    let replay = format!("replay_trajectory {}", json!({"dir": dir}));
    let action = dir.join("turn-00002/action.json");
    let good: Value = serde_json::from_slice(&fs::read(&action).unwrap()).unwrap();
    let mut sizeless = good.clone();
    sizeless["before"].as_object_mut().unwrap().remove("width");
    let mut wordy = good.clone();
    wordy["before"]["width"] = json!("many");
    let mut counted = good.clone();
    counted["duration_ms"] = json!(-1);
    for (record, why) in [
        (sizeless, "a picture has `file`, `frame`, `width` and `height`, or `missing` with the reason"),
        (wordy, "expected a whole number of 0 or more"),
        (counted, "`duration_ms`: "),
    ] {
        fs::write(&action, record.to_string()).unwrap();
        let error = script.call(&replay).await.unwrap_err();
        assert!(error.message.contains(why), "{}", error.message);
        assert!(!error.message.contains("u32") && !error.message.contains("u64"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_stop_that_finds_nothing_tells_how_the_last_one_ended_and_its_duration_stands() {
    let (script, folder) = (Script::new(EDITOR), Folder::new());
    let nothing = script.call("stop_recording").await.unwrap();
    assert_eq!((nothing.text.as_str(), nothing.structured.get("last")), ("nothing is being recorded", None));
    start(&script, &folder.at("r"), &json!({"max_duration_s": 1})).await.unwrap();
    let state = ended(&script).await;
    assert!((1000..3000).contains(&state["duration_ms"].as_u64().unwrap()), "{state}");
    tokio::time::sleep(Duration::from_millis(20)).await;
    let stopped = script.call("stop_recording").await.unwrap();
    assert_eq!(stopped.structured["recordings"], json!([]));
    assert_eq!(stopped.structured["last"], state, "nothing of it goes on");
    let when = state["ended"].as_str().unwrap();
    assert!(
        stopped.text.contains(when) && stopped.text.contains("max_duration_s is reached"),
        "{}",
        stopped.text
    );
    assert_eq!(script.anonymous().call("stop_recording").await.unwrap().structured["last"], state);
}
