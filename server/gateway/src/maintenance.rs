//! [`Maintenance`]: whether an app is in maintenance, and what its clients get then.
//!
//! Opened with the app; dispatch asks for each of its requests. Invariants: a client that is not in `allow` gets nothing
//! of the app but the files in `assets`; a thread looks for the file that switches it on at most once a second, and
//! never uses an older result; a file that cannot be looked for counts as existing.

use crate::error_pages;
use outboard_config as config;
use outboard_http_server::HeaderBlock;
use outboard_reactor::now_ms;
use outboard_trusted_path::Users;
use rustix::io::Errno;
use std::cell::Cell;
use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;

/// How long a result is used.
const LOOK_INTERVAL_MS: u64 = 1_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct Maintenance {
    config: config::Maintenance,
    page: Option<Rc<[u8]>>,
    /// When the file was looked for, and whether it existed.
    looked: Cell<Option<(u64, bool)>>,
}

impl Maintenance {
    /// Reads the page; `report` is called if it cannot be used.
    pub(crate) fn open(config: &config::Maintenance, users: &Users, report: impl Fn(&str)) -> Self {
        let page = config.page.as_ref();
        let page = page.and_then(|path| error_pages::read_one(path, users, &report));
        Self { config: config.clone(), page, looked: Cell::default() }
    }

    /// Whether a client gets the page; one on a Unix socket has no address.
    pub(crate) fn refuses(&self, client: Option<IpAddr>) -> bool {
        self.is_on(now_ms()) && !self.config.allow.contains(client)
    }

    /// Whether the path, below the app's prefix, may be that of a file which is served meanwhile.
    pub(crate) fn is_asset(&self, below: &[u8]) -> bool {
        self.config.assets.iter().any(|pattern| pattern.matches(below))
    }

    /// The fields and the page of the response; `None`: the built-in page.
    pub(crate) fn response(&self) -> (HeaderBlock, Option<Rc<[u8]>>) {
        let mut fields = HeaderBlock::constant(&[("Cache-Control", "no-store")]);
        let retry_s = self.config.retry_after_s.to_string();
        fields.add(b"Retry-After", retry_s.as_bytes()).expect("a number is a valid value");
        (fields, self.page.clone())
    }

    fn is_on(&self, now_ms: u64) -> bool {
        let Some(file) = &self.config.file else { return true };
        if let Some((at_ms, exists)) = self.looked.get()
            && now_ms < at_ms + LOOK_INTERVAL_MS
        {
            return exists;
        }
        let exists = exists(file);
        self.looked.set(Some((now_ms, exists)));
        exists
    }
}

/// One system call, which reads no file and follows no link of the name itself.
fn exists(file: &Path) -> bool {
    !matches!(rustix::fs::lstat(file), Err(Errno::NOENT | Errno::NOTDIR))
}

#[cfg(test)]
mod tests;
