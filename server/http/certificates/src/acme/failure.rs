//! [`Failure`]: why an authority has not issued a certificate.

use super::problem::Problem;
use std::error::Error;
use std::fmt;

/// See the module.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no usable response of the authority.
    Unreachable(String),
    /// The authority has refused a request.
    Refused(Problem),
    /// The authority could not verify the name.
    NotVerified(Problem),
    /// This server or its configuration.
    Own(String),
    /// The limit of orders for the name is reached.
    Limit(String),
}

impl Failure {
    /// Whether the authority itself has failed, for all names.
    pub(crate) fn is_of_authority(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused(problem) => problem.status >= 500,
            Self::NotVerified(_) | Self::Own(_) | Self::Limit(_) => false,
        }
    }

    /// The pause that the authority requests, in seconds.
    pub(crate) fn pause_s(&self) -> Option<u64> {
        match self {
            Self::Refused(problem) if problem.is("rateLimited") || problem.status == 503 => {
                Some(problem.retry_after_s.unwrap_or(DEFAULT_PAUSE_S))
            }
            _ => None,
        }
    }
}

/// If a limit is reached and the authority sets no time.
const DEFAULT_PAUSE_S: u64 = 15 * 60;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the authority does not respond: {why}"),
            Self::Refused(problem) => write!(f, "the authority refuses: {problem}"),
            Self::NotVerified(problem) => {
                write!(f, "the authority could not verify the name: {problem}")
            }
            Self::Own(why) | Self::Limit(why) => f.write_str(why),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(problem) | Self::NotVerified(problem) => Some(problem),
            _ => None,
        }
    }
}

impl From<outboard_upstream::Error> for Failure {
    fn from(error: outboard_upstream::Error) -> Self {
        Self::Unreachable(error.message)
    }
}
