//! What `outboard opcache status` shows: each app's opcode cache, in its own words.
//!
//! Called by the admin socket. A worker is asked, since only PHP sees that memory; it answers like
//! any request and waits its turn, in worker mode without the script that stays. With a fork per request
//! there is no worker to ask: the script itself goes on in each.

use crate::app::App;
use crate::gateway::Gateway;
use crate::script;
use outboard_config::{Isolation, Mode};
use outboard_log::Wall;
use outboard_ring::request::{FIELD_COUNT, Field, Fixed, RequestParts, encode};
use serde_json::{Value, json};
use std::iter;
use std::rc::Rc;

/// The script that the host answers itself (`opcache.c`).
const ASKED: &[u8] = b"outboard:opcache";
/// Longest answer.
const ANSWER_MAX_BYTES: usize = 1 << 20;

/// The state of each app's opcode cache, by name.
pub(crate) async fn status(gateway: &Gateway) -> Value {
    let mut apps = serde_json::Map::new();
    for app in &gateway.generation().apps {
        let state = match &app.config.mode {
            Mode::Worker(worker) if worker.isolation == Isolation::Fork => {
                json!({ "error": "with isolation by fork a script is compiled once, when it boots" })
            }
            _ => of(gateway, app).await,
        };
        apps.insert(app.config.name.clone(), state);
    }
    json!({ "apps": apps })
}

async fn of(gateway: &Gateway, app: &Rc<App>) -> Value {
    let request_id = gateway.next_request_id();
    let made = script::make(app, frame(app), request_id, b"/", ANSWER_MAX_BYTES).await;
    match made {
        Ok(Some((_, body))) => match serde_json::from_slice(&body) {
            Ok(Value::Object(state)) => Value::Object(state),
            _ => json!({ "error": "opcache is off, or opcache.restrict_api forbids to ask it" }),
        },
        Ok(None) => json!({ "error": "the answer is too long" }),
        Err(reason) => json!({ "error": reason.text() }),
    }
}

fn frame(app: &App) -> Vec<u8> {
    let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
    let mut set = |field: Field, value| fields[field as usize] = value;
    set(Field::Method, b"GET");
    set(Field::Uri, b"/");
    set(Field::ScriptFilename, ASKED);
    set(Field::ScriptName, b"/");
    set(Field::DocumentRoot, &app.document_root);
    set(Field::Protocol, b"HTTP/1.1");
    let fixed = Fixed {
        content_length: None,
        received_us: Wall::now().unix_us,
        remote_port: 0,
        server_port: 0,
        header_count: 0,
        param_count: 0,
    };
    let mut frame = Vec::new();
    let parts = RequestParts { fixed, fields, headers: iter::empty(), params: iter::empty() };
    encode(parts, &mut frame);
    frame
}
