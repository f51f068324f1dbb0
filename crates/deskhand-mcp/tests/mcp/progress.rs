//! Progress of calls that ask for it.

use deskhand_core::Progress;
use serde_json::{Value, json};

use crate::client::{Client, call};

fn with_token(id: i64, token: Value) -> Value {
    let mut message = call(id, "report", json!({}));
    message["params"]["_meta"] = json!({"progressToken": token});
    message
}

fn late() -> Progress {
    Progress { done: 3.0, total: None, message: "late".to_owned() }
}

#[tokio::test]
async fn progress_comes_before_the_answer_to_who_asked_for_it_and_never_after() {
    let mut client = Client::ready("2025-06-18").await;
    for token in [json!("t"), json!(0)] {
        client.send(with_token(1, token.clone())).await;
        let mut told = vec![client.receive().await, client.receive().await];
        assert_eq!(
            told.remove(0),
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params":
                {"progressToken": token, "progress": 1.0, "total": 2.0, "message": "half"}})
        );
        let params = &told[0]["params"];
        assert_eq!((&params["progress"], params.get("total")), (&json!(2.0), None));
        client.stub.go.notify_one();
        assert_eq!(client.receive().await["result"]["structuredContent"], json!({"reported": true}));
        let sink = client.stub.progress.lock().unwrap().take().unwrap();
        sink.report(late());
        assert_eq!(client.until_ping().await, Vec::<Value>::new());
    }
}

#[tokio::test]
async fn who_does_not_ask_hears_nothing() {
    let mut client = Client::ready("2025-06-18").await;
    for message in [call(1, "report", json!({})), with_token(1, json!({})), with_token(1, json!(1.5))] {
        client.send(message).await;
        client.stub.go.notify_one();
        assert_eq!(client.receive().await["id"], 1);
        assert!(client.stub.progress.lock().unwrap().is_none());
    }
}

#[tokio::test]
async fn a_cancelled_call_and_a_client_that_left_hear_nothing_more() {
    let mut client = Client::ready("2025-06-18").await;
    client.send(with_token(1, json!(7))).await;
    client.receive().await;
    client.receive().await;
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    assert_eq!(client.until_ping().await, Vec::<Value>::new());
    let sink = client.stub.progress.lock().unwrap().take().unwrap();
    sink.report(late());
    assert_eq!(client.until_ping().await, Vec::<Value>::new());
    client.stub.go.notify_one();
    client.stub.go.notify_one();
    let begin = std::time::Instant::now();
    client.close().await;
    assert!(begin.elapsed() < std::time::Duration::from_secs(1), "a sink kept the output open");
    sink.report(late());
}

#[tokio::test]
async fn a_client_that_does_not_read_costs_no_progress() {
    let mut client = Client::ready("2025-06-18").await;
    client.send(with_token(1, json!(7))).await;
    client.stub.holding.notified().await;
    let sink = client.stub.progress.lock().unwrap().clone().unwrap();
    for _ in 0..100_000 {
        sink.report(late());
    }
    client.stub.go.notify_one();
    let mut told = 0;
    while client.receive().await.get("id").is_none() {
        told += 1;
    }
    assert!(told < 3000, "{told} notifications were kept for a client that does not read");
}
