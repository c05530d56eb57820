//! `X-Sendfile` and `X-Accel-Redirect`: PHP decides, the gateway sends.
//!
//! Invariant: only files below the app's root or its configured sendfile folders are sent,
//! whatever PHP says. Headers that PHP set (type, disposition, cookies) stay; validators and
//! ranges are the file's own.

use super::BeforeHead;
use crate::app::App;
use crate::connection::Connection;
use crate::files;
use crate::header_block::HeaderBlock;
use crate::log::Level;
use crate::php_head::{PhpHead, SendfileOrder};
use crate::reason::Reason;
use crate::turn::{Answered, Turn};
use outboard_http1::normalize_path;
use outboard_reactor::now_ms;
use outboard_static_files::{Entry, Lookup, Root};
use std::rc::Rc;

/// Sends the file that PHP named.
pub(super) async fn answer(
    connection: &mut Connection,
    turn: &Turn,
    app: &Rc<App>,
    head: PhpHead,
    order: SendfileOrder,
) -> BeforeHead<Answered> {
    let entry = find(app, &order).ok_or_else(|| {
        let (SendfileOrder::Disk(path) | SendfileOrder::Accel(path)) = &order;
        let text = format!("cannot send {}", String::from_utf8_lossy(path));
        app.log_text(Level::Error, turn.request_id, &text);
        Reason::BadSendfile
    })?;
    let given_type =
        head.headers.lines().find(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
    let given_type = given_type.map(|(_, value)| value.to_vec());
    let mut plan = files::plan_for(connection, turn, &entry, given_type.as_deref());
    if plan.status == 200 {
        plan.status = head.status;
    }
    let mut headers = head.headers;
    merge(&mut headers, &plan.headers);
    headers.apply(&app.config.headers, app.below_prefix(&connection.buffers().path));
    Ok(files::send(connection, turn, &plan, &headers.bytes).await)
}

/// The plan's lines replace those of PHP with the same name: its Content-Type is PHP's own where
/// that fits the body that is sent.
fn merge(headers: &mut HeaderBlock, plan: &[(&'static str, Vec<u8>)]) {
    for (name, value) in plan {
        headers.remove(name.as_bytes());
        // The plan's values are made from numbers and checked types.
        let _ = headers.add(name.as_bytes(), value);
    }
}

fn find(app: &App, order: &SendfileOrder) -> Option<Rc<Entry>> {
    match order {
        SendfileOrder::Disk(path) => app.sendfile.disk.iter().find_map(|(folder, root)| {
            let below = path.strip_prefix(folder.as_os_str().as_encoded_bytes())?;
            open(root, below)
        }),
        SendfileOrder::Accel(path) => app.sendfile.accel.iter().find_map(|(prefix, root)| {
            let below = path.strip_prefix(prefix.trim_end_matches('/').as_bytes())?;
            open(root, below)
        }),
    }
}

fn open(root: &Root, below: &[u8]) -> Option<Rc<Entry>> {
    // `/srv/files-x` is not below `/srv/files`.
    if !below.starts_with(b"/") {
        return None;
    }
    let mut path = Vec::new();
    normalize_path(below, &mut path).ok()?;
    match root.lookup(&path, now_ms()) {
        Lookup::File(entry) => Some(entry),
        _ => None,
    }
}
