//! Basic authentication of a request (RFC 7617).
//!
//! Called for requests whose rules have users. Invariant: a request with several Authorization fields is not
//! authenticated, because those behind the gateway could read another one.

use crate::access::Verdict;
use crate::app::App;
use crate::refusal::Refusal;
use crate::request::Request;
use outboard_access::Credentials;
use outboard_config::{BasicAuth, RuleSet, counted_as};
use outboard_http_server::{HeaderBlock, Request as HttpRequest};
use outboard_log::Reason;

/// Admits a request that is of a user of each rule.
///
/// # Errors
/// It is not.
pub(super) async fn check(request: &Request<'_>, app: &App, rules: RuleSet) -> Result<(), Refusal> {
    for index in rules.indices() {
        let Some(auth) = &app.config.access.rules[index].basic_auth else { continue };
        let Err(reason) = verify(request, auth).await else { continue };
        if reason.status() != Reason::AuthRequired.status() {
            return Err(reason.into());
        }
        let mut fields = HeaderBlock::default();
        let challenge = fields.add(b"WWW-Authenticate", auth.challenge.as_bytes());
        challenge.expect("the configuration has checked the realm");
        return Err(Refusal::with_fields(reason, fields));
    }
    Ok(())
}

async fn verify(request: &Request<'_>, auth: &BasicAuth) -> Result<(), Reason> {
    let client = request.client_ip().map(counted_as);
    let credentials = credentials(request).ok_or(Reason::AuthRequired)?;
    let access = request.gateway.generation().access.clone();
    let verdict = access.passwords.verify(&auth.users, &credentials, client);
    match request.client.unless_gone(verdict).await? {
        Verdict::Right => Ok(()),
        Verdict::Wrong => Err(Reason::AuthFailed),
        Verdict::Busy => Err(Reason::AuthBusy),
    }
}

/// The credentials of a request.
pub(crate) fn credentials(request: &HttpRequest) -> Option<Credentials> {
    let fields = request.headers();
    let mut own = fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"authorization"));
    let (_, value) = own.next()?;
    own.next().is_none().then(|| Credentials::read(value)).flatten()
}
