//! Formats of the access log.

use super::kind::{Fault, Scalar, Written};
use outboard_log::AccessFormat;

/// The format of a line of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFormat(pub(crate) AccessFormat);

impl Scalar for LogFormat {
    const NAME: &'static str = "log format";
    const EXPECTED: &'static str =
        "\"combined\", \"json\" or fields such as \"{client} {status} {header:Host}\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        AccessFormat::read(text).map(LogFormat).map_err(|error| {
            let fault = Fault::new(format!("the format is not valid: {error}"));
            match text.contains(['$', '%']) {
                true => fault.hint("fields are written {client}, not $remote_addr or %h"),
                false => fault.hint(Self::EXPECTED),
            }
        })
    }

    fn write(&self) -> String {
        self.0.as_str().to_owned()
    }
}
