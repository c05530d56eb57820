//! Conditional requests: RFC 9110 section 13, evaluated in the order of section 13.2.2. Pure;
//! called by [`crate::plan`].

/// The parts of a request that decide how a file is answered. Values of a field that came in
/// several lines are joined by `", "`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions<'a> {
    /// Whether the method is HEAD. It is GET otherwise: other methods are answered before a plan is
    /// asked for.
    pub is_head: bool,
    /// Accept-Encoding.
    pub accept_encoding: Option<&'a [u8]>,
    /// If-Match.
    pub if_match: Option<&'a [u8]>,
    /// If-None-Match.
    pub if_none_match: Option<&'a [u8]>,
    /// If-Modified-Since.
    pub if_modified_since: Option<&'a [u8]>,
    /// If-Unmodified-Since.
    pub if_unmodified_since: Option<&'a [u8]>,
    /// Range.
    pub range: Option<&'a [u8]>,
    /// If-Range.
    pub if_range: Option<&'a [u8]>,
}

/// What the conditions leave to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Answer with content, whole.
    Whole,
    /// Answer with content, and Range counts.
    Ranged,
    /// 304.
    NotModified,
    /// 412.
    PreconditionFailed,
}

/// What the selected representation is compared by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validators<'a> {
    /// A strong entity-tag with its quotes.
    pub(crate) etag: &'a [u8],
    /// Seconds since the epoch; `None` when the file has no usable time.
    pub(crate) last_modified_s: Option<u64>,
}

/// Section 13.2.2, step by step.
pub(crate) fn evaluate(request: &Conditions<'_>, current: Validators<'_>) -> Verdict {
    let precondition_holds = match (request.if_match, request.if_unmodified_since) {
        (Some(field), _) => lists(field, current.etag, Comparison::Strong),
        (None, Some(date)) => is_newer(current, date) != Some(true),
        (None, None) => true,
    };
    if !precondition_holds {
        return Verdict::PreconditionFailed;
    }
    let not_modified = match (request.if_none_match, request.if_modified_since) {
        (Some(field), _) => lists(field, current.etag, Comparison::Weak),
        (None, Some(date)) => is_newer(current, date) == Some(false),
        (None, None) => false,
    };
    if not_modified {
        return Verdict::NotModified;
    }
    // Section 14.2: Range is defined for GET alone.
    match (request.is_head, request.range, request.if_range) {
        (false, Some(_), Some(validator)) if is_current(validator, current) => Verdict::Ranged,
        (false, Some(_), None) => Verdict::Ranged,
        _ => Verdict::Whole,
    }
}

/// Whether the representation changed after the date; `None` if either cannot be known, and the
/// field is then ignored (sections 13.1.3 and 13.1.4).
fn is_newer(current: Validators<'_>, date: &[u8]) -> Option<bool> {
    Some(current.last_modified_s? > date_s(date)?)
}

/// If-Range, section 13.1.5: a strong comparison of tags, or an exact one of dates.
fn is_current(validator: &[u8], current: Validators<'_>) -> bool {
    let validator = validator.trim_ascii();
    match validator {
        [b'"', ..] => validator == current.etag,
        [b'W', b'/', ..] => false,
        _ => current.last_modified_s.is_some() && current.last_modified_s == date_s(validator),
    }
}

/// An HTTP-date in any of its three forms, in seconds since the epoch.
fn date_s(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim();
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

/// Whether a list of entity-tags (or `*`) names the current one, which is strong. A list that is
/// malformed somewhere names only what stands before that place.
fn lists(field: &[u8], etag: &[u8], comparison: Comparison) -> bool {
    let mut rest = field.trim_ascii();
    if rest == b"*" {
        return true;
    }
    loop {
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        let (weak, tag) = match rest {
            [b'W', b'/', tail @ ..] => (true, tail),
            _ => (false, rest),
        };
        let Some(length) = quoted_length(tag) else { return false };
        if &tag[..length] == etag && (!weak || comparison == Comparison::Weak) {
            return true;
        }
        rest = &tag[length..];
    }
}

/// The length of the `DQUOTE *etagc DQUOTE` at the start of the text.
fn quoted_length(text: &[u8]) -> Option<usize> {
    let inner = text.strip_prefix(b"\"")?;
    Some(memchr::memchr(b'"', inner)? + 2)
}

#[cfg(test)]
mod tests;
