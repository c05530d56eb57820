//! Static files without sockets and without a runtime: a path goes in, a plan of headers and body
//! parts comes out.
//!
//! The gateway's I/O thread asks [`Root::lookup`] what a request path names (a file, a directory,
//! a script, nothing, something private, or something it must not touch), hands the [`Entry`] and the request's
//! conditional headers to [`plan`], and writes what the [`Plan`] says: small bodies from memory
//! together with the head, larger ones by sendfile(2).
//!
//! Invariants: nothing outside of the root's policy is ever opened for reading; a PHP source is
//! never a [`Lookup::File`]; the bytes, the length and the validators of one answer all come from
//! the same open file.
#![forbid(unsafe_code)]

mod cache;
mod coding;
mod conditions;
mod entry;
mod head;
mod mime;
mod options;
mod plan;
mod private;
mod ranges;
mod resolve;
mod root;
#[cfg(test)]
mod scratch;
mod source;
mod stamp;

pub use coding::Coding;
pub use conditions::Conditions;
pub use entry::{Content, Entry, Representation};
pub use head::Headers;
pub use options::{RootOptions, Symlinks};
pub use plan::{Part, Plan, plan, plan_as};
pub use resolve::ForbiddenReason;
pub use root::{Lookup, LookupError, Root, RootError};
