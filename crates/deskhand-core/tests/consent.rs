//! Consent, with a source that the test is the person of: what is refused, when, and what still reached the desktop.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::consent::{self, Background, ConsentSource, Grant, Refusal};
use deskhand_core::driver::Profile;
use deskhand_core::tools::{self, Surface};
use deskhand_core::{Code, Error, Host, Outcome};
use deskhand_testkit::transcript::Script;
use serde_json::json;
use tokio::time::Instant;

const EDITOR: &str = r#"
window 1 "Editor of secrets" app=editor pid=100 800x600+100+50 focused
  push button "Save" @10,10 80x30 changes=2
  label "Draft"
  text "Body" @10,140 400x200 text="" focused multi-line
  push button "Quiet" @10,400 80x30
"#;

const SCREEN: Grant = Grant { joined: true, screen: true, control: false };
const BOTH: Grant = Grant { joined: true, screen: true, control: true };
const CONTROL: Grant = Grant { joined: true, screen: false, control: true };

/// A revoke has worked by then.
const REVOKE: Duration = Duration::from_millis(500);

/// A person who changes their mind.
#[derive(Debug)]
struct Person {
    grant: Mutex<Grant>,
    refusals: Mutex<Vec<Refusal>>,
    asked: AtomicUsize,
    /// How long they take to answer.
    thinks: Duration,
}

impl Person {
    fn allowing(grant: Grant) -> Arc<Self> {
        Self::thinking(grant, Duration::ZERO)
    }

    fn thinking(grant: Grant, thinks: Duration) -> Arc<Self> {
        let (refusals, asked) = (Mutex::default(), AtomicUsize::new(0));
        Arc::new(Self { grant: Mutex::new(grant), refusals, asked, thinks })
    }

    fn allows(&self, grant: Grant) {
        *self.grant.lock().unwrap() = grant;
    }

    fn told(&self) -> Vec<(Surface, &'static str)> {
        let refusals = std::mem::take(&mut *self.refusals.lock().unwrap());
        refusals.into_iter().map(|refusal| (refusal.surface, refusal.tool)).collect()
    }
}

#[async_trait]
impl ConsentSource for Person {
    async fn grant(&self) -> Grant {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if !self.thinks.is_zero() {
            tokio::time::sleep(self.thinks).await;
        }
        *self.grant.lock().unwrap()
    }

    async fn refused(&self, refusal: Refusal) {
        self.refusals.lock().unwrap().push(refusal);
    }
}

fn with(person: &Arc<Person>) -> Script {
    Script::on(EDITOR, Host { consent: Arc::clone(person) as _, ..Host::default() })
}

/// With steps and captures that ask, and nobody who watches: no runtime takes the task.
fn unwatched(person: &Arc<Person>) -> Script {
    let background = Background::new(|_| false);
    Script::on(EDITOR, Host { consent: Arc::clone(person) as _, background, ..Host::default() })
}

fn refused(outcome: Outcome, surface: &str) -> Error {
    let error = outcome.unwrap_err();
    let json = error.structured();
    assert_eq!((json["code"].as_str(), json["surface"].as_str()), (Some("consent_required"), Some(surface)));
    error
}

const CLICK: &str = r#"click {"window_id": 1, "query": {"name": "Save"}}"#;
const TREE: &str = r#"get_accessibility_tree {"window_id": 1}"#;
const PICTURE: &str = r#"screenshot {"window_id": 1}"#;

#[tokio::test(start_paused = true)]
async fn each_surface_needs_leave_and_a_change_counts_at_the_next_call() {
    let person = Person::allowing(Grant::NOT_JOINED);
    let script = with(&person);
    for call in [CLICK, TREE, PICTURE] {
        script.call(call).await.unwrap();
    }
    assert_eq!(script.desktop.take_journal(), ["use push button \"Save\""]);
    let captures = script.desktop.captures();

    person.allows(Grant::NOTHING);
    refused(script.call(CLICK).await, "control");
    refused(script.call(TREE).await, "screen");
    refused(script.call(PICTURE).await, "screen");
    script.call("get_config").await.unwrap();
    assert_eq!(script.desktop.take_journal(), ["forget all"]);
    assert_eq!(script.desktop.captures(), captures);

    person.allows(SCREEN);
    script.call(TREE).await.unwrap();
    script.call(PICTURE).await.unwrap();
    refused(script.call(CLICK).await, "control");
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());

    person.allows(BOTH);
    script.call(CLICK).await.unwrap();
    script.call(PICTURE).await.unwrap();
    assert_eq!(script.desktop.take_journal(), ["use push button \"Save\""]);

    // Acting blindly is not on offer.
    person.allows(CONTROL);
    refused(script.call(CLICK).await, "screen");
    refused(script.call(TREE).await, "screen");
    assert_eq!(script.desktop.take_journal(), ["forget all"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_what_the_person_can_do_and_they_are_told() {
    let person = Person::allowing(Grant::NOTHING);
    let script = with(&person);
    // Before the target is looked at: there is no such window.
    let error = refused(script.call(r#"click {"window_id": 99, "x": 1, "y": 1}"#).await, "control");
    let json = error.structured();
    assert_eq!(
        json,
        json!({"code": "consent_required", "message": error.message, "recovery": "request", "surface": "control",
               "tool": "click"})
    );
    assert!(error.message.contains("deskhand consent grant control"), "{error}");
    assert!(!error.message.contains('/'), "{error}");
    assert_eq!(person.told(), [(Surface::Control, "click")]);
    // What is no call at all is nothing to ask a person for.
    assert_eq!(script.call("click {\"window_id\": -1}").await.unwrap_err().code, Code::InvalidArgument);
    assert_eq!(script.call("no_such_tool").await.unwrap_err().code, Code::UnknownTool);
    assert_eq!(person.told(), []);
}

#[tokio::test(start_paused = true)]
async fn a_click_that_waited_while_consent_went_is_never_dispatched() {
    for source in [Person::allowing(BOTH), Person::thinking(BOTH, Duration::from_millis(5))] {
        let script = unwatched(&source);
        script.desktop.set_key_time(Duration::from_millis(80));
        let holding = tokio::spawn(script.engine.invoke(script.parse(r#"press_key {"key": "F4"}"#)));
        let other = script.as_session("other");
        let click = tokio::spawn(script.engine.invoke(other.parse(CLICK)));
        let press = tokio::spawn(script.engine.invoke(script.parse(r#"press_key {"key": "F5"}"#)));
        tokio::time::sleep(Duration::from_millis(40)).await;
        source.allows(SCREEN);
        holding.await.unwrap().unwrap();
        for waited in [click, press] {
            let error = refused(waited.await.unwrap(), "control");
            assert_eq!(error.details.as_ref().unwrap().get("delivery"), None, "{error}");
        }
        assert_eq!(script.desktop.take_journal(), ["press [] F4 x1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoke_in_the_middle_of_typing_stops_it_and_says_how_far_it_got() {
    for (now, surface) in [(SCREEN, "control"), (Grant::NOTHING, "control"), (CONTROL, "screen")] {
        let person = Person::allowing(BOTH);
        let script = with(&person);
        script.desktop.set_key_time(Duration::from_millis(10));
        let text = "x".repeat(5000);
        let typing =
            tokio::spawn(script.engine.invoke(script.parse(&format!(r#"type_text {{"text": "{text}"}}"#))));
        let waiting = tokio::spawn(script.engine.invoke(script.as_session("other").parse(CLICK)));
        tokio::time::sleep(Duration::from_secs(1)).await;
        person.allows(now);
        let revoked = Instant::now();
        let error = refused(typing.await.unwrap(), surface);
        assert!(revoked.elapsed() <= REVOKE, "{:?}", revoked.elapsed());
        let details = error.details.as_ref().unwrap();
        assert_eq!((&details["delivery"], &details["total"]), (&json!("partial"), &json!(5000)));
        let done = details["done"].as_u64().unwrap();
        assert!((90..150).contains(&done), "{done}");
        assert!(error.message.contains(&format!("stopped after {done} of 5000 ")), "{error}");
        refused(waiting.await.unwrap(), surface);
        assert!(revoked.elapsed() <= REVOKE, "{:?}", revoked.elapsed());
        let reached = script.desktop.take_journal();
        assert!(!reached.iter().any(|entry| entry.starts_with("use")), "{reached:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_joined_in_the_middle_of_a_call_binds_it() {
    let person = Person::allowing(Grant::NOT_JOINED);
    let script = with(&person);
    let call = r#"wait_for {"condition": "window_opens", "title": "Print", "timeout_ms": 60000}"#;
    let waiting = tokio::spawn(script.engine.invoke(script.parse(call)));
    tokio::time::sleep(Duration::from_secs(3)).await;
    person.allows(Grant::NOTHING);
    let joined = Instant::now();
    refused(waiting.await.unwrap(), "screen");
    assert!(joined.elapsed() <= REVOKE, "{:?}", joined.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_tool_asks_at_each_look() {
    let person = Person::allowing(SCREEN);
    let script = with(&person);
    let call = r#"wait_for {"condition": "window_opens", "title": "Print", "timeout_ms": 60000}"#;
    let waiting = tokio::spawn(script.engine.invoke(script.parse(call)));
    // Just after the watcher has looked.
    tokio::time::sleep(Duration::from_millis(210)).await;
    person.allows(Grant::NOTHING);
    script.desktop.open_window("Print", 200);
    let error = refused(waiting.await.unwrap(), "screen");
    assert!(!error.message.contains("Print"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_a_revoke_is_not_handed_out_after_it() {
    // A source that takes its time, so that the revoke falls between the step's question and the answer.
    let person = Person::thinking(SCREEN, Duration::from_millis(10));
    let script = with(&person);
    let reading = tokio::spawn(script.engine.invoke(script.parse(TREE)));
    tokio::time::sleep(Duration::from_millis(25)).await;
    person.allows(Grant::NOTHING);
    let error = refused(reading.await.unwrap(), "screen");
    assert!(!error.message.contains("secrets"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn pixels_on_the_side_are_not_taken_after_a_revoke_and_the_action_is_done_without_them() {
    let drag = r#"drag {"window_id": 1, "from": {"x": 20, "y": 20}, "to": {"x": 600, "y": 500}, "duration_ms": 100}"#;
    for revoke in [false, true] {
        let person = Person::allowing(BOTH);
        let script = unwatched(&person);
        let dragging = tokio::spawn(script.engine.invoke(script.parse(drag)));
        tokio::time::sleep(Duration::from_millis(50)).await;
        let before = script.desktop.captures();
        assert!(before > 0);
        if revoke {
            person.allows(Grant::NOTHING);
            let error = refused(dragging.await.unwrap(), "control");
            assert_eq!(error.details.unwrap()["delivery"], "complete");
        } else {
            dragging.await.unwrap().unwrap();
        }
        assert!(script.desktop.take_journal().iter().any(|entry| entry.contains("drag")));
        assert_eq!(script.desktop.captures() > before, !revoke);
    }
}

#[tokio::test(start_paused = true)]
async fn mirrors_are_dropped_once_for_each_revoke() {
    let person = Person::allowing(SCREEN);
    let script = with(&person);
    for _ in 0..2 {
        person.allows(SCREEN);
        script.call(TREE).await.unwrap();
        person.allows(Grant::NOTHING);
        for _ in 0..3 {
            refused(script.call(TREE).await, "screen");
        }
        assert_eq!(script.desktop.take_journal(), ["forget all"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_watcher_looks_only_while_something_runs_and_ends_with_its_engine() {
    let person = Person::allowing(BOTH);
    let script = with(&person);
    script.call(PICTURE).await.unwrap();
    // It may look once more to find that nothing runs.
    tokio::time::sleep(REVOKE).await;
    let asked = person.asked.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(person.asked.load(Ordering::Relaxed), asked);

    let call = r#"wait_for {"condition": "window_opens", "title": "Print", "timeout_ms": 60000}"#;
    let waiting = tokio::spawn(script.engine.invoke(script.parse(call)));
    tokio::time::sleep(Duration::from_secs(2)).await;
    waiting.abort();
    drop(script);
    tokio::time::sleep(REVOKE).await;
    // The engine's own reference, and nobody's besides the test's, is gone.
    assert_eq!(Arc::strong_count(&person), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_source_delays_its_own_calls_and_keeps_their_order() {
    let person = Person::thinking(BOTH, Duration::from_millis(300));
    let script = with(&person);
    let keys = ["F1", "F2", "F3"];
    let calls: Vec<_> = keys
        .iter()
        .map(|key| {
            let call = script.parse(&format!(r#"press_key {{"key": "{key}"}}"#));
            tokio::spawn(script.engine.invoke(call))
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(script.desktop.take_journal(), ["press [] F1 x1", "press [] F2 x1", "press [] F3 x1"]);
}

#[tokio::test(start_paused = true)]
async fn tools_that_need_nothing_tell_nothing_of_the_screen() {
    let person = Person::allowing(BOTH);
    let script = with(&person);
    // Something to remember, and something that failed.
    for call in [TREE, PICTURE, CLICK, r#"click {"window_id": 1, "query": {"name": "Quiet"}}"#] {
        script.call(call).await.unwrap();
    }
    let wait = r#"wait_for {"condition": "window_closes", "title": "secrets", "timeout_ms": 10}"#;
    assert_eq!(script.call(wait).await.unwrap_err().code, Code::Timeout);
    person.allows(Grant::NOTHING);
    let mut called = 0;
    for tool in tools::TOOLS.iter().filter(|tool| tool.spec.surface == Surface::None) {
        let text = match script.call(&format!("{} {}", tool.spec.name, tool.spec.example)).await {
            Ok(answer) => {
                assert!(answer.images.is_empty(), "{}", tool.spec.name);
                format!("{} {}", answer.text, answer.structured)
            }
            Err(error) => {
                assert_ne!(error.code, Code::ConsentRequired, "{}", tool.spec.name);
                error.structured().to_string()
            }
        };
        for word in ["secrets", "Save", "Quiet", "Draft"] {
            assert!(!text.contains(word), "{} tells {word}: {text}", tool.spec.name);
        }
        called += 1;
    }
    assert!(called >= 3, "{called}");
    assert_eq!(person.told(), []);
}

/// What stands on the screen of [`SECRETS`], beside what callers may know.
const CANARY: &str = "canary";

const SECRETS: &str = r#"
window 1 "canary title" app=editor pid=100 800x600+100+50 focused
  push button "canary button" @10,10 80x30 changes=2
  label "canary label"
  text "canary field" @10,140 400x200 text="canary text" focused multi-line
  check box "canary box" @10,400 80x30
  slider "canary slider" @10,440 80x30 value=0..10=3
window 2 "canary other" app=canary-app pid=200 100x100+120+70
  push button "canary cover" @0,0 100x100
"#;

/// Calls that go by what was seen: more than the examples of the definitions do.
const BY_WHAT_WAS_SEEN: &[&str] = &[
    r#"get_window_state {"window_id": 1, "since": "s1"}"#,
    r#"get_window_state {"window_id": 1, "root": 0, "capture_mode": "som"}"#,
    r#"get_window_state {"window_id": 1, "query": "nary"}"#,
    r#"get_app_state {"app": "editor"}"#,
    r#"get_desktop_state {}"#,
    r#"zoom {"window_id": 1, "region": {"x": 0, "y": 0, "width": 50, "height": 50}}"#,
    r#"debug_window_info {"window_id": 1}"#,
    r#"wait_for {"condition": "element_appears", "window_id": 1, "name": "Never", "timeout_ms": 400}"#,
    r#"wait_for {"condition": "window_closes", "window_id": 2, "timeout_ms": 400}"#,
    r#"clipboard_read {}"#,
    r#"click {"window_id": 1, "element_index": 1}"#,
    r#"click {"window_id": 1, "element_index": 1, "delivery": "foreground"}"#,
    r#"click {"window_id": 1, "element_index": 1, "snapshot_id": "s1"}"#,
    r#"click {"x": 25, "y": 25, "space": "image", "picture_id": "p1"}"#,
    r#"click {"window_id": 1, "query": {"name": "nary", "exact": false}}"#,
    r#"click {"window_id": 1, "query": {"role": "push button"}}"#,
    r#"click {"window_id": 1, "query": {"name": "absent"}}"#,
    r#"click {"window_id": 1, "element_index": 99}"#,
    r#"drag {"window_id": 1, "from": {"element_index": 1}, "to": {"element_index": 4}, "duration_ms": 100}"#,
    r#"scroll {"window_id": 1, "element_index": 3, "direction": "down"}"#,
    r#"move_cursor {"window_id": 1, "x": 25, "y": 25}"#,
    r#"type_text {"window_id": 1, "element_index": 3, "text": "abcdefgh", "delivery": "foreground"}"#,
    r#"type_text {"window_id": 1, "element_index": 3, "text": "abcdefgh"}"#,
    r#"press_key {"key": "F5", "repeat": 5}"#,
    r#"set_value {"window_id": 1, "element_index": 5, "value": 7}"#,
    r#"set_value {"window_id": 1, "element_index": 3, "value": "new"}"#,
    r#"select_text {"window_id": 1, "element_index": 3, "text": "nary"}"#,
    r#"perform_secondary_action {"window_id": 1, "element_index": 1, "action": "none such"}"#,
    r#"invoke_menu {"window_id": 1, "path": ["File", "Save"]}"#,
    r#"bring_to_front {"window_id": 2}"#,
    r#"set_window_frame {"window_id": 1, "x": 5, "y": 5}"#,
    r#"kill_app {"app": "canar"}"#,
];

/// All that an answer says, for whoever gets it.
fn said(outcome: Outcome) -> String {
    match outcome {
        Ok(answer) => {
            let images = answer.images.iter().map(|_| CANARY).collect::<String>();
            format!("{} {} {images}", answer.text, answer.structured)
        }
        Err(error) => format!("{} {}", error.message, error.structured()),
    }
}

fn on_secrets(person: &Arc<Person>) -> Script {
    let script = Script::on(SECRETS, Host { consent: Arc::clone(person) as _, ..Host::default() });
    script.desktop.set_key_time(Duration::from_millis(15));
    script
}

async fn look_around(script: &Script) {
    for call in [r#"get_window_state {"window_id": 1, "capture_mode": "ax"}"#, "list_windows"] {
        assert!(said(script.call(call).await).contains(CANARY), "{call}");
    }
}

fn all_calls() -> Vec<String> {
    // Recordings write into folders; they have tests of their own.
    let apart = ["end_session", "start_recording", "replay_trajectory"];
    let examples = tools::TOOLS.iter().filter(|tool| !apart.contains(&tool.spec.name));
    let examples = examples.map(|tool| format!("{} {}", tool.spec.name, tool.spec.example));
    examples.chain(BY_WHAT_WAS_SEEN.iter().map(|call| (*call).to_owned())).collect()
}

/// A session keeps its snapshots over a revoke, and they are of use again after the next grant; what is in them is
/// told to nobody meanwhile, by no tool and no error.
#[tokio::test(start_paused = true)]
async fn after_a_revoke_no_tool_tells_anything_of_what_was_seen() {
    let person = Person::allowing(BOTH);
    let script = on_secrets(&person);
    look_around(&script).await;
    for call in all_calls().iter().filter(|call| !call.starts_with("kill_app")) {
        let _ = script.call(call).await; // so that there is something to tell of each
    }
    look_around(&script).await;
    for grant in [Grant::NOTHING, CONTROL] {
        person.allows(grant);
        for call in all_calls() {
            let said = said(script.call(&call).await);
            assert!(!said.contains(CANARY), "{call}: {said}");
        }
    }
    person.allows(SCREEN);
    look_around(&script).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_revoke_overtakes_tells_nothing_of_what_it_saw() {
    let (mut overtaken, mut in_time) = (0, 0);
    for call in all_calls() {
        let tool = call.split(' ').next().unwrap();
        if consent::need(tool) == Surface::None {
            continue;
        }
        for after in [0, 15, 25, 45, 90, 200] {
            let person = Person::thinking(BOTH, Duration::from_millis(10));
            let script = on_secrets(&person);
            look_around(&script).await;
            let outcome = tokio::spawn(script.engine.invoke(script.parse(&call)));
            tokio::time::sleep(Duration::from_millis(after)).await;
            if outcome.is_finished() {
                in_time += 1;
                break;
            }
            person.allows(Grant::NOTHING);
            let outcome = outcome.await.unwrap();
            let code = outcome.as_ref().err().map(|error| error.code);
            let said = said(outcome);
            assert!(!said.contains(CANARY), "{call} after {after} ms: {said}");
            assert_eq!(code, Some(Code::ConsentRequired), "{call} after {after} ms: {said}");
            overtaken += 1;
        }
    }
    assert!(overtaken > 150 && in_time > 20, "{overtaken} {in_time}");
}

/// The consent column of the specification's table. A tool that is not in it needs both.
const TABLE: &[(&str, Surface)] = &[
    ("list_apps", Surface::Screen),
    ("list_windows", Surface::Screen),
    ("get_window_state", Surface::Screen),
    ("get_accessibility_tree", Surface::Screen),
    ("get_app_state", Surface::Screen),
    ("get_desktop_state", Surface::Screen),
    ("screenshot", Surface::Screen),
    ("zoom", Surface::Screen),
    ("find_text", Surface::Screen),
    ("get_screen_size", Surface::Screen),
    ("get_cursor_position", Surface::Screen),
    ("debug_window_info", Surface::Screen),
    ("wait_for", Surface::Screen),
    ("clipboard_read", Surface::Screen),
    ("start_recording", Surface::Screen),
    ("stop_recording", Surface::Screen),
    ("get_agent_cursor_state", Surface::None),
    ("get_recording_state", Surface::None),
    ("get_config", Surface::None),
    ("get_session", Surface::None),
    ("list_sessions", Surface::None),
    ("end_session", Surface::None),
    ("check_permissions", Surface::None),
    ("health_report", Surface::None),
];

#[test]
fn every_tool_that_is_listed_stands_in_the_table() {
    let expected = |name: &str| {
        TABLE.iter().find(|(known, _)| *known == name).map_or(Surface::Control, |(_, need)| *need)
    };
    for listed in tools::listing(Profile::Full) {
        assert_eq!(consent::need(&listed.name), expected(&listed.name), "{}", listed.name);
    }
    assert_eq!(tools::listing(Profile::Full).len(), tools::TOOLS.len());
    for (alias, target) in
        [("type_text_chars", "type_text"), ("double_click", "click"), ("right_click", "click")]
    {
        assert_eq!(consent::need(alias), consent::need(target));
    }
    for unclassified in ["page", "no_such_tool", ""] {
        assert_eq!(consent::need(unclassified), Surface::Control);
    }
}

#[test]
fn the_page_of_the_tools_has_the_same_column() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let page = std::fs::read_to_string(path).unwrap();
    for listed in tools::listing(Profile::Full) {
        let letter = match consent::need(&listed.name) {
            Surface::None => "–",
            Surface::Screen => "S",
            Surface::Control => "C",
        };
        let row = format!("| [`{0}`](#{0}) | {letter} |", listed.name);
        assert!(page.contains(&row), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_alias_is_refused_as_its_target() {
    let script = with(&Person::allowing(SCREEN));
    for call in [r#"type_text_chars {"text": "x"}"#, r#"right_click {"window_id": 1, "x": 5, "y": 5}"#] {
        refused(script.call(call).await, "control");
    }
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());
}
