//! Header lines. [`crate::Entry`] renders those of a plain 200 response once, when the file is opened;
//! [`crate::plan`] renders the others for each response.

use std::ops::Deref;
use std::rc::Rc;

/// A header line: its name, and a value without control characters.
pub(crate) type Line = (&'static str, Vec<u8>);

/// Header lines as a slice of names and values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Headers {
    /// Rendered when the file was opened.
    Shared {
        /// The lines.
        lines: Rc<[(&'static str, Vec<u8>)]>,
        /// The lines in wire format, each ended by CRLF.
        rendered: Rc<[u8]>,
    },
    /// Rendered for this response.
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

/// The lines in wire format, each ended by CRLF.
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

/// Whether the bytes are a header value, without a control byte that could end the line.
pub(crate) fn is_value(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}
