//! The loop that reads a head line by line, for requests and responses.
//!
//! Called by `request` and `response`, which supply the start line and the meaning of fields
//! through [`Head`]. Invariant: errors occur in the order of the bytes, so the split of a head
//! does not change its error.

use crate::error::HeadError;
use crate::field::{self, FieldLine, FieldTable};
use crate::framing::{Framing, KnownField};
use crate::head::{HeadLimits, HeadStatus, Progress, Span, Stage, Step};

/// The common state of heads.
#[derive(Debug, Default)]
pub(crate) struct HeadParts {
    pub(crate) progress: Progress,
    pub(crate) fields: FieldTable,
    pub(crate) framing: Framing,
}

impl HeadParts {
    /// Resets everything except the memory of the field table.
    pub(crate) fn reset(&mut self) {
        self.progress = Progress::default();
        self.fields.clear();
        self.framing = Framing::default();
    }
}

/// The differences between request and response heads.
pub(crate) trait Head {
    fn parts(&mut self) -> &mut HeadParts;

    /// Reads a line before the fields; calls [`Progress::start_fields`] after the start line.
    fn read_start(&mut self, visible: &[u8]) -> Result<Step<()>, HeadError>;

    /// Interprets a field that is specific to this kind of head.
    fn note(&mut self, field: KnownField, value: Span, buf: &[u8]) -> Result<(), HeadError>;

    /// Checks the rules between the parts of the head.
    fn finish(&mut self, buf: &[u8]) -> Result<(), HeadError>;

    /// Resets everything except memory.
    fn reset(&mut self);
}

/// Reads as much of `head` as `buf` contains.
pub(crate) fn parse<H: Head>(
    head: &mut H,
    buf: &[u8],
    limits: &HeadLimits,
) -> Result<HeadStatus, HeadError> {
    if head.parts().progress.stage == Stage::Complete {
        head.reset();
    }
    if !head.parts().progress.worth_reading(buf, limits) {
        return Ok(HeadStatus::Partial);
    }
    let result = read_lines(head, buf, limits);
    if result.is_err() {
        head.reset();
    }
    result
}

fn read_lines<H: Head>(
    head: &mut H,
    buf: &[u8],
    limits: &HeadLimits,
) -> Result<HeadStatus, HeadError> {
    while head.parts().progress.stage == Stage::StartLine {
        let visible = head.parts().progress.visible(buf, limits);
        if let Step::NeedMore = head.read_start(visible)? {
            return pause(head, buf, limits, HeadError::RequestLineTooLong);
        }
    }
    let visible = head.parts().progress.visible(buf, limits);
    loop {
        match field::read_field_line(visible, head.parts().progress.next) {
            Ok(Step::Line(FieldLine::Field { name, value, next })) => {
                head.parts().fields.push(name, value, limits.header_count)?;
                note(head, name, value, visible)?;
                head.parts().progress.next = next;
            }
            Ok(Step::Line(FieldLine::End { next })) => {
                head.finish(visible)?;
                head.parts().progress.stage = Stage::Complete;
                return Ok(HeadStatus::Complete { head_len: next });
            }
            Ok(Step::NeedMore) => return pause(head, buf, limits, HeadError::HeadersTooLong),
            Err(HeadError::ObsFold) if head.parts().fields.len() == 0 => {
                return Err(HeadError::WhitespaceBeforeHeaders);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Interprets a field; most are ignored.
fn note<H: Head>(head: &mut H, name: Span, value: Span, buf: &[u8]) -> Result<(), HeadError> {
    let Some(known) = KnownField::of(name.of(buf)) else {
        return Ok(());
    };
    let framing = &mut head.parts().framing;
    match known {
        KnownField::Connection => framing.note_connection(value.of(buf)),
        KnownField::ContentLength => framing.note_content_length(value.of(buf))?,
        KnownField::TransferEncoding => framing.note_transfer_encoding(value.of(buf))?,
        KnownField::Host | KnownField::Expect | KnownField::Cookie | KnownField::Upgrade => {
            head.note(known, value, buf)?;
        }
    }
    Ok(())
}

/// Waits for the rest of an incomplete line, unless it has reached its limit.
fn pause<H: Head>(
    head: &mut H,
    buf: &[u8],
    limits: &HeadLimits,
    too_long: HeadError,
) -> Result<HeadStatus, HeadError> {
    if head.parts().progress.may_continue(buf, limits) {
        Ok(HeadStatus::Partial)
    } else {
        Err(too_long)
    }
}
