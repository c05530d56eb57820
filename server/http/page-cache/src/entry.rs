//! A stored response, ready to be sent.
//!
//! Created when a response is stored, shared by the store and by responses under way of all shards.
//! Invariant: an entry never changes. Freshening, expiry and compression create another entry that
//! shares the bodies.

use crate::allocated::allocated;
use crate::compress::COMPRESS_MIN_BYTES;
use crate::conditions::{Conditions, ContentSelection};
use crate::freshness::Freshness;
use crate::key::Key;
use crate::message::{Field, Fields};
use crate::storage::{Audience, Storable};
use crate::validators::Validators;
use crate::vary::Variant;
use outboard_http_semantics::{Coding, format_http_date, is_compressible, parse_http_date};
use std::sync::Arc;

/// A page with a shorter lifetime is not worth compressing.
const CODED_MIN_S: u32 = 5;

/// A body in one coding, with its header lines.
#[derive(Debug, Clone)]
pub struct Representation {
    /// `None` for the body as it was received.
    pub coding: Option<Coding>,
    /// The header lines, each ended by CRLF: all but those that are rendered for every response.
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
    /// Whether the lines have a Server field, or must have none.
    pub(crate) has_server: bool,
    /// Whether other codings of the body are allowed and worth their cost. Vary says so then, and only
    /// then (RFC 9110 12.5.5).
    pub(crate) may_compress: bool,
    pub(crate) plain: Representation,
    pub(crate) coded: Vec<Representation>,
}

impl Entry {
    /// An entry of a response with these fields from [`crate::stored_fields`].
    pub fn new(
        key: Key,
        status: u16,
        fields: Fields<'_>,
        body: Arc<[u8]>,
        storable: Storable,
        tags: Box<[u64]>,
    ) -> Self {
        let is_text = fields.first("content-type").is_some_and(is_compressible);
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

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The freshness.
    pub fn times(&self) -> &Freshness {
        &self.times
    }

    /// The variant.
    pub fn variant(&self) -> &Variant {
        &self.variant
    }

    /// The requests that may be answered with it.
    pub fn audience(&self) -> Audience {
        self.audience
    }

    /// The same entry, which decides itself about its Server field: it has one, or must have none.
    #[must_use]
    pub fn with_own_server(mut self) -> Self {
        self.has_server = true;
        self
    }

    /// Whether no Server field may be added to its lines.
    pub fn has_server(&self) -> bool {
        self.has_server
    }

    /// Whether its body may be stored in other codings.
    pub fn may_compress(&self) -> bool {
        self.may_compress
    }

    /// The body as it was received, with its lines.
    pub fn plain(&self) -> &Representation {
        &self.plain
    }

    /// The codings that are stored in addition to it.
    pub fn coded(&self) -> &[Representation] {
        &self.coded
    }

    /// The representation for a client with this Accept-Encoding.
    pub fn representation(&self, accept_encoding: Option<&[u8]>) -> &Representation {
        if self.coded.is_empty() {
            return &self.plain;
        }
        let chosen =
            Coding::choose(accept_encoding, self.coded.iter().filter_map(|one| one.coding));
        let mut all = std::iter::once(&self.plain).chain(&self.coded);
        all.find(|one| one.coding == chosen).unwrap_or(&self.plain)
    }

    /// The header lines of the plain representation as fields.
    pub fn fields(&self) -> Vec<Field<'_>> {
        lines(&self.plain.head).collect()
    }

    /// The header lines as received: without the addition to Vary for the codings.
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

    /// Evaluates the conditions of a request against it.
    pub fn evaluate(&self, conditions: &Conditions<'_>, is_head: bool) -> ContentSelection {
        if self.status != 200 || !conditions.has_conditions() {
            return ContentSelection::Whole;
        }
        let fields = self.fields();
        let fields = Fields(&fields);
        let date_s = fields.first("date").and_then(parse_http_date);
        let size = self.plain.body.len() as u64;
        let received_s = self.times.received_s;
        conditions.evaluate(is_head, Validators::of(fields), date_s, received_s, size)
    }

    /// The same entry with another coding of the body.
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

    /// The same entry after confirmation by the origin: its bodies with these fields and times.
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

    /// The same entry, stale from now on. It may be used for `grace_s` more seconds during a
    /// revalidation, unless it forbids stale use.
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

    /// The same entry without head and bodies, for an index.
    #[must_use]
    pub fn without_bodies(&self) -> Self {
        let nothing: Arc<[u8]> = Arc::from([]);
        let plain = Representation { coding: None, head: nothing.clone(), body: nothing };
        Self { plain, coded: Vec::new(), ..self.clone() }
    }

    /// The Date, or the time of reception, in seconds since 1970.
    pub(crate) fn date_s(&self) -> u64 {
        let date = lines(&self.plain.head).find(|(name, _)| name.eq_ignore_ascii_case(b"date"));
        date.and_then(|(_, value)| parse_http_date(value)).unwrap_or(self.times.received_s)
    }

    /// Its memory in bytes: every allocation with the allocator's overhead, and an eighth for
    /// fragmentation (measured with bodies of all sizes: a seventh at most).
    pub(crate) fn cost_bytes(&self) -> usize {
        let shared = |bytes: usize| allocated(bytes + 16);
        let representations = std::iter::once(&self.plain).chain(&self.coded);
        let bodies: usize =
            representations.map(|one| shared(one.head.len()) + shared(one.body.len())).sum();
        let list = allocated(self.coded.capacity() * size_of::<Representation>());
        let allocated = shared(size_of::<Self>())
            + shared(self.key.bytes.len())
            + allocated(self.tags.len() * 8)
            + self.variant.allocated_bytes()
            + bodies
            + list;
        allocated + allocated / 8
    }
}

/// Splits header lines.
fn lines(head: &[u8]) -> impl Iterator<Item = Field<'_>> {
    head.split(|&byte| byte == b'\n').filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// Renders the lines of a representation. `varies` says that representations in other codings may be
/// added.
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
            // RFC 9110 8.8.3.3: the strong tag stands for other bytes.
            add(name, &[b"W/", value].concat());
        } else if is("vary") && varies && !has_vary {
            has_vary = true;
            let listed = memchr::memmem::find(&value.to_ascii_lowercase(), b"accept-encoding");
            match listed {
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
        // RFC 9110 6.6.1: a recipient that stores a response without a Date adds one.
        add(b"Date", format_http_date(received_s).as_bytes());
    }
    head
}

/// The latest of the candidates that match (RFC 9111 4).
pub(crate) fn latest<'e, T>(
    candidates: impl Iterator<Item = (&'e Entry, T)>,
    mut matches: impl FnMut(&Entry) -> bool,
) -> Option<T> {
    let mut best: Option<(&Entry, T)> = None;
    for (entry, candidate) in candidates {
        let is_later = |(other, _): &(&Entry, T)| entry.date_s() >= other.date_s();
        if matches(entry) && best.as_ref().is_none_or(is_later) {
            best = Some((entry, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}
