//! [`Opened`]: a file and its pre-compressed siblings as they were read, of which [`crate::entry`] makes
//! an entry.
//!
//! Read by [`crate::lookup`], in the thread of the requests if all of it is in memory, and otherwise in
//! another thread. Invariant: everything that a system call reports about the file is in it, so that an
//! entry is made of it without one.

use std::time::SystemTime;

use outboard_http_semantics::{Coding, is_compressible};

use crate::content::{self, Bytes};
use crate::mime;
use crate::refusal::{NotInMemory, Refusal};
use crate::resolve::Resolver;
use crate::rules::EntryRules;
use crate::stamp::Stamp;

/// See the module.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) plain: (Bytes, Stamp),
    pub(crate) mime: Box<str>,
    pub(crate) looks_for_siblings: bool,
    pub(crate) siblings: Siblings,
    /// The siblings that are served.
    pub(crate) encoded: Vec<(Coding, Bytes, Stamp)>,
    /// When it was opened.
    pub(crate) at: SystemTime,
}

/// The stamp of each possible sibling.
pub(crate) type Siblings = [Option<Stamp>; Coding::ALL.len()];

impl Opened {
    /// Opens a regular file below the root. The path has no leading slash.
    pub(crate) fn read(
        resolver: &Resolver,
        relative: &[u8],
        rules: &EntryRules,
    ) -> Result<Self, Refusal> {
        let at = SystemTime::now();
        let small_file_bytes = rules.options.small_file_bytes;
        let name = relative.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let mime = mime::of_name(name, &rules.options.mime_overrides).into_boxed_str();
        let looks_for_siblings = rules.options.precompressed && is_compressible(mime.as_bytes());
        let siblings = match looks_for_siblings {
            true => peek_siblings(resolver, relative)?,
            false => Siblings::default(),
        };
        let plain = content::read(resolver, relative, &rules.names, small_file_bytes)?;
        let mut encoded = Vec::new();
        for (coding, _) in
            Coding::ALL.into_iter().zip(&siblings).filter(|(_, stamp)| stamp.is_some())
        {
            let path = [relative, suffix(coding)].concat();
            match content::read(resolver, &path, &rules.names, small_file_bytes) {
                Ok((bytes, stamp)) if stamp.modified >= plain.1.modified => {
                    encoded.push((coding, bytes, stamp));
                }
                Err(Refusal::NotInMemory) => return Err(Refusal::NotInMemory),
                // It is older than the file, or may not be read.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(Self { plain, mime, looks_for_siblings, siblings, encoded, at })
    }
}

/// The end of a sibling's name.
fn suffix(coding: Coding) -> &'static [u8] {
    match coding {
        Coding::Brotli => b".br",
        Coding::Zstd => b".zst",
        Coding::Gzip => b".gz",
    }
}

/// The stamps of the siblings that exist.
pub(crate) fn peek_siblings(resolver: &Resolver, relative: &[u8]) -> Result<Siblings, NotInMemory> {
    let mut siblings = Siblings::default();
    for (sibling, coding) in siblings.iter_mut().zip(Coding::ALL) {
        let stat = resolver.peek(&[relative, suffix(coding)].concat())?;
        *sibling = stat.and_then(|stat| Stamp::of_file(&stat));
    }
    Ok(siblings)
}
