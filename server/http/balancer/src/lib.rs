//! Which server of an upstream gets a request, and which servers are up.
//!
//! Without I/O: the gateway sends the requests and the checks, and reports how they ended. The state is
//! shared by all threads (`Arc`, atomics and locks that are held for a pass over the servers). Invariants:
//! a request counts for its server from the choice to the end of its response; a server that is drained, or
//! down by its checks, gets no request; the last servers are never ejected for failed requests alone.
//!
//! | file | owns |
//! |---|---|
//! | `group` | [`Group`]: the servers of an upstream, and the choice; [`Attempt`]: a request at one |
//! | `member` | [`Member`]: a server's place in a group |
//! | `server` | [`Server`]: a server's state and counts, which survive a reload |
//! | `health` | whether a server is up |
//! | `round_robin`, `rendezvous` | how the choice is made |
//! | `breaker` | the circuit breaker |
//! | `retry_budget` | how many retries are allowed |
//! | `sticky` | the values of sticky cookies |
#![forbid(unsafe_code)]

mod breaker;
mod group;
mod health;
mod member;
mod rendezvous;
mod retry_budget;
mod round_robin;
mod server;
mod sticky;

pub use group::{Attempt, Choice, Group, Refused};
pub use health::{Change, State};
pub use member::Member;
pub use rendezvous::hash;
pub use server::{Figures, Server};
