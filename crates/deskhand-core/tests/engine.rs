//! The engine on a fake desktop: calls in, transcript out.

use std::time::Duration;

use deskhand_core::desktop::{WindowId, Windows};
use deskhand_core::{Code, SessionId};
use deskhand_testkit::transcript::Script;
use serde_json::json;

const EDITOR: &str = r#"
window 1 "Editor" app=editor pid=100 800x600+100+50 focused
  push button "Save" @10,10 80x30 changes=4
  check box "Wrap" @10,50 80x20
  push button "Print" @10,100 80x30 disabled
  label "ready"
  text "Body" @10,140 400x200 text="abc" focused multi-line
  push button "Silent" @200,10 80x30 silent-is-not-a-word
"#;

fn editor() -> Script {
    Script::new(&EDITOR.replace(" silent-is-not-a-word", ""))
}

fn assert_transcript(transcript: &str, expected: &str) {
    assert_eq!(transcript.trim(), expected.trim(), "\n--- transcript ---\n{transcript}");
}

#[tokio::test(start_paused = true)]
async fn a_window_is_read_and_its_elements_are_clicked_in_the_background() {
    let transcript = editor()
        .run(
            r#"
get_window_state {"window_id": 1}
click {"window_id": 1, "element_index": 1}
click {"window_id": 1, "element_index": 2}
click {"window_id": 1, "element_index": 3}
"#,
        )
        .await;
    assert_transcript(
        &transcript,
        r#"
> get_window_state {"window_id": 1}
window 1 "Editor" "editor" pid 100 800x600 at 100,50 focused
snapshot s1: 7 of 7 elements
[0] frame "Editor"
 [1] button "Save"
 [2] check box "Wrap" unchecked
 [3] button "Print" disabled
 [4] label "ready"
 [5] text "Body" focused text="abc"
 [6] button "Silent"
> click {"window_id": 1, "element_index": 1}
confirmed by ax_action: [4] name changed
  * use push button "Save"
> click {"window_id": 1, "element_index": 2}
confirmed by ax_action: unchecked → checked
  * use check box "Wrap"
> click {"window_id": 1, "element_index": 3}
not_supported: [3] button "Print" is disabled; nothing was done
"#,
    );
}

#[tokio::test(start_paused = true)]
async fn f53_a_click_without_a_visible_effect_is_not_called_confirmed() {
    let script = Script::new(
        r#"
window 1 "Editor" app=editor pid=100 800x600+100+50 focused
  check box "Stuck" @10,10 80x20 dead
  push button "Quiet" @10,40 80x20
"#,
    );
    let transcript = script
        .run(
            r#"
get_window_state {"window_id": 1}
click {"window_id": 1, "element_index": 1}
click {"window_id": 1, "element_index": 2}
"#,
        )
        .await;
    assert!(transcript.contains("suspected_noop by ax_action: unchecked → unchecked"), "{transcript}");
    assert!(transcript.contains("unverifiable by ax_action; no change was seen"), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_ticks_by_itself_is_no_evidence() {
    let script = editor();
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    let clock = script.desktop.clone();
    let ticking = tokio::spawn(async move {
        for tick in 0..40 {
            clock.rename_element(1, 4, &format!("tick {tick}"));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    tokio::time::sleep(Duration::from_millis(250)).await;
    let answer = script.call(r#"click {"window_id": 1, "element_index": 6}"#).await.unwrap();
    assert_eq!(answer.structured["effect"], "unverifiable", "{}", answer.text);
    ticking.abort();
}

#[tokio::test(start_paused = true)]
async fn f35_an_element_that_is_gone_is_not_replaced_by_what_is_there_now() {
    let script = editor();
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    script.desktop.remove_element(1, 1);
    let error = script.call(r#"click {"window_id": 1, "element_index": 1}"#).await.unwrap_err();
    assert_eq!(error.code, Code::ElementGone);
    script.desktop.close_window(1);
    let error = script.call(r#"click {"window_id": 1, "element_index": 2}"#).await.unwrap_err();
    assert_eq!(error.code, Code::WindowGone);
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn f35_a_row_that_shows_something_else_now_is_stale() {
    let script = Script::new("window 1 \"List\" pid=1 400x300+0+0\n  list item \"Row 1\" @0,0 400x20\n");
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    script.desktop.rename_element(1, 1, "Row 100");
    let error = script.call(r#"click {"window_id": 1, "element_index": 1}"#).await.unwrap_err();
    assert_eq!(error.code, Code::StaleSnapshot);
    assert!(error.message.contains("was list item \"Row 1\" and is list item \"Row 100\" now"), "{error}");
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn f54_a_covered_point_is_refused_and_its_cover_named() {
    let script = Script::new(
        r#"
window 1 "Editor" app=editor pid=100 800x600+100+50
  push button "Save" @10,10 80x30
window 2 "Panel always on top" app=panel pid=200 300x100+100+50
"#,
    );
    let transcript = script
        .run(
            r#"
get_window_state {"window_id": 1}
click {"window_id": 1, "element_index": 1, "delivery": "foreground"}
click {"window_id": 1, "x": 20, "y": 20}
click {"window_id": 1, "x": 400, "y": 300}
"#,
        )
        .await;
    let occluded = "occluded: at 150,75 lies window 2 \"Panel always on top\" of \"panel\", not window 1; nothing was done";
    assert!(transcript.contains(occluded), "{transcript}");
    assert!(transcript.contains("occluded: at 120,70 lies window 2"), "{transcript}");
    assert!(transcript.contains("* left click 500,350 x1"), "{transcript}");
    assert_eq!(transcript.matches("* left click").count(), 1, "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn text_is_written_read_back_and_falls_back_to_keys() {
    let script = Script::new(
        r#"
window 1 "Form" app=form pid=100 800x600+0+0 focused
  entry "Name" @10,10 200x30 text="Ada"
  entry "Liar" @10,50 200x30 text="" dead
  entry "Keys" @10,90 200x30 text="x" no-editable-text
  password text "Secret" @10,130 200x30
"#,
    );
    let transcript = script
        .run(
            r#"
get_window_state {"window_id": 1}
type_text {"window_id": 1, "element_index": 1, "text": " Lovelace 漢字 😀"}
type_text {"window_id": 1, "element_index": 1, "text": "new", "clear": true}
type_text {"window_id": 1, "element_index": 2, "text": "hi", "delivery": "background"}
type_text {"window_id": 1, "element_index": 3, "text": "yz"}
type_text {"window_id": 1, "element_index": 3, "text": "💩"}
type_text {"window_id": 1, "text": "!"}
"#,
        )
        .await;
    assert_transcript(
        &transcript,
        r#"
> get_window_state {"window_id": 1}
window 1 "Form" "form" pid 100 800x600 at 0,0 focused
snapshot s1: 5 of 5 elements
[0] frame "Form"
 [1] entry "Name" text="Ada"
 [2] entry "Liar" text=""
 [3] entry "Keys" text="x"
 [4] password text "Secret"
> type_text {"window_id": 1, "element_index": 1, "text": " Lovelace 漢字 😀"}
confirmed by ax_text: "Ada" → "Ada Lovelace 漢字 😀"
  * write "Name"
> type_text {"window_id": 1, "element_index": 1, "text": "new", "clear": true}
confirmed by ax_text: "Ada Lovelace 漢字 😀" → "new"
  * write "Name"
> type_text {"window_id": 1, "element_index": 2, "text": "hi", "delivery": "background"}
not_supported: [2] entry "Liar" cannot be written to in the background; nothing was typed; use delivery "foreground"
> type_text {"window_id": 1, "element_index": 3, "text": "yz"}
confirmed by keyboard: "x" → "xyz"
  * type "yz"
> type_text {"window_id": 1, "element_index": 3, "text": "💩"}
untypable: '💩' cannot be typed here
> type_text {"window_id": 1, "text": "!"}
confirmed by keyboard: "xyz" → "xyz!"
  * type "!"
"#,
    );
}

#[tokio::test(start_paused = true)]
async fn values_are_set_and_read_back() {
    let script = Script::new(
        r#"
window 1 "Mixer" app=mixer pid=100 800x600+0+0 focused
  slider "Volume" @10,10 200x30 value=0..100=30
  slider "Stuck" @10,50 200x30 value=0..100=30 dead
  check box "Mute" @10,90 200x30
"#,
    );
    let transcript = script
        .run(
            r#"
get_window_state {"window_id": 1}
set_value {"window_id": 1, "element_index": 1, "value": 55}
set_value {"window_id": 1, "element_index": 1, "value": "12.5"}
set_value {"window_id": 1, "element_index": 1, "value": 300}
set_value {"window_id": 1, "element_index": 2, "value": 55}
set_value {"window_id": 1, "element_index": 3, "value": true}
set_value {"window_id": 1, "element_index": 3, "value": "on"}
set_value {"window_id": 1, "element_index": 3, "value": "purple"}
set_value {"window_id": 1, "element_index": 0, "value": 1}
"#,
        )
        .await;
    assert_transcript(
        &transcript,
        r#"
> get_window_state {"window_id": 1}
window 1 "Mixer" "mixer" pid 100 800x600 at 0,0 focused
snapshot s1: 4 of 4 elements
[0] frame "Mixer"
 [1] slider "Volume" value=30 (0..100)
 [2] slider "Stuck" value=30 (0..100)
 [3] check box "Mute" unchecked
> set_value {"window_id": 1, "element_index": 1, "value": 55}
confirmed by ax_value: 30 → 55
> set_value {"window_id": 1, "element_index": 1, "value": "12.5"}
confirmed by ax_value: 55 → 12.5
> set_value {"window_id": 1, "element_index": 1, "value": 300}
invalid_argument: argument `value`: 300 is out of range; expected 0 to 100
> set_value {"window_id": 1, "element_index": 2, "value": 55}
suspected_noop by keyboard: 30 → 30; it takes neither a value nor keys; drag it
  * press [] Right x1
> set_value {"window_id": 1, "element_index": 3, "value": true}
confirmed by ax_action: unchecked → checked
  * use check box "Mute"
> set_value {"window_id": 1, "element_index": 3, "value": "on"}
confirmed by ax_value: [3] check box "Mute" was so already
> set_value {"window_id": 1, "element_index": 3, "value": "purple"}
invalid_argument: argument `value`: expected true or false for [3] check box "Mute"
> set_value {"window_id": 1, "element_index": 0, "value": 1}
not_supported: [0] frame "Mixer" holds no value that could be set; nothing was done; if it switches or opens something, click it
"#,
    );
}

#[tokio::test(start_paused = true)]
async fn bad_arguments_name_the_field_and_what_was_expected() {
    let script = editor();
    let cases = [
        (r#"click {}"#, "argument `element_index`: missing; expected `element_index` or `query`"),
        (r#"click {"window_id": 1, "query": {}}"#, "argument `query`: expected `role`, `name` or `value`"),
        (r#"click {"window_id": 1, "query": {"label": "x"}}"#, "argument `query.label`: unknown field"),
        (
            r#"click {"window_id": "one", "element_index": 1}"#,
            "argument `window_id`: invalid type: string \"one\"",
        ),
        (
            r#"click {"window_id": -1, "element_index": 1}"#,
            "argument `window_id`: invalid value: integer `-1`",
        ),
        (
            r#"click {"window_id": 1, "element_index": 1.5}"#,
            "argument `element_index`: invalid type: number `1.5`, expected a whole number of 0 or more",
        ),
        (
            r#"click {"window_id": 1, "element_index": 1, "colour": "red"}"#,
            "unknown field `colour`, expected one of",
        ),
        (
            r#"click {"window_id": 1, "query": ["Save"]}"#,
            "argument `query`: invalid type: array, expected an object",
        ),
        (
            r#"set_value {"window_id": 1, "element_index": 1, "value": [1]}"#,
            "argument `value`: invalid type, expected a string, a number, or true or false",
        ),
        (
            r#"hotkey {"keys": "ctrl+s"}"#,
            "argument `keys`: invalid type: string \"ctrl+s\", expected an array",
        ),
        (r#"press_key {"key": "ctrl+"}"#, "argument `key`: expected key names"),
        (r#"click {"window_id": 1, "x": 3}"#, "argument `y`: missing"),
        (r#"click {"window_id": 1, "x": 3, "y": 1e300}"#, "argument `y`"),
        (r#"click {"window_id": 1, "x": 5000, "y": 3}"#, "is on no display"),
        (
            r#"click {"window_id": 1, "x": 900, "y": 3}"#,
            "the point is outside of window 1, which is 800x600 at 100,50",
        ),
        (
            r#"click {"window_id": 1, "x": 3, "y": 3, "space": "image"}"#,
            "argument `space`: this session was given no picture",
        ),
        (
            r#"click {"window_id": 1, "element_index": 1, "count": 9}"#,
            "argument `count`: 9 is out of range; expected 1 to 4",
        ),
        (
            r#"click {"window_id": 1, "element_index": 1, "button": "left side"}"#,
            "unknown variant `left side`",
        ),
        (
            r#"click {"window_id": 1, "element_index": 1, "modifiers": ["hyper"]}"#,
            "argument `modifiers[0]`: unknown variant",
        ),
        (r#"click {"window_id": 77, "x": 1, "y": 1}"#, "there is no window 77; list_windows shows"),
        (r#"click {"window_id": 1, "element_index": 1}"#, "no snapshot of window 1"),
        (r#"type_text {"text": ""}"#, "argument `text`: is empty"),
        (r#"type_text {"text": "a\u0007"}"#, "argument `text`: contains the control character U+0007"),
        (r#"press_key {"key": "a+b"}"#, "argument `key`: expected modifiers and one key"),
        (r#"press_key {"key": "NoSuchKey"}"#, "the key \"NoSuchKey\" cannot be typed here"),
        (r#"set_config {"max_image_dimension": 3}"#, "argument `max_image_dimension`: 3 is out of range"),
        (r#"set_config {"unset": ["volume"]}"#, "argument `unset`: there is no such setting"),
        (r#"get_window_state {}"#, "argument `window_id`: missing"),
        (r#"get_window_state {"app": "nothing"}"#, "no window of an application called \"nothing\""),
        (r#"screenshot {"display": 4}"#, "argument `display`: there is 1 display"),
        (r#"screenshot {"out_file": "here.png"}"#, "argument `out_file`: expected an absolute path"),
        (r#"wait_for {"condition": "element_appears", "window_id": 1}"#, "argument `name`: missing"),
        (r#"wait_for {"condition": "full moon"}"#, "argument `condition`: unknown variant `full moon`"),
        (r#"kill_app {}"#, "argument `pid`: missing"),
        (r#"launch_app {"app": "nothing"}"#, "there is no application or command \"nothing\""),
        (r#"fly {}"#, "there is no tool `fly`"),
    ];
    for (call, expected) in cases {
        let error = script.call(call).await.unwrap_err();
        assert!(
            error.message.contains(expected),
            "{call}\n  answered {}: {error}\n  expected {expected}",
            error.code
        );
    }
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn arguments_that_begin_with_an_underscore_are_not_seen() {
    let answer = editor().call(r#"list_windows {"_session_id": "other", "_meta": 1}"#).await.unwrap();
    assert_eq!(answer.structured["windows"][0]["window_id"], 1);
}

#[tokio::test(start_paused = true)]
async fn windows_are_listed_as_the_contract_has_them() {
    let answer = editor().call("list_windows").await.unwrap();
    assert_eq!(
        answer.structured,
        json!({"windows": [{
            "window_id": 1, "pid": 100, "app": "editor", "title": "Editor",
            "frame": {"x": 100, "y": 50, "width": 800, "height": 600},
            "focused": true, "minimized": false, "z": 0, "kind": "normal",
        }]})
    );
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_one_session_acts_in_the_order_it_was_submitted() {
    let script = editor();
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    script.desktop.take_journal();
    script.desktop.set_key_time(Duration::from_millis(1));
    let mut expected = Vec::new();
    let mut calls = Vec::new();
    for number in 0..200 {
        let (call, entry) = match number % 3 {
            0 => (format!(r#"type_text {{"text": "{number}"}}"#), format!("type \"{number}\"")),
            1 => (r#"press_key {"key": "F5"}"#.to_owned(), "press [] F5 x1".to_owned()),
            _ => (r#"click {"x": 900, "y": 600}"#.to_owned(), "left click 900,600 x1".to_owned()),
        };
        expected.push(entry);
        calls.push(tokio::spawn(script.engine.invoke(script.parse(&call))));
    }
    // Polled last to first: the order is that of submission, not of polling.
    while let Some(call) = calls.pop() {
        call.await.unwrap().unwrap();
    }
    assert_eq!(script.desktop.take_journal(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_wait_does_not_delay_other_calls_and_ends_when_they_make_it_true() {
    let script = editor();
    let waiting = tokio::spawn(
        script.engine.invoke(script.parse(r#"wait_for {"condition": "window_opens", "title": "Print"}"#)),
    );
    tokio::task::yield_now().await;
    let other = script.as_session("other");
    tokio::time::timeout(Duration::from_secs(1), other.call(r#"press_key {"key": "F5"}"#))
        .await
        .unwrap()
        .unwrap();
    script.desktop.open_window("Print settings", 100);
    let answer = tokio::time::timeout(Duration::from_millis(200), waiting).await.unwrap().unwrap().unwrap();
    assert!(answer.text.contains("\"Print settings\""), "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_fails_tells_the_last_state() {
    let error = editor()
        .call(r#"wait_for {"condition": "element_vanishes", "window_id": 1, "name": "Save", "timeout_ms": 300}"#)
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Timeout);
    assert_eq!(error.message, "not true within 300 ms; last state: button \"Save\" is there");
}

#[tokio::test(start_paused = true)]
async fn typing_that_is_cancelled_stops_between_characters_and_says_how_far_it_got() {
    let script = editor();
    script.desktop.set_key_time(Duration::from_millis(10));
    let call = script.parse(&format!(r#"type_text {{"text": "{}"}}"#, "x".repeat(5000)));
    let cancel = call.cancel.clone();
    let typing = tokio::spawn(script.engine.invoke(call));
    tokio::time::sleep(Duration::from_millis(1005)).await;
    cancel.cancel();
    let error = tokio::time::timeout(Duration::from_millis(200), typing).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
    let details = error.details.unwrap();
    assert_eq!((&details["delivery"], &details["total"]), (&json!("partial"), &json!(5000)));
    let done = details["done"].as_u64().unwrap();
    assert!((99..=102).contains(&done), "{done}");
    // Nothing is typed afterwards, and the session is usable.
    script.desktop.take_journal();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());
    script.call("list_windows").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_in_the_queue_leaves_it_at_once() {
    let script = editor();
    script.desktop.set_key_time(Duration::from_millis(10));
    let long = tokio::spawn(
        script.engine.invoke(script.parse(&format!(r#"type_text {{"text": "{}"}}"#, "x".repeat(300)))),
    );
    tokio::task::yield_now().await;
    let call = script.parse(r#"press_key {"key": "F5"}"#);
    let cancel = call.cancel.clone();
    let queued = tokio::spawn(script.engine.invoke(call));
    let read = script.parse("list_windows");
    let cancel_read = read.cancel.clone();
    let reading = tokio::spawn(script.engine.invoke(read));
    tokio::task::yield_now().await;
    cancel.cancel();
    cancel_read.cancel();
    let error = tokio::time::timeout(Duration::from_millis(10), queued).await.unwrap().unwrap().unwrap_err();
    assert_eq!((error.code, error.details), (Code::Cancelled, Some(json!({"delivery": "not_delivered"}))));
    // One that only reads has nothing to deliver.
    let error = tokio::time::timeout(Duration::from_millis(10), reading).await.unwrap().unwrap().unwrap_err();
    assert_eq!((error.code, error.details), (Code::Cancelled, None));
    long.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_call_ends_it_and_says_what_was_delivered() {
    let script = editor();
    script.call(r#"set_config {"call_timeout_ms": 100}"#).await.unwrap();
    script.desktop.set_key_time(Duration::from_secs(60));
    let busy = tokio::spawn(script.engine.invoke(script.parse(r#"type_text {"text": "xx"}"#)));
    tokio::task::yield_now().await;
    let error = script.call(r#"press_key {"key": "F5"}"#).await.unwrap_err();
    assert_eq!(error.code, Code::Timeout);
    assert_eq!(error.message, "no answer within 100 ms: nothing was delivered");
    busy.abort();
}

#[tokio::test(start_paused = true)]
async fn sessions_do_not_share_snapshots_or_settings() {
    let a = editor();
    let b = a.as_session("b");
    a.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    let error = b.call(r#"click {"window_id": 1, "element_index": 1}"#).await.unwrap_err();
    assert_eq!(error.code, Code::StaleSnapshot);
    a.call(r#"set_config {"max_image_dimension": 640}"#).await.unwrap();
    let read = async |script: &Script| script.call("get_config").await.unwrap().structured;
    assert_eq!(read(&a).await["settings"]["max_image_dimension"], 640);
    assert_eq!(read(&a).await["origins"]["max_image_dimension"], "session");
    assert_eq!(read(&b).await["settings"]["max_image_dimension"], 1568);
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_is_refused_and_its_calls_are_stopped() {
    let script = editor();
    let waiting = tokio::spawn(
        script.engine.invoke(script.parse(r#"wait_for {"condition": "window_opens", "title": "never"}"#)),
    );
    tokio::task::yield_now().await;
    deskhand_core::Driver::end_session(&script.engine, SessionId::new("test")).await;
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::SessionEnded);
    assert_eq!(script.call("list_windows").await.unwrap_err().code, Code::SessionEnded);
    script.as_session("other").call("list_windows").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn f25_a_frozen_application_is_told_and_others_go_on() {
    let script = Script::new(
        "window 1 \"Stuck\" app=stuck pid=1 400x300+0+0\n  push button \"A\" @0,0 50x20\nwindow 2 \"Fine\" app=fine pid=2 \
         400x300+500+0\n  push button \"B\" @0,0 50x20 changes=0\n",
    );
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    script.desktop.freeze(1, true);
    let answer = script.call(r#"get_accessibility_tree {"window_id": 1}"#).await.unwrap();
    assert_eq!(answer.structured["truncated"], true);
    assert!(answer.text.contains("note: \"stuck\" does not answer"), "{}", answer.text);
    let error = script.call(r#"click {"window_id": 1, "element_index": 1}"#).await.unwrap_err();
    assert_eq!(error.code, Code::AppNotResponding);
    script.call(r#"get_window_state {"window_id": 2}"#).await.unwrap();
    let answer = script.call(r#"click {"window_id": 2, "element_index": 1}"#).await.unwrap();
    assert_eq!(answer.structured["effect"], "confirmed");
}

#[tokio::test(start_paused = true)]
async fn points_of_a_scaled_picture_go_back_to_the_screen() {
    let script = editor();
    let answer = script.call(r#"screenshot {"max_image_dimension": 192}"#).await.unwrap();
    assert_eq!(answer.structured["picture"]["width"], 192);
    assert_eq!(answer.structured["picture"]["scale_x"], 10.0);
    assert_eq!(answer.images[0].mime, "image/png");
    let answer = script.call(r#"move_cursor {"x": 50, "y": 40, "space": "image"}"#).await.unwrap();
    assert_eq!(answer.structured["point"], json!({"x": 505, "y": 405}));
    let answer = script
        .call(r#"screenshot {"window_id": 1, "max_image_dimension": 400, "format": "jpeg"}"#)
        .await
        .unwrap();
    let error = script.call(r#"move_cursor {"x": 5, "y": 5, "space": "image"}"#).await.unwrap_err();
    assert!(error.message.contains("the newest picture shows window 1"), "{error}");
    assert_eq!(answer.images[0].mime, "image/jpeg");
    let answer = script.call(r#"click {"window_id": 1, "x": 20, "y": 10, "space": "image"}"#).await.unwrap();
    assert_eq!(answer.structured["point"], json!({"x": 141, "y": 71}));
}

#[tokio::test(start_paused = true)]
async fn a_picture_can_be_written_to_a_new_file_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shot.png");
    let call = format!("screenshot {}", json!({"window_id": 1, "out_file": file}));
    let answer = editor().call(&call).await.unwrap();
    assert!(answer.images.is_empty());
    assert_eq!(&std::fs::read(&file).unwrap()[1..4], b"PNG");
    assert_eq!(editor().call(&call).await.unwrap_err().code, Code::FileError);
}

#[tokio::test(start_paused = true)]
async fn applications_are_started_awaited_and_ended() {
    let transcript = editor()
        .run(
            r#"
launch_app {"app": "editor"}
launch_app {"app": "false"}
kill_app {"app": "Fake"}
list_apps {"include_installed": true}
"#,
        )
        .await;
    assert_transcript(
        &transcript,
        r#"
> launch_app {"app": "editor"}
started "editor" pid 1001
window 2 "New editor" "fake" pid 1001 300x200 at 50,50
  * launch editor
> launch_app {"app": "false"}
launch_failed: "false" ended at once with exit code 1 and showed no window
  * launch false
> kill_app {"app": "Fake"}
pid 1001 ended
  * close 2
  * end 1001
> list_apps {"include_installed": true}
1 running:
"editor" pid 100
1 installed:
"Editor" (editor)
"#,
    );
}

#[tokio::test(start_paused = true)]
async fn a_query_finds_elements_by_name_role_and_text() {
    let script = editor();
    let answer = script.call(r#"get_window_state {"window_id": 1, "query": "ABC"}"#).await.unwrap();
    assert!(answer.text.contains("[5] text \"Body\"") && !answer.text.contains("Save"), "{}", answer.text);
    let answer = script.call(r#"get_window_state {"window_id": 1, "query": "check box"}"#).await.unwrap();
    assert!(answer.text.contains("[2] check box"), "{}", answer.text);
    assert_eq!(answer.structured["shown"], 1);
    assert_eq!(answer.structured["element_count"], 7);
}

#[tokio::test(start_paused = true)]
async fn an_action_answers_in_few_bytes() {
    let script = editor();
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    let call = format!(
        r#"type_text {{"window_id": 1, "element_index": 5, "text": "{}"}}"#,
        "long text ".repeat(500)
    );
    let answer = script.call(&call).await.unwrap();
    let bytes = answer.text.len() + answer.structured.to_string().len();
    assert!(bytes <= 600, "{bytes}: {}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn a_query_acts_in_one_call_and_refuses_what_is_ambiguous() {
    let transcript = editor()
        .run(
            r#"
click {"window_id": 1, "query": {"role": "button", "name": "sav"}}
type_text {"window_id": 1, "query": {"value": "abc"}, "text": "d"}
click {"window_id": 1, "query": {"role": "button"}}
click {"window_id": 1, "query": {"name": "sav", "exact": true}}
click {"window_id": 1, "element_index": 1}
"#,
        )
        .await;
    assert_transcript(
        &transcript,
        r#"
> click {"window_id": 1, "query": {"role": "button", "name": "sav"}}
confirmed by ax_action on [1] button "Save": [4] name changed
  * use push button "Save"
> type_text {"window_id": 1, "query": {"value": "abc"}, "text": "d"}
confirmed by ax_text on [5] text "Body": "abc" → "abcd"
  * write "Body"
> click {"window_id": 1, "query": {"role": "button"}}
ambiguous: several elements of snapshot s3 match, nothing was done: [1] button "Save", [3] button "Print", [6] button "Silent"
> click {"window_id": 1, "query": {"name": "sav", "exact": true}}
element_not_found: none of the 7 elements of window 1 matches; nothing was done; near: [1] button "Save"
> click {"window_id": 1, "element_index": 1}
stale_snapshot: this session has no snapshot of window 1; take one with get_window_state
"#,
    );
}

#[tokio::test(start_paused = true)]
async fn a_click_on_a_row_selects_it() {
    let script = Script::new(
        "window 1 \"List\" pid=1 400x300+0+0\n  list item \"A\" @0,0 400x20 selectable\n  list item \"B\" @0,20 400x20 \
         selectable\n  list item \"C\" @0,40 400x20\n",
    );
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    let answer = script.call(r#"click {"window_id": 1, "element_index": 2}"#).await.unwrap();
    assert_eq!(answer.text, "confirmed by ax_selection: [2] list item \"B\" is selected");
    // What cannot be selected without the pointer is clicked with it.
    let answer = script.call(r#"click {"window_id": 1, "element_index": 3}"#).await.unwrap();
    assert_eq!(answer.structured["route"], "pointer");
}

#[tokio::test(start_paused = true)]
async fn what_we_changed_before_is_no_restlessness_of_the_application() {
    let script = editor();
    script.desktop.set_key_time(Duration::from_millis(500));
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    script.call(r#"type_text {"window_id": 1, "text": "slowly"}"#).await.unwrap();
    script.desktop.set_key_time(Duration::ZERO);
    let answer = script.call(r#"click {"window_id": 1, "element_index": 1}"#).await.unwrap();
    assert_eq!(answer.structured["effect"], "confirmed", "{}", answer.text);
    let answer = script.call(r#"press_key {"window_id": 1, "key": "BackSpace"}"#).await.unwrap();
    assert_eq!(answer.structured["effect"], "confirmed", "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn aliases_are_their_tool_with_other_defaults() {
    let script = editor();
    script.call(r#"double_click {"window_id": 1, "x": 600, "y": 500}"#).await.unwrap();
    script.call(r#"right_click {"window_id": 1, "x": 600, "y": 500}"#).await.unwrap();
    script.call(r#"double_click {"window_id": 1, "x": 600, "y": 500, "count": 3}"#).await.unwrap();
    script.call(r#"type_text_chars {"text": "x"}"#).await.unwrap();
    let expected = ["left click 700,550 x2", "right click 700,550 x1", "left click 700,550 x3", "type \"x\""];
    assert_eq!(script.desktop.take_journal(), expected);
}

#[tokio::test(start_paused = true)]
async fn f36_typing_stops_when_another_application_takes_the_focus() {
    let script = Script::new(
        &format!("window 2 \"Thief\" app=thief pid=200 100x100+0+0{EDITOR}")
            .replace(" silent-is-not-a-word", ""),
    );
    script.desktop.set_key_time(Duration::from_millis(10));
    let typing = tokio::spawn(
        script.engine.invoke(script.parse(&format!(r#"type_text {{"text": "{}"}}"#, "x".repeat(500)))),
    );
    tokio::time::sleep(Duration::from_millis(1005)).await;
    script.desktop.activate(WindowId(2)).await.unwrap();
    let error = typing.await.unwrap().unwrap_err();
    assert_eq!(error.code, Code::FocusLost);
    assert!(
        error.message.starts_with("window 2 \"Thief\" of \"thief\" took the focus after about 10"),
        "{error}"
    );
    script.desktop.take_journal();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn unsaved_work_is_asked_about_and_not_lost() {
    let script = Script::new("window 1 \"*Untitled\" app=editor pid=100 800x600+0+0 focused\n");
    let transcript = script.run("kill_app {\"pid\": 100}\nkill_app {\"pid\": 100, \"force\": true}\n").await;
    assert_transcript(
        &transcript,
        r#"
> kill_app {"pid": 100}
pid 100 still runs: it may be asking something; look at its window, or use `force`
  * close 1
> kill_app {"pid": 100, "force": true}
pid 100 was killed
  * end 100 by force
"#,
    );
}

#[tokio::test(start_paused = true)]
async fn an_element_beyond_every_display_is_not_pressed_at_the_edge() {
    let script = Script::new("window 1 \"Off\" pid=1 400x300+1800+900\n  label \"far\" @200,100 80x20\n");
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    let error = script
        .call(r#"click {"window_id": 1, "element_index": 1, "delivery": "foreground"}"#)
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::NotSupported);
    assert!(error.message.contains("beyond every display"), "{error}");
    assert_eq!(script.desktop.take_journal(), ["activate 1"]);
}

const DESK: &str = r#"
window 1 "Editor" app=editor pid=100 400x300+100+50
  text "Body" @10,40 300x100 text="abc" multi-line
  slider "Size" @10,200 100x20 value=0..100=30
window 2 "Files" app=files pid=200 400x300+700+50 focused
  panel "Shelf" @10,10 300x200
  panel "Wall" @10,220 300x50 dead
"#;

#[tokio::test(start_paused = true)]
async fn a_drag_is_judged_by_what_it_changed() {
    let transcript = Script::new(DESK)
        .run(
            r#"
drag {"window_id": 1, "from": {"x": 20, "y": 50}, "to": {"x": 80, "y": 60}}
drag {"window_id": 1, "from": {"x": 20, "y": 210}, "to": {"x": 80, "y": 210}}
drag {"window_id": 1, "from": {"query": {"name": "Body"}}, "to": {"window_id": 2, "query": {"name": "Shelf"}}}
drag {"window_id": 2, "from": {"x": 20, "y": 20}, "to": {"x": 20, "y": 230}}
drag {"window_id": 1, "from": {"x": 20, "y": 50}, "to": {"x": 80, "y": 60}}
drag {"window_id": 1, "from": {"x": 20, "y": 50}, "to": {"x": 20, "y": 50}}
drag {"window_id": 1, "delivery": "background", "from": {"x": 20, "y": 50}, "to": {"x": 20, "y": 51}}
drag {"window_id": 1, "from": {"x": 20, "y": 50}, "to": {"x": 20}}
"#,
        )
        .await;
    assert_transcript(
        &transcript,
        r#"
> drag {"window_id": 1, "from": {"x": 20, "y": 50}, "to": {"x": 80, "y": 60}}
confirmed by pointer: nothing selected → selected 0–3 "abc" in text "Body"
  * activate 1
  * move 120,100
  * left drag 120,100 to 180,110
> drag {"window_id": 1, "from": {"x": 20, "y": 210}, "to": {"x": 80, "y": 210}}
confirmed by pointer: 30 → 100 of slider "Size"
  * move 120,260
  * left drag 120,260 to 180,260
> drag {"window_id": 1, "from": {"query": {"name": "Body"}}, "to": {"window_id": 2, "query": {"name": "Shelf"}}}
confirmed by pointer: in window 2: an element name changed
  * activate 2
  * activate 1
  * move 860,160
  * move 260,140
  * move 260,140
  * left drag 260,140 to 860,160
> drag {"window_id": 2, "from": {"x": 20, "y": 20}, "to": {"x": 20, "y": 230}}
unverifiable by pointer; no change was told; look at the windows before going on
  * activate 2
  * move 720,70
  * left drag 720,70 to 720,280
> drag {"window_id": 1, "from": {"x": 20, "y": 50}, "to": {"x": 80, "y": 60}}
suspected_noop by pointer; nothing changed, on the screen neither; start on what can be dragged, or take longer on the way
  * activate 1
  * move 120,100
  * left drag 120,100 to 180,110
> drag {"window_id": 1, "from": {"x": 20, "y": 50}, "to": {"x": 20, "y": 50}}
invalid_argument: argument `to`: is where `from` is (120,100)
> drag {"window_id": 1, "delivery": "background", "from": {"x": 20, "y": 50}, "to": {"x": 20, "y": 51}}
not_supported: a drag needs the pointer; nothing was done; use set_value for sliders, select_text for text, or delivery "foreground"
> drag {"window_id": 1, "from": {"x": 20, "y": 50}, "to": {"x": 20}}
invalid_argument: `to`: argument `y`: missing; a point has `x` and `y`
"#,
    );
}

#[tokio::test(start_paused = true)]
async fn f86_a_cancelled_drag_says_that_it_went_back() {
    let script = Script::new(DESK);
    let mut call =
        script.parse(r#"drag {"window_id": 1, "from": {"x": 20, "y": 50}, "to": {"x": 80, "y": 60}}"#);
    let cancel = call.cancel.clone();
    call.arguments.insert("duration_ms".to_owned(), json!(5000));
    let running = tokio::spawn(script.engine.invoke(call));
    tokio::time::sleep(Duration::from_secs(1)).await;
    cancel.cancel();
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
    assert!(error.message.contains("released where the drag began"), "{}", error.message);
    assert_eq!(error.details.unwrap()["delivery"], "partial");
}

#[tokio::test(start_paused = true)]
async fn restore_puts_focus_stacking_and_pointer_back_even_after_a_failure() {
    let script = Script::new(
        r#"
window 1 "Low" pid=1 400x300+0+0
  push button "Go" @10,10 80x30
window 2 "High" pid=2 400x300+50+50 focused
window 3 "Panel always on top" pid=3 100x40+300+0
"#,
    );
    let windows = script.desktop.desktop().windows;
    let look = async || {
        let list = windows.list().await.unwrap();
        list.into_iter().map(|window| (window.id.0, window.focused)).collect::<Vec<_>>()
    };
    let before = look().await;
    let click = r#"click {"window_id": 1, "x": 20, "y": 20, "delivery": "foreground", "restore": true}"#;
    let answer = script.call(click).await.unwrap();
    assert_eq!(answer.structured["restored"], true, "{}", answer.text);
    assert_eq!(look().await, before);
    let journal = script.desktop.take_journal();
    assert!(journal.contains(&"use push button \"Go\"".to_owned()), "{journal:?}");
    assert_eq!(journal.iter().rfind(|entry| entry.starts_with("move")), Some(&"move 0,0".to_owned()));
    let covered = r#"click {"window_id": 1, "x": 320, "y": 20, "delivery": "foreground", "restore": true}"#;
    assert_eq!(script.call(covered).await.unwrap_err().code, Code::Occluded);
    assert_eq!(look().await, before);
}

#[tokio::test(start_paused = true)]
async fn windows_are_placed_and_what_came_of_it_is_said() {
    let transcript = Script::new(
        "window 1 \"One\" pid=1 400x300+10+20\nwindow 2 \"Two of fixed size\" pid=2 400x300+10+20 focused\n",
    )
    .run(
        r#"
set_window_frame {"window_id": 1, "x": 5, "width": 500}
set_window_frame {"window_id": 2, "height": 500}
set_window_frame {"window_id": 1, "state": "maximized"}
set_window_frame {"window_id": 1, "state": "maximized", "x": 1}
set_window_frame {"window_id": 1}
bring_to_front {"window_id": 1}
"#,
    )
    .await;
    assert_transcript(
        &transcript,
        r#"
> set_window_frame {"window_id": 1, "x": 5, "width": 500}
confirmed: 1 "One" "fake" pid 1 500x300 at 5,20
> set_window_frame {"window_id": 2, "height": 500}
suspected_noop: 2 "Two of fixed size" "fake" pid 2 400x300 at 10,20 focused; asked for 400x500 at 10,20; the window manager or the application refused
> set_window_frame {"window_id": 1, "state": "maximized"}
confirmed: 1 "One" "fake" pid 1 500x300 at 5,20 maximized
> set_window_frame {"window_id": 1, "state": "maximized", "x": 1}
invalid_argument: argument `state`: a frame goes with `normal` alone
> set_window_frame {"window_id": 1}
invalid_argument: argument `state`: missing; expected a `state` or some of x, y, width, height
> bring_to_front {"window_id": 1}
confirmed: 1 "One" "fake" pid 1 500x300 at 5,20 focused maximized
  * activate 1
"#,
    );
}

const LONG: &str = r#"
window 1 "Log" app=log pid=100 400x300+100+50 focused
  scroll pane "" @0,0 400x300
    list "Lines" @0,0 380x300
    scroll bar "" @380,0 20x300 value=0..100=50
window 2 "Terminal" app=term pid=200 400x300+700+50
"#;

#[tokio::test(start_paused = true)]
async fn scrolling_says_how_far_it_went_and_where_the_end_is() {
    let transcript = Script::new(LONG)
        .run(
            r#"
scroll {"window_id": 1, "direction": "down", "by": "pixel", "amount": 20}
scroll {"window_id": 1, "direction": "down", "amount": 2, "delivery": "foreground"}
scroll {"window_id": 1, "direction": "down", "amount": 3, "x": 10, "y": 10, "delivery": "foreground"}
scroll {"window_id": 1, "direction": "down"}
scroll {"window_id": 1, "direction": "down", "delivery": "foreground"}
scroll {"window_id": 1, "direction": "right", "delivery": "background"}
scroll {"window_id": 2, "direction": "up"}
scroll {"direction": "up"}
scroll {"window_id": 1, "direction": "up", "amount": 0}
"#,
        )
        .await;
    assert_transcript(
        &transcript,
        r#"
> scroll {"window_id": 1, "direction": "down", "by": "pixel", "amount": 20}
confirmed by ax_value: 50 → scroll bar at 70 of 100
> scroll {"window_id": 1, "direction": "down", "amount": 2, "delivery": "foreground"}
confirmed by pointer: 70 → scroll bar at 90 of 100
  * activate 1
  * move 300,200
  * wheel down x2 at 300,200
> scroll {"window_id": 1, "direction": "down", "amount": 3, "x": 10, "y": 10, "delivery": "foreground"}
confirmed by pointer: 90 → scroll bar at 100 of 100 (the end)
  * move 110,60
  * wheel down x3 at 110,60
> scroll {"window_id": 1, "direction": "down"}
suspected_noop by ax_value; it is at its end already (scroll bar at 100 of 100)
> scroll {"window_id": 1, "direction": "down", "delivery": "foreground"}
suspected_noop by pointer; it is at its end already (scroll bar at 100 of 100)
  * move 300,200
  * wheel down x3 at 300,200
> scroll {"window_id": 1, "direction": "right", "delivery": "background"}
not_supported: this cannot be scrolled through accessibility; nothing was done; use delivery "foreground"
> scroll {"window_id": 2, "direction": "up"}
unverifiable by pointer; nothing moved so far: it is at its end that way, does not scroll, or is slow
  * activate 2
  * move 900,200
  * wheel up x3 at 900,200
> scroll {"direction": "up"}
invalid_argument: argument `window_id`: missing; expected a window, an element or a point
> scroll {"window_id": 1, "direction": "up", "amount": 0}
invalid_argument: argument `amount`: 0 is out of range; expected 1 to 100000
"#,
    );
}

#[tokio::test(start_paused = true)]
async fn a_query_that_finds_nothing_names_what_is_near() {
    let script = Script::new(
        r#"
window 1 "Editor" app=editor pid=100 800x600+0+0 focused
  push button "Save As…"
  push button "Save All"
  menu item "Print"
  label "Ready"
"#,
    );
    for (wanted, expected) in [
        (r#"{"name": "Svae as…"}"#, Some("; near: [1] button \"Save As…\"")),
        (r#"{"name": "save file"}"#, Some("; near: [2] button \"Save All\", [1] button \"Save As…\"")),
        (r#"{"name": "Print", "role": "button"}"#, Some("; near: [3] menu item \"Print\"")),
        (r#"{"name": "Quit"}"#, None),
        (r#"{"role": "slider"}"#, None),
    ] {
        let transcript = script.run(&format!(r#"click {{"window_id": 1, "query": {wanted}}}"#)).await;
        let expected = format!("nothing was done{}\n", expected.unwrap_or_default());
        assert!(transcript.contains(&expected), "{expected} {transcript}");
    }
}

#[tokio::test(start_paused = true)]
async fn windows_are_listed_front_first_as_they_are_written() {
    let script = Script::new("window 1 \"Back\" pid=1 9x9+0+0\nwindow 2 \"Front\" pid=2 9x9+0+0 focused\n");
    let answer = script.call("list_windows").await.unwrap();
    let order: Vec<_> = answer.structured["windows"].as_array().unwrap().iter().map(|w| &w["z"]).collect();
    assert_eq!(order, [1, 0]);
    assert!(answer.text.find("Front").unwrap() < answer.text.find("Back").unwrap(), "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn a_state_of_an_element_is_waited_for() {
    let script = editor();
    let call =
        r#"wait_for {"condition": "element_appears", "window_id": 1, "name": "Silent", "state": "focused"}"#;
    let waiting = tokio::spawn(script.engine.invoke(script.parse(call)));
    tokio::time::sleep(Duration::from_millis(100)).await;
    script.desktop.focus_element(1, 6).await;
    assert!(waiting.await.unwrap().unwrap().text.starts_with("button \"Silent\" is there after 1"));
    let transcript = script
        .run(
            r#"
wait_for {"condition": "element_appears", "window_id": 1, "name": "Save", "state": "enabled"}
wait_for {"condition": "element_appears", "window_id": 1, "name": "Print", "state": "enabled", "timeout_ms": 50}
wait_for {"condition": "element_vanishes", "window_id": 1, "name": "Print", "state": "enabled"}
"#,
        )
        .await;
    let answers: Vec<_> = transcript.lines().filter(|line| !line.starts_with('>')).collect();
    assert_eq!(answers[0], "button \"Save\" is there after 0 ms");
    assert!(answers[1].contains("last state: button \"Print\" is there, and not enabled"), "{transcript}");
    assert_eq!(answers[2], "no such element is there after 0 ms");
}
