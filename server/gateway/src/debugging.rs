//! Which requests are debugged: they have a trigger of Xdebug, and their client may start a debugger.
//!
//! Dispatch asks once for each request to PHP. Invariants: what is not noticed here is handled by a worker without
//! Xdebug; a client that may not learns nothing of it; an app that no client may debug costs one comparison.

use crate::app::App;
use crate::request::Request;
use memchr::memmem;
use outboard_php_pool::renewal::seat::PoolSeat;
use std::rc::Rc;

/// The names of Xdebug's triggers, as cookies and as parameters of a query.
const NAMES: [&[u8]; 3] = [b"XDEBUG_TRIGGER", b"XDEBUG_SESSION", b"XDEBUG_SESSION_START"];
/// A header cannot be one for Xdebug itself: the worker has it connect.
const HEADER: &[u8] = b"xdebug-trigger";

/// Whether a worker with Xdebug is to handle the request.
pub(crate) fn is_wanted(request: &Request<'_>, app: &App) -> bool {
    app.debug_seat.is_some()
        && (has_any(request.query(), b'&')
            || has_any(request.header(b"cookie"), b';')
            || request.header(HEADER).is_some())
        && app.config.debug.admits(request.client_ip())
}

/// The place of its worker, if it is debugged.
pub(crate) fn seat<'a>(request: &Request<'_>, app: &'a App) -> Option<&'a Rc<PoolSeat>> {
    app.debug_seat.as_ref().filter(|_| request.is_debugged.get())
}

/// Whether a trigger is in these pairs of names and values.
fn has_any(pairs: Option<&[u8]>, separator: u8) -> bool {
    pairs.is_some_and(|pairs| {
        memmem::find(pairs, b"XDEBUG_").is_some()
            && pairs.split(|byte| *byte == separator).any(|pair| {
                let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
                NAMES.contains(&name.trim_ascii())
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_is_a_whole_name() {
        for (pairs, expected) in [
            ("XDEBUG_TRIGGER=1", true),
            ("a=1&XDEBUG_SESSION_START=PHPSTORM", true),
            ("XDEBUG_TRIGGER", true),
            ("a=XDEBUG_TRIGGER", false),
            ("XXDEBUG_TRIGGER=1", false),
            ("XDEBUG_TRIGGERS=1", false),
            ("xdebug_trigger=1", false),
            ("XDEBUG%5FTRIGGER=1", false),
            ("", false),
        ] {
            assert_eq!(has_any(Some(pairs.as_bytes()), b'&'), expected, "{pairs}");
        }
        assert!(has_any(Some(b"sid=1; XDEBUG_SESSION=VSCODE"), b';'));
        assert!(!has_any(Some(b"sid=XDEBUG_SESSION; b=2"), b';') && !has_any(None, b';'));
    }
}
