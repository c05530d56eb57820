//! [`Span`]: an operation of a request.

use crate::ids::SpanId;
use std::borrow::Cow;

/// The part that a span has in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An operation within the program.
    Internal = 1,
    /// A request that was received.
    Server = 2,
    /// A request that was sent.
    Client = 3,
    /// A message that another operation processes.
    Consumer = 5,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(Cow<'static, str>),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// Yes or no.
    Flag(bool),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its id.
    pub id: SpanId,
    /// The span that it is part of.
    pub parent: Option<SpanId>,
    /// Its part in a call.
    pub kind: Kind,
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its start, in microseconds since the epoch.
    pub start_us: u64,
    /// Its end.
    pub end_us: u64,
    /// The status of the response (`http.response.status_code`); 0: none.
    pub status: u16,
    /// What else is known of it.
    pub attributes: Vec<(Cow<'static, str>, Value)>,
    /// Why it failed; empty if that is not known, `None` if it did not fail.
    pub error: Option<Cow<'static, str>>,
}

impl Span {
    /// A span without attributes that did not fail.
    pub fn new(id: SpanId, kind: Kind, name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            id,
            parent: None,
            kind,
            name: name.into(),
            start_us: 0,
            end_us: 0,
            status: 0,
            attributes: Vec::new(),
            error: None,
        }
    }

    /// Sets its time.
    pub fn between(self, start_us: u64, end_us: u64) -> Self {
        Self { start_us, end_us, ..self }
    }

    /// Sets the status of its response; 0: none.
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Adds an attribute.
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.attributes.push((key.into(), value.into()));
        self
    }

    /// The memory that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        let text = |text: &Cow<'static, str>| match text {
            Cow::Borrowed(_) => 0,
            Cow::Owned(text) => text.len(),
        };
        let attributes = self.attributes.iter().map(|(key, value)| {
            let value = if let Value::Text(value) = value { text(value) } else { 0 };
            size_of::<(Cow<'static, str>, Value)>() + text(key) + value
        });
        let own = text(&self.name) + self.error.as_ref().map_or(0, text);
        size_of::<Self>() + own + attributes.sum::<usize>()
    }
}
