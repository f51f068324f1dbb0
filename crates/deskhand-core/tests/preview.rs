//! The preview: what it shows, when it closes, and that nobody looks without leave.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::consent::{Background, ConsentSource, Grant, Refusal};
use deskhand_core::{Code, Host};
use deskhand_testkit::transcript::Script;
use serde_json::json;

const EDITOR: &str = r#"
window 1 "Editor" app=editor pid=100 800x600+100+50 focused
  push button "Save" @10,10 80x30 changes=2
  label "Draft"
  text "Body" @10,140 400x200 text="" focused multi-line
window 2 "Notes" app=notes pid=101 300x200+100+50
  push button "New" @10,10 80x30
"#;

const SAVE: &str = r#"click {"window_id": 1, "query": {"name": "Save"}}"#;
const NEW: &str = r#"click {"window_id": 2, "query": {"name": "New"}}"#;

fn shown(script: &Script) -> Vec<String> {
    script.desktop.take_captions()
}

/// What the preview came to say; nothing if it was left as it is.
fn last(script: &Script) -> String {
    shown(script).pop().unwrap_or_default()
}

/// Lets the preview take its next frame.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_off_unless_asked_for_and_then_the_whole_process_s() {
    let (first, second) = {
        let script = Script::new(EDITOR);
        (script.as_session("first"), script.as_session("second"))
    };
    first.call(SAVE).await.unwrap();
    a_moment().await;
    assert_eq!(shown(&first), [""; 0]);
    first.call(r#"set_config {"preview": true}"#).await.unwrap();
    let told = second.call("get_config").await.unwrap().structured;
    assert_eq!(
        (&told["settings"]["preview"], &told["origins"]["preview"]),
        (&json!(true), &json!("process"))
    );
    second.call("get_window_state {\"window_id\": 1}").await.unwrap();
    a_moment().await;
    assert_eq!(shown(&first), [""; 0], "reading is nothing to be seen");
    second.call(SAVE).await.unwrap();
    a_moment().await;
    assert_eq!(last(&first), "agent 2: click · confirmed · editor");
    let frame = first.desktop.preview_frame().unwrap();
    assert_eq!((frame.pixels.width, frame.pixels.height), (373, 280), "of a window of 800x600");
    first.call(NEW).await.unwrap();
    a_moment().await;
    assert_eq!(last(&first), "agent 1: click · unverifiable · notes");
    assert_eq!(first.desktop.preview_frame().unwrap().pixels.width, 300, "it is not enlarged");
    second.call(r#"set_config {"unset": ["preview"]}"#).await.unwrap();
    a_moment().await;
    assert_eq!(shown(&first), ["-"]);
    second.call(SAVE).await.unwrap();
    a_moment().await;
    assert_eq!(shown(&first), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn it_closes_when_nobody_acts_and_then_nothing_looks() {
    let host = Host { preview: Some(true), ..Host::default() };
    let script = Script::on(EDITOR, host);
    script.call(SAVE).await.unwrap();
    a_moment().await;
    assert_eq!(last(&script), "agent 1: click · confirmed · editor");
    tokio::time::sleep(Duration::from_secs(28)).await;
    assert_eq!(shown(&script), [""; 0], "it stays as it is");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(shown(&script), ["-"]);
    let captures = script.desktop.captures();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(script.desktop.captures(), captures);
    script.call(SAVE).await.unwrap();
    a_moment().await;
    assert_eq!(last(&script), "agent 1: click · confirmed · editor", "it opens again");
}

#[tokio::test(start_paused = true)]
async fn a_person_s_own_setting_counts_at_once() {
    let script = Script::on(EDITOR, Host { preview: Some(true), ..Host::default() });
    script.call(SAVE).await.unwrap();
    a_moment().await;
    script.anonymous().call(r#"set_config {"preview": false}"#).await.unwrap();
    a_moment().await;
    script.call(SAVE).await.unwrap();
    a_moment().await;
    assert_eq!(last(&script), "-");
    let told = script.call("get_config").await.unwrap().structured;
    assert_eq!(told["origins"]["preview"], "global");
}

#[tokio::test(start_paused = true)]
async fn what_a_call_came_to_is_told_and_one_that_never_began_is_not_shown() {
    let script = Script::on(EDITOR, Host { preview: Some(true), ..Host::default() });
    let error = script.call(r#"click {"window_id": 1, "query": {"name": "Nothing"}}"#).await.unwrap_err();
    assert_eq!(error.code, Code::ElementNotFound);
    a_moment().await;
    assert_eq!(last(&script), "agent 1: click · element not found · editor");
    script.call(r#"click {"window_id": "one"}"#).await.unwrap_err();
    a_moment().await;
    assert_eq!(shown(&script), [""; 0]);
    let press = r#"press_key {"key": "a", "repeat": 5}"#;
    script.desktop.set_key_time(Duration::from_millis(400));
    let call = script.call(press);
    let (during, outcome) = tokio::join!(
        async {
            a_moment().await;
            shown(&script)
        },
        call
    );
    outcome.unwrap();
    assert_eq!(during, ["agent 1: press_key … · editor"], "while it acts on what has the focus");
    a_moment().await;
    assert_eq!(last(&script), "agent 1: press_key · unverifiable · editor", "and when it is done");
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_gone_is_said_to_be() {
    let script = Script::on(EDITOR, Host { preview: Some(true), ..Host::default() });
    script.call(NEW).await.unwrap();
    a_moment().await;
    script.desktop.close_window(2);
    a_moment().await;
    assert_eq!(last(&script), "agent 1: click · unverifiable (it is gone)");
}

#[tokio::test(start_paused = true)]
async fn no_agent_closes_what_a_person_asked_for() {
    let script = Script::on(EDITOR, Host { preview: Some(true), ..Host::default() });
    let refused = script.call(r#"set_config {"preview": false, "max_elements": 7}"#).await.unwrap_err();
    assert_eq!(refused.code, Code::NotSupported);
    script.call(r#"set_config {"unset": ["preview"]}"#).await.unwrap();
    let told = script.call("get_config").await.unwrap().structured;
    assert_eq!(told["settings"]["preview"], true);
    assert_ne!(told["settings"]["max_elements"], 7, "what is refused changes nothing");
    // And none opens again what the person has closed since.
    script.anonymous().call(r#"set_config {"preview": false}"#).await.unwrap();
    script.call(r#"set_config {"unset": ["preview"]}"#).await.unwrap();
    let told = script.call("get_config").await.unwrap().structured;
    assert_eq!(told["settings"]["preview"], false);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finds_nothing_is_not_seen_at_another_s_window() {
    let script = Script::on(EDITOR, Host { preview: Some(true), ..Host::default() });
    script.call(SAVE).await.unwrap();
    a_moment().await;
    shown(&script);
    script.as_session("second").call(r#"click {"window_id": 77, "x": 5, "y": 5}"#).await.unwrap_err();
    a_moment().await;
    assert_eq!(shown(&script), [""; 0]);
}

/// A person who may take back what they allowed.
#[derive(Debug)]
struct Person(Mutex<bool>);

#[async_trait]
impl ConsentSource for Person {
    async fn grant(&self) -> Grant {
        let allowed = *self.0.lock().unwrap();
        Grant { joined: true, screen: allowed, control: true }
    }

    async fn refused(&self, _: Refusal) {}
}

fn watched(person: &Arc<Person>, background: Background) -> Script {
    let consent = Arc::clone(person) as _;
    Script::on(EDITOR, Host { consent, background, preview: Some(true), ..Host::default() })
}

#[tokio::test(start_paused = true)]
async fn a_revoke_closes_it_and_no_pixel_is_taken_any_more() {
    let person = Arc::new(Person(Mutex::new(true)));
    let script = watched(&person, Background::default());
    script.call(SAVE).await.unwrap();
    a_moment().await;
    assert_eq!(last(&script), "agent 1: click · confirmed · editor");
    *person.0.lock().unwrap() = false;
    let captures = script.desktop.captures();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(shown(&script), ["-"]);
    assert_eq!(script.desktop.captures(), captures);
    assert_eq!(script.call(SAVE).await.unwrap_err().code, Code::ConsentRequired);
    a_moment().await;
    assert_eq!(shown(&script), [""; 0]);
    *person.0.lock().unwrap() = true;
    script.call(SAVE).await.unwrap();
    a_moment().await;
    assert_eq!(last(&script), "agent 1: click · confirmed · editor");
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_closed_is_not_opened() {
    let person = Arc::new(Person(Mutex::new(true)));
    let script = watched(&person, Background::new(|_| false));
    a_moment().await;
    // The call itself may go on: it is asked for at each of its steps.
    let outcome = script.call(SAVE).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    a_moment().await;
    assert_eq!(shown(&script).iter().filter(|caption| *caption != "-").count(), 0);
}
