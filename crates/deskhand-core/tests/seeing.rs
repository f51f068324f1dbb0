//! What a session sees, and how it points at it later: snapshots, differences, pictures, popups.

use deskhand_core::Code;
use deskhand_testkit::transcript::Script;

const EDITOR: &str = r#"
window 1 "Editor" app=editor pid=100 800x600+100+50 focused
  panel "Tools"
    push button "Save" @10,10 80x30
    push button "Print" @100,10 80x30
  check box "Wrap" @10,50 80x20
  label "ready"
"#;

fn assert_transcript(transcript: &str, expected: &str) {
    assert_eq!(transcript.trim(), expected.trim(), "\n--- transcript ---\n{transcript}");
}

#[tokio::test(start_paused = true)]
async fn since_a_snapshot_only_what_is_different_is_told() {
    let script = Script::new(EDITOR);
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    let transcript = script.run(r#"get_window_state {"window_id": 1, "since": "s1"}"#).await;
    assert_transcript(
        &transcript,
        r#"
> get_window_state {"window_id": 1, "since": "s1"}
window 1 "Editor" "editor" pid 100 800x600 at 100,50 focused
snapshot s2: 6 of 6 elements; unchanged since s1
"#,
    );
    script.desktop.rename_element(1, 5, "saved");
    script.desktop.remove_element(1, 3);
    let answer = script.call(r#"get_accessibility_tree {"window_id": 1, "since": "s2"}"#).await.unwrap();
    assert_transcript(
        &answer.text,
        r#"
window 1 "Editor" "editor" pid 100 800x600 at 100,50 focused
snapshot s3: 5 of 5 elements; since s2: 1 changed, 0 added, 1 removed
changed:
 [5] label "saved"
removed: [3] button "Print"
"#,
    );
    assert_eq!(answer.structured["changed"], serde_json::json!([5]));
    assert_eq!(answer.structured["removed"], serde_json::json!([3]));
    assert_eq!(answer.structured["since"], "s2");
}

#[tokio::test(start_paused = true)]
async fn f82_a_rebuilt_window_is_told_whole_since_that_is_shorter() {
    let script = Script::new("window 1 \"Short\" pid=1 400x300+0+0\n  push button \"One\"\n");
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    script.desktop.rename_element(1, 0, "Other");
    script.desktop.rename_element(1, 1, "Two");
    let answer = script.call(r#"get_window_state {"window_id": 1, "since": "s1"}"#).await.unwrap();
    assert!(
        answer.text.contains("note: most is different from s1: this is the whole tree"),
        "{}",
        answer.text
    );
    assert!(answer.text.contains("\n[0] frame \"Other\"\n [1] button \"Two\""), "{}", answer.text);
    assert!(answer.structured.get("since").is_none());
}

#[tokio::test(start_paused = true)]
async fn since_another_question_the_whole_tree_is_told_and_foreign_snapshots_are_refused() {
    let script = Script::new(&format!("{EDITOR}window 2 \"Other\" pid=200 300x200+0+0\n  label \"x\"\n"));
    script.call(r#"get_window_state {"window_id": 1, "query": "save"}"#).await.unwrap();
    let answer = script.call(r#"get_window_state {"window_id": 1, "since": "s1"}"#).await.unwrap();
    assert!(answer.text.contains("s1 was asked for other elements"), "{}", answer.text);
    assert!(answer.text.contains("[4] check box"), "{}", answer.text);
    let unknown = script.call(r#"get_window_state {"window_id": 1, "since": "s99"}"#).await.unwrap_err();
    assert_eq!(unknown.code, Code::UnknownHandle);
    let foreign = script.call(r#"get_window_state {"window_id": 2, "since": "s1"}"#).await.unwrap_err();
    assert_eq!(foreign.code, Code::InvalidArgument);
    assert!(foreign.message.contains("snapshot s1 is of window 1"), "{foreign}");
    let other = script.as_session("other");
    let elsewhere = other.call(r#"get_window_state {"window_id": 1, "since": "s1"}"#).await.unwrap_err();
    assert_eq!(elsewhere.code, Code::UnknownHandle, "another session's snapshot is none");
}

#[tokio::test(start_paused = true)]
async fn f35_an_element_keeps_its_index_when_others_before_it_go() {
    let script = Script::new(EDITOR);
    script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    script.desktop.remove_element(1, 2);
    let transcript = script
        .run(
            r#"
get_window_state {"window_id": 1}
click {"window_id": 1, "element_index": 4}
click {"window_id": 1, "element_index": 2}
click {"window_id": 1, "element_index": 60}
"#,
        )
        .await;
    assert!(transcript.contains(" [4] check box \"Wrap\" unchecked"), "{transcript}");
    assert!(transcript.contains("confirmed by ax_action: unchecked → checked"), "{transcript}");
    assert!(transcript.contains("\nelement_gone: "), "{transcript}");
    assert!(
        transcript.contains("`element_index`: snapshot s2 has no element 60; the last is 5"),
        "{transcript}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_point_belongs_to_the_picture_that_it_was_read_off() {
    let script = Script::new(EDITOR);
    let transcript = script
        .run(
            r#"
screenshot {"window_id": 1, "max_image_dimension": 400}
zoom {"window_id": 1, "region": {"x": 0, "y": 0, "width": 100, "height": 50}, "scale": 4}
move_cursor {"window_id": 1, "x": 200, "y": 100, "space": "image"}
move_cursor {"window_id": 1, "x": 200, "y": 100, "space": "image", "picture_id": "p1"}
move_cursor {"x": 200, "y": 100, "picture_id": "p2"}
move_cursor {"x": 200, "y": 100, "picture_id": "p9"}
zoom {"window_id": 1, "region": {"x": 5000, "y": 0, "width": 100, "height": 50}}
"#,
        )
        .await;
    assert!(
        transcript
            .contains("picture p1: 400x300 of the screen from 100,50, scaled: 1 image pixel = 2.0000 screen")
    );
    assert!(
        transcript
            .contains("picture p2: 400x200 of the screen from 100,50, scaled: 1 image pixel = 0.2500 screen")
    );
    let moves: Vec<&str> = transcript.lines().filter(|line| line.contains("→")).collect();
    assert_eq!(
        moves,
        [
            "confirmed by pointer: 0,0 → 150,75",
            "confirmed by pointer: 150,75 → 501,251",
            "confirmed by pointer: 501,251 → 150,75"
        ],
        "{transcript}"
    );
    assert!(
        transcript.contains("unknown_handle: this session was never given such a picture"),
        "{transcript}"
    );
    assert!(transcript.contains("argument `region`: "), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn a_region_of_the_screen_is_cut_at_the_display_and_read_off_pictures() {
    let script = Script::new(EDITOR);
    let transcript = script
        .run(
            r#"
get_desktop_state {}
screenshot {"region": {"x": 1800, "y": 1000, "width": 500, "height": 500}}
screenshot {"region": {"x": 0, "y": 0, "width": 10, "height": 10}, "space": "image"}
zoom {"region": {"x": 9000, "y": 0, "width": 10, "height": 10}}
screenshot {"space": "screen"}
screenshot {"window_id": 1, "region": {"x": 0, "y": 0, "width": 0, "height": 10}}
"#,
        )
        .await;
    assert!(transcript.contains("picture p2: 120x80 of the screen from 1800,1000"), "{transcript}");
    assert!(transcript.contains("picture p3: 10x10 of the screen from 1800,1000"), "{transcript}");
    assert!(transcript.contains("is on no display; there are: 1920x1080 at 0,0"), "{transcript}");
    assert!(transcript.contains("`space`: belongs to a `region`"), "{transcript}");
    assert!(transcript.contains("its `width` and `height` must be greater than 0"), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn f60_what_a_popup_shows_is_in_the_tree_of_its_window() {
    let script = Script::new(
        r#"
window 1 "Editor" app=editor pid=100 800x600+100+50 focused
  push button "Save" @10,10 80x30
window 2 "" app=editor pid=100 popup parent=1 200x100+150+100
  menu item "Copy" @0,0 200x20
window 3 "" app=editor pid=100 popup parent=2 200x100+350+100
  menu item "As text" @0,0 200x20
window 4 "" app=other pid=200 popup 200x100+900+100
  menu item "Foreign" @0,0 200x20
"#,
    );
    let answer = script.call(r#"get_window_state {"window_id": 1}"#).await.unwrap();
    assert!(
        answer.text.contains("menu item \"Copy\"") && answer.text.contains("menu item \"As text\""),
        "{}",
        answer.text
    );
    assert!(!answer.text.contains("Foreign"), "{}", answer.text);
    let transcript = script
        .run(
            r#"
click {"window_id": 1, "element_index": 3, "delivery": "foreground"}
click {"window_id": 1, "query": {"name": "As text"}}
"#,
        )
        .await;
    // Its own window is pressed, and the owner is not raised, which would close the menu.
    assert!(transcript.contains("* left click 250,110 x1"), "{transcript}");
    assert!(!transcript.contains("activate"), "{transcript}");
    assert!(transcript.contains("* use menu item \"As text\""), "{transcript}");
    script.desktop.close_window(2);
    let gone = script.call(r#"click {"window_id": 1, "element_index": 3}"#).await.unwrap_err();
    assert_eq!(gone.code, Code::ElementGone);
    let list = script.call("list_windows").await.unwrap();
    assert_eq!(list.structured["windows"][0].get("popups"), None, "{}", list.structured);
}

#[tokio::test(start_paused = true)]
async fn marks_come_with_the_tree_that_explains_them() {
    let script = Script::new(EDITOR);
    let answer = script.call(r#"get_window_state {"window_id": 1, "capture_mode": "som"}"#).await.unwrap();
    assert!(answer.text.contains("[2] button \"Save\""), "{}", answer.text);
    assert!(answer.text.contains("3 elements are marked with their [n]"), "{}", answer.text);
    assert_eq!(answer.images.len(), 1);
    let plain = script.call(r#"screenshot {"window_id": 1}"#).await.unwrap();
    assert_ne!(plain.images[0].bytes, answer.images[0].bytes);
}

#[tokio::test(start_paused = true)]
async fn an_application_is_read_by_its_main_window() {
    let script = Script::new(
        r#"
window 1 "Document" app=Editor pid=100 800x600+100+50
  push button "Save"
window 2 "Find" app=Editor pid=100 parent=1 300x100+150+100
  push button "Next"
window 3 "Mail" app=EditorMail pid=200 300x100+150+100 focused
"#,
    );
    let answer = script.call(r#"get_app_state {"app": "editor"}"#).await.unwrap();
    assert!(answer.text.contains("[1] button \"Save\""), "{}", answer.text);
    assert!(answer.text.contains("note: it also has window 2 \"Find\""), "{}", answer.text);
    assert!(!answer.text.contains("Mail"), "a whole name comes before a part of one: {}", answer.text);
    let none = script.call(r#"get_app_state {"app": "paint"}"#).await.unwrap_err();
    assert_eq!(none.code, Code::UnknownWindow);
}
