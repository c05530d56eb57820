//! The admin socket: status, metrics, reload and stop, as plain HTTP over a Unix socket.
//!
//! Called by connections of the admin listener. `curl --unix-socket` works as well as
//! `outboard status`. Only those who may open the socket file reach it.

use crate::answer::{Asked, Sent};
use crate::connection::Connection;
use crate::header_block::HeaderBlock;
use crate::{metrics, status};
use outboard_http1::Method;
use serde_json::json;

/// Answers one admin request.
pub(crate) async fn answer(connection: &mut Connection) -> Sent {
    let buffers = connection.buffers();
    let asked = Asked {
        method: buffers.head.method_kind(),
        version: buffers.head.version(),
        keep_alive: buffers.head.keep_alive(),
    };
    let path = buffers.head.path(&buffers.input).to_vec();
    let gateway = connection.gateway.clone();
    let (code, kind, body) = match (asked.method, &path[..]) {
        (Method::Get, b"/status") => {
            (200, JSON, serde_json::to_vec(&status::of(&gateway)).unwrap_or_default())
        }
        (Method::Get, b"/metrics") => (200, metrics::CONTENT_TYPE, metrics::of(&gateway)),
        (Method::Post, b"/reload") => match gateway.wishes.reload_and_hear().await {
            Ok(generation) => (200, JSON, json_body(&json!({"generation": generation}))),
            Err(why) => (409, JSON, json_body(&json!({"error": why}))),
        },
        (Method::Post, b"/stop") => {
            gateway.wishes.stop.set();
            (202, JSON, json_body(&json!({"stopping": true})))
        }
        _ => (404, JSON, json_body(&json!({"error": "no such admin resource"}))),
    };
    let mut headers = HeaderBlock::default();
    headers.add(b"Content-Type", kind.as_bytes()).expect("a constant header");
    connection.respond(asked, code, &headers, &body).await
}

const JSON: &str = "application/json";

fn json_body(value: &serde_json::Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}
