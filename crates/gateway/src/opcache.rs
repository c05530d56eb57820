//! What `outboard opcache status` shows: each app's opcode cache, in its own words.
//!
//! Called by the admin socket. A worker is asked, since only PHP sees that memory; it answers like
//! any request and waits its turn, in worker mode without the script that stays. With a fork per request
//! there is no worker to ask: the script itself goes on in each.

use crate::app::App;
use crate::gateway::Gateway;
use crate::script;
use outboard_admin_api::Failure;
use outboard_admin_api::opcache::{Cache, Caches};
use outboard_config::{Isolation, Mode};
use outboard_log::Wall;
use outboard_ring::request::{FIELD_COUNT, Field, Fixed, RequestParts, encode};
use std::collections::BTreeMap;
use std::iter;
use std::rc::Rc;

/// The script that the host answers itself (`opcache.c`).
const ASKED: &[u8] = b"outboard:opcache";
/// Longest answer.
const ANSWER_MAX_BYTES: usize = 1 << 20;

/// The state of each app's opcode cache, by name.
pub(crate) async fn status(gateway: &Gateway) -> Caches {
    let mut apps = BTreeMap::new();
    for app in &gateway.generation().apps {
        let cache = match &app.config.mode {
            Mode::Worker(worker) if worker.isolation == Isolation::Fork => {
                failed("with isolation by fork a script is compiled once, when it boots")
            }
            _ => of(gateway, app).await,
        };
        apps.insert(app.config.name.clone(), cache);
    }
    Caches { apps }
}

async fn of(gateway: &Gateway, app: &Rc<App>) -> Cache {
    let request_id = gateway.next_request_id();
    let rendered = script::make(app, frame(app), request_id, b"/", ANSWER_MAX_BYTES).await;
    match rendered {
        Ok(Some((_, body))) => match serde_json::from_slice(&body) {
            Ok(report) => Cache::Report(report),
            Err(_) => failed("opcache is off, or opcache.restrict_api does not allow the report"),
        },
        Ok(None) => failed("the report is too long"),
        Err(reason) => failed(reason.text()),
    }
}

fn failed(error: &str) -> Cache {
    Cache::Failed(Failure { error: error.to_owned() })
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
