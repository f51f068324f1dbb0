//! What people see of agents: where they act, and whose cursor that is.

use deskhand_core::settings::Overrides;
use deskhand_core::{Driver, Host, SessionId};
use deskhand_testkit::transcript::Script;
use serde_json::json;

const EDITOR: &str = r#"
window 1 "Editor" app=editor pid=100 800x600+100+50 focused
  push button "Save" @10,10 80x30 changes=3
  check box "Wrap" @10,50 80x20
  label "ready"
  text "Body" @10,140 400x200 text="" focused multi-line
  slider "Zoom" @10,360 200x20 value=0..100=10
"#;

/// A session that has read the window.
async fn session(script: &Script, name: &str) -> Script {
    let script = script.as_session(name);
    let read = script.call(r#"get_window_state {"window_id": 1}"#).await;
    assert!(read.is_ok(), "{read:?}");
    assert_eq!(script.desktop.take_seen(), [""; 0], "reading is no act");
    script
}

#[tokio::test(start_paused = true)]
async fn acts_are_seen_where_they_happen() {
    let script = session(&Script::new(EDITOR), "test").await;
    let by = |act: &str| format!("agent 1 #0b6bd3 {act}");
    // An element through accessibility is acted on in its middle.
    script.call(r#"click {"window_id": 1, "element_index": 1, "delivery": "background"}"#).await.unwrap();
    assert_eq!(script.desktop.take_seen(), [by("presses 150,75")]);
    script.call(r#"click {"x": 300, "y": 200, "window_id": 1}"#).await.unwrap();
    assert_eq!(script.desktop.take_seen(), [by("presses 400,250")]);
    script.call(r#"move_cursor {"x": 30, "y": 40}"#).await.unwrap();
    assert_eq!(script.desktop.take_seen(), [by("points at 30,40")]);
    script
        .call(r#"drag {"window_id": 1, "from": {"x": 20, "y": 150}, "to": {"x": 90, "y": 160}}"#)
        .await
        .unwrap();
    assert_eq!(script.desktop.take_seen(), [by("drags 120,200 to 190,210")]);
    script.call(r#"press_key {"window_id": 1, "key": "a"}"#).await.unwrap();
    assert_eq!(script.desktop.take_seen(), [by("types")]);
    script.call(r#"set_value {"window_id": 1, "element_index": 5, "value": "50"}"#).await.unwrap();
    assert!(script.desktop.take_seen().contains(&by("presses 210,420")));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_not_seen() {
    let script = session(&Script::new(EDITOR), "test").await;
    script.call(r#"click {"x": 5000, "y": 5000}"#).await.unwrap_err();
    script.call(r#"click {"window_id": 1, "element_index": 77}"#).await.unwrap_err();
    assert_eq!(script.desktop.take_seen(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_pointer_that_is_given_back_is_not_seen() {
    let script = session(&Script::new(EDITOR), "test").await;
    script.call(r#"click {"x": 300, "y": 200, "window_id": 1, "restore": true}"#).await.unwrap();
    assert_eq!(script.desktop.take_seen(), ["agent 1 #0b6bd3 presses 400,250"]);
}

#[tokio::test(start_paused = true)]
async fn two_sessions_have_two_cursors_and_each_ends_with_its_own() {
    let script = Script::new(EDITOR);
    let (first, second) = (session(&script, "first").await, session(&script, "second").await);
    script.engine.open_session(&SessionId::new("second"), false, Some("my editor")).unwrap();
    let click = r#"click {"x": 300, "y": 200, "window_id": 1}"#;
    first.call(click).await.unwrap();
    second.call(click).await.unwrap();
    first.call(click).await.unwrap();
    let expected = [
        "agent 1 #0b6bd3 presses 400,250",
        "my editor #c2410c presses 400,250",
        "agent 1 #0b6bd3 presses 400,250",
    ];
    assert_eq!(script.desktop.take_seen(), expected);
    let state = first.call("get_agent_cursor_state").await.unwrap().structured;
    assert_eq!((&state["shown"], &state["label"]), (&json!(true), &json!("agent 1")));
    script.engine.end_session(SessionId::new("first")).await;
    assert_eq!(script.desktop.take_seen(), ["first goes"]);
    let state = second.call("get_agent_cursor_state").await.unwrap().structured;
    assert_eq!((&state["shown"], &state["color"]), (&json!(true), &json!("#c2410c")));
    // Its number is free again.
    let third = session(&script, "third").await;
    third.call(click).await.unwrap();
    assert_eq!(script.desktop.take_seen(), ["agent 1 #0b6bd3 presses 400,250"]);
}

#[tokio::test(start_paused = true)]
async fn f17_look_and_setting_are_the_sessions_own() {
    let script = Script::new(EDITOR);
    let (first, second) = (session(&script, "first").await, session(&script, "second").await);
    first
        .call(r##"set_agent_cursor_style {"color": "#112233", "label": " the\ntester ", "size": 40}"##)
        .await
        .unwrap();
    let told = first.call(r#"set_agent_cursor_motion {"glide_duration_ms": 0, "idle_hide_ms": 900}"#).await;
    assert_eq!(
        told.unwrap().text,
        r#"agent cursor on, hidden: "the tester" #112233, 40 px, glides for 0 ms, hides after 900 ms"#
    );
    let click = r#"click {"x": 300, "y": 200, "window_id": 1}"#;
    first.call(click).await.unwrap();
    second.call(click).await.unwrap();
    let seen = script.desktop.take_seen();
    assert_eq!(seen, ["the tester #112233 presses 400,250", "agent 2 #c2410c presses 400,250"]);
    let off = first.call(r#"set_agent_cursor_enabled {"enabled": false}"#).await.unwrap().structured;
    assert_eq!((&off["enabled"], &off["shown"]), (&json!(false), &json!(false)));
    first.call(click).await.unwrap();
    second.call(click).await.unwrap();
    assert_eq!(script.desktop.take_seen(), ["first goes", "agent 2 #c2410c presses 400,250"]);
    let told = second.call("get_config").await.unwrap().structured;
    assert_eq!(
        (&told["settings"]["agent_cursor"], &told["origins"]["agent_cursor"]),
        (&json!(true), &json!("default"))
    );
    first.call(r#"set_config {"unset": ["agent_cursor"]}"#).await.unwrap();
    first.call(click).await.unwrap();
    assert_eq!(script.desktop.take_seen(), ["the tester #112233 presses 400,250"]);
    first.call(r#"set_agent_cursor_style {"label": ""}"#).await.unwrap();
    first.call(click).await.unwrap();
    assert_eq!(script.desktop.take_seen(), ["agent 1 #112233 presses 400,250"]);
}

#[tokio::test(start_paused = true)]
async fn where_nobody_looks_there_is_no_cursor_unless_asked_for() {
    let defaults = Overrides { agent_cursor: Some(false), ..Overrides::default() };
    let script = session(&Script::on(EDITOR, Host { defaults, ..Host::default() }), "test").await;
    let click = r#"click {"x": 300, "y": 200, "window_id": 1}"#;
    script.call(click).await.unwrap();
    assert_eq!(script.desktop.take_seen(), [""; 0]);
    let told = script.call("get_config").await.unwrap().structured;
    assert_eq!(
        (&told["settings"]["agent_cursor"], &told["origins"]["agent_cursor"]),
        (&json!(false), &json!("default"))
    );
    script.call(r#"set_config {"agent_cursor": true}"#).await.unwrap();
    script.call(click).await.unwrap();
    assert_eq!(script.desktop.take_seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_session_has_no_look_of_its_own() {
    let script = Script::new(EDITOR);
    let nobody = script.anonymous();
    nobody.call(r#"click {"x": 300, "y": 200}"#).await.unwrap();
    assert_eq!(script.desktop.take_seen(), ["deskhand #4b5563 presses 300,200"]);
    let refused = nobody.call(r#"set_agent_cursor_style {"label": "me"}"#).await.unwrap_err();
    assert_eq!(refused.code.name(), "not_supported");
    for wrong in [r#"{"color": "red"}"#, r#"{"size": 4}"#] {
        let refused = script.call(&format!("set_agent_cursor_style {wrong}")).await.unwrap_err();
        assert_eq!(refused.code.name(), "invalid_argument", "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_alone_are_seen_at_the_head_of_the_window_that_gets_them() {
    let script = session(&Script::new(EDITOR), "test").await;
    script.call(r#"press_key {"window_id": 1, "key": "a"}"#).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(script.desktop.take_seen(), ["agent 1 #0b6bd3 points at 500,66"]);
}

#[tokio::test(start_paused = true)]
async fn a_person_turns_all_cursors_off_but_those_that_were_asked_for() {
    let script = Script::new(EDITOR);
    let (first, second) = (session(&script, "first").await, session(&script, "second").await);
    second.call(r#"set_config {"agent_cursor": true}"#).await.unwrap();
    let click = r#"click {"x": 300, "y": 200, "window_id": 1}"#;
    first.call(click).await.unwrap();
    second.call(click).await.unwrap();
    script.desktop.take_seen();
    script.anonymous().call(r#"set_config {"agent_cursor": false}"#).await.unwrap();
    assert_eq!(script.desktop.take_seen(), ["first goes"]);
}
