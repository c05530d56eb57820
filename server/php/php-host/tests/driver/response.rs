//! A response, assembled from a worker's frames.

use outboard_ring::frame::FrameKind;
use outboard_ring::response::{Done, LogLine, Outcome, ResponseHead};

/// Everything that a worker sent for one request.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub reason: String,
    pub lines: Vec<String>,
    pub body: Vec<u8>,
    pub logs: Vec<(u8, String)>,
    pub flushes: usize,
    /// Whether the response was completed before the script ended.
    pub ended: bool,
    pub done: Done,
}

impl Response {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn log_text(&self) -> String {
        self.logs.iter().map(|(_, text)| format!("{text}\n")).collect()
    }

    pub fn line(&self, name: &str) -> Option<&str> {
        let prefix = format!("{}:", name.to_lowercase());
        let line = self.lines.iter().find(|line| line.to_lowercase().starts_with(&prefix))?;
        Some(line[prefix.len()..].trim())
    }
}

#[derive(Default)]
pub(super) struct Collected {
    head: Option<(u16, String, Vec<String>)>,
    body: Vec<u8>,
    logs: Vec<(u8, String)>,
    flushes: usize,
    ended: bool,
}

impl Collected {
    pub(super) fn take(&mut self, kind: FrameKind, payload: &[u8]) -> Option<Response> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match kind {
            FrameKind::Head => {
                assert!(self.head.is_none(), "two heads");
                let head = ResponseHead::decode(payload).unwrap();
                let lines = head.lines().map(text).collect();
                self.head = Some((head.status, text(head.reason), lines));
            }
            FrameKind::Body => {
                assert!(self.head.is_some() && !self.ended, "body out of place");
                self.body.extend_from_slice(payload);
            }
            FrameKind::Flush => self.flushes += 1,
            FrameKind::End => self.ended = true,
            FrameKind::Log => {
                let line = LogLine::decode(payload).unwrap();
                self.logs.push((line.severity, text(line.text)));
            }
            FrameKind::Done => return Some(self.response(Done::decode(payload).unwrap())),
            other => panic!("{other:?} within a response"),
        }
        None
    }

    fn response(&mut self, done: Done) -> Response {
        let (status, reason, lines) = self.head.take().unwrap_or_default();
        Response {
            status,
            reason,
            lines,
            body: std::mem::take(&mut self.body),
            logs: std::mem::take(&mut self.logs),
            flushes: self.flushes,
            ended: self.ended,
            done,
        }
    }
}

/// Asserts that the script ran to its end, and returns its output.
pub fn finished(response: &Response) -> String {
    assert_eq!(response.done.outcome, Outcome::Finished, "{response:?}");
    response.text()
}
