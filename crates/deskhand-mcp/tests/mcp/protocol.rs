//! What a client sees: handshake, lists, results, and what becomes of bad input.

use crate::client::{Client, guide};
use serde_json::{Value, json};

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn every_version_with_a_handshake_is_echoed() {
    for version in ["2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let answer = Client::new().handshake(version).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["serverInfo"]["name"], "deskhand");
        assert_eq!(answer["result"]["serverInfo"]["version"], "9.9.9");
        assert_eq!(answer["result"]["capabilities"], json!({"tools": {}, "prompts": {}, "resources": {}}));
        assert_eq!(answer["result"]["instructions"], "Read the guide.");
    }
}

#[tokio::test]
async fn an_unknown_version_is_answered_with_the_newest_that_has_a_handshake() {
    for version in ["1999-01-01", "2026-07-28", "2099-01-01"] {
        assert_eq!(Client::new().handshake(version).await["result"]["protocolVersion"], "2025-11-25");
    }
}

#[tokio::test]
async fn a_session_without_handshake_lists_and_calls() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut client = Client::new();
    client
        .send(json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}))
        .await;
    let answer = client.receive().await;
    assert!(
        answer["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")),
        "{answer}"
    );
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}})).await;
    assert_eq!(client.receive().await["result"]["tools"][0]["name"], "echo");
    let params = json!({"name": "echo", "arguments": {"n": 1}, "_meta": meta});
    client.send(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params})).await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 1}));
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test]
async fn before_the_handshake_only_ping_is_answered() {
    let mut client = Client::new();
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    assert_eq!(client.receive().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    client.call(2, "echo", json!({})).await;
    client.send(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})).await;
    for id in [2, 3] {
        let answer = client.receive().await;
        assert_eq!((code(&answer), &answer["id"]), (-32600, &json!(id)));
    }
    assert!(client.stub.submitted.lock().unwrap().is_empty());
    assert_eq!(client.handshake("2025-06-18").await["result"]["protocolVersion"], "2025-06-18");
}

#[tokio::test]
async fn tools_are_listed_with_schema_and_hints() {
    let mut client = Client::ready("2025-06-18").await;
    client.send(json!({"jsonrpc": "2.0", "id": "a", "method": "tools/list"})).await;
    let answer = client.receive().await;
    let tools = &answer["result"]["tools"];
    assert_eq!(tools[0]["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(
        tools[1]["annotations"],
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false})
    );
    assert_eq!(tools[0]["inputSchema"]["type"], "object");
    assert_eq!(tools[0].get("outputSchema"), None);
}

#[tokio::test]
async fn text_comes_first_and_pictures_are_image_blocks() {
    let mut client = Client::ready("2025-06-18").await;
    client.call(1, "picture", json!({})).await;
    assert_eq!(
        client.receive().await["result"],
        json!({
            "content": [
                {"type": "text", "text": "a picture"},
                {"type": "image", "data": "cG5n", "mimeType": "image/png"},
            ],
            "structuredContent": {"width": 1},
        })
    );
}

#[tokio::test]
async fn a_failed_call_is_a_result_with_code_and_recovery() {
    let mut client = Client::ready("2025-06-18").await;
    client.call(1, "fail", json!({})).await;
    let result = &client.receive().await["result"];
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"], json!([{"type": "text", "text": "argument `x`: expected a number"}]));
    assert_eq!(result["structuredContent"]["code"], "invalid_argument");
    assert_eq!(result["structuredContent"]["recovery"], "request");
}

#[tokio::test]
async fn an_unknown_tool_and_a_lost_service_are_protocol_errors() {
    let mut client = Client::ready("2025-06-18").await;
    client.call(1, "no_such", json!({})).await;
    assert_eq!(code(&client.receive().await), -32602);
    client.call(2, "lost", json!({})).await;
    let answer = client.receive().await;
    assert_eq!(code(&answer), -32603);
    assert_eq!(answer["error"]["data"], json!({"code": "service_unreachable", "recovery": "process"}));
}

#[tokio::test]
async fn absent_arguments_are_empty_and_others_must_be_an_object() {
    let mut client = Client::ready("2025-06-18").await;
    for (id, params) in [(1, json!({"name": "echo"})), (2, json!({"name": "echo", "arguments": null}))] {
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
        assert_eq!(client.receive().await["result"]["structuredContent"], json!({}));
    }
    for bad in [json!([1]), json!("x"), json!(1), json!(true)] {
        client.call(3, "echo", bad).await;
        let answer = client.receive().await;
        assert_eq!(code(&answer), -32602);
        assert!(
            answer["error"]["message"].as_str().unwrap().contains("`arguments` of echo must be an object")
        );
    }
}

#[tokio::test]
async fn bad_parameters_name_what_is_wrong() {
    let mut client = Client::ready("2025-06-18").await;
    for (params, part) in [
        (json!({}), "`name` is missing"),
        (json!({"name": 7}), "`name` must be a string"),
        (json!([1]), "`params` must be an object"),
        (Value::Null, "`params` is missing"),
        (json!({"name": "echo", "_meta": 7}), "`params`"),
    ] {
        client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
        let answer = client.receive().await;
        assert_eq!((code(&answer), &answer["id"]), (-32602, &json!(1)), "{params}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{answer}");
    }
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "no/such"})).await;
    assert_eq!(code(&client.receive().await), -32601);
}

#[tokio::test]
async fn the_guide_is_a_prompt() {
    let guide = guide();
    let mut client = Client::ready("2025-06-18").await;
    for params in [Value::Null, json!({})] {
        client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "prompts/list", "params": params})).await;
        assert_eq!(
            client.receive().await["result"],
            json!({"prompts": [{"name": guide.name, "title": guide.title, "description": guide.description}]})
        );
    }
    for params in [json!({"name": guide.name}), json!({"name": guide.name, "arguments": {}})] {
        client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "prompts/get", "params": params})).await;
        assert_eq!(
            client.receive().await["result"],
            json!({
                "description": guide.description,
                "messages": [{"role": "user", "content": {"type": "text", "text": guide.text}}],
            })
        );
    }
    assert!(client.stub.submitted.lock().unwrap().is_empty(), "the driver has nothing to do with it");
}

#[tokio::test]
async fn the_guide_is_a_resource() {
    let guide = guide();
    let mut client = Client::ready("2025-06-18").await;
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "resources/list"})).await;
    assert_eq!(
        client.receive().await["result"],
        json!({"resources": [{
            "uri": guide.uri, "name": guide.name, "title": guide.title, "description": guide.description,
            "mimeType": "text/markdown", "size": guide.text.len(),
        }]})
    );
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "resources/templates/list"})).await;
    assert_eq!(client.receive().await["result"], json!({"resourceTemplates": []}));
    let params = json!({"uri": guide.uri});
    client.send(json!({"jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": params})).await;
    assert_eq!(
        client.receive().await["result"],
        json!({"contents": [{"uri": guide.uri, "mimeType": "text/markdown", "text": guide.text}]})
    );
}

#[tokio::test]
async fn what_is_not_there_to_read_is_refused_by_name() {
    let mut client = Client::ready("2025-06-18").await;
    for (method, params, expected, part) in [
        ("prompts/get", json!({"name": "other"}), -32602, "\"other\""),
        ("prompts/get", json!({}), -32602, "name"),
        ("prompts/get", json!({"name": 7}), -32602, "`params`"),
        ("prompts/get", Value::Null, -32602, "`params`"),
        ("resources/read", json!({"uri": "stub://other"}), -32002, "stub://other"),
        ("resources/read", json!({"uri": ""}), -32002, "\"\""),
        ("resources/read", json!({}), -32602, "uri"),
        ("resources/read", json!({"uri": 7}), -32602, "`params`"),
        ("resources/list", json!([1]), -32602, "`params`"),
    ] {
        client.send(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await;
        let answer = client.receive().await;
        assert_eq!((code(&answer), &answer["id"]), (expected, &json!(1)), "{method} {params}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{answer}");
    }
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "resources/list"})).await;
    assert!(client.receive().await["result"]["resources"].is_array(), "and the next is answered");
}

#[tokio::test]
async fn the_guide_is_read_without_a_handshake_too() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut client = Client::new();
    for (id, uri, expected) in [(1, guide().uri, None), (2, "stub://other".to_owned(), Some(-32602))] {
        let params = json!({"uri": uri, "_meta": meta});
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params})).await;
        let answer = client.receive().await;
        match expected {
            None => assert_eq!(answer["result"]["contents"][0]["text"], guide().text, "{answer}"),
            Some(expected) => assert_eq!(code(&answer), expected, "{answer}"),
        }
    }
}

#[tokio::test]
async fn a_bad_handshake_is_refused_and_a_good_one_still_works() {
    let mut client = Client::new();
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"})).await;
    assert_eq!(code(&client.receive().await), -32602);
    client
        .send(json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"protocolVersion": 3}}))
        .await;
    assert_eq!(code(&client.receive().await), -32602);
    client.handshake("2025-06-18").await;
    client.call(3, "echo", json!({"n": 1})).await;
    assert_eq!(client.receive().await["id"], 3);
}

#[tokio::test]
async fn lines_that_are_no_messages_are_answered_and_the_next_is_read() {
    let mut client = Client::ready("2025-06-18").await;
    for (line, expected) in [
        (&b"garbage\n"[..], -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\n", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}\n", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}\n", -32700),
        (b"7\n", -32600),
        (b"{}\n", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1}\n", -32600),
        (b"[]\n", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n", -32600),
    ] {
        client.write(line).await;
        let answer = client.receive().await;
        assert_eq!(code(&answer), expected, "{}", String::from_utf8_lossy(line));
    }
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":41,\"method\":\"tools/call\",\"params\":{\"x\":NaN}}\n").await;
    let answer = client.receive().await;
    assert_eq!((code(&answer), &answer["id"]), (-32700, &json!(41)));
    let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    client.write(deep.as_bytes()).await;
    assert_eq!(code(&client.receive().await), -32700);
    for ignored in [
        &b"\n  \r\n"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"x\"}}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"no/such\",\"params\":{\"x\":1}}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":77}}\n",
    ] {
        client.write(ignored).await;
    }
    assert_eq!(client.until_ping().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_line_over_the_limit_is_skipped_and_answered() {
    let mut client = Client::ready("2025-06-18").await;
    let chunk = vec![b'x'; 1024 * 1024];
    for _ in 0..100 {
        client.write(&chunk).await;
    }
    client.write(b"\n").await;
    let answer = client.receive().await;
    assert_eq!((code(&answer), &answer["id"]), (-32600, &Value::Null));
    assert!(answer["error"]["message"].as_str().unwrap().contains("104857600 bytes"), "{answer}");
    assert_eq!(client.until_ping().await, Vec::<Value>::new());
}

#[tokio::test]
async fn early_versions_answer_a_batch_together() {
    let mut client = Client::ready("2025-03-26").await;
    let ping = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    client.send(json!([ping(1), notification, 7, crate::client::call(2, "echo", json!({"n": 2}))])).await;
    let answer = client.receive().await;
    let mut ids: Vec<String> = answer.as_array().unwrap().iter().map(|a| a["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "null"]);
    // A batch of which nothing is answered has no answer.
    client.send(json!([notification])).await;
    assert_eq!(client.until_ping().await, Vec::<Value>::new());
}
