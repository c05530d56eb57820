//! The report of `outboard opcache status`: the state of each app's opcode cache, as PHP reports
//! it.
//!
//! Called by the admin socket. A worker renders the report, since only PHP can read that memory;
//! the request is queued like any other, and in worker mode the worker script does not receive it.
//! With a fork per request no worker can render it.

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

/// The script name that the host handles itself (`opcache.c`).
const REPORT_SCRIPT: &[u8] = b"outboard:opcache";
/// Longest report.
const MAX_REPORT_BYTES: usize = 1 << 20;

/// The state of each app's opcode cache, by name.
pub(crate) async fn status(gateway: &Gateway) -> Caches {
    let mut apps = BTreeMap::new();
    for app in &gateway.generation().apps {
        let cache = match &app.config.mode {
            Mode::Worker(worker) if worker.isolation != Isolation::Reset => failed(&format!(
                "with isolation by {} a script is compiled once, when it boots",
                worker.isolation.name()
            )),
            _ => of(gateway, app).await,
        };
        apps.insert(app.config.name.clone(), cache);
    }
    Caches { apps }
}

async fn of(gateway: &Gateway, app: &Rc<App>) -> Cache {
    let request_id = gateway.next_request_id();
    let rendered = script::render(app, frame(app), request_id, b"/", MAX_REPORT_BYTES).await;
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
    let document_root = app.document_root();
    let mut set = |field: Field, value| fields[field as usize] = value;
    set(Field::Method, b"GET");
    set(Field::Uri, b"/");
    set(Field::ScriptFilename, REPORT_SCRIPT);
    set(Field::ScriptName, b"/");
    set(Field::DocumentRoot, document_root.as_os_str().as_encoded_bytes());
    set(Field::Protocol, b"HTTP/1.1");
    let fixed = Fixed { received_us: Wall::now().unix_us, ..Fixed::default() };
    let mut frame = Vec::new();
    let parts = RequestParts { fixed, fields, headers: iter::empty(), params: iter::empty() };
    encode(parts, &mut frame);
    frame
}
