//! [`Failure`]: why a proxied request has no response.

use outboard_balancer::{Attempt, Refused, Server};
use outboard_log::Reason;
use outboard_upstream::{Error, Kind};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    refused: Option<Refused>,
    /// The server of the last attempt.
    pub(crate) server: Option<Arc<Server>>,
}

impl Failure {
    /// The last attempt has failed.
    pub(super) fn of(error: Error, attempt: &Attempt) -> Self {
        Self { error, refused: None, server: Some(attempt.server().clone()) }
    }

    /// The group has no server for it.
    pub(super) fn refused(group: &str, refused: Refused) -> Self {
        let text = match refused {
            Refused::Down => "no server is up",
            Refused::Busy => "as many requests are in progress as may",
            Refused::Open => "the circuit breaker is open",
        };
        let error = Error::new(Kind::Busy, format!("upstream {group}: {text}"));
        Self { error, refused: Some(refused), server: None }
    }

    /// The reason of the response.
    pub(crate) fn reason(&self) -> Reason {
        match (self.refused, self.error.kind) {
            (Some(Refused::Down), _) => Reason::UpstreamDown,
            (Some(Refused::Open), _) => Reason::UpstreamOpen,
            (Some(Refused::Busy), _) | (None, Kind::Busy) => Reason::UpstreamBusy,
            (None, Kind::Timeout) => Reason::UpstreamTimeout,
            (None, _) => Reason::UpstreamFailed,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, refused: None, server: None }
    }
}
