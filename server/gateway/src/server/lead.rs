//! [`Lead`]: what the lead starts and reloads generations with.
//!
//! Made by the server once its gateway runs.

use super::followers::Followers;
use super::generation_builder::GenerationBuilder;
use crate::certificates::TlsState;
use crate::gateway::Gateway;
use crate::options::Load;
use outboard_upgrade::Starter;
use std::rc::Rc;

/// See the module.
pub(super) struct Lead {
    pub(super) gateway: Rc<Gateway>,
    pub(super) builder: GenerationBuilder,
    pub(super) followers: Followers,
    pub(super) load: Load,
    /// Starts a newer program in the place of this one.
    pub(super) starter: Option<Starter>,
    /// Kept across reloads, so that sessions are resumed.
    pub(super) tls: TlsState,
}
