//! A served file: its descriptor or bytes, its pre-compressed siblings, and all their properties that
//! do not depend on a request. Created by [`crate::Root`] on the first lookup of a path, shared by the
//! cache and by responses under way.
//!
//! Invariant: an entry never changes. A file that changed gets another entry.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::time::SystemTime;

use outboard_http_semantics::{
    Coding, EntityTag, LastModified, UNIX_SECONDS_MAX, Validators, format_http_date,
    is_compressible,
};
use rustix::io::Errno;

use crate::head::{self, Line, Lines};
use crate::mime;
use crate::options::RootOptions;
use crate::resolve::{ForbiddenReason, READ, Refusal, Resolver, errno_of};
use crate::source::SourceNames;
use crate::stamp::Stamp;

/// How often a small file is read again if it changes during the read.
const READS_MAX: u32 = 3;

/// The bytes of a representation.
#[derive(Debug, Clone)]
pub enum Content {
    /// A small body in memory.
    Memory(Rc<[u8]>),
    /// A larger body, for sendfile(2) with an explicit offset. A file that is truncated in place ends
    /// early; the connection must then be closed.
    File(Rc<OwnedFd>),
}

/// A representation of a file: identity or pre-compressed.
#[derive(Debug)]
pub struct Representation {
    /// `None` for the file itself.
    pub(crate) coding: Option<Coding>,
    pub(crate) content: Content,
    pub(crate) size: u64,
    pub(crate) etag: Box<str>,
    pub(crate) lines_200: Rc<[Line]>,
    pub(crate) head_200: Rc<[u8]>,
}

impl Representation {
    /// The coding of the bytes; `None` for the file itself.
    pub fn coding(&self) -> Option<Coding> {
        self.coding
    }

    /// The bytes.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A strong entity-tag with its quotes.
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// The header lines of the plain 200 response in wire format, each ended by CRLF: all but Date,
    /// Connection and Content-Length.
    pub fn head_200(&self) -> &Rc<[u8]> {
        &self.head_200
    }
}

/// A regular file, ready to be served.
#[derive(Debug)]
pub struct Entry {
    pub(crate) plain: Representation,
    pub(crate) encoded: Vec<Representation>,
    pub(crate) mime: Box<str>,
    rules: Rc<EntryRules>,
    /// `None` when the file's time lies in the future or is no HTTP-date.
    last_modified: Option<ModificationDate>,
    /// The boundary of multipart responses. Derived from a secret of the process, so that no file can
    /// contain it on purpose.
    pub(crate) boundary: u64,
    stamp: Stamp,
    /// See [`Stamp::is_settled`].
    settled: bool,
    looks_for_siblings: bool,
    siblings: Siblings,
}

/// The stamp of each possible sibling.
type Siblings = [Option<Stamp>; Coding::ALL.len()];

#[derive(Debug)]
struct ModificationDate {
    unix_s: u64,
    text: String,
}

/// The rules of a root for its entries.
#[derive(Debug)]
pub(crate) struct EntryRules {
    pub(crate) options: RootOptions,
    pub(crate) names: SourceNames,
    pub(crate) boundary_key: RandomState,
}

impl Entry {
    /// Opens a regular file below the root. The path has no leading slash.
    pub(crate) fn open(
        resolver: &Resolver,
        relative: &[u8],
        rules: &Rc<EntryRules>,
    ) -> Result<Self, Refusal> {
        let now = SystemTime::now();
        let (content, stamp) = read(resolver, relative, rules)?;
        let name = relative.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let mime = mime::of_name(name, &rules.options.mime_overrides).into_boxed_str();
        let looks_for_siblings = rules.options.precompressed && is_compressible(mime.as_bytes());
        let siblings = if looks_for_siblings {
            peek_siblings(resolver, relative)
        } else {
            Siblings::default()
        };
        let mut entry = Self {
            plain: Representation::new(None, content, &stamp),
            encoded: Vec::new(),
            mime,
            rules: Rc::clone(rules),
            last_modified: ModificationDate::new(&stamp, now),
            boundary: rules.boundary_key.hash_one(stamp.digest()),
            stamp,
            settled: stamp.is_settled(now),
            looks_for_siblings,
            siblings,
        };
        entry.encoded = entry.open_siblings(resolver, relative, rules);
        entry.settled &= siblings.iter().flatten().all(|sibling| sibling.is_settled(now));
        entry.render_heads();
        Ok(entry)
    }

    /// Whether the path still names this file with these siblings.
    pub(crate) fn is_current(&self, resolver: &Resolver, relative: &[u8]) -> bool {
        let stamp = resolver.peek(relative).and_then(|stat| Stamp::of_file(&stat));
        self.settled
            && stamp == Some(self.stamp)
            && (!self.looks_for_siblings || peek_siblings(resolver, relative) == self.siblings)
    }

    /// Opens the siblings that are regular files, allowed, readable and not older than the file.
    fn open_siblings(
        &self,
        resolver: &Resolver,
        relative: &[u8],
        rules: &EntryRules,
    ) -> Vec<Representation> {
        let open = |coding| {
            let path = [relative, suffix(coding)].concat();
            let (content, stamp) = read(resolver, &path, rules).ok()?;
            (stamp.modified >= self.stamp.modified)
                .then(|| Representation::new(Some(coding), content, &stamp))
        };
        let present = Coding::ALL.into_iter().zip(&self.siblings);
        present
            .filter(|(_, stamp)| stamp.is_some())
            .filter_map(|(coding, _)| open(coding))
            .collect()
    }

    fn render_heads(&mut self) {
        let lines = |chosen| self.content_lines(chosen, self.mime.as_bytes()).into_shared();
        let heads: Vec<_> = std::iter::once(&self.plain).chain(&self.encoded).map(lines).collect();
        let all = std::iter::once(&mut self.plain).chain(&mut self.encoded);
        for (representation, lines) in all.zip(heads) {
            representation.head_200 = head::render(&lines);
            representation.lines_200 = lines;
        }
    }

    /// The lines of every response with content.
    pub(crate) fn content_lines(&self, chosen: &Representation, content_type: &[u8]) -> Lines {
        let last_modified = self.last_modified.as_ref().map(|date| date.text.as_str());
        Lines::default()
            .with("Content-Type", content_type)
            .with_some("Content-Encoding", chosen.coding.map(Coding::token))
            .with_some("Last-Modified", last_modified)
            .with("Accept-Ranges", "bytes")
            .and(self.cache_lines(chosen))
    }

    /// The lines that a 304 repeats (RFC 9110 15.4.5).
    pub(crate) fn cache_lines(&self, chosen: &Representation) -> Lines {
        let vary = (!self.encoded.is_empty()).then_some("Accept-Encoding");
        let lines = Lines::default().with("ETag", chosen.etag.as_bytes());
        let headers = self.rules.options.headers.iter();
        headers
            .fold(lines, |lines, (&name, value)| lines.with(name, value.as_bytes()))
            .with_some("Vary", vary)
    }

    pub(crate) fn choose(&self, accept_encoding: Option<&[u8]>) -> &Representation {
        if self.encoded.is_empty() {
            return &self.plain;
        }
        let codings = self.encoded.iter().filter_map(Representation::coding);
        let chosen = Coding::choose(accept_encoding, codings);
        let mut all = std::iter::once(&self.plain).chain(&self.encoded);
        all.find(|one| one.coding == chosen).unwrap_or(&self.plain)
    }

    pub(crate) fn validators<'a>(&'a self, chosen: &'a Representation) -> Validators<'a> {
        let strong =
            |date: &ModificationDate| LastModified { unix_s: date.unix_s, is_strong: true };
        Validators {
            etag: Some(EntityTag { is_weak: false, opaque: chosen.etag.as_bytes() }),
            last_modified: self.last_modified.as_ref().map(strong),
        }
    }

    /// Length of the file in bytes.
    pub fn size(&self) -> u64 {
        self.plain.size
    }

    /// When the file was last modified; `None` before 1970.
    pub fn mtime(&self) -> Option<SystemTime> {
        self.stamp.modified.to_system()
    }

    /// The strong entity-tag of the file itself, with its quotes.
    pub fn etag(&self) -> &str {
        &self.plain.etag
    }

    /// The content type.
    pub fn mime(&self) -> &str {
        &self.mime
    }

    /// The bytes of the file, if they are in memory.
    pub fn body(&self) -> Option<&Rc<[u8]>> {
        match &self.plain.content {
            Content::Memory(bytes) => Some(bytes),
            Content::File(_) => None,
        }
    }

    /// The open file, if its bytes are not in memory.
    pub fn fd(&self) -> Option<&Rc<OwnedFd>> {
        match &self.plain.content {
            Content::Memory(_) => None,
            Content::File(fd) => Some(fd),
        }
    }

    /// The file itself, without a content coding.
    pub fn plain(&self) -> &Representation {
        &self.plain
    }

    /// The pre-compressed siblings, best first.
    pub fn encodings(&self) -> &[Representation] {
        &self.encoded
    }

    /// [`Representation::head_200`] of the file itself.
    pub fn head_200(&self) -> &Rc<[u8]> {
        &self.plain.head_200
    }
}

impl Representation {
    fn new(coding: Option<Coding>, content: Content, stamp: &Stamp) -> Self {
        let digest = stamp.digest();
        let etag = match coding {
            None => format!("\"{digest:016x}\""),
            Some(coding) => format!("\"{digest:016x}-{}\"", coding.token()),
        };
        let (lines_200, head_200) = (Rc::default(), Rc::default());
        let etag = etag.into_boxed_str();
        Self { coding, content, size: stamp.size, etag, lines_200, head_200 }
    }
}

impl ModificationDate {
    /// RFC 9110 8.8.2.1 forbids a date later than the response's own.
    fn new(stamp: &Stamp, now: SystemTime) -> Option<Self> {
        let unix_s = u64::try_from(stamp.modified.s).ok()?;
        (stamp.modified.to_system()? <= now && unix_s <= UNIX_SECONDS_MAX)
            .then(|| Self { unix_s, text: format_http_date(unix_s) })
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

fn peek_siblings(resolver: &Resolver, relative: &[u8]) -> Siblings {
    Coding::ALL.map(|coding| {
        let stat = resolver.peek(&[relative, suffix(coding)].concat())?;
        Stamp::of_file(&stat)
    })
}

/// Opens a regular file, and reads it if it is small.
fn read(
    resolver: &Resolver,
    relative: &[u8],
    rules: &EntryRules,
) -> Result<(Content, Stamp), Refusal> {
    let file = File::from(resolver.open(relative, READ)?);
    if !rules.names.is_empty() && is_php_by_its_own_name(&file, &rules.names) {
        return Err(Refusal::Forbidden(ForbiddenReason::PhpSource));
    }
    for _ in 0..READS_MAX {
        let stamp = stamp_of(&file)?;
        if stamp.size > rules.options.small_file_bytes {
            return Ok((Content::File(Rc::new(file.into())), stamp));
        }
        let mut bytes = vec![0; usize::try_from(stamp.size).map_err(|_| Errno::NOMEM)?];
        let is_whole = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(errno_of(&error).into()),
        };
        if is_whole && stamp_of(&file)? == stamp {
            return Ok((Content::Memory(bytes.into()), stamp));
        }
    }
    // The file is being written. It is sent as it is at the time of sending.
    let stamp = stamp_of(&file)?;
    Ok((Content::File(Rc::new(file.into())), stamp))
}

/// Whether the file's real name is a PHP name, which a link may hide. Without /proc only the requested
/// name is known.
fn is_php_by_its_own_name(file: &File, names: &SourceNames) -> bool {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = std::fs::read_link(link).ok();
    let name = path.as_deref().and_then(Path::file_name);
    name.is_some_and(|name| names.is_php(name.as_bytes()))
}

fn stamp_of(file: &File) -> Result<Stamp, Refusal> {
    let stat = rustix::fs::fstat(file)?;
    Stamp::of_file(&stat).ok_or(Refusal::Forbidden(ForbiddenReason::NotRegular))
}
