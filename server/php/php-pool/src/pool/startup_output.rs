//! [`StartupOutput`]: the end of what a process prints while it starts, which is reported if the start fails.

/// The longest end of the output of a start.
const STARTUP_OUTPUT_BYTES: usize = 2048;

/// The last output of a process while it starts, complete lines or not.
#[derive(Debug, Default)]
pub(super) struct StartupOutput(Vec<u8>);

impl StartupOutput {
    pub(super) fn record(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&bytes[bytes.len().saturating_sub(STARTUP_OUTPUT_BYTES)..]);
        let excess = self.0.len().saturating_sub(STARTUP_OUTPUT_BYTES);
        self.0.drain(..excess);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `failure` with the last lines.
    pub(super) fn explain(&self, failure: &str) -> String {
        let is_cut = self.0.len() == STARTUP_OUTPUT_BYTES;
        let text = self.0.trim_ascii();
        let line = memchr::memchr(b'\n', text).filter(|_| is_cut).unwrap_or(0);
        match String::from_utf8_lossy(&text[line..]).trim() {
            "" => failure.to_owned(),
            last => format!("{failure}: {last}"),
        }
    }
}
