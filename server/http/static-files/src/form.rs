//! [`Form`]: what a response says about a representation of a file, whatever its bytes are.
//!
//! Rendered by [`crate::entry`]: for the file and its siblings when the file is opened, for a coding that it
//! is compressed with on demand at the first request for it.

use std::rc::Rc;

use outboard_http_semantics::Coding;

use crate::head::{self, Line};
use crate::stamp::Stamp;

/// See the module.
#[derive(Debug)]
pub(crate) struct Form {
    /// `None` for the file itself.
    pub(crate) coding: Option<Coding>,
    pub(crate) etag: Box<str>,
    pub(crate) lines_200: Rc<[Line]>,
    pub(crate) head_200: Rc<[u8]>,
}

impl Form {
    /// The form of a file with this stamp in a coding, without lines. The coding is a part of the ETag:
    /// one tag must not name two sequences of bytes (RFC 9110 8.8.3.3).
    pub(crate) fn new(coding: Option<Coding>, stamp: &Stamp) -> Self {
        let digest = stamp.digest();
        let etag = match coding {
            None => format!("\"{digest:016x}\""),
            Some(coding) => format!("\"{digest:016x}-{}\"", coding.token()),
        };
        let (lines_200, head_200) = (Rc::default(), Rc::default());
        Self { coding, etag: etag.into_boxed_str(), lines_200, head_200 }
    }

    /// Sets the lines of its plain 200 response.
    pub(crate) fn set_lines(&mut self, lines: Rc<[Line]>) {
        self.head_200 = head::render(&lines);
        self.lines_200 = lines;
    }
}
