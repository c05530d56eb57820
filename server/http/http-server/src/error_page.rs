//! The pages and header lines of refusals and of status codes.
//!
//! Called by everything that responds with an error. Invariant: unless the configuration allows it,
//! a page does not name the reason, which would reveal how the server is built.

use crate::HeaderBlock;
use outboard_http1::write_status_line;
use outboard_log::Reason;

/// The methods that scripts usually support. They receive every other as well, except CONNECT and
/// TRACE.
pub const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// The header lines of a refusal; with `names_reason` the reason is one of them.
pub fn headers(reason: Reason, names_reason: bool) -> HeaderBlock {
    let mut headers = HeaderBlock::default();
    let mut add = |name: &str, value: &str| {
        headers.add(name.as_bytes(), value.as_bytes()).expect("constant headers are valid");
    };
    add("Content-Type", "text/html; charset=utf-8");
    if names_reason {
        add("X-Outboard-Reason", reason.code());
    }
    match reason {
        Reason::AuthBusy
        | Reason::MemoryFull
        | Reason::QueueFull
        | Reason::QueueTimeout
        | Reason::AppDown
        | Reason::Draining
        | Reason::EntityOverload => {
            add("Retry-After", "1");
        }
        Reason::MethodNotAllowed => add("Allow", "GET, HEAD"),
        Reason::EntityMethod => add("Allow", "GET, HEAD, PUT, DELETE"),
        Reason::EntityToken => add("WWW-Authenticate", "Bearer"),
        Reason::MethodRefused => add("Allow", METHODS),
        _ => {}
    }
    headers
}

/// The page of a refusal.
pub fn of_reason(reason: Reason, names_reason: bool) -> String {
    of_status(reason.status(), if names_reason { reason.text() } else { reason.public_text() })
}

/// A page with a status code and a sentence.
pub fn of_status(status: u16, text: &str) -> String {
    let mut line = Vec::new();
    write_status_line(&mut line, status);
    let title = String::from_utf8_lossy(&line[9..]).trim_end().to_owned();
    format!(
        "<!doctype html><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><style>body{{font:16px/1.5 system-ui,sans-serif;max-width:36em;\
         margin:15vh auto;padding:0 1em;color:#223}}@media(prefers-color-scheme:dark)\
         {{body{{background:#15181d;color:#dde}}}}</style><h1>{title}</h1><p>{text}</p>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_its_reason_only_if_configured() {
        let reason = Reason::QueueFull;
        for (names_reason, expected) in [(true, true), (false, false)] {
            let block = headers(reason, names_reason);
            assert_eq!(block.contains(b"x-outboard-reason"), expected);
            assert!(block.contains(b"retry-after"));
            let text = if names_reason { reason.text() } else { reason.public_text() };
            assert!(of_reason(reason, names_reason).contains(text));
        }
    }

    #[test]
    fn a_page_has_the_phrase_of_its_status() {
        assert!(of_status(404, "gone").contains("<h1>404 Not Found</h1><p>gone</p>"));
    }
}
