//! [`Call`]: a request to the entity store, read from path and query.

use outboard_entity_store::is_id;
use std::borrow::Cow;

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    namespace: Option<String>,
    pub(super) resource: Resource,
}

/// The requested resource.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// `/status`
    Status,
    /// `/entity?id=…`
    Entity(EntityRequest),
    /// `/entities?start=…&end=…`
    Range { start: Vec<u8>, end: Option<Vec<u8>> },
}

/// A request for one record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EntityRequest {
    pub(super) id: Vec<u8>,
    /// The lifetime of a written record.
    pub(super) ttl_ms: Option<u64>,
    /// The number of nodes that must have it before the response.
    ack: Option<u64>,
    /// The number of nodes that `ack` refers to.
    from: Option<u64>,
}

impl EntityRequest {
    /// The number of nodes that must have the record, of which `copies` have a copy: more than half
    /// by default.
    pub(super) fn copies(&self, copies: u32) -> Result<u32, Invalid> {
        let from = self.from.unwrap_or(u64::from(copies));
        let ack = self.ack.unwrap_or(from / 2 + 1);
        if ack == 0 || ack > from || from > u64::from(copies) {
            return Err(Invalid);
        }
        u32::try_from(ack).map_err(|_| Invalid)
    }
}

/// The request is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invalid;

impl Call {
    /// The named namespace, or `default`.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    /// Reads the path below the store's, and the query.
    pub(crate) fn read(below: &[u8], query: &[u8]) -> Result<Self, Invalid> {
        let query = Query::read(query)?;
        let resource = match below {
            b"/status" => Resource::Status,
            b"/entity" => Resource::Entity(EntityRequest {
                id: query.id.ok_or(Invalid)?,
                ttl_ms: query.ttl_ms,
                ack: query.ack,
                from: query.from,
            }),
            b"/entities" => Resource::Range { start: query.start.ok_or(Invalid)?, end: query.end },
            _ => return Err(Invalid),
        };
        Ok(Self { namespace: query.namespace, resource })
    }
}

/// The parameters that are present and not empty; of several with a name the first applies.
#[derive(Debug, Default)]
pub(super) struct Query {
    pub(super) namespace: Option<String>,
    id: Option<Vec<u8>>,
    ttl_ms: Option<u64>,
    ack: Option<u64>,
    from: Option<u64>,
    pub(super) start: Option<Vec<u8>>,
    pub(super) end: Option<Vec<u8>>,
}

impl Query {
    pub(super) fn read(query: &[u8]) -> Result<Self, Invalid> {
        let mut read = Self::default();
        for pair in query.split(|byte| *byte == b'&') {
            let at = memchr::memchr(b'=', pair).unwrap_or(pair.len());
            let (name, value) = (&pair[..at], pair.get(at + 1..).unwrap_or_default());
            match name {
                b"id" => put(&mut read.id, id_of(value)?),
                b"start" => put(&mut read.start, id_of(value)?),
                b"end" => put(&mut read.end, id_of(value)?),
                b"ttl" => put(&mut read.ttl_ms, number(value)?),
                b"ack" => put(&mut read.ack, number(value)?),
                b"from" => put(&mut read.from, number(value)?),
                b"namespace" => put(&mut read.namespace, text(value)?),
                _ => {}
            }
        }
        Ok(read)
    }
}

fn put<T>(place: &mut Option<T>, value: Option<T>) {
    if place.is_none() {
        *place = value;
    }
}

fn id_of(value: &[u8]) -> Result<Option<Vec<u8>>, Invalid> {
    let id = decoded(value)?.into_owned();
    match id.is_empty() {
        true => Ok(None),
        false if is_id(&id) => Ok(Some(id)),
        false => Err(Invalid),
    }
}

fn number(value: &[u8]) -> Result<Option<u64>, Invalid> {
    let digits = text(value)?.unwrap_or_default();
    digits.parse().map(Some).map_err(|_| Invalid)
}

fn text(value: &[u8]) -> Result<Option<String>, Invalid> {
    let text = String::from_utf8(decoded(value)?.into_owned()).map_err(|_| Invalid)?;
    Ok(Some(text))
}

/// Decodes a form value: `%XX` is a byte, `+` a space.
fn decoded(value: &[u8]) -> Result<Cow<'_, [u8]>, Invalid> {
    if !value.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Ok(Cow::Borrowed(value));
    }
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || {
                    let digit = char::from(*bytes.next()?).to_digit(16)?;
                    u8::try_from(digit).ok()
                };
                let high = digit().ok_or(Invalid)?;
                high << 4 | digit().ok_or(Invalid)?
            }
            other => *other,
        });
    }
    Ok(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(query: &str) -> Result<Resource, Invalid> {
        Call::read(b"/entity", query.as_bytes()).map(|call| call.resource)
    }

    fn request(id: &[u8], ttl_ms: Option<u64>) -> EntityRequest {
        EntityRequest { id: id.to_vec(), ttl_ms, ack: None, from: None }
    }

    fn of(id: &[u8]) -> Result<Resource, Invalid> {
        Ok(Resource::Entity(request(id, None)))
    }

    #[test]
    fn a_quorum_is_the_default_and_at_most_all_copies() {
        let copies = |ack, from, of| EntityRequest { ack, from, ..request(b"a", None) }.copies(of);
        for (of, quorum) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)] {
            assert_eq!(copies(None, None, of), Ok(quorum));
        }
        assert_eq!(copies(None, Some(1), 3), Ok(1));
        assert_eq!(copies(Some(3), None, 3), Ok(3));
        for (ack, from) in [(Some(0), None), (Some(4), None), (Some(3), Some(2)), (None, Some(4))] {
            assert_eq!(copies(ack, from, 3), Err(Invalid));
        }
    }

    #[test]
    fn an_id_is_any_nonempty_bytes() {
        assert_eq!(entity("id=a"), of(b"a"));
        assert_eq!(entity("x=1&id=a%00%fF+b%2B"), of(b"a\0\xff b+"));
        assert_eq!(entity("id=first&id=second"), of(b"first"));
        assert_eq!(entity(&format!("id={}", "k".repeat(4096))), of(&[b'k'; 4096]));
        for query in ["", "id", "id=", "di=a", "id=%", "id=%4", "id=%zz", "id=%+1"] {
            assert_eq!(entity(query), Err(Invalid), "{query}");
        }
        assert_eq!(entity(&format!("id={}", "k".repeat(4097))), Err(Invalid));
    }

    #[test]
    fn a_lifetime_is_whole_milliseconds() {
        let timed = Ok(Resource::Entity(request(b"a", Some(500))));
        assert_eq!(entity("id=a&ttl=500"), timed);
        assert_eq!(entity("id=a&ttl=%3500"), timed);
        for ttl in ["", "-1", "1.5", "1s", "99999999999999999999"] {
            assert_eq!(entity(&format!("id=a&ttl={ttl}")), Err(Invalid), "{ttl}");
        }
    }

    #[test]
    fn a_range_needs_a_start_and_other_paths_are_invalid() {
        let range = |query: &str| Call::read(b"/entities", query.as_bytes());
        let whole = Resource::Range { start: b"a".to_vec(), end: None };
        assert_eq!(range("start=a&end=").map(|call| call.resource), Ok(whole));
        assert_eq!(range("end=b"), Err(Invalid));
        assert_eq!(range("start=&end=b"), Err(Invalid));
        for path in [&b""[..], b"/", b"/entity/", b"/Entity", b"/other"] {
            assert_eq!(Call::read(path, b"id=a&start=a"), Err(Invalid));
        }
    }
}
