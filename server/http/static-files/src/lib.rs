//! Static files without sockets and without a runtime: from a request path to a plan of headers and
//! body parts.
//!
//! The gateway's I/O thread calls [`Root::lookup_in_memory`] with a request path, passes the [`Entry`] and
//! the request's conditions to [`plan`], and writes the [`Plan`]: small bodies from memory together with
//! the head, larger ones by sendfile(2). A [`ColdLookup`] is for another thread, and so is an [`UnreadFile`],
//! the bytes of a file that [`Plan::missing`] asks to compress.
//!
//! Invariants: no file outside of the root's policy is opened for reading; a PHP source is never a
//! [`Lookup::File`]; the bytes, the length and the validators of a response come from one open file.
//!
//! # Examples
//!
//! ```
//! use outboard_http_semantics::Conditions;
//! use outboard_static_files::{Lookup, Root, RootOptions, plan};
//!
//! # let directory = std::env::temp_dir().join(format!("outboard-doctest-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! std::fs::write(directory.join("style.css"), "body {}")?;
//! let root = Root::open(&directory, RootOptions::default())?;
//! let Lookup::File(entry) = root.lookup(b"/style.css", 0) else { panic!("the file exists") };
//! let plan = plan(&entry, Some(b"gzip"), &Conditions::default());
//! assert_eq!((plan.status, plan.content_length), (200, 7));
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod cache;
mod cold;
mod compressed_files;
mod content;
mod entry;
mod form;
mod head;
mod htaccess;
mod listing;
mod lookup;
mod mime;
mod opened;
mod options;
mod plan;
mod private;
mod refusal;
mod resolve;
mod root;
mod rules;
#[cfg(test)]
mod scratch;
mod source;
mod stamp;
mod uncompressed;
mod variants;

pub use cold::{ColdLookup, ColdResult};
pub use compressed_files::{CompressedFile, CompressedFiles};
pub use content::Content;
pub use entry::{Entry, Representation};
pub use head::Headers;
pub use htaccess::{FILE_MAX_BYTES as HTACCESS_MAX_BYTES, Htaccess, without_look_around};
pub use listing::{ListedFile, Listing, UnreadListing};
pub use lookup::{Lookup, LookupError, Target};
pub use options::{RootOptions, Symlinks};
pub use plan::{Part, Parts, Plan, plan, plan_as};
pub use refusal::ForbiddenReason;
pub use root::{Root, RootError, ScriptPath};
pub use uncompressed::{Uncompressed, UnreadFile};
