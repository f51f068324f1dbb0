//! What lies between the pointer and its aim, on a fake desktop: scrolling, and open menus.

use deskhand_testkit::transcript::Script;

#[tokio::test(start_paused = true)]
async fn an_element_that_is_scrolled_away_is_clicked_once_it_has_come_to_rest() {
    let script = Script::new(
        "window 1 \"Page\" pid=1 400x300+0+0 focused\n  push button \"Below\" @10,200 80x30 scrolled-away\n",
    );
    let transcript =
        script.run(r#"click {"window_id": 1, "query": {"name": "Below"}, "delivery": "foreground"}"#).await;
    assert!(transcript.contains("* left click 50,215 x1"), "{transcript}");
    assert!(transcript.contains("* use push button \"Below\""), "{transcript}");
}

const MENU: &str = r#"
window 1 "Editor" app=editor pid=100 400x300+0+0
  push button "Save" @10,10 80x30
window 2 "Other" app=other pid=200 400x300+500+0 focused
window 3 "" app=editor pid=100 popup parent=1 100x200+50+50
  menu item "Copy" @0,0 100x20
"#;

#[tokio::test(start_paused = true)]
async fn keys_for_a_window_with_an_open_menu_go_to_the_menu() {
    let script = Script::new(MENU);
    script.desktop.set_grabbed(true);
    let transcript = script.run(r#"press_key {"window_id": 1, "key": "Escape"}"#).await;
    assert!(transcript.contains("* press [] Escape x1") && !transcript.contains("activate"), "{transcript}");
    // What does not hold the keyboard does not get the keys.
    script.desktop.set_grabbed(false);
    let transcript = script.run(r#"press_key {"window_id": 1, "key": "Escape"}"#).await;
    assert!(transcript.contains("not_supported") && !transcript.contains("* press"), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn a_click_that_an_open_menu_would_swallow_raises_nothing() {
    let script = Script::new(&MENU.replace(" focused", "").replace("parent=1", "parent=2"));
    script.desktop.set_grabbed(true);
    let transcript = script
        .run(
            r#"
click {"window_id": 1, "query": {"name": "Save"}, "delivery": "foreground"}
click {"window_id": 1, "x": 300, "y": 250}
"#,
        )
        .await;
    assert_eq!(transcript.matches("occluded: some program holds the pointer").count(), 2, "{transcript}");
    assert!(!transcript.contains("  * "), "{transcript}");
}
