//! The handlers of one record, and of a range of records.
//!
//! GET responds with 200 or 404, PUT with 201, DELETE with 202. The version of a record is its
//! entity tag, so `If-Match` and `If-None-Match` make writes conditional (RFC 9110 13.1).

use super::call::EntityRequest;
use super::failed;
use super::records::Records;
use crate::refusal::{Outcome, Refusal};
use crate::request::{Request, ResponseSummary, send};
use outboard_entity_store::{Change, Condition, Record, Write};
use outboard_http_semantics::{EntityTag, entity_tags, is_any_tag};
use outboard_http_server::{
    BodyWriter, Framing, HeadFacts, HeaderBlock, ResponseWriter, body_reader,
};
use outboard_http1::Method;
use outboard_log::Reason;
use outboard_operations::Entities;
use std::ops::Bound;

/// Responds to a request for one record.
///
/// # Errors
/// The request is not valid, or the store fails.
pub(super) async fn respond(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    entities: &Entities,
    records: &Records,
    of_record: EntityRequest,
) -> Outcome {
    let invalid = || Refusal::text(Reason::EntityRequest);
    let conditions = Conditions::read(request).map_err(|_| invalid())?;
    let copies = of_record.copies(records.copies()).map_err(|_| invalid())?;
    let EntityRequest { id, ttl_ms, .. } = of_record;
    // The value's memory is counted until it is written.
    let (change, _held) = match request.method() {
        Method::Get | Method::Head => {
            return get(request, response, records, &id, conditions).await;
        }
        Method::Delete => (Change::Delete, None),
        Method::Put => match body_reader::in_memory(request, response, &entities.limits).await {
            Ok((value, held)) => (Change::Put { value: value.into(), ttl_ms }, Some(held)),
            Err(Reason::BodyTooLarge) => return Err(Refusal::text(Reason::EntityTooLarge)),
            Err(reason) => return Err(Refusal::text(reason)),
        },
        _ => return Err(Refusal::text(Reason::EntityMethod)),
    };
    let write = Write { id: id.into(), change, condition: conditions.into_condition() };
    let written = records.write(write, copies).await.map_err(|error| failed(request, &error))?;
    let (mut headers, mut status) = (HeaderBlock::default(), 202);
    if let Some(record) = written.record {
        add_tag(&mut headers, record.version);
        status = 201;
    }
    Ok(send(response, status, &headers, b"").await)
}

async fn get(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    records: &Records,
    id: &[u8],
    conditions: Conditions,
) -> Outcome {
    let found = records.get(id).await.map_err(|error| failed(request, &error))?;
    if conditions.if_match.is_some_and(|tags| !tags.matches(found.as_ref())) {
        return Err(Refusal::text(Reason::EntityCondition));
    }
    let mut headers = HeaderBlock::default();
    // A missing record is a regular response: it is neither counted nor logged as a refusal.
    let Some(record) = found else { return Ok(send(response, 404, &headers, b"").await) };
    add_tag(&mut headers, record.version);
    if conditions.if_none_match.is_some_and(|tags| tags.matches(Some(&record))) {
        return Ok(send(response, 304, &headers, b"").await);
    }
    headers.add(b"Content-Type", b"application/octet-stream").expect("a constant header");
    let _held = request.client.context.memory.responses().hold(record.value.len());
    Ok(send(response, 200, &headers, &record.value).await)
}

fn add_tag(headers: &mut HeaderBlock, version: u64) {
    let tag = format!("\"{version:x}\"");
    headers.add(b"ETag", tag.as_bytes()).expect("hexadecimal digits in quotes");
}

/// The conditions of the request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Conditions {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
}

/// A list of entity tags, or any.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tags {
    Any,
    Versions(Vec<u64>),
}

/// The request has both headers, or one is not a list of tags.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidCondition;

impl Conditions {
    fn read(request: &Request<'_>) -> Result<Self, InvalidCondition> {
        let tags = |name: &[u8]| request.header(name).map(Tags::read).transpose();
        let read = Self { if_match: tags(b"if-match")?, if_none_match: tags(b"if-none-match")? };
        if read.if_match.is_some() && read.if_none_match.is_some() {
            return Err(InvalidCondition);
        }
        Ok(read)
    }

    fn into_condition(self) -> Condition {
        match (self.if_match, self.if_none_match) {
            (Some(Tags::Any), _) => Condition::Present,
            (Some(Tags::Versions(versions)), _) => Condition::VersionIn(versions),
            (None, Some(Tags::Any)) => Condition::Absent,
            (None, Some(Tags::Versions(versions))) => Condition::VersionNotIn(versions),
            (None, None) => Condition::Always,
        }
    }
}

impl Tags {
    /// RFC 9110 8.8.3. A tag in a foreign format matches no record.
    pub(crate) fn read(value: &[u8]) -> Result<Self, InvalidCondition> {
        if is_any_tag(value) {
            return Ok(Self::Any);
        }
        let tags =
            entity_tags(value).collect::<Result<Vec<_>, _>>().map_err(|_| InvalidCondition)?;
        if tags.is_empty() {
            return Err(InvalidCondition);
        }
        Ok(Self::Versions(tags.into_iter().filter_map(version).collect()))
    }

    fn matches(&self, record: Option<&Record>) -> bool {
        match (self, record) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::Versions(versions), Some(record)) => versions.contains(&record.version),
        }
    }
}

/// The version that a tag names. A weak tag is accepted, since some proxies weaken every tag.
fn version(tag: EntityTag<'_>) -> Option<u64> {
    let text = std::str::from_utf8(tag.opaque).ok()?;
    u64::from_str_radix(text.trim_matches('"'), 16).ok()
}

/// Responds with the records from `start` to before `end`, each as its id, a newline and its value,
/// while they are read.
pub(super) async fn range(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    records: Records,
    start: Vec<u8>,
    end: Option<Vec<u8>>,
) -> Outcome {
    if !request.is_read() {
        return Err(Refusal::text(Reason::EntityMethod));
    }
    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
    let mut scan = records.scan(Bound::Included(start), end);
    let mut piece = scan.next().await.map_err(|error| failed(request, &error))?;
    let mut stream = Stream::start(response);
    let mut bytes = Vec::new();
    while !piece.is_empty() && stream.framing() != Framing::Bodyless(None) {
        bytes.clear();
        for (id, record) in &piece {
            bytes.extend_from_slice(id);
            bytes.push(b'\n');
            bytes.extend_from_slice(&record.value);
        }
        if !stream.send(response, &bytes).await {
            return Ok(stream.broken());
        }
        piece = match scan.next().await {
            Ok(piece) => piece,
            // The status was sent: the client notices that the end is missing.
            Err(_) => return Ok(stream.broken()),
        };
    }
    Ok(stream.end(response).await)
}

/// A response whose length is not known before.
pub(super) struct Stream {
    facts: HeadFacts<'static>,
    body: BodyWriter,
}

impl Stream {
    /// Writes the head into the output buffer.
    pub(super) fn start(response: &mut ResponseWriter) -> Self {
        let framing = response.request.framing(200, None);
        let facts = response.request.head(200, framing);
        response.put_head(facts, b"Content-Type: application/octet-stream\r\n");
        Self { facts, body: BodyWriter::new(framing) }
    }

    fn framing(&self) -> Framing {
        self.facts.framing
    }

    /// Sends bytes, at least one. False if the client is gone.
    pub(super) async fn send(&mut self, response: &mut ResponseWriter, bytes: &[u8]) -> bool {
        self.body.write(response, bytes).await
    }

    pub(super) async fn end(mut self, response: &mut ResponseWriter) -> ResponseSummary {
        let account = response.client.context.memory.responses().clone();
        let written = self.body.finish(response, b"", self.facts.keep_alive, &account).await;
        ResponseSummary { written, status: 200, body_bytes: self.body.written_bytes() }
    }

    pub(super) fn broken(self) -> ResponseSummary {
        ResponseSummary::broken(200, self.body.written_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_elements_of_a_list_of_tags_are_skipped() {
        assert_eq!(Tags::read(b"\"a\",,"), Ok(Tags::Versions(vec![10])));
    }

    #[test]
    fn tags_are_a_list_and_foreign_ones_match_nothing() {
        assert_eq!(Tags::read(b" * "), Ok(Tags::Any));
        assert_eq!(Tags::read(b"\"a\", W/\"1f\""), Ok(Tags::Versions(vec![10, 31])));
        assert_eq!(Tags::read(b"\"not-ours\""), Ok(Tags::Versions(vec![])));
        for value in [&b""[..], b"a", b",", b"\"a", b"*, \"a\""] {
            assert_eq!(Tags::read(value), Err(InvalidCondition), "{value:?}");
        }
    }
}
