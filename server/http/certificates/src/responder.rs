//! [`Responder`]: responds to the challenges by which authorities check names.
//!
//! Used by orders. Invariants: a response is there before the authority is requested to check it, and is
//! withdrawn afterwards; the program that publishes DNS records ends within [`HOOK_S`].

use crate::acme::base64url;
use crate::commons::{Commons, SPREAD_MS};
use crate::keys;
use aws_lc_rs::digest::{SHA256, digest};
use outboard_config::Challenge;
use outboard_reactor::{blocking, sleep};
use outboard_tls::Issued;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The longest run of the program.
const HOOK_S: u64 = 300;
const HOOK_PAUSE: Duration = Duration::from_millis(50);

/// See the module.
#[derive(Debug)]
pub(crate) struct Responder {
    pub(crate) issued: Arc<Issued>,
    pub(crate) dns_hook: Option<PathBuf>,
    /// Other gateways that the authority may connect to.
    pub(crate) commons: Option<Rc<Commons>>,
}

/// A response that is there.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    responder: &'a Responder,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Http { token: String },
    Tls { name: String },
    Dns { record: String, value: String },
}

/// The name of a challenge in the protocol.
pub(crate) fn protocol_name(challenge: Challenge) -> &'static str {
    match challenge {
        Challenge::Http01 => "http-01",
        Challenge::TlsAlpn01 => "tls-alpn-01",
        Challenge::Dns01 => "dns-01",
    }
}

impl Responder {
    /// Responds from now on.
    pub(crate) async fn respond(
        &self,
        challenge: Challenge,
        name: &str,
        token: &str,
        authorization: &str,
    ) -> Result<Response<'_>, String> {
        let kind = match challenge {
            Challenge::Http01 => {
                self.issued.set_response(token, authorization);
                self.share(&format!("http {token}"), authorization).await?;
                Kind::Http { token: token.to_owned() }
            }
            Challenge::TlsAlpn01 => {
                let certificate = keys::challenge(name, authorization)?;
                self.issued.set_challenge(name, certificate.as_bytes())?;
                self.share(&format!("tls {name}"), &certificate).await?;
                Kind::Tls { name: name.to_owned() }
            }
            Challenge::Dns01 => {
                // RFC 8555 8.4.
                let record = format!("_acme-challenge.{}", name.trim_start_matches("*."));
                let value = base64url(digest(&SHA256, authorization.as_bytes()));
                self.run_hook("present", &record, &value).await?;
                Kind::Dns { record, value }
            }
        };
        Ok(Response { responder: self, kind })
    }

    /// Has other gateways respond, too.
    async fn share(&self, field: &str, response: &str) -> Result<(), String> {
        let Some(commons) = &self.commons else { return Ok(()) };
        commons.set_challenge(field, response).await?;
        sleep(SPREAD_MS).await;
        Ok(())
    }

    async fn unshare(&self, field: &str) -> Result<(), String> {
        match &self.commons {
            Some(commons) => commons.remove_challenge(field).await,
            None => Ok(()),
        }
    }

    async fn run_hook(
        &self,
        action: &'static str,
        record: &str,
        value: &str,
    ) -> Result<(), String> {
        let program = self.dns_hook.clone().ok_or("there is no `dns_hook`")?;
        let words = [action.to_owned(), record.to_owned(), value.to_owned()];
        blocking(move || run(&program, &words)).await
    }
}

impl Response<'_> {
    /// The check is over.
    pub(crate) async fn withdraw(self) -> Result<(), String> {
        let issued = &self.responder.issued;
        match &self.kind {
            Kind::Http { token } => {
                issued.remove_response(token);
                self.responder.unshare(&format!("http {token}")).await
            }
            Kind::Tls { name } => {
                issued.remove_challenge(name);
                self.responder.unshare(&format!("tls {name}")).await
            }
            Kind::Dns { record, value } => self.responder.run_hook("cleanup", record, value).await,
        }
    }
}

fn run(program: &Path, words: &[String]) -> Result<(), String> {
    let failed = |why: &dyn std::fmt::Display| format!("{} {}: {why}", program.display(), words[0]);
    let child = Command::new(program).args(words).stdin(Stdio::null()).spawn();
    let mut child = child.map_err(|error| failed(&error))?;
    let end = Instant::now() + Duration::from_secs(HOOK_S);
    loop {
        match child.try_wait().map_err(|error| failed(&error))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(failed(&status)),
            None if Instant::now() >= end => {
                // It may just have ended.
                let _ = child.kill().and_then(|()| child.wait());
                return Err(failed(&format!("it has not ended within {HOOK_S} s")));
            }
            None => thread::sleep(HOOK_PAUSE),
        }
    }
}
