//! `type_text` on a fake desktop.

use std::time::Duration;

use deskhand_core::Code;
use deskhand_core::desktop::{WindowId, Windows};
use deskhand_testkit::transcript::Script;

const FORM: &str = r#"
window 2 "Other" app=other pid=200 100x100+0+0
  text "Theirs" text="" focused
window 1 "Form" app=form pid=100 800x600+0+0 focused
  entry "Name" @10,10 200x30 text="precious" focused
  entry "City" @10,50 200x30 text=""
  table cell "D2" @10,90 200x30 text="" dead
  entry "Numbers" @10,130 200x30 text="1" dead
"#;

fn form() -> Script {
    Script::new(FORM)
}

async fn text_of(script: &Script, window: u64, line: &str) -> bool {
    script.run(&format!(r#"get_accessibility_tree {{"window_id": {window}}}"#)).await.contains(line)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_typed_into_the_window_that_took_the_focus_while_the_field_was_emptied() {
    let script = form();
    script.desktop.set_key_time(Duration::from_millis(10));
    let call = r#"type_text {"window_id": 1, "query": {"name": "Name"}, "text": "replacement", "clear": true, "delivery": "foreground"}"#;
    let typing = tokio::spawn(script.engine.invoke(script.parse(call)));
    tokio::time::sleep(Duration::from_millis(15)).await;
    script.desktop.activate(WindowId(2)).await.unwrap();
    let error = typing.await.unwrap().unwrap_err();
    assert_eq!(error.code, Code::FocusLost, "{error}");
    assert!(error.message.contains("of \"other\" took the focus after the field was emptied"), "{error}");
    assert!(!script.desktop.take_journal().iter().any(|entry| entry.starts_with("type")));
    assert!(text_of(&script, 2, "text \"Theirs\" focused text=\"\"").await);
}

#[tokio::test(start_paused = true)]
async fn a_field_is_not_emptied_for_a_text_that_cannot_be_typed() {
    let script = form();
    let call = r#"type_text {"window_id": 1, "query": {"name": "Name"}, "text": "x💩y", "clear": true, "delivery": "foreground"}"#;
    assert_eq!(script.call(call).await.unwrap_err().code, Code::Untypable);
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());
    assert!(text_of(&script, 1, "text=\"precious\"").await);
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_closed_while_typing_is_said_to_be_gone() {
    let script = form();
    script.desktop.set_key_time(Duration::from_millis(10));
    let call = format!(r#"type_text {{"window_id": 1, "text": "{}"}}"#, "x".repeat(100));
    let typing = tokio::spawn(script.engine.invoke(script.parse(&call)));
    tokio::time::sleep(Duration::from_millis(205)).await;
    script.desktop.close_window(1);
    script.desktop.activate(WindowId(2)).await.unwrap();
    let error = typing.await.unwrap().unwrap_err();
    assert_eq!(error.code, Code::WindowGone, "{error}");
    assert!(error.message.contains("was closed, or its application ended, after about 2"), "{error}");
    assert_eq!(error.details.unwrap()["delivery"], "partial");
}

#[tokio::test(start_paused = true)]
async fn a_focus_that_moves_on_while_typing_is_said() {
    let script = form();
    script.desktop.set_key_time(Duration::from_millis(10));
    let typing =
        tokio::spawn(script.engine.invoke(script.parse(r#"type_text {"window_id": 1, "text": "abcdef"}"#)));
    tokio::time::sleep(Duration::from_millis(35)).await;
    script.desktop.focus_element(1, 2).await;
    let answer = typing.await.unwrap().unwrap();
    let expected = "unverifiable by keyboard: \"precious\" → \"preciousabc\"; the focus moved on to entry \"City\" while typing; the rest went there";
    assert_eq!(answer.text, expected);
}

#[tokio::test(start_paused = true)]
async fn only_a_field_that_must_have_changed_and_did_not_is_a_suspected_no_op() {
    let script = form();
    let cell =
        r#"type_text {"window_id": 1, "query": {"name": "D2"}, "text": "v", "delivery": "foreground"}"#;
    let answer = script.call(cell).await.unwrap();
    assert_eq!(answer.structured["effect"], "unverifiable", "{}", answer.text);
    assert!(answer.text.contains("press_key Return commits it"), "{}", answer.text);
    let field =
        r#"type_text {"window_id": 1, "query": {"name": "Numbers"}, "text": "v", "delivery": "foreground"}"#;
    let answer = script.call(field).await.unwrap();
    assert_eq!(answer.structured["effect"], "suspected_noop", "{}", answer.text);
    script.desktop.set_key_time(Duration::from_millis(10));
    let typing = tokio::spawn(script.engine.invoke(script.parse(field)));
    tokio::time::sleep(Duration::from_millis(5)).await;
    script.desktop.rename_element(1, 2, "v");
    let answer = typing.await.unwrap().unwrap();
    assert_eq!(answer.structured["effect"], "unverifiable", "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn a_field_is_emptied_also_where_the_window_had_not_the_focus_yet() {
    let script = Script::new(
        &FORM
            .replace("100x100+0+0\n", "100x100+0+0 focused\n")
            .replace("800x600+0+0 focused", "800x600+0+0")
            .replace("\"precious\" focused", "\"precious\""),
    );
    let typing = tokio::spawn(
        script.engine.invoke(script.parse(r#"type_text {"window_id": 1, "text": "new", "clear": true}"#)),
    );
    tokio::time::sleep(Duration::from_millis(50)).await;
    script.desktop.focus_element(1, 1).await;
    assert_eq!(typing.await.unwrap().unwrap().text, "confirmed by keyboard: \"precious\" → \"new\"");
}

#[tokio::test(start_paused = true)]
async fn a_carriage_return_with_a_newline_is_one_line_break() {
    let script = Script::new(
        "window 1 \"Pad\" pid=1 400x300+0+0 focused\n  text \"Body\" text=\"\" focused multi-line\n",
    );
    script.call(r#"type_text {"window_id": 1, "text": "a\r\nb"}"#).await.unwrap();
    assert_eq!(script.desktop.take_journal(), ["type \"a\\nb\""]);
    let error = script.call(r#"type_text {"window_id": 1, "text": "a\rb"}"#).await.unwrap_err();
    assert!(error.message.contains("U+000D"), "{error}");
}

const VALUES: &str = r#"
window 1 "Form" app=form pid=100 800x600+0+0 focused
  entry "Name" @10,10 200x30 text="precious" focused
  entry "Silent" @10,50 200x30 text="old" no-editable-text
  text "Notes" @10,90 200x90 text="" multi-line
  text "Keys" @10,190 200x90 text="" multi-line no-editable-text
  document web "Page" @10,290 400x200
    entry "Message" @10,290 200x30 text="" multi-line no-editable-text
    entry "Line" @10,330 200x30 text="" no-editable-text
"#;

fn set_value(name: &str, value: &str, more: &str) -> String {
    format!(r#"set_value {{"window_id": 1, "query": {{"name": "{name}"}}, "value": "{value}"{more}}}"#)
}

#[tokio::test(start_paused = true)]
async fn a_value_never_presses_return_or_tab() {
    let script = Script::new(VALUES);
    let foreground = r#", "delivery": "foreground""#;
    for (name, value, more) in [
        ("Name", r"Bob\tJones", ""),
        ("Name", r"Bob\nJones", ""),
        ("Name", r"Bob\r", ""),
        ("Name", r"Bob\r\n", ""),
        ("Name", r"Bob\u001b", foreground),
        ("Silent", r"a\nb", ""),
        ("Notes", r"a\tb", foreground),
        ("Keys", r"a\tb", ""),
        ("Message", r"a\tb", ""),
        ("Line", r"a\nb", ""),
    ] {
        let error = script.call(&set_value(name, value, more)).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{name} {value}: {error}");
        assert!(error.message.contains("nothing was typed"), "{error}");
    }
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new(), "not even the focus has moved");
    assert!(text_of(&script, 1, "text=\"precious\"").await);
}

#[tokio::test(start_paused = true)]
async fn a_value_keeps_its_lines_where_they_are_text() {
    let script = Script::new(VALUES);
    let answer = script.call(&set_value("Notes", r"a\tb\r\nc", "")).await.unwrap();
    assert_eq!(answer.structured["route"], "ax_text", "{}", answer.text);
    assert_eq!(answer.structured["effect"], "confirmed", "{}", answer.text);
    let answer = script.call(&set_value("Keys", r"a\nb", "")).await.unwrap();
    assert_eq!(answer.structured["route"], "keyboard", "{}", answer.text);
    assert_eq!(answer.structured["effect"], "confirmed", "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn lines_of_a_value_are_broken_without_return_in_pages() {
    let script = Script::new(VALUES);
    script.call(&set_value("Message", r"a\n\nb\n", "")).await.unwrap();
    let journal = script.desktop.take_journal();
    let keys: Vec<&str> =
        journal.iter().map(String::as_str).filter(|entry| !entry.starts_with("focus")).collect();
    let broken = "press [Shift] Return x1";
    let emptied = ["press [Ctrl] a x1", "press [] BackSpace x1"];
    assert_eq!(keys[..2], emptied, "{keys:?}");
    assert_eq!(keys[2..], ["type \"a\"", broken, broken, "type \"b\"", broken], "{keys:?}");
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_cut_off_between_lines_says_how_far_it_got() {
    let other = "window 2 \"Other\" app=other pid=200 100x100+0+0\n";
    let script = Script::new(&format!("{VALUES}{other}"));
    script.desktop.set_key_time(Duration::from_millis(10));
    let typing = tokio::spawn(script.engine.invoke(script.parse(&set_value("Message", r"abcd\nefgh", ""))));
    // Two keys that empty it, four characters, the break and two more.
    tokio::time::sleep(Duration::from_millis(95)).await;
    script.desktop.activate(WindowId(2)).await.unwrap();
    let error = typing.await.unwrap().unwrap_err();
    assert_eq!(error.code, Code::FocusLost, "{error}");
    let done = error.details.unwrap()["done"].as_u64().unwrap();
    assert!((6..=8).contains(&done), "{done}");
}

#[tokio::test(start_paused = true)]
async fn true_and_false_are_never_typed() {
    let script = Script::new(VALUES);
    let call = r#"set_value {"window_id": 1, "query": {"name": "Name"}, "value": true}"#;
    let error = script.call(call).await.unwrap_err();
    assert_eq!(error.code, Code::NotSupported, "{error}");
    assert!(error.message.contains("click it"), "{error}");
    assert!(text_of(&script, 1, "text=\"precious\"").await);
    assert_eq!(script.desktop.take_journal(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_typing_into_a_long_text_is_short() {
    let long = r#"\"quoted\" Grüße "#.repeat(300);
    let script = Script::new(&VALUES.replace("\"precious\"", &format!("\"{}\"", "some words ".repeat(300))));
    for value in [long.as_str(), "x", &long] {
        for delivery in ["auto", "foreground"] {
            let call = set_value("Name", value, &format!(r#", "delivery": "{delivery}""#));
            let answer = script.call(&call).await.unwrap();
            let size = answer.text.len() + serde_json::to_string(&answer.structured).unwrap().len();
            assert!(size <= 600, "{size}: {} {:?}", answer.text, answer.structured);
        }
    }
    script.call(&set_value("Name", &"a".repeat(500), "")).await.unwrap();
    let answer = script.call(&set_value("Name", &format!("{}b", "a".repeat(500)), "")).await.unwrap();
    assert!(answer.text.contains("ab\" (501 characters)"), "{}", answer.text);
}
