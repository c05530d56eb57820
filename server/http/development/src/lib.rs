//! Development mode: a changed file affects the next response, and browsers reload automatically.
//!
//! Used by the gateway for `environment = "development"`. [`Development`] finds changes in the
//! watched [`tree`], makes requests wait for the reload that a change requires, and publishes it in
//! the [`ChangeFeed`] of browsers; [`tag`] is the script that live reload appends to pages,
//! [`failure`] the page about a PHP error. Invariant: in production nothing of this is created.

#![forbid(unsafe_code)]

mod development;
pub mod failure;
mod feed;
pub mod tag;
#[cfg(test)]
mod test_project;
mod tree;

pub use development::Development;
pub use feed::ChangeFeed;
pub use tree::Change;
