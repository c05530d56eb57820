//! One served file: its open descriptor or its bytes, its pre-compressed siblings, and everything
//! about them that does not depend on a request. Made by [`crate::Root`] when a path is first asked
//! for, shared by the cache and by the answers under way.
//!
//! Invariant: an entry never changes. A file that changed becomes another entry.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::time::SystemTime;

use rustix::io::Errno;

use crate::coding::{self, Coding};
use crate::conditions::Validators;
use crate::head::{self, Line, Lines};
use crate::mime;
use crate::resolve::{ForbiddenReason, READ, Refusal, Resolver, errno_of};
use crate::source::SourceNames;
use crate::stamp::Stamp;

/// The last second that an HTTP-date can name: the end of the year 9999.
const DATE_S_MAX: u64 = 253_402_300_799;

/// How often a small file is read again because it changed meanwhile.
const READS_MAX: u32 = 3;

/// Where a representation's bytes are.
#[derive(Debug, Clone)]
pub enum Content {
    /// A small body, whole.
    Memory(Rc<[u8]>),
    /// A larger one, to be sent by sendfile(2) with an explicit offset. A file that is cut short in
    /// place ends early; the connection must then be closed.
    File(Rc<OwnedFd>),
}

/// One form of a file: as it is, or pre-compressed.
#[derive(Debug)]
pub struct Representation {
    pub(crate) coding: Coding,
    pub(crate) content: Content,
    pub(crate) size: u64,
    pub(crate) etag: Box<str>,
    pub(crate) lines_200: Rc<[Line]>,
    pub(crate) head_200: Rc<[u8]>,
}

impl Representation {
    /// The coding of the bytes.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// Where the bytes are.
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

    /// The header lines of the plain 200 answer as they go on the wire, each ended by CRLF: all but
    /// Date, Connection and Content-Length.
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
    pub(crate) cache_control: Option<Rc<str>>,
    /// `None` when the file's time lies in the future or cannot be written as an HTTP-date.
    pub(crate) last_modified: Option<LastModified>,
    /// Separates the parts of multipart answers. Keyed by a secret of the process, so that nobody
    /// can write a file that contains it.
    pub(crate) boundary: u64,
    stamp: Stamp,
    /// Whether equal stamps mean equal bytes already; see [`Stamp::is_settled`].
    settled: bool,
    looks_for_siblings: bool,
    siblings: Siblings,
}

/// What was seen under the name of each possible sibling.
type Siblings = [Option<Stamp>; coding::SIBLINGS.len()];

#[derive(Debug)]
pub(crate) struct LastModified {
    pub(crate) s: u64,
    pub(crate) text: String,
}

/// What a root decides about all of its entries.
#[derive(Debug)]
pub(crate) struct EntryRules {
    pub(crate) precompressed: bool,
    pub(crate) mime_overrides: BTreeMap<String, String>,
    pub(crate) cache_control: Option<Rc<str>>,
    pub(crate) small_file_bytes: u64,
    pub(crate) names: SourceNames,
    pub(crate) boundary_key: RandomState,
}

impl Entry {
    /// Opens a regular file below the root. The path has no leading slash.
    pub(crate) fn open(
        resolver: &Resolver,
        relative: &[u8],
        rules: &EntryRules,
    ) -> Result<Self, Refusal> {
        let now = SystemTime::now();
        let (content, stamp) = read(resolver, relative, rules)?;
        let name = relative.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let mime = mime::of_name(name, &rules.mime_overrides).into_boxed_str();
        let looks_for_siblings = rules.precompressed && mime::is_compressible(&mime);
        let siblings = if looks_for_siblings {
            peek_siblings(resolver, relative)
        } else {
            Siblings::default()
        };
        let mut entry = Self {
            plain: Representation::new(Coding::Identity, content, &stamp),
            encoded: Vec::new(),
            mime,
            cache_control: rules.cache_control.clone(),
            last_modified: LastModified::new(&stamp, now),
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

    /// Whether the path still names this file, and its siblings are what they were.
    pub(crate) fn is_current(&self, resolver: &Resolver, relative: &[u8]) -> bool {
        let stamp = resolver.peek(relative).and_then(|stat| Stamp::of_file(&stat));
        self.settled
            && stamp == Some(self.stamp)
            && (!self.looks_for_siblings || peek_siblings(resolver, relative) == self.siblings)
    }

    /// Siblings that are regular files, allowed, readable and not older than the file.
    fn open_siblings(
        &self,
        resolver: &Resolver,
        relative: &[u8],
        rules: &EntryRules,
    ) -> Vec<Representation> {
        let open = |coding: Coding| {
            let (content, stamp) =
                read(resolver, &[relative, coding.suffix()].concat(), rules).ok()?;
            (stamp.modified >= self.stamp.modified)
                .then(|| Representation::new(coding, content, &stamp))
        };
        let seen = coding::SIBLINGS.into_iter().zip(&self.siblings);
        seen.filter(|(_, stamp)| stamp.is_some()).filter_map(|(coding, _)| open(coding)).collect()
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

    /// The lines of every answer with content.
    pub(crate) fn content_lines(&self, chosen: &Representation, content_type: &[u8]) -> Lines {
        let coding = (chosen.coding != Coding::Identity).then(|| chosen.coding.token());
        let last_modified = self.last_modified.as_ref().map(|time| time.text.as_str());
        Lines::default()
            .with("Content-Type", content_type)
            .with_some("Content-Encoding", coding)
            .with_some("Last-Modified", last_modified)
            .with("Accept-Ranges", "bytes")
            .and(self.cache_lines(chosen))
    }

    /// The lines that a 304 repeats (RFC 9110 section 15.4.5).
    pub(crate) fn cache_lines(&self, chosen: &Representation) -> Lines {
        let vary = (!self.encoded.is_empty()).then_some("Accept-Encoding");
        Lines::default()
            .with("ETag", chosen.etag.as_bytes())
            .with_some("Cache-Control", self.cache_control.as_deref())
            .with_some("Vary", vary)
    }

    pub(crate) fn choose(&self, accept_encoding: Option<&[u8]>) -> &Representation {
        if self.encoded.is_empty() {
            return &self.plain;
        }
        let codings = self.encoded.iter().map(Representation::coding);
        coding::choose(accept_encoding, codings).map_or(&self.plain, |index| &self.encoded[index])
    }

    pub(crate) fn validators<'a>(&'a self, chosen: &'a Representation) -> Validators<'a> {
        Validators {
            etag: chosen.etag.as_bytes(),
            last_modified_s: self.last_modified.as_ref().map(|time| time.s),
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

    /// The bytes of the file, if they are kept in memory.
    pub fn body(&self) -> Option<&Rc<[u8]>> {
        match &self.plain.content {
            Content::Memory(bytes) => Some(bytes),
            Content::File(_) => None,
        }
    }

    /// The open file, if its bytes are not kept in memory.
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
    fn new(coding: Coding, content: Content, stamp: &Stamp) -> Self {
        let digest = stamp.digest();
        let etag = match coding {
            Coding::Identity => format!("\"{digest:016x}\""),
            _ => format!("\"{digest:016x}-{}\"", coding.token()),
        };
        let (lines_200, head_200) = (Rc::default(), Rc::default());
        let etag = etag.into_boxed_str();
        Self { coding, content, size: stamp.size, etag, lines_200, head_200 }
    }
}

impl LastModified {
    /// RFC 9110 section 8.8.2.1 forbids a date later than the answer's own.
    fn new(stamp: &Stamp, now: SystemTime) -> Option<Self> {
        let time = stamp.modified.to_system()?;
        let s = u64::try_from(stamp.modified.s).ok()?;
        (time <= now && s <= DATE_S_MAX).then(|| Self { s, text: httpdate::fmt_http_date(time) })
    }
}

fn peek_siblings(resolver: &Resolver, relative: &[u8]) -> Siblings {
    coding::SIBLINGS.map(|coding| {
        let stat = resolver.peek(&[relative, coding.suffix()].concat())?;
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
        if stamp.size > rules.small_file_bytes {
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
    // Somebody keeps writing. What the descriptor holds when it is sent is as good as any of it.
    let stamp = stamp_of(&file)?;
    Ok((Content::File(Rc::new(file.into())), stamp))
}

/// A link may give a source the name of a plain file. Where /proc is not mounted, the name in the
/// request is all that is known.
fn is_php_by_its_own_name(file: &File, names: &SourceNames) -> bool {
    let place = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = std::fs::read_link(place).ok();
    let name = path.as_deref().and_then(Path::file_name);
    name.is_some_and(|name| names.is_php(name.as_bytes()))
}

fn stamp_of(file: &File) -> Result<Stamp, Refusal> {
    let stat = rustix::fs::fstat(file)?;
    Stamp::of_file(&stat).ok_or(Refusal::Forbidden(ForbiddenReason::NotRegular))
}
