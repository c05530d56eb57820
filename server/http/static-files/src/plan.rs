//! The response to a request for a file: status, header lines, body parts. Pure and without system
//! calls; the gateway writes it.
//!
//! Invariant: the lengths of the parts add up to [`Plan::content_length`] for GET, and every part lies
//! inside of its file.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use crate::compressed_files::CompressedFile;
use crate::content::Content;
use crate::entry::{Entry, Representation};
use crate::form::Form;
use crate::head::{self, Headers, Lines};
use outboard_http_semantics::{
    ByteRange, Coding, Conditions, Outcome, RangeSelection, select_ranges,
};
use smallvec::{SmallVec, smallvec};

/// A part of a body. Its bytes and descriptor are shared with the [`Entry`].
#[derive(Debug, Clone)]
pub enum Part {
    /// A part of a small file.
    Memory {
        /// The whole file.
        bytes: Rc<[u8]>,
        /// The part of it to send.
        range: Range<usize>,
    },
    /// A part of a larger file, for sendfile(2).
    File {
        /// Shared by all responses: pass an offset, never move its position.
        file: Rc<OwnedFd>,
        /// Bytes from the start of the file.
        offset: u64,
        /// Bytes to send.
        len: u64,
    },
    /// The whole of a file that was compressed on demand.
    Compressed(Arc<CompressedFile>),
    /// Framing between the parts of a multipart body.
    Bytes(Vec<u8>),
}

impl Part {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            in_memory => in_memory.bytes().map_or(0, <[u8]>::len) as u64,
        }
    }

    /// The bytes to send, if they are in memory.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Memory { bytes, range } => Some(&bytes[range.clone()]),
            Self::File { .. } => None,
            Self::Compressed(file) => Some(file.bytes()),
            Self::Bytes(bytes) => Some(bytes),
        }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The parts of a body: usually one, which is not on the heap.
pub type Parts = SmallVec<[Part; 1]>;

/// A response, ready to be written.
#[derive(Debug, Clone)]
pub struct Plan {
    /// 200, 206, 304, 412 or 416.
    pub status: u16,
    /// All header lines except Date, Connection and Content-Length.
    pub headers: Headers,
    /// Empty for HEAD, 304, 412, 416 and empty files.
    pub body: Parts,
    /// The value of Content-Length, for HEAD too; 0 for a 304, which has none.
    pub content_length: u64,
    /// The coding that the body would have if the file were kept compressed, for [`Entry::compression`].
    pub missing: Option<Coding>,
}

/// Plans the response to a request with this Accept-Encoding and these conditions.
pub fn plan(entry: &Entry, accept_encoding: Option<&[u8]>, conditions: &Conditions<'_>) -> Plan {
    plan_as(entry, accept_encoding, conditions, None)
}

/// The same, when an application has already given the file a Content-Type (X-Sendfile,
/// X-Accel-Redirect) in place of the one known by its name. A multipart response has its own
/// Content-Type line and carries the application's in each part.
pub fn plan_as(
    entry: &Entry,
    accept_encoding: Option<&[u8]>,
    conditions: &Conditions<'_>,
    content_type: Option<&[u8]>,
) -> Plan {
    let chosen = entry.choose(accept_encoding);
    let given_type = content_type.filter(|value| !value.is_empty() && head::is_value(value));
    let response = Response { entry, chosen, given_type, is_head: conditions.is_head };
    // Ranges are of the file itself: they must fit together whether it is kept compressed or not.
    let is_ranged = conditions.range.is_some() && !conditions.is_head;
    if chosen.coding().is_none()
        && !is_ranged
        && let Some(variant) = entry.choose_variant(accept_encoding)
    {
        return response.compressed(variant, conditions);
    }
    response.conditional(conditions)
}

/// A response with content, or with a part of it.
struct Response<'a> {
    entry: &'a Entry,
    chosen: &'a Representation,
    given_type: Option<&'a [u8]>,
    is_head: bool,
}

impl Response<'_> {
    fn conditional(&self, conditions: &Conditions<'_>) -> Plan {
        let form = &self.chosen.form;
        match conditions.evaluate(self.entry.validators(form)) {
            Outcome::PreconditionFailed => without_content(412, Lines::default()),
            Outcome::NotModified => without_content(304, self.entry.cache_lines(form)),
            Outcome::Whole => self.whole(),
            Outcome::Ranged(field) => self.ranged(field),
        }
    }

    /// The response in a coding that the file is compressed with on demand; in none as long as it is
    /// not kept in this one.
    fn compressed(&self, (coding, form): (Coding, &Form), conditions: &Conditions<'_>) -> Plan {
        let kept = self.entry.compressed(coding);
        if kept.as_ref().is_some_and(|file| file.bytes().is_empty()) {
            return self.conditional(conditions);
        }
        match (kept, conditions.evaluate(self.entry.validators(form))) {
            (Some(file), Outcome::Whole | Outcome::Ranged(_)) => self.whole_of(form, file),
            (Some(_), Outcome::PreconditionFailed) => without_content(412, Lines::default()),
            (Some(_), Outcome::NotModified) => without_content(304, self.entry.cache_lines(form)),
            // The client received it before it was removed from memory.
            (None, Outcome::NotModified) if conditions.if_none_match.is_some() => {
                without_content(304, self.entry.cache_lines(form))
            }
            (None, _) => Plan { missing: Some(coding), ..self.conditional(conditions) },
        }
    }

    fn whole_of(&self, form: &Form, file: Arc<CompressedFile>) -> Plan {
        let content_length = file.bytes().len() as u64;
        let body = if self.is_head { Parts::new() } else { smallvec![Part::Compressed(file)] };
        let headers = self.headers(form);
        Plan { status: 200, headers, body, content_length, missing: None }
    }

    fn whole(&self) -> Plan {
        let headers = self.headers(&self.chosen.form);
        let content_length = self.chosen.size;
        let body = if self.is_head || content_length == 0 {
            Parts::new()
        } else {
            smallvec![self.part(ByteRange { start: 0, end: content_length })]
        };
        Plan { status: 200, headers, body, content_length, missing: None }
    }

    fn headers(&self, form: &Form) -> Headers {
        match self.given_type {
            None => Headers::Shared {
                lines: Rc::clone(&form.lines_200),
                rendered: Rc::clone(&form.head_200),
            },
            Some(content_type) => self.entry.content_lines(form, content_type).into_headers(),
        }
    }

    fn ranged(&self, field: &[u8]) -> Plan {
        let size = self.chosen.size;
        match select_ranges(field, size) {
            RangeSelection::Whole => self.whole(),
            RangeSelection::Unsatisfiable => without_content(
                416,
                Lines::default().with("Content-Range", format!("bytes */{size}")),
            ),
            RangeSelection::Ranges(ranges) => match ranges.as_slice() {
                [range] => self.single(*range),
                // A multipart body is not in the coding of its parts, which no header can express.
                _ if self.chosen.coding().is_some() => self.whole(),
                several => self.multipart(several),
            },
        }
    }

    fn single(&self, range: ByteRange) -> Plan {
        let lines = self
            .lines(self.part_type())
            .with("Content-Range", range.content_range(self.chosen.size));
        Plan {
            status: 206,
            headers: lines.into_headers(),
            body: smallvec![self.part(range)],
            content_length: range.length(),
            missing: None,
        }
    }

    /// RFC 9110 14.6; the whole file if the framing would be longer than the rest of it.
    fn multipart(&self, ranges: &[ByteRange]) -> Plan {
        let boundary = format!("{:016x}", self.entry.boundary);
        let mut body = Parts::with_capacity(ranges.len() * 2 + 1);
        for range in ranges {
            let mut frame = format!("\r\n--{boundary}\r\nContent-Type: ").into_bytes();
            frame.extend_from_slice(self.part_type());
            let range_line = range.content_range(self.chosen.size);
            frame.extend_from_slice(format!("\r\nContent-Range: {range_line}\r\n\r\n").as_bytes());
            body.push(Part::Bytes(frame));
            body.push(self.part(*range));
        }
        body.push(Part::Bytes(format!("\r\n--{boundary}--\r\n").into_bytes()));
        let content_length = body.iter().map(Part::len).sum();
        if content_length >= self.chosen.size {
            return self.whole();
        }
        let content_type = format!("multipart/byteranges; boundary={boundary}");
        let headers = self.lines(content_type.as_bytes()).into_headers();
        Plan { status: 206, headers, body, content_length, missing: None }
    }

    fn lines(&self, content_type: &[u8]) -> Lines {
        self.entry.content_lines(&self.chosen.form, content_type)
    }

    fn part_type(&self) -> &[u8] {
        self.given_type.unwrap_or(self.entry.mime.as_bytes())
    }

    fn part(&self, range: ByteRange) -> Part {
        match &self.chosen.content {
            Content::File(file) => {
                Part::File { file: Rc::clone(file), offset: range.start, len: range.length() }
            }
            // Both fit in usize: the range lies inside of a file in memory.
            Content::Memory(bytes) => Part::Memory {
                bytes: Rc::clone(bytes),
                range: range.start as usize..range.end as usize,
            },
        }
    }
}

/// A response without content.
fn without_content(status: u16, lines: Lines) -> Plan {
    let headers = lines.into_headers();
    Plan { status, headers, body: Parts::new(), content_length: 0, missing: None }
}

#[cfg(test)]
mod tests;
