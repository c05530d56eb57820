//! Who may see the dashboard on its own address.
//!
//! Called for each request there. Invariants: without a user's password nothing is shown, not even that this
//! is a dashboard; a client has [`ATTEMPTS`] per minute, and passwords that were right do not count.

use super::send;
use crate::access::Verdict;
use crate::admin_reply::{Refusal, render};
use crate::admission::basic_auth::credentials;
use crate::gateway::Gateway;
use outboard_access::{KeyHash, Rate, RateTable};
use outboard_config::counted_as;
use outboard_http_server::{HeaderBlock, Request, ResponseWriter, Written};
use outboard_log::Level;
use outboard_reactor::now_ms;
use std::rc::Rc;

const ATTEMPTS: u32 = 10;
const PERIOD_MS: u64 = 60_000;
/// The clients whose attempts are counted separately.
const CLIENTS: usize = 1_024;

/// Why a request is refused, and a header field that tells the browser what to do.
pub(super) struct Refused {
    refusal: Refusal,
    field: Option<(&'static str, String)>,
}

impl Refused {
    pub(super) async fn send(self, response: &mut ResponseWriter) -> Written {
        let mut headers = HeaderBlock::default();
        if let Some((name, value)) = &self.field {
            let added = headers.add(name.as_bytes(), value.as_bytes());
            added.expect("a number, or a challenge that the configuration has checked");
        }
        let (status, kind, body) = render::<()>(Err(self.refusal));
        send(response, (status, kind, headers), &body).await
    }
}

fn refuse(status: u16, error: &str, field: Option<(&'static str, String)>) -> Result<(), Refused> {
    Err(Refused { refusal: Refusal::new(status, error), field })
}

/// Whether a request is of a user.
pub(super) async fn check(gateway: &Rc<Gateway>, request: &Request) -> Result<(), Refused> {
    let generation = gateway.generation();
    let Some(dashboard) = &generation.config.admin.dashboard else {
        return refuse(404, "there is no dashboard any more", None);
    };
    if !super::source(request).is_own(&dashboard.hosts) {
        let error = "the request is for another name, or of a page of another site; see `hosts`";
        return refuse(403, error, None);
    }
    let (auth, access) = (&dashboard.basic_auth, &generation.access);
    let challenge = || Some(("WWW-Authenticate", auth.challenge.clone()));
    let Some(credentials) = credentials(request) else {
        return refuse(401, "a password is required", challenge());
    };
    let client = request.client.peer.ip().map(counted_as);
    if !access.passwords.knows(&auth.users, &credentials) {
        let rate = || RateTable::new(Rate::new(ATTEMPTS, PERIOD_MS, ATTEMPTS), CLIENTS);
        let attempts = access.dashboard_logins.get_or_init(rate);
        let spending =
            attempts.spend(KeyHash::of(client), (now_ms() + 1).saturating_mul(1_000_000));
        if !spending.is_admitted {
            let retry_s = spending.retry_ns.div_ceil(1_000_000_000).max(1);
            let field = Some(("Retry-After", retry_s.to_string()));
            return refuse(429, "too many attempts", field);
        }
    }
    let verdict = access.passwords.verify(&auth.users, &credentials, client);
    match request.client.unless_gone(verdict).await {
        Ok(Verdict::Right) => Ok(()),
        Ok(Verdict::Busy) => refuse(503, "too many passwords are being verified", None),
        Ok(Verdict::Wrong) | Err(_) => {
            let text = format!("dashboard: a wrong password from {}", request.client.peer.text);
            gateway.server.log(Level::Warn, &text);
            refuse(401, "wrong user or password", challenge())
        }
    }
}
