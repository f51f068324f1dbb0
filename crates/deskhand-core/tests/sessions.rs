//! Sessions: whose calls are accepted, what is told of them, and their end.

use std::time::Duration;

use deskhand_core::engine::{UNSTOPPABLE, UNSTOPPABLE_INPUT};
use deskhand_core::session::{IDLE_END, MAX_ENDED};
use deskhand_core::{Call, Code, Driver, Host, Limits, SessionId};
use deskhand_testkit::transcript::Script;
use serde_json::json;

const EDITOR: &str = r#"
window 1 "Editor" app=editor pid=100 800x600+100+50 focused
  push button "Save" @10,10 80x30
  text "Body" @10,140 400x200 text="" focused multi-line
"#;

const WAIT: &str = r#"wait_for {"condition": "window_opens", "title": "Never", "timeout_ms": 600000}"#;

fn id(name: &str) -> SessionId {
    SessionId::new(name)
}

/// Begins a call, and lets it come as far as it can at once.
async fn begin(script: &Script, line: &str) -> tokio::task::JoinHandle<deskhand_core::Outcome> {
    let call = tokio::spawn(script.engine.invoke(script.parse(line)));
    tokio::time::sleep(Duration::from_millis(1)).await;
    call
}

#[tokio::test(start_paused = true)]
async fn a_leased_id_is_accepted_with_its_lease_alone() {
    let mut script = Script::new(EDITOR);
    let lease = script.engine.open_session(&id("test"), true, Some("an\nagent")).unwrap();
    let stranger = script.call("get_session").await.unwrap_err();
    assert_eq!(stranger.code, Code::SessionInUse);
    assert_eq!(script.engine.open_session(&id("test"), false, None).unwrap_err().code, Code::SessionInUse);
    assert_eq!(script.engine.open_session(&id("test"), true, None).unwrap_err().code, Code::SessionInUse);
    // A lease of another session is none.
    let other = script.engine.open_session(&id("other"), true, None).unwrap();
    script.lease = other;
    assert_eq!(script.call("get_session").await.unwrap_err().code, Code::SessionInUse);
    script.lease = lease;
    let told = script.call("get_session").await.unwrap();
    assert_eq!((&told.structured["label"], &told.structured["leased"]), (&json!("anagent"), &json!(true)));
    script.engine.end_session(id("test")).await;
    assert_eq!(script.call("get_session").await.unwrap_err().code, Code::SessionEnded);
    assert_eq!(script.engine.open_session(&id("test"), true, None).unwrap_err().code, Code::SessionEnded);
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_lease_ends_when_it_has_been_idle() {
    let script = Script::new(EDITOR);
    let leased = script.engine.open_session(&id("leased"), true, None).unwrap();
    script.call("list_windows").await.unwrap();
    let mut named = script.engine.named_sessions();
    assert_eq!(*named.borrow_and_update(), 2);
    tokio::time::sleep(IDLE_END - Duration::from_secs(1)).await;
    script.call("list_windows").await.unwrap(); // which is activity
    tokio::time::sleep(IDLE_END - Duration::from_secs(1)).await;
    assert_eq!(script.engine.sessions().len(), 2);
    tokio::time::timeout(Duration::from_secs(2), named.changed()).await.unwrap().unwrap();
    assert_eq!(*named.borrow(), 1);
    assert_eq!(script.call("list_windows").await.unwrap_err().code, Code::SessionEnded);
    let leased = Script { lease: leased, ..script.as_session("leased") };
    tokio::time::sleep(3 * IDLE_END).await;
    leased.call("list_windows").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_is_not_idle() {
    let script = Script::on(EDITOR, Host { session_idle: Some(Duration::from_secs(5)), ..Host::default() });
    let waiting = begin(&script, WAIT).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(script.engine.sessions().len(), 1);
    script.desktop.open_window("Never", 7);
    waiting.await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(script.engine.sessions().len(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(script.engine.sessions().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_cancelled_call_stays_readable() {
    let script = Script::new(EDITOR);
    script.desktop.set_key_time(Duration::from_millis(10));
    let call = script.parse(r#"type_text {"text": "secret words", "delivery": "foreground"}"#);
    let cancel = call.cancel.clone();
    let typing = tokio::spawn(script.engine.invoke(call));
    tokio::time::sleep(Duration::from_millis(55)).await;
    let queued = begin(&script, r#"press_key {"key": "F5"}"#).await;
    let running = script.call("get_session").await.unwrap();
    assert_eq!(running.structured["calls"].as_array().unwrap().len(), 2, "{}", running.structured);
    cancel.cancel();
    typing.await.unwrap().unwrap_err();
    queued.await.unwrap().unwrap();
    let told = script.call("get_session").await.unwrap();
    let past = told.structured["last_calls"].as_array().unwrap();
    let typed = past.iter().find(|call| call["tool"] == "type_text").unwrap();
    assert_eq!(typed["arguments"], json!(["text", "delivery"]));
    assert_eq!((&typed["code"], &typed["delivery"]), (&json!("cancelled"), &json!("partial")));
    let (done, total) = (typed["done"].as_u64().unwrap(), typed["total"].as_u64().unwrap());
    assert!(done > 0 && done < 12 && total == 12, "{typed}");
    assert!(past.iter().any(|call| call["tool"] == "press_key" && call["effect"].is_string()), "{past:?}");
    assert!(told.text.contains("type_text(text, delivery): cancelled, partial ("), "{}", told.text);
    assert!(!told.structured.to_string().contains("secret") && !told.text.contains("secret"));
    assert_eq!(told.structured["calls"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_caller_goes_away_is_stopped_and_told_all_the_same() {
    let script = Script::new(EDITOR);
    script.desktop.set_key_time(Duration::from_millis(10));
    let typing = begin(&script, r#"type_text {"text": "abcdefghij", "delivery": "foreground"}"#).await;
    drop(script.engine.invoke(script.parse(r#"press_key {"key": "F5"}"#))); // never begun
    tokio::time::sleep(Duration::from_millis(50)).await;
    typing.abort();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told = script.call("get_session").await.unwrap().structured;
    let past = told["last_calls"].as_array().unwrap();
    assert_eq!((&past[0]["tool"], &past[0]["delivery"]), (&json!("press_key"), &json!("not_delivered")));
    assert_eq!((&past[1]["tool"], &past[1]["delivery"]), (&json!("type_text"), &json!("partial")));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_stops_its_calls_and_is_awaited_by_all_who_end_it() {
    let script = Script::new(EDITOR);
    script.desktop.set_key_time(Duration::from_millis(50));
    script.call(r#"set_config {"max_elements": 7}"#).await.unwrap();
    let typing = begin(&script, r#"type_text {"text": "abcdefghij", "delivery": "foreground"}"#).await;
    let other = script.as_session("other");
    let others = begin(&other, r#"press_key {"key": "F6"}"#).await;
    let named = script.engine.named_sessions();
    tokio::time::sleep(Duration::from_millis(120)).await;
    let ends = (0..3).map(|_| script.engine.end_session(id("test")));
    futures_util::future::join_all(ends).await;
    assert_eq!(*named.borrow(), 1);
    let error = typing.await.unwrap().unwrap_err();
    assert_eq!((error.code, &error.details.unwrap()["delivery"]), (Code::SessionEnded, &json!("partial")));
    others.await.unwrap().unwrap();
    let journal = script.desktop.take_journal();
    assert!(journal[0].starts_with("type \"abc") && journal[1] == "press [] F6 x1", "{journal:?}");
    script.engine.end_session(id("test")).await; // once more is no error
    assert_eq!(script.call("list_windows").await.unwrap_err().code, Code::SessionEnded);
}

#[tokio::test(start_paused = true)]
async fn the_clean_up_goes_on_when_its_caller_does_not_wait() {
    let script = Script::new(EDITOR);
    let waiting = begin(&script, WAIT).await;
    drop(script.engine.end_session(id("test"))); // never polled: nothing has begun
    assert_eq!(script.engine.sessions().len(), 1);
    let ending = tokio::time::timeout(Duration::ZERO, script.engine.end_session(id("test"))).await;
    assert!(ending.is_err());
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::SessionEnded);
    let mut named = script.engine.named_sessions();
    named.wait_for(|count| *count == 0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_waits_for_no_other() {
    let script = Script::new(EDITOR);
    script.desktop.set_key_time(Duration::from_secs(5));
    let others =
        begin(&script.as_session("other"), r#"type_text {"text": "a", "delivery": "foreground"}"#).await;
    let queued = begin(&script, r#"press_key {"key": "F5"}"#).await;
    let before = tokio::time::Instant::now();
    script.engine.end_session(id("test")).await;
    assert!(before.elapsed() < Duration::from_millis(10), "{:?}", before.elapsed());
    assert_eq!(queued.await.unwrap().unwrap_err().code, Code::SessionEnded);
    others.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_itself_and_is_answered() {
    let script = Script::new(EDITOR);
    let waiting = begin(&script, WAIT).await;
    let ended = script.call("end_session").await.unwrap();
    assert_eq!(ended.structured, json!({"session": "test", "cleaned_up": true}));
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::SessionEnded);
    assert_eq!(script.call("get_session").await.unwrap_err().code, Code::SessionEnded);
}

#[tokio::test(start_paused = true)]
async fn a_session_sees_itself_alone_and_the_operator_sees_all() {
    let a = Script::new(EDITOR);
    let b = a.as_session("b");
    a.call("list_windows").await.unwrap();
    b.call("list_windows").await.unwrap();
    let own = a.call("list_sessions").await.unwrap().structured;
    assert_eq!(own["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(own["sessions"][0]["session"], "test");
    let mut refusals = Vec::new();
    for tool in ["get_session", "end_session"] {
        for other in ["b", "no-such-session"] {
            refusals.push(a.call(&format!(r#"{tool} {{"session": "{other}"}}"#)).await.unwrap_err());
        }
    }
    assert!(refusals.iter().all(|error| *error == refusals[0] && error.code == Code::UnknownHandle));
    a.call(r#"get_session {"session": "test"}"#).await.unwrap();

    let operator = a.anonymous();
    let all = operator.call("list_sessions").await.unwrap();
    assert_eq!(all.structured["sessions"].as_array().unwrap().len(), 2, "{}", all.text);
    let told = operator.call(r#"get_session {"session": "b"}"#).await.unwrap().structured;
    assert_eq!(told["last_calls"][0]["tool"], "list_windows");
    assert_eq!(operator.call("end_session").await.unwrap_err().code, Code::InvalidArgument);
    operator.call(r#"end_session {"session": "b"}"#).await.unwrap();
    assert_eq!(b.call("list_windows").await.unwrap_err().code, Code::SessionEnded);
    let gone = operator.call(r#"end_session {"session": "b"}"#).await.unwrap_err();
    assert_eq!(gone.code, Code::UnknownHandle);
}

#[tokio::test(start_paused = true)]
async fn nothing_of_one_session_can_be_used_in_another() {
    let a = Script::new(EDITOR);
    let b = a.as_session("b");
    a.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    let shot = a.call(r#"screenshot {"window_id": 1}"#).await.unwrap();
    assert!(shot.text.contains("picture p1"), "{}", shot.text);
    for other in [&b, &a.anonymous()] {
        for (call, code) in [
            (r#"click {"window_id": 1, "element_index": 1}"#.to_owned(), Code::StaleSnapshot),
            (
                r#"click {"window_id": 1, "element_index": 1, "snapshot_id": "s1"}"#.to_owned(),
                Code::UnknownHandle,
            ),
            (r#"get_window_state {"window_id": 1, "since": "s1"}"#.to_owned(), Code::UnknownHandle),
            (
                r#"click {"x": 5, "y": 5, "space": "image", "picture_id": "p1"}"#.to_owned(),
                Code::UnknownHandle,
            ),
        ] {
            let error = other.call(&call).await.unwrap_err();
            assert_eq!(error.code, code, "{call}: {error}");
        }
    }
    assert_eq!(a.desktop.take_journal(), Vec::<String>::new());
    // A call that names no session keeps nothing for the next one.
    a.anonymous().call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    let error = a.anonymous().call(r#"click {"window_id": 1, "element_index": 1}"#).await.unwrap_err();
    assert_eq!(error.code, Code::StaleSnapshot);
}

/// The numbers of the elements of an answer, with their lines.
fn numbered(text: &str) -> Vec<(u32, String)> {
    let number = |line: &str| {
        let (number, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
        Some((number.parse().ok()?, rest.trim().to_owned()))
    };
    text.lines().filter_map(number).collect()
}

#[tokio::test(start_paused = true)]
async fn an_index_is_never_another_element_after_its_snapshots_were_dropped() {
    const TWO: &str = r#"
window 1 "Form" pid=100 400x300+0+0 focused
  button "Delete" @10,10 80x30
  check box "Wrap" @10,50 80x30
  check box "Lines" @10,90 80x30
window 2 "Other" pid=200 100x100+0+0
  button "OK" @10,10 80x30
"#;
    let limits = Limits { snapshots: 2, ..Limits::default() };
    let script = Script::on(TWO, Host { limits, ..Host::default() });
    let read = r#"get_window_state {"window_id": 1}"#;
    let mut known = numbered(&script.call(read).await.unwrap().text);
    assert!(known.len() >= 4, "{known:?}");
    for round in 0..4_u32 {
        if round == 1 {
            script.desktop.remove_element(1, 1); // what follows it would be numbered otherwise
        }
        for _ in 0..3 {
            script.call(r#"get_window_state {"window_id": 2}"#).await.unwrap();
        }
        let fresh = numbered(&script.call(read).await.unwrap().text);
        assert!(!fresh.is_empty());
        for (index, line) in &known {
            let call = format!(r#"click {{"window_id": 1, "element_index": {index}}}"#);
            let error = script.call(&call).await.unwrap_err();
            assert!(
                matches!(error.code, Code::ElementGone | Code::StaleSnapshot),
                "round {round}: [{index}] {line}: {error}"
            );
            assert!(fresh.iter().all(|(new, _)| new != index), "[{index}] was {line}: {fresh:?}");
        }
        known.extend(fresh);
    }
}

#[tokio::test(start_paused = true)]
async fn limits_are_named_with_their_value() {
    let limits = Limits { sessions: 2, calls: 2, snapshots: 1, ..Limits::default() };
    let script = Script::on(EDITOR, Host { limits, ..Host::default() });
    for _ in 0..2 {
        script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    }
    let old = script.call(r#"click {"window_id": 1, "element_index": 1, "snapshot_id": "s1"}"#).await;
    assert_eq!(old.unwrap_err().code, Code::StaleSnapshot);
    let _waiting = (begin(&script, WAIT).await, begin(&script, WAIT).await);
    let error = script.call("list_windows").await.unwrap_err();
    assert_eq!(
        (error.code, error.details),
        (Code::LimitExceeded, Some(json!({"limit": "calls", "value": 2})))
    );
    script.as_session("b").call("list_windows").await.unwrap();
    let error = script.as_session("c").call("list_windows").await.unwrap_err();
    assert_eq!(
        (error.code, error.details),
        (Code::LimitExceeded, Some(json!({"limit": "sessions", "value": 2})))
    );
    assert!(error.message.contains("`sessions` is 2"), "{}", error.message);
    script.anonymous().call("list_windows").await.unwrap();
    script.engine.end_session(id("b")).await;
    script.as_session("c").call("list_windows").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ended_ids_are_remembered_and_bounded() {
    let script = Script::new(EDITOR);
    for number in 0..=MAX_ENDED {
        let name = format!("s{number}");
        script.engine.open_session(&id(&name), false, None).unwrap();
        script.engine.end_session(id(&name)).await;
    }
    let newest = format!("s{MAX_ENDED}");
    assert_eq!(script.as_session(&newest).call("get_session").await.unwrap_err().code, Code::SessionEnded);
    assert_eq!(script.as_session("s1").call("get_session").await.unwrap_err().code, Code::SessionEnded);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_cannot_be_stopped_is_the_end_of_the_process() {
    let script = Script::new(EDITOR);
    script.desktop.set_keyboard_stuck(true);
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    let failed = script.engine.failed();
    let call = script.parse(r#"type_text {"text": "a", "delivery": "foreground"}"#);
    let cancel = call.cancel.clone();
    let stuck = tokio::spawn(script.engine.invoke(call));
    let other = script.as_session("other");
    let queued = begin(&other, r#"press_key {"key": "F5"}"#).await;
    let waiting = begin(&other, WAIT).await;
    cancel.cancel();
    let error = stuck.await.unwrap().unwrap_err();
    assert_eq!((error.code, &error.details.unwrap()["delivery"]), (Code::Cancelled, &json!("uncertain")));
    assert!(!failed.is_cancelled());
    tokio::time::timeout(UNSTOPPABLE_INPUT, failed.cancelled()).await.unwrap();
    // Nobody waits for what will not come.
    assert_eq!(queued.await.unwrap().unwrap_err().code, Code::ProcessFailed);
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::ProcessFailed);
    let refused = script.engine.invoke(Call::anonymous("list_windows", serde_json::Map::new())).await;
    assert_eq!(refused.unwrap_err().code, Code::ProcessFailed);
    assert_eq!(script.engine.sessions().iter().map(|session| session.snapshots).sum::<usize>(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_cannot_be_stopped_is_no_such_end() {
    let script = Script::new(EDITOR);
    script.desktop.set_reading_stuck(true);
    let call = script.parse(r#"get_window_state {"window_id": 1}"#);
    let cancel = call.cancel.clone();
    let reading = tokio::spawn(script.engine.invoke(call));
    let late = begin(&script, r#"get_accessibility_tree {"window_id": 1}"#).await;
    cancel.cancel();
    // It read, so that there is nothing to say of delivery.
    let cancelled = reading.await.unwrap().unwrap_err();
    assert_eq!((cancelled.code, &cancelled.details), (Code::Cancelled, &None), "{}", cancelled.message);
    let late = late.await.unwrap().unwrap_err();
    assert_eq!((late.code, &late.details), (Code::Timeout, &None), "{}", late.message);
    for error in [cancelled, late] {
        assert!(
            !error.message.contains("deliver") && !error.message.contains("uncertain"),
            "{}",
            error.message
        );
    }
    script.desktop.set_reading_stuck(false);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!script.engine.failed().is_cancelled());
    script.call("list_windows").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_display_server_that_does_not_answer_is_no_such_end() {
    let script = Script::new(EDITOR);
    script.desktop.set_silent(true);
    let error = script.call(r#"type_text {"text": "a", "delivery": "foreground"}"#).await.unwrap_err();
    assert_eq!(error.code, Code::DesktopNotResponding);
    assert_eq!(error.details, Some(json!({"delivery": "uncertain"})));
    script.desktop.set_silent(false);
    tokio::time::sleep(2 * UNSTOPPABLE).await;
    assert!(!script.engine.failed().is_cancelled());
    script.call(r#"type_text {"text": "a", "delivery": "foreground"}"#).await.unwrap();
    let told = script.call("get_session").await.unwrap().structured;
    let typed: Vec<_> = told["last_calls"].as_array().unwrap().iter().map(|call| &call["delivery"]).collect();
    assert_eq!(typed, [&json!("uncertain"), &json!(null)]);
}
