//! What a request to the entity store asks for, by its path and query.

use std::borrow::Cow;

/// Longer names are refused.
const ID_MAX_BYTES: usize = 4096;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    namespace: Option<String>,
    pub(super) resource: Resource,
}

/// What it is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// `/status`
    Status,
    /// `/entity?id=…`, with `ttl` in milliseconds for a write.
    Entity { id: Vec<u8>, ttl_ms: Option<u64> },
    /// `/entities?start=…&end=…`
    Range { start: Vec<u8>, end: Option<Vec<u8>> },
}

/// It asks for nothing that there is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

impl Call {
    /// The namespace that it names, or `default`.
    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    /// Reads the path below the store's, and the query.
    pub(super) fn read(below: &[u8], query: &[u8]) -> Result<Self, Unreadable> {
        let query = Query::read(query)?;
        let resource = match below {
            b"/status" => Resource::Status,
            b"/entity" => {
                Resource::Entity { id: query.id.ok_or(Unreadable)?, ttl_ms: query.ttl_ms }
            }
            b"/entities" => {
                Resource::Range { start: query.start.ok_or(Unreadable)?, end: query.end }
            }
            _ => return Err(Unreadable),
        };
        Ok(Self { namespace: query.namespace, resource })
    }
}

/// The parameters that are there and not empty; of several with a name the first counts.
#[derive(Debug, Default)]
pub(super) struct Query {
    pub(super) namespace: Option<String>,
    id: Option<Vec<u8>>,
    ttl_ms: Option<u64>,
    pub(super) start: Option<Vec<u8>>,
    pub(super) end: Option<Vec<u8>>,
}

impl Query {
    pub(super) fn read(query: &[u8]) -> Result<Self, Unreadable> {
        let mut read = Self::default();
        for pair in query.split(|byte| *byte == b'&') {
            let at = memchr::memchr(b'=', pair).unwrap_or(pair.len());
            let (name, value) = (&pair[..at], pair.get(at + 1..).unwrap_or_default());
            match name {
                b"id" => put(&mut read.id, name_of(value)?),
                b"start" => put(&mut read.start, name_of(value)?),
                b"end" => put(&mut read.end, name_of(value)?),
                b"ttl" => put(&mut read.ttl_ms, number(value)?),
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

fn name_of(value: &[u8]) -> Result<Option<Vec<u8>>, Unreadable> {
    let name = decoded(value)?.into_owned();
    match name.len() {
        0 => Ok(None),
        1..=ID_MAX_BYTES => Ok(Some(name)),
        _ => Err(Unreadable),
    }
}

fn number(value: &[u8]) -> Result<Option<u64>, Unreadable> {
    let digits = text(value)?.unwrap_or_default();
    digits.parse().map(Some).map_err(|_| Unreadable)
}

fn text(value: &[u8]) -> Result<Option<String>, Unreadable> {
    let text = String::from_utf8(decoded(value)?.into_owned()).map_err(|_| Unreadable)?;
    Ok(Some(text))
}

/// As forms write it: `%XX` is a byte, `+` a space.
fn decoded(value: &[u8]) -> Result<Cow<'_, [u8]>, Unreadable> {
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
                let high = digit().ok_or(Unreadable)?;
                high << 4 | digit().ok_or(Unreadable)?
            }
            other => *other,
        });
    }
    Ok(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(query: &str) -> Result<Resource, Unreadable> {
        Call::read(b"/entity", query.as_bytes()).map(|call| call.resource)
    }

    fn of(id: &[u8]) -> Result<Resource, Unreadable> {
        Ok(Resource::Entity { id: id.to_vec(), ttl_ms: None })
    }

    #[test]
    fn a_name_is_any_bytes_but_none() {
        assert_eq!(entity("id=a"), of(b"a"));
        assert_eq!(entity("x=1&id=a%00%fF+b%2B"), of(b"a\0\xff b+"));
        assert_eq!(entity("id=first&id=second"), of(b"first"));
        assert_eq!(entity(&format!("id={}", "k".repeat(4096))), of(&[b'k'; 4096]));
        for query in ["", "id", "id=", "di=a", "id=%", "id=%4", "id=%zz", "id=%+1"] {
            assert_eq!(entity(query), Err(Unreadable), "{query}");
        }
        assert_eq!(entity(&format!("id={}", "k".repeat(4097))), Err(Unreadable));
    }

    #[test]
    fn a_time_is_whole_milliseconds() {
        let timed = Ok(Resource::Entity { id: b"a".to_vec(), ttl_ms: Some(500) });
        assert_eq!(entity("id=a&ttl=500"), timed);
        assert_eq!(entity("id=a&ttl=%3500"), timed);
        for ttl in ["", "-1", "1.5", "1s", "99999999999999999999"] {
            assert_eq!(entity(&format!("id=a&ttl={ttl}")), Err(Unreadable), "{ttl}");
        }
    }

    #[test]
    fn a_range_needs_a_start_and_other_paths_are_nothing() {
        let range = |query: &str| Call::read(b"/entities", query.as_bytes());
        let whole = Resource::Range { start: b"a".to_vec(), end: None };
        assert_eq!(range("start=a&end=").map(|call| call.resource), Ok(whole));
        assert_eq!(range("end=b"), Err(Unreadable));
        assert_eq!(range("start=&end=b"), Err(Unreadable));
        for path in [&b""[..], b"/", b"/entity/", b"/Entity", b"/other"] {
            assert_eq!(Call::read(path, b"id=a&start=a"), Err(Unreadable));
        }
    }
}
