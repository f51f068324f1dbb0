//! Order, cancellation, bounds, and the end of a connection.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::client::{Client, call};
use deskhand_core::SessionId;
use deskhand_mcp::Limits;
use serde_json::{Value, json};

#[tokio::test]
async fn a_burst_of_calls_is_submitted_and_started_in_the_order_of_its_lines() {
    let mut client = Client::ready("2025-06-18").await;
    let mut burst = String::new();
    for n in 0..200 {
        burst.push_str(&format!("{}\n", call(n + 1, "echo", json!({"n": n}))));
    }
    client.write(burst.as_bytes()).await;
    let mut ids = BTreeSet::new();
    for _ in 0..200 {
        ids.insert(client.receive().await["id"].as_i64().unwrap());
    }
    assert_eq!(ids.len(), 200);
    let expected: Vec<Value> = (0..200).map(Value::from).collect();
    assert_eq!(*client.stub.submitted.lock().unwrap(), expected);
    assert_eq!(*client.stub.started.lock().unwrap(), expected);
}

#[tokio::test]
async fn calls_over_the_limit_start_in_order_as_others_end() {
    let mut client = Client::with_limits(Limits { running: 2, ..Limits::default() });
    client.handshake("2025-06-18").await;
    for n in 1..=5 {
        client.call(n, "hold", json!({"n": n})).await;
    }
    client.stub.holding.notified().await;
    assert_eq!(client.until_ping().await, Vec::<Value>::new());
    assert_eq!(*client.stub.started.lock().unwrap(), [1, 2]);
    for n in 1..=5 {
        client.stub.go.notify_one();
        assert_eq!(client.receive().await["id"], n);
    }
    assert_eq!(*client.stub.started.lock().unwrap(), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_cancelled_call_is_told_and_gets_no_answer() {
    let mut client = Client::ready("2025-06-18").await;
    client.call(1, "hold", json!({})).await;
    client.stub.holding.notified().await;
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    client.stub.cancelled.notified().await;
    assert_eq!(client.until_ping().await, Vec::<Value>::new());
    // Its id is free again.
    client.call(1, "echo", json!({"n": 1})).await;
    assert_eq!(client.receive().await["result"]["structuredContent"], json!({"n": 1}));
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_its_turn_never_starts() {
    let mut client = Client::with_limits(Limits { running: 1, ..Limits::default() });
    client.handshake("2025-06-18").await;
    client.call(1, "hold", json!({"n": 1})).await;
    client.stub.holding.notified().await;
    client.call(2, "echo", json!({"n": 2})).await;
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}))
        .await;
    client.call(3, "echo", json!({"n": 3})).await;
    assert_eq!(client.until_ping().await, Vec::<Value>::new());
    client.stub.go.notify_one();
    assert_eq!(client.receive().await["id"], 1);
    assert_eq!(client.receive().await["id"], 3);
    assert_eq!(*client.stub.started.lock().unwrap(), [1, 3]);
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused() {
    let mut client = Client::ready("2025-06-18").await;
    client.call(1, "hold", json!({"n": 1})).await;
    client.stub.holding.notified().await;
    client.call(1, "echo", json!({"n": 2})).await;
    assert_eq!(client.receive().await["error"]["code"], -32600);
    client.stub.go.notify_one();
    assert_eq!(client.receive().await["result"]["structuredContent"], json!({"held": true}));
    assert_eq!(*client.stub.submitted.lock().unwrap(), [1]);
}

#[tokio::test]
async fn ten_thousand_requests_before_the_first_answer_is_read() {
    let mut client = Client::ready("2025-06-18").await;
    for n in 0..10_000 {
        // Alternately, so that both kinds are in the queue.
        let message = match n % 2 {
            0 => call(n, "echo", json!({"n": n})),
            _ => json!({"jsonrpc": "2.0", "id": n, "method": "ping"}),
        };
        client.send(message).await;
    }
    let mut ids = BTreeSet::new();
    for _ in 0..10_000 {
        ids.insert(client.receive().await["id"].as_i64().unwrap());
    }
    assert_eq!(ids.len(), 10_000);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_either() {
    let limits = Limits { answer_bytes: 1_000_000, running: 4, ..Limits::default() };
    let mut client = Client::with_limits(limits);
    client.handshake("2025-06-18").await;
    // 500 answers of 100 kB: 50 MB if nothing bounded them.
    for id in 0..500 {
        client.call(id, "big", json!({"n": id})).await;
    }
    assert!(client.stub.started.lock().unwrap().len() <= 20, "calls ran though nobody reads their answers");
    for id in 0..500 {
        assert_eq!(client.receive().await["id"], id);
    }
}

#[tokio::test]
async fn a_call_that_runs_at_the_end_of_input_finishes_and_answers() {
    let mut client = Client::ready("2025-06-18").await;
    client.call(1, "hold", json!({})).await;
    client.stub.holding.notified().await;
    client.input = None;
    client.stub.go.notify_one();
    assert_eq!(client.receive().await["result"]["structuredContent"], json!({"held": true}));
    assert_eq!(client.next().await, None);
    let stub = client.close().await;
    assert_eq!(*stub.left.lock().unwrap(), [SessionId::new("s1")]);
    assert_eq!(*stub.ended.lock().unwrap(), [SessionId::new("s1")]);
}

#[tokio::test]
async fn a_call_that_has_not_started_at_the_end_of_input_never_does() {
    let mut client = Client::with_limits(Limits { running: 1, ..Limits::default() });
    client.handshake("2025-06-18").await;
    client.call(1, "hold", json!({"n": 1})).await;
    client.call(2, "echo", json!({"n": 2})).await;
    client.stub.holding.notified().await;
    client.input = None;
    let answer = client.receive().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["structuredContent"]["code"]),
        (&json!(2), &json!("session_ended"))
    );
    client.stub.go.notify_one();
    assert_eq!(client.receive().await["id"], 1);
    assert_eq!(*client.close().await.started.lock().unwrap(), [1]);
}

#[tokio::test]
async fn calls_that_do_not_end_are_cancelled_and_then_left() {
    for tool in ["hold", "deaf"] {
        let mut client = Client::ready("2025-06-18").await;
        client.call(1, tool, json!({"n": 1})).await;
        // The server has started it when it answers what came later.
        assert_eq!(client.until_ping().await, Vec::<Value>::new());
        let begin = Instant::now();
        client.close().await;
        let took = begin.elapsed();
        assert!(took >= Duration::from_millis(1500) && took < Duration::from_secs(2), "{tool}: {took:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_ends_at_once() {
    for end in ["input", "output", "shutdown", "before the handshake"] {
        let mut client = Client::new();
        if end != "before the handshake" {
            client.handshake("2025-06-18").await;
        }
        let begin = Instant::now();
        match end {
            "output" => {
                client.output = None;
                client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
            }
            "shutdown" => client.shutdown.cancel(),
            _ => client.input = None,
        }
        client.server.await.unwrap().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(1), "{end}: {:?}", begin.elapsed());
    }
}

#[tokio::test]
async fn the_end_is_bounded_when_nobody_reads() {
    let mut client = Client::ready("2025-06-18").await;
    for id in 0..20 {
        client.call(id, "big", json!({})).await;
    }
    let begin = Instant::now();
    client.close().await;
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}
