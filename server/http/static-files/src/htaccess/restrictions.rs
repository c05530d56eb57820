//! [`restriction`]: what the `.htaccess` files in a file's directories say of it.
//!
//! Called by `lookup` for each file that is found, and by [`crate::Root`] before a cached one is used again, so
//! that a file which an application writes later counts as well. Invariant: a file that is there and cannot be
//! read denies its directory.

use rustix::fs::FileType;

use super::{FILE_MAX_BYTES, Htaccess};
use crate::refusal::{NotInMemory, Refusal};
use crate::resolve::{READ, Resolver};

/// What a file may not be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Restriction {
    None,
    /// A script is not run.
    NoPhp,
    Denied,
}

/// The restriction of the file at a path, which is relative to the root.
pub(crate) fn restriction(resolver: &Resolver, path: &[u8]) -> Result<Restriction, NotInMemory> {
    let name = &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..];
    let (mut by_directory, mut by_name, mut refuses, mut no_php) = (false, None, false, false);
    let ends = memchr::memchr_iter(b'/', path).map(|slash| slash + 1);
    for end in std::iter::once(0).chain(ends) {
        let Some(file) = open(resolver, &path[..end])? else { continue };
        by_directory = file.of_directory().unwrap_or(by_directory);
        by_name = file.of_name(name).or(by_name);
        refuses |= file.refuses(&path[end..]);
        no_php |= file.forbids_script(name);
    }
    Ok(match refuses || by_name.unwrap_or(by_directory) {
        true => Restriction::Denied,
        false if no_php => Restriction::NoPhp,
        false => Restriction::None,
    })
}

/// The file of a directory, if it has one.
fn open(resolver: &Resolver, directory: &[u8]) -> Result<Option<Htaccess>, NotInMemory> {
    let opened = match resolver.open(&[directory, b".htaccess"].concat(), READ) {
        Ok(opened) => opened,
        Err(Refusal::NotFound) => return Ok(None),
        Err(Refusal::NotInMemory) => return Err(NotInMemory),
        Err(Refusal::Forbidden(_) | Refusal::Failed(_)) => return Ok(Some(Htaccess::unreadable())),
    };
    let mut text = vec![0; FILE_MAX_BYTES + 1];
    let mut len = 0;
    let is_file = rustix::fs::fstat(&opened)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    while is_file && len < text.len() {
        match rustix::io::read(&opened, &mut text[len..]) {
            Ok(0) => return Ok(Some(Htaccess::read(&text[..len], directory.is_empty()))),
            Ok(read) => len += read,
            Err(_) => break,
        }
    }
    Ok(Some(Htaccess::unreadable()))
}
