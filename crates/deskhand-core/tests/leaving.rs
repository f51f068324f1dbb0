//! What becomes of calls when their client leaves.

use std::time::Duration;

use deskhand_core::{Code, Driver, SessionId};
use deskhand_testkit::transcript::Script;

const EDITOR: &str = r#"
window 1 "Editor" app=editor pid=100 800x600+100+50 focused
  text "Body" @10,140 400x200 text="" focused multi-line
"#;

#[tokio::test(start_paused = true)]
async fn a_call_at_work_goes_on_and_one_in_the_queue_is_never_begun() {
    let script = Script::new(EDITOR);
    script.desktop.set_key_time(Duration::from_millis(10));
    let working = tokio::spawn(script.engine.invoke(script.parse(r#"type_text {"text": "abc"}"#)));
    let queued = tokio::spawn(script.engine.invoke(script.parse(r#"press_key {"key": "F5"}"#)));
    let other = script.as_session("other");
    let others = tokio::spawn(script.engine.invoke(other.parse(r#"press_key {"key": "F6"}"#)));
    tokio::time::sleep(Duration::from_millis(15)).await;
    script.engine.leave(&SessionId::new("test"));
    assert_eq!(queued.await.unwrap().unwrap_err().code, Code::SessionEnded);
    working.await.unwrap().unwrap();
    others.await.unwrap().unwrap();
    assert_eq!(script.desktop.take_journal(), ["type \"abc\"", "press [] F6 x1"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_condition_is_at_work() {
    let script = Script::new(EDITOR);
    let call = r#"wait_for {"condition": "window_opens", "title": "Print", "timeout_ms": 1000}"#;
    let waiting = tokio::spawn(script.engine.invoke(script.parse(call)));
    tokio::time::sleep(Duration::from_millis(100)).await;
    script.engine.leave(&SessionId::new("test"));
    script.desktop.open_window("Print", 200);
    waiting.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_had_come_is_run() {
    let script = Script::new(EDITOR);
    script.desktop.set_key_time(Duration::from_millis(10));
    let first = script.engine.invoke(script.parse(r#"type_text {"text": "abc"}"#));
    let second = script.engine.invoke(script.parse(r#"press_key {"key": "F6"}"#));
    script.engine.leave(&SessionId::new("test"));
    let (first, second) = (tokio::spawn(first), tokio::spawn(second));
    assert_eq!(second.await.unwrap().unwrap_err().code, Code::SessionEnded);
    first.await.unwrap().unwrap();
    assert_eq!(script.desktop.take_journal(), ["type \"abc\""]);
}
