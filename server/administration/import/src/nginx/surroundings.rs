//! [`Surroundings`]: what is around the `server` blocks.

use crate::directive::Directive;
use std::collections::BTreeMap;

/// What servers inherit from the `http` block.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'d> {
    pub(super) general: &'d [Directive],
    pub(super) upstreams: &'d BTreeMap<&'d str, &'d Directive>,
}
