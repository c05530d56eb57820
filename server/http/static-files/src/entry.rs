//! A served file: its descriptor or bytes, its pre-compressed siblings, the codings that it is compressed
//! with on demand, and all their properties that do not depend on a request. Created by [`crate::Root`] of
//! an [`Opened`] on the first lookup of a path, shared by the cache and by responses under way.
//!
//! Invariant: an entry never changes. A file that changed gets another entry.

use std::hash::BuildHasher;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use outboard_http_semantics::{
    Coding, EntityTag, LastModified, UNIX_SECONDS_MAX, Validators, format_http_date,
    is_compressible,
};

use crate::compressed_files::{CompressedFile, Key};
use crate::content::{Bytes, Content};
use crate::form::Form;
use crate::head::{Line, Lines};
use crate::opened::{Opened, Siblings, peek_siblings};
use crate::refusal::NotInMemory;
use crate::resolve::Resolver;
use crate::rules::EntryRules;
use crate::stamp::Stamp;
use crate::uncompressed::Uncompressed;
use crate::variants::Variants;

/// A representation of a file: identity or pre-compressed.
#[derive(Debug)]
pub struct Representation {
    pub(crate) form: Form,
    pub(crate) content: Content,
    pub(crate) size: u64,
}

impl Representation {
    /// The coding of the bytes; `None` for the file itself.
    pub fn coding(&self) -> Option<Coding> {
        self.form.coding
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
        &self.form.etag
    }

    /// The header lines of the plain 200 response in wire format, each ended by CRLF: all but Date,
    /// Connection and Content-Length.
    pub fn head_200(&self) -> &Rc<[u8]> {
        &self.form.head_200
    }
}

/// A regular file, ready to be served.
#[derive(Debug)]
pub struct Entry {
    pub(crate) plain: Representation,
    pub(crate) encoded: Vec<Representation>,
    /// `None` if it is not compressed on demand.
    variants: Option<Box<Variants>>,
    pub(crate) mime: Box<str>,
    rules: Arc<EntryRules>,
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

#[derive(Debug)]
struct ModificationDate {
    unix_s: u64,
    text: String,
}

impl Entry {
    pub(crate) fn new(opened: Opened, rules: &Arc<EntryRules>) -> Self {
        let Opened { plain: (bytes, stamp), mime, looks_for_siblings, siblings, encoded, at } =
            opened;
        let encoded = encoded.into_iter();
        let encoded =
            encoded.map(|(coding, bytes, stamp)| Representation::new(Some(coding), bytes, &stamp));
        let mut entry = Self {
            plain: Representation::new(None, bytes, &stamp),
            encoded: encoded.collect(),
            variants: variants(rules, &mime, &stamp),
            mime,
            rules: Arc::clone(rules),
            last_modified: ModificationDate::new(&stamp, at),
            boundary: rules.boundary_key.hash_one(stamp.digest()),
            stamp,
            settled: stamp.is_settled(at)
                && siblings.iter().flatten().all(|sibling| sibling.is_settled(at)),
            looks_for_siblings,
            siblings,
        };
        entry.render_heads();
        entry
    }

    /// Whether the path still names this file with these siblings.
    pub(crate) fn is_current(
        &self,
        resolver: &Resolver,
        relative: &[u8],
    ) -> Result<bool, NotInMemory> {
        if !self.settled {
            return Ok(false);
        }
        let stamp = resolver.peek(relative)?.and_then(|stat| Stamp::of_file(&stat));
        Ok(stamp == Some(self.stamp)
            && (!self.looks_for_siblings || peek_siblings(resolver, relative)? == self.siblings))
    }

    fn render_heads(&mut self) {
        let lines = |of: &Representation| self.lines_200(&of.form);
        let heads: Vec<_> = std::iter::once(&self.plain).chain(&self.encoded).map(lines).collect();
        let all = std::iter::once(&mut self.plain).chain(&mut self.encoded);
        for (representation, lines) in all.zip(heads) {
            representation.form.set_lines(lines);
        }
    }

    fn lines_200(&self, form: &Form) -> Rc<[Line]> {
        self.content_lines(form, self.mime.as_bytes()).into_shared()
    }

    /// The lines of every response with content.
    pub(crate) fn content_lines(&self, chosen: &Form, content_type: &[u8]) -> Lines {
        let last_modified = self.last_modified.as_ref().map(|date| date.text.as_str());
        Lines::default()
            .with("Content-Type", content_type)
            .with_some("Content-Encoding", chosen.coding.map(Coding::token))
            .with_some("Last-Modified", last_modified)
            .with("Accept-Ranges", "bytes")
            .and(self.cache_lines(chosen))
    }

    /// The lines that a 304 repeats (RFC 9110 15.4.5).
    pub(crate) fn cache_lines(&self, chosen: &Form) -> Lines {
        let varies = !self.encoded.is_empty() || self.variants.is_some();
        let vary = varies.then_some("Accept-Encoding");
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
        all.find(|one| one.coding() == chosen).unwrap_or(&self.plain)
    }

    /// The coding that the file should have for this client, if it is compressed on demand, and its form.
    pub(crate) fn choose_variant(&self, accept_encoding: Option<&[u8]>) -> Option<(Coding, &Form)> {
        let variants = self.variants.as_ref()?;
        let coding = Coding::choose(accept_encoding, Coding::ALL)?;
        let render = || {
            let mut form = Form::new(Some(coding), &self.stamp);
            form.set_lines(self.lines_200(&form));
            form
        };
        Some((coding, variants.form(coding, render)))
    }

    /// The file in this coding, if it is kept.
    pub(crate) fn compressed(&self, coding: Coding) -> Option<Arc<CompressedFile>> {
        self.variants.as_ref()?.find(&Key { stamp: self.stamp, coding })
    }

    /// Takes on the compression of the file; `None` if there is no need, if another has taken it on, or
    /// if the file was changed so recently that it may change again unnoticed.
    pub fn compression(&self, coding: Coding) -> Option<Uncompressed> {
        let variants = self.variants.as_ref().filter(|_| self.settled)?;
        let claim = variants.files().claim(Key { stamp: self.stamp, coding })?;
        Some(Uncompressed::new(self.plain.content.clone(), claim))
    }

    pub(crate) fn validators<'a>(&'a self, chosen: &'a Form) -> Validators<'a> {
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
        &self.plain.form.etag
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
        &self.plain.form.head_200
    }
}

impl Representation {
    fn new(coding: Option<Coding>, bytes: Bytes, stamp: &Stamp) -> Self {
        Self { form: Form::new(coding, stamp), content: bytes.into(), size: stamp.size }
    }
}

/// The codings that a file of this type and size is compressed with.
fn variants(rules: &EntryRules, mime: &str, stamp: &Stamp) -> Option<Box<Variants>> {
    let files = rules.options.compressed_files.as_ref()?;
    (is_compressible(mime.as_bytes()) && files.admits(stamp.size))
        .then(|| Box::new(Variants::new(files)))
}

impl ModificationDate {
    /// RFC 9110 8.8.2.1 forbids a date later than the response's own.
    fn new(stamp: &Stamp, now: SystemTime) -> Option<Self> {
        let unix_s = u64::try_from(stamp.modified.s).ok()?;
        (stamp.modified.to_system()? <= now && unix_s <= UNIX_SECONDS_MAX)
            .then(|| Self { unix_s, text: format_http_date(unix_s) })
    }
}
