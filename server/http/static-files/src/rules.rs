//! [`EntryRules`]: what a root's entries have in common. Shared by them, and by lookups in other threads.

use std::hash::RandomState;

use crate::htaccess::{Restriction, restriction};
use crate::options::RootOptions;
use crate::refusal::NotInMemory;
use crate::resolve::Resolver;
use crate::source::SourceNames;

/// The rules of a root for its entries.
#[derive(Debug)]
pub(crate) struct EntryRules {
    pub(crate) options: RootOptions,
    pub(crate) names: SourceNames,
    pub(crate) boundary_key: RandomState,
}

impl EntryRules {
    /// What `.htaccess` files say of the file at a path, which is relative to the root.
    pub(crate) fn restriction(
        &self,
        resolver: &Resolver,
        path: &[u8],
    ) -> Result<Restriction, NotInMemory> {
        if self.options.htaccess { restriction(resolver, path) } else { Ok(Restriction::None) }
    }

    /// Whether a component begins with a dot and is not served for that.
    pub(crate) fn has_dot_name(&self, path: &[u8]) -> bool {
        let names = path.split(|&byte| byte == b'/');
        names.into_iter().any(|name| name.starts_with(b".") && !self.serves_dot_name(name))
    }

    pub(crate) fn serves_dot_name(&self, name: &[u8]) -> bool {
        let mut allowed = self.options.allow_dotfiles.iter();
        self.options.dot_files || allowed.any(|served| served.as_bytes() == name)
    }
}
