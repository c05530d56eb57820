//! Basic authentication of a request (RFC 7617).
//!
//! Called for requests whose rules have users. Invariant: a request with several Authorization fields is not
//! authenticated, because those behind the gateway could read another one.

use crate::access::Verdict;
use crate::app::App;
use crate::request::{RequestContext, ResponseSummary, refuse, refuse_with_fields};
use outboard_access::Credentials;
use outboard_config::{BasicAuth, RuleSet, counted_as};
use outboard_http_server::{Connection, HeaderBlock};
use outboard_log::Reason;
use std::rc::Rc;

/// Responds to a request that is not of a user of each rule; `None` if it is.
pub(super) async fn try_refuse(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    rules: RuleSet,
) -> Option<ResponseSummary> {
    for index in rules.indices() {
        let Some(auth) = &app.config.access.rules[index].basic_auth else { continue };
        let reason = match verify(connection, ctx, auth).await {
            Ok(()) => continue,
            Err(reason) => reason,
        };
        if reason.status() != Reason::AuthRequired.status() {
            return Some(refuse(connection, ctx, Some(app), reason).await);
        }
        let mut fields = HeaderBlock::default();
        let challenge = fields.add(b"WWW-Authenticate", auth.challenge.as_bytes());
        challenge.expect("the configuration has checked the realm");
        return Some(refuse_with_fields(connection, ctx, Some(app), reason, fields).await);
    }
    None
}

async fn verify(
    connection: &mut Connection,
    ctx: &RequestContext,
    auth: &BasicAuth,
) -> Result<(), Reason> {
    let client = ctx.client_ip(connection).map(counted_as);
    let credentials = credentials(connection).ok_or(Reason::AuthRequired)?;
    let access = ctx.gateway.generation().access.clone();
    let verdict = access.passwords.verify(&auth.users, &credentials, client);
    match connection.unless_gone(verdict).await? {
        Verdict::Right => Ok(()),
        Verdict::Wrong => Err(Reason::AuthFailed),
        Verdict::Busy => Err(Reason::AuthBusy),
    }
}

/// The credentials of a request.
pub(crate) fn credentials(connection: &mut Connection) -> Option<Credentials> {
    let buffers = connection.buffers();
    let fields = buffers.head.headers(&buffers.input);
    let mut own = fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"authorization"));
    let (_, value) = own.next()?;
    own.next().is_none().then(|| Credentials::read(value)).flatten()
}
