//! Header lines. [`crate::Entry`] makes those of its plain 200 answer once, when the file is opened;
//! [`crate::plan`] makes the others per answer.

use std::ops::Deref;
use std::rc::Rc;

/// A header line: its name, and a value without control characters.
pub(crate) type Line = (&'static str, Vec<u8>);

/// Header lines, read as a slice of names and values. Shared ones cost nothing to take along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Headers {
    /// Made when the file was opened.
    Shared {
        /// The lines.
        lines: Rc<[(&'static str, Vec<u8>)]>,
        /// The same as they go on the wire, each ended by CRLF.
        rendered: Rc<[u8]>,
    },
    /// Made for this answer.
    Own(Vec<(&'static str, Vec<u8>)>),
}

impl Deref for Headers {
    type Target = [(&'static str, Vec<u8>)];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Shared { lines, .. } => lines,
            Self::Own(lines) => lines,
        }
    }
}

/// Header lines under construction.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<Line>);

impl Lines {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    pub(crate) fn with_some(self, name: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    pub(crate) fn into_headers(self) -> Headers {
        Headers::Own(self.0)
    }

    pub(crate) fn into_shared(self) -> Rc<[Line]> {
        self.0.into()
    }
}

/// The lines as they go on the wire, each ended by CRLF.
pub(crate) fn render(lines: &[Line]) -> Rc<[u8]> {
    let mut bytes = Vec::new();
    for (name, value) in lines {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.into()
}

/// Whether the bytes may stand in a header value: nothing that could end the line.
pub(crate) fn is_value(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}
