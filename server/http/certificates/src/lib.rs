//! Certificates that the server obtains itself, by ACME (RFC 8555), and renews.
//!
//! Started by the gateway, on a thread of its own with an event loop of its own. What it obtains is in
//! [`outboard_tls::Issued`], from which handshakes of all threads read it. Invariants: a name that has had
//! a certificate never is without one, whenever the process ends or an authority fails; orders stay within
//! the limits of authorities, also across restarts.
//!
//! | file | owns |
//! |---|---|
//! | `manager` | [`Manager`]: the thread, as the gateway sees it |
//! | `message` | what the manager and the thread send each other |
//! | `schedule` | the thread: which name is due, and what is under way |
//! | `worker` | the state of the thread |
//! | `plan` | when a name is due, and limits: functions of the time |
//! | `attempt` | one attempt for a name, at one authority after another |
//! | `approval` | whether names that no app lists may have certificates |
//! | `ordering` | one order at an authority |
//! | `responder` | responses to challenges |
//! | `authority` | the account at an authority |
//! | `name` | a name, with its certificate and its record |
//! | `commons`, `sharing` | what several gateways share through Redis |
//! | `acme` | the protocol |
//! | `keys` | keys and requests for certificates |
//! | `local_authority` | the authority for development |
//! | `storage` | files |

#![forbid(unsafe_code)]

mod acme;
mod approval;
mod attempt;
mod authority;
mod commons;
mod keys;
mod local_authority;
mod manager;
mod message;
mod name;
mod ordering;
mod plan;
mod responder;
mod schedule;
mod sharing;
mod storage;
#[cfg(test)]
mod tests;
mod worker;

pub use local_authority::LocalAuthority;
pub use manager::Manager;
pub use message::LogLine;
pub use storage::{PARTS, default_directory};
