//! [`Running`]: one part of a page while the page is rendered.
//!
//! Owned by the page. Invariants: output is taken in order and once; of a part with a replacement
//! either all output or none is taken, so that a page never contains half a part.

use super::failure::Failure;
use super::file_part::{FilePart, WHOLE_MAX_BYTES};
use crate::response_head::ResponseHead;
use crate::script::Lease;
use crate::upstream_body::UpstreamBody;
use outboard_buffer::Held;
use outboard_log::Reason;
use outboard_php_pool::exchange::{End, Exchange};
use outboard_upstream::Kind;

/// The state of a part after its output was taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is no more output yet; the task is woken when there is.
    Pending,
    /// All output was taken.
    Over,
    /// It will not be complete. If it has a replacement, no output was taken.
    Failed(Failure),
}

/// One part.
#[derive(Debug)]
pub(super) enum Running {
    /// It has not started.
    Waiting,
    /// A text of the configuration.
    Text(Vec<u8>),
    /// A file of the app.
    File(FilePart),
    /// All output was taken, or the part is skipped.
    Over,
    /// A script of the app.
    Script(Box<ScriptPart>),
    /// An upstream's response.
    Fetch(UpstreamBody),
    /// It failed to start.
    Failed(Failure),
}

/// A sub-request.
#[derive(Debug)]
pub(super) struct ScriptPart {
    lease: Lease,
    /// Monotonic ms by which it has to be complete.
    pub(super) until_ms: u64,
    head: Option<ResponseHead>,
    body: Vec<u8>,
    /// Counts `body`.
    held: Held,
    end: Option<End>,
    /// Whether the page has the status and headers of this script.
    leads: bool,
}

impl ScriptPart {
    pub(super) fn new(lease: Lease, until_ms: u64, leads: bool, held: Held) -> Self {
        Self { lease, until_ms, head: None, body: Vec::new(), held, end: None, leads }
    }

    /// Receives what the worker has sent. False if there is no head yet.
    fn receive(&mut self) -> Result<bool, Failure> {
        let exchange: &Exchange = self.lease.exchange();
        if let Some(arrived) = exchange.take() {
            if !arrived.head.is_empty() {
                let head = ResponseHead::read(&arrived.head);
                let head = head.map_err(|bad| Failure::new(Reason::BadResponse, bad.text))?;
                self.head = Some(head);
            }
            self.held.grow(arrived.body.len());
            self.body.extend_from_slice(&arrived.body);
            if self.held.account().is_full() {
                self.held.account().refuse();
                return Err(Failure::no_memory());
            }
            self.end = self.end.or(arrived.end);
        }
        match (&self.head, self.end) {
            (_, Some(End::Failed(reason))) => Err(Failure::new(reason, reason.text())),
            (None, Some(End::Complete)) => {
                Err(Failure::new(Reason::BadResponse, "the script sent no response"))
            }
            (head, _) => Ok(head.is_some()),
        }
    }

    /// The head, once it has arrived.
    pub(super) fn poll_head(&mut self) -> Result<Option<&ResponseHead>, Failure> {
        self.receive()?;
        Ok(self.head.as_ref())
    }

    /// Checks that the response of a script after the first can be a part of a page.
    fn check(&self) -> Result<(), Failure> {
        let Some(head) = self.head.as_ref().filter(|_| !self.leads) else { return Ok(()) };
        if (200..300).contains(&head.status) && head.sendfile.is_none() {
            return Ok(());
        }
        let text = format!("the script responded with status {}", head.status);
        Err(Failure::new(Reason::PartFailed, text))
    }
}

impl Running {
    /// Moves the output so far to `out`; with `whole`, only the complete output.
    pub(super) fn take_output(&mut self, whole: bool, now_ms: u64, out: &mut Vec<u8>) -> Progress {
        match self.try_take(whole, now_ms, out) {
            Ok(true) => Progress::Over,
            Ok(false) => Progress::Pending,
            Err(failure) => Progress::Failed(failure),
        }
    }

    fn try_take(&mut self, whole: bool, now_ms: u64, out: &mut Vec<u8>) -> Result<bool, Failure> {
        match self {
            Self::Waiting => Ok(false),
            Self::Over => Ok(true),
            Self::Text(bytes) => {
                out.append(bytes);
                Ok(true)
            }
            Self::File(file) => file.try_take(out),
            Self::Failed(failure) => Err(failure.clone()),
            Self::Script(script) => {
                let has_head = script.receive()?;
                script.check()?;
                let over = script.end == Some(End::Complete);
                if has_head && (over || !whole) {
                    out.append(&mut script.body);
                    script.held.set(0);
                }
                if script.body.len() > WHOLE_MAX_BYTES {
                    let text = "the script's output is larger than 16 MiB";
                    return Err(Failure::new(Reason::PartFailed, text));
                }
                if !over && now_ms >= script.until_ms {
                    let text = "the script took longer than the part's timeout";
                    return Err(Failure::new(Reason::PartTimeout, text));
                }
                Ok(over)
            }
            Self::Fetch(fetching) => take_fetched(fetching, whole, out),
        }
    }

    /// The deadline of a script; a fetch has its own.
    pub(super) fn until_ms(&self) -> u64 {
        match self {
            Self::Script(script) => script.until_ms,
            _ => u64::MAX,
        }
    }
}

fn take_fetched(fetching: &UpstreamBody, whole: bool, out: &mut Vec<u8>) -> Result<bool, Failure> {
    let status = fetching.status();
    if status != 0 && !(200..300).contains(&status) {
        let text = format!("the upstream responded with status {status}");
        return Err(Failure::new(Reason::UpstreamFailed, text));
    }
    let outcome = fetching.outcome();
    if let Some(Err(error)) = outcome {
        let reason = match error.kind {
            Kind::Timeout => Reason::UpstreamTimeout,
            Kind::Busy => Reason::UpstreamBusy,
            _ => Reason::UpstreamFailed,
        };
        return Err(Failure::new(reason, error.message));
    }
    let over = outcome.is_some();
    if over || !whole {
        fetching.take(out);
    }
    Ok(over)
}

#[cfg(test)]
mod tests;
