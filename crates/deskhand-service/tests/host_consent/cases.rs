//! The cases.

use deskhand_core::consent::{ConsentSource, Grant};
use deskhand_service::consent::{ANSWER, MAX_QUESTIONS};
use deskhand_service::wire;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::stage::{ALL as EVERYTHING, SCREEN, SOON, Stage, TOKEN, is_refused};

type Case = (&'static str, fn());

pub(crate) const ALL: &[Case] = &[
    ("without_a_host_nothing_is_granted", || run(without_a_host())),
    ("the_right_host_is_asked_at_every_call", || run(the_right_host())),
    ("a_wrong_token_is_turned_away", || run(a_wrong_token())),
    ("without_a_configured_token_nobody_is_admitted", || run(no_token())),
    ("another_program_is_turned_away", || run(another_program())),
    ("a_slow_host_grants_nothing_in_bounded_time", || run(a_slow_host())),
    ("answers_that_are_none_grant_nothing", || run(no_answers())),
    ("garbage_ends_the_connection", || run(garbage())),
    ("a_connection_that_was_handed_on_does_not_pass", || run(handed_on())),
    ("a_host_that_executes_another_program_is_none", || run(executes_another())),
    ("a_departed_hosts_questions_fail_at_once", || run(departed())),
    ("a_replaced_hosts_questions_fail_at_once", || run(replaced())),
    ("a_hundred_calls_while_the_host_stops_reading", || run(a_hundred_calls())),
    ("a_full_queue_grants_nothing_at_once", || run(a_full_queue())),
    ("only_the_first_line_makes_a_host", || run(only_the_first_line())),
];

fn run(case: impl Future<Output = ()>) {
    // The service has one thread of its own while the test waits for a host's words.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(case);
    runtime.shutdown_background();
}

async fn without_a_host() {
    let stage = Stage::new().await;
    stage.nothing_soon().await;
    assert!(is_refused(&stage.call("list_windows", json!({})).await));
    // Metadata needs no consent.
    assert!(stage.call("get_config", json!({})).await.is_ok());
}

async fn the_right_host() {
    let stage = Stage::new().await;
    let mut host = stage.host("nothing").await;
    host.expect("admitted");
    let refused = stage.call("list_windows", json!({})).await.unwrap_err();
    assert!(!refused.message.contains("deskhand consent"), "{refused}");
    assert!(host.await_line("told").contains("list_windows"));
    host.be("screen");
    assert_eq!(stage.asked().await.0, SCREEN);
    assert!(stage.call("list_windows", json!({})).await.is_ok());
    assert!(is_refused(&stage.call("press_key", json!({"key": "a"})).await));
    assert!(stage.desktop.take_journal().is_empty());
    host.be("all");
    assert_eq!(stage.asked().await.0, EVERYTHING);
    let pressed = stage.call("press_key", json!({"key": "a"})).await;
    assert!(!is_refused(&pressed), "{pressed:?}");
    host.be("nothing");
    assert!(is_refused(&stage.call("list_windows", json!({})).await));
    assert_eq!(stage.asked().await.0, Grant::NOTHING);
}

async fn a_wrong_token() {
    let stage = Stage::new().await;
    let program = std::env::current_exe().unwrap();
    let longer = format!("{TOKEN}x");
    for token in ["", "wrong", &TOKEN[1..], &longer] {
        let mut host = stage.host_of(&program, token, "all").await;
        let said = host.next();
        assert!(said.starts_with("refused") && said.contains("token") && !said.contains("canary"), "{said}");
        stage.nothing_soon().await;
    }
}

async fn no_token() {
    let stage = Stage::with_token(None).await;
    let mut host = stage.host("all").await;
    assert!(host.next().contains("without a host token"));
    stage.nothing_soon().await;
}

async fn another_program() {
    let stage = Stage::new().await;
    let mut host = stage.host_of(&stage.other_program(), TOKEN, "all").await;
    let said = host.next();
    assert!(said.starts_with("refused") && said.contains("executable"), "{said}");
    stage.nothing_soon().await;
    // Nor does it drive away the one that is there.
    let mut right = stage.host("all").await;
    right.expect("admitted");
    let mut host = stage.host_of(&stage.other_program(), TOKEN, "all").await;
    host.expect("refused");
    assert_eq!(stage.asked().await.0, EVERYTHING);
}

async fn a_slow_host() {
    let stage = Stage::new().await;
    let mut host = stage.host("slow").await;
    host.expect("admitted");
    let (grant, took) = stage.asked().await;
    assert!(grant == Grant::NOTHING && took >= ANSWER && took < ANSWER + SOON, "{grant:?} after {took:?}");
    // It has only been slow.
    host.be("all");
    assert_eq!(stage.asked().await.0, EVERYTHING);
}

async fn no_answers() {
    let stage = Stage::new().await;
    let mut host = stage.host("all").await;
    host.expect("admitted");
    for manner in ["error", "partial"] {
        host.be(manner);
        stage.nothing_soon().await;
    }
    host.be("all");
    assert_eq!(stage.asked().await.0, EVERYTHING);
}

async fn garbage() {
    let stage = Stage::new().await;
    for manner in ["garbage", "stale", "unasked"] {
        let mut host = stage.host("all").await;
        host.expect("admitted");
        assert_eq!(stage.asked().await.0, EVERYTHING);
        host.be(manner);
        stage.nothing_soon().await;
        host.await_line("lost");
        stage.nothing_soon().await;
    }
}

async fn handed_on() {
    let stage = Stage::new().await;
    // Before it has proved anything: the token and the program are right, the process is not.
    let mut host = stage.host("bequeath").await;
    let said = host.next();
    assert!(said.contains("another process"), "{said}");
    stage.nothing_soon().await;
    // And once it is the host.
    let mut host = stage.host("all").await;
    host.expect("admitted");
    assert_eq!(stage.asked().await.0, EVERYTHING);
    host.be("heir");
    stage.nothing_soon().await;
    stage.nothing_soon().await;
}

async fn executes_another() {
    let stage = Stage::new().await;
    let mut host = stage.host("all").await;
    host.expect("admitted");
    assert_eq!(stage.asked().await.0, EVERYTHING);
    host.be("exec");
    stage.nothing_soon().await;
    stage.nothing_soon().await;
}

async fn departed() {
    let stage = Stage::new().await;
    let mut host = stage.host("slow").await;
    host.expect("admitted");
    let questions = join_all((0..10).map(|_| stage.asked()));
    let kill = async {
        // A thread of its own: this one has to ask.
        tokio::task::block_in_place(|| host.expect("asked"));
        host.kill();
    };
    let (asked, ()) = tokio::join!(questions, kill);
    assert!(asked.iter().all(|(grant, took)| *grant == Grant::NOTHING && *took < SOON), "{asked:?}");
    stage.nothing_soon().await;
}

async fn replaced() {
    let stage = Stage::new().await;
    let mut first = stage.host("slow").await;
    first.expect("admitted");
    let open = tokio::spawn({
        let consent = std::sync::Arc::clone(&stage.consent);
        async move {
            let begun = Instant::now();
            (consent.grant().await, begun.elapsed())
        }
    });
    first.expect("asked");
    let mut second = stage.host("all").await;
    second.expect("admitted");
    let (grant, took) = open.await.unwrap();
    assert!(grant == Grant::NOTHING && took < ANSWER, "{grant:?} after {took:?}");
    assert!(first.await_line("lost").contains("taken its place"));
    assert_eq!(stage.asked().await.0, EVERYTHING);
    first.kill();
    assert_eq!(stage.asked().await.0, EVERYTHING);
    second.kill();
    stage.nothing_soon().await;
}

async fn a_hundred_calls() {
    let stage = Stage::new().await;
    let mut host = stage.host("deaf").await;
    host.expect("admitted");
    let client = stage.client().await;
    let calls = (0..100).map(|_| stage.call("list_windows", json!({})));
    let begun = Instant::now();
    let meanwhile = async {
        // The service answers others all the while.
        for _ in 0..20 {
            let asked = Instant::now();
            client.request::<wire::Status>(None, wire::Empty {}).await.unwrap();
            assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
        }
    };
    let (outcomes, ()) = tokio::join!(join_all(calls), meanwhile);
    assert!(outcomes.iter().all(is_refused));
    assert!(begun.elapsed() < 2 * ANSWER + SOON, "{:?}", begun.elapsed());
    assert!(stage.desktop.take_journal().is_empty());
}

async fn a_full_queue() {
    let stage = Stage::new().await;
    let mut host = stage.host("deaf").await;
    host.expect("admitted");
    let asked = join_all((0..3 * MAX_QUESTIONS).map(|_| stage.asked())).await;
    assert!(asked.iter().all(|(grant, took)| *grant == Grant::NOTHING && *took < ANSWER + SOON));
    let at_once = asked.iter().filter(|(_, took)| *took < ANSWER).count();
    assert!(at_once >= MAX_QUESTIONS, "{at_once}");
}

async fn only_the_first_line() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let stage = Stage::new().await;
    drop(stage.client().await);
    let mut stream = tokio::net::UnixStream::connect(&stage.socket).await.unwrap();
    let lines = "{\"id\": 1, \"method\": \"status\"}\n{\"id\": 2, \"method\": \"machine_consent_host\"}\n";
    stream.write_all(lines.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut replies = String::new();
    stream.read_to_string(&mut replies).await.unwrap();
    let replies: Vec<serde_json::Value> =
        replies.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(replies[0]["ok"].is_object());
    assert_eq!(replies[1]["error"]["code"], "invalid_argument");
}
