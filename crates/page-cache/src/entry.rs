//! One stored response, ready to go out.
//!
//! Made when a response is kept, shared by the store and by answers under way. Invariant: an entry
//! never changes. What is freshened, expired or compressed becomes another entry that shares the
//! bodies.

use crate::coding::{self, Coding};
use crate::compress::COMPRESS_MIN_BYTES;
use crate::conditions::Answer;
use crate::conditions::Conditions;
use crate::date;
use crate::freshness::Freshness;
use crate::message::{Field, Fields};
use crate::storage::{Audience, Storable};
use crate::validators::Validators;
use crate::vary::Variant;
use std::rc::Rc;
use std::sync::Arc;

/// The codings of a page that lives more shortly are not worth their making.
const CODED_MIN_S: u32 = 5;

/// What a response is stored under: `scheme://authority/path?query`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) path_start: u32,
}

impl Key {
    /// The key of a request. The authority's case means nothing (RFC 9110 4.2.3).
    pub fn new(is_https: bool, authority: &[u8], path_and_query: &[u8]) -> Self {
        let (scheme, port): (&[u8], &[u8]) =
            if is_https { (b"https://", b":443") } else { (b"http://", b":80") };
        let authority = authority.strip_suffix(port).unwrap_or(authority);
        let mut bytes = Vec::with_capacity(scheme.len() + authority.len() + path_and_query.len());
        bytes.extend_from_slice(scheme);
        bytes.extend(authority.iter().map(u8::to_ascii_lowercase));
        let path_start = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(path_and_query);
        Self { bytes: bytes.into(), path_start }
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The path with the query.
    pub fn path_and_query(&self) -> &[u8] {
        self.bytes.get(self.path_start as usize..).unwrap_or_default()
    }
}

/// A body in one coding, with the header lines that go with it.
#[derive(Debug, Clone)]
pub struct Representation {
    /// `None` for the body as it was received.
    pub coding: Option<Coding>,
    /// The header lines, each ended by CRLF: all but those that every answer has anew.
    pub head: Arc<[u8]>,
    /// The bytes.
    pub body: Arc<[u8]>,
}

/// A stored response.
#[derive(Debug, Clone)]
pub struct Entry {
    pub(crate) key: Key,
    pub(crate) status: u16,
    pub(crate) times: Freshness,
    pub(crate) variant: Variant,
    pub(crate) audience: Audience,
    /// Hashes of its tags, sorted.
    pub(crate) tags: Box<[u64]>,
    /// Whether the lines have a Server field, or are to have none.
    pub(crate) has_server: bool,
    /// Whether other codings of the body are worth making and allowed. Vary says so then, and only
    /// then (RFC 9110 12.5.5).
    pub(crate) may_compress: bool,
    pub(crate) plain: Representation,
    pub(crate) coded: Vec<Representation>,
}

impl Entry {
    /// An entry of a response with these fields, which [`crate::kept_fields`] gave.
    pub fn new(
        key: Key,
        status: u16,
        fields: Fields<'_>,
        body: Arc<[u8]>,
        storable: Storable,
        tags: Box<[u64]>,
    ) -> Self {
        let is_text = fields.first("content-type").is_some_and(coding::is_compressible);
        let may_compress = is_text
            && status == 200
            && body.len() >= COMPRESS_MIN_BYTES
            && storable.freshness.lifetime_s >= CODED_MIN_S
            && !storable.no_transform
            && !fields.contains("content-encoding");
        let received_s = storable.freshness.received_s;
        let head = rendered(fields, received_s, None, may_compress);
        Self {
            key,
            status,
            times: storable.freshness,
            variant: storable.variant,
            audience: storable.audience,
            tags,
            has_server: fields.contains("server"),
            may_compress,
            plain: Representation { coding: None, head: head.into(), body },
            coded: Vec::new(),
        }
    }

    /// What it is stored under.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Its times.
    pub fn times(&self) -> &Freshness {
        &self.times
    }

    /// What it varies by.
    pub fn variant(&self) -> &Variant {
        &self.variant
    }

    /// Who may get it.
    pub fn audience(&self) -> Audience {
        self.audience
    }

    /// The same, which decides itself about its Server field: it has one, or is to have none.
    #[must_use]
    pub fn with_own_server(mut self) -> Self {
        self.has_server = true;
        self
    }

    /// Whether nothing is to be added to its lines for Server.
    pub fn has_server(&self) -> bool {
        self.has_server
    }

    /// Whether other codings of its body may be made.
    pub fn may_compress(&self) -> bool {
        self.may_compress
    }

    /// The body as it was received, with its lines.
    pub fn plain(&self) -> &Representation {
        &self.plain
    }

    /// The codings that are kept beside it.
    pub fn coded(&self) -> &[Representation] {
        &self.coded
    }

    /// What a client with this Accept-Encoding gets.
    pub fn representation(&self, accept_encoding: Option<&[u8]>) -> &Representation {
        if self.coded.is_empty() {
            return &self.plain;
        }
        let chosen =
            coding::choose(accept_encoding, self.coded.iter().filter_map(|one| one.coding));
        let found = self.coded.iter().find(|one| one.coding == chosen);
        found.filter(|_| chosen.is_some()).unwrap_or(&self.plain)
    }

    /// Its header lines as fields, those of the body as it was received.
    pub fn fields(&self) -> Vec<Field<'_>> {
        lines(&self.plain.head).collect()
    }

    /// Its header lines as they were received: without what was added to Vary for the codings.
    pub fn received_fields(&self) -> Vec<Field<'_>> {
        const ADDED: &[u8] = b"Accept-Encoding";
        let mut fields = self.fields();
        if !self.may_compress || self.variant.names().any(|name| name == "accept-encoding") {
            return fields;
        }
        let is_vary = |name: &[u8]| name.eq_ignore_ascii_case(b"vary");
        for (name, value) in &mut fields {
            if is_vary(name)
                && let Some(rest) = value.strip_suffix(ADDED)
            {
                *value = rest.trim_ascii_end().strip_suffix(b",").unwrap_or_default();
            }
        }
        fields.retain(|(name, value)| !is_vary(name) || !value.is_empty());
        fields
    }

    /// What a request with these conditions gets of it.
    pub fn answer(&self, conditions: &Conditions<'_>, is_head: bool) -> Answer {
        if self.status != 200 || !conditions.are_any() {
            return Answer::Whole;
        }
        let fields = self.fields();
        let fields = Fields(&fields);
        let date_s = fields.first("date").and_then(date::parse);
        let size = self.plain.body.len() as u64;
        let received_s = self.times.received_s;
        conditions.answer(is_head, Validators::of(fields), date_s, received_s, size)
    }

    /// The same with another coding of the body beside.
    #[must_use]
    pub fn with_coding(&self, coding: Coding, body: Arc<[u8]>) -> Self {
        let fields = self.fields();
        let head = rendered(Fields(&fields), self.times.received_s, Some(coding), false);
        let fresh = Representation { coding: Some(coding), head: head.into(), body };
        let mut entry = self.clone();
        entry.coded.push(fresh);
        entry
            .coded
            .sort_by_key(|one| Coding::ALL.iter().position(|known| Some(*known) == one.coding));
        entry
    }

    /// The same, confirmed by the origin: with these fields and times, and its bodies.
    #[must_use]
    pub fn freshened(&self, fields: Fields<'_>, storable: Storable) -> Self {
        let received_s = storable.freshness.received_s;
        let mut entry = self.clone();
        entry.plain.head = rendered(fields, received_s, None, self.may_compress).into();
        for one in &mut entry.coded {
            one.head = rendered(fields, received_s, one.coding, false).into();
        }
        entry.times = storable.freshness;
        entry.audience = storable.audience;
        entry.variant = storable.variant;
        entry
    }

    /// The same, stale from now on. It may be used for `grace_s` more seconds while a new one is
    /// made, unless it forbids that itself.
    #[must_use]
    pub fn expired(&self, now_s: u64, grace_s: u32) -> Self {
        let mut entry = self.clone();
        entry.times.expire(now_s);
        if self.times.had_a_life() && !entry.times.never_stale && !entry.times.always_validate {
            let grace = &mut entry.times.stale_while_revalidate_s;
            *grace = (*grace).max(grace_s);
        }
        entry
    }

    /// The same without head and bodies: what it is and whom it answers.
    #[must_use]
    pub fn without_bodies(&self) -> Self {
        let nothing: Arc<[u8]> = Arc::from([]);
        let plain = Representation { coding: None, head: nothing.clone(), body: nothing };
        Self { plain, coded: Vec::new(), ..self.clone() }
    }

    /// When it was made, in seconds since 1970.
    pub(crate) fn date_s(&self) -> u64 {
        let date = lines(&self.plain.head).find(|(name, _)| name.eq_ignore_ascii_case(b"date"));
        date.and_then(|(_, value)| date::parse(value)).unwrap_or(self.times.received_s)
    }

    /// What it takes of memory, in bytes: every allocation with what the allocator adds to it, and
    /// an eighth for the holes that come and go between allocations (measured with bodies of all
    /// sizes: a seventh at most).
    pub(crate) fn cost_bytes(&self) -> usize {
        let shared = |bytes: usize| allocated(bytes + 16);
        let representations = std::iter::once(&self.plain).chain(&self.coded);
        let bodies: usize =
            representations.map(|one| shared(one.head.len()) + shared(one.body.len())).sum();
        let list = allocated(self.coded.capacity() * size_of::<Representation>());
        let taken = shared(size_of::<Self>())
            + shared(self.key.bytes.len())
            + allocated(self.tags.len() * 8)
            + self.variant.allocated_bytes()
            + bodies
            + list;
        taken + taken / 8
    }
}

/// What the allocator takes for so many bytes.
pub(crate) fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
}

/// Splits header lines.
fn lines(head: &[u8]) -> impl Iterator<Item = Field<'_>> {
    head.split(|&byte| byte == b'\n').filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// The lines of a representation. `varies` says that others in other codings may come to stand
/// beside it.
fn rendered(fields: Fields<'_>, received_s: u64, coding: Option<Coding>, varies: bool) -> Vec<u8> {
    let mut head = Vec::new();
    let mut add = |name: &[u8], value: &[u8]| {
        for piece in [name, b": ", value, b"\r\n"] {
            head.extend_from_slice(piece);
        }
    };
    let varies = varies || coding.is_some();
    let mut has_vary = false;
    for &(name, value) in fields.0 {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("etag") && coding.is_some() && !value.starts_with(b"W/") {
            // RFC 9110 8.8.3.3: other bytes, so the strong tag is not theirs.
            add(name, &[b"W/", value].concat());
        } else if is("vary") && varies && !has_vary {
            has_vary = true;
            let is_there = memchr::memmem::find(&value.to_ascii_lowercase(), b"accept-encoding");
            match is_there {
                Some(_) => add(name, value),
                None => add(name, &[value, b", Accept-Encoding"].concat()),
            }
        } else {
            add(name, value);
        }
    }
    if varies && !has_vary {
        add(b"Vary", b"Accept-Encoding");
    }
    if let Some(coding) = coding {
        add(b"Content-Encoding", coding.token().as_bytes());
    }
    if !fields.contains("date") {
        // RFC 9110 6.6.1: whoever stores a response without a Date gives it one.
        add(b"Date", date::http_date(received_s).as_bytes());
    }
    head
}

/// How entries are passed around.
pub type Shared = Rc<Entry>;
