//! Sizes, durations and percentages.
//!
//! Size units are powers of 1024 however they are spelled, as nginx and php.ini read them.

use super::kind::{Fault, Scalar, Written};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

/// A span of time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period(pub(crate) u64);

/// A part of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) u32);

/// Sizes and times stay below 2^53, so that every number survives JSON and sums cannot overflow.
const LARGEST: u64 = 1 << 53;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Scalar for ByteSize {
    const NAME: &'static str = "size";
    const EXPECTED: &'static str = "a size such as \"64 MiB\", \"8k\" or a number of bytes";
    const TYPES: &'static [&'static str] = &["string", "integer"];

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        match written {
            Written::Integer(bytes) => bounded(u64::try_from(bytes).ok()).map(ByteSize),
            Written::Text(text) => {
                let (number, unit) = split(text).ok_or_else(Self::unexpected)?;
                let scale = match unit.to_ascii_lowercase().as_str() {
                    "" | "b" => 1,
                    "k" | "kb" | "kib" => KIB,
                    "m" | "mb" | "mib" => MIB,
                    "g" | "gb" | "gib" => GIB,
                    _ => return Err(unknown_unit(unit, "B, KiB, MiB and GiB (or k, m, g)")),
                };
                bounded(number.checked_mul(scale)).map(ByteSize)
            }
            _ => Err(Self::unexpected()),
        }
    }

    fn write(&self) -> String {
        match self.0 {
            0 => "0".to_owned(),
            n if n.is_multiple_of(GIB) => format!("{} GiB", n / GIB),
            n if n.is_multiple_of(MIB) => format!("{} MiB", n / MIB),
            n if n.is_multiple_of(KIB) => format!("{} KiB", n / KIB),
            n => format!("{n} B"),
        }
    }

    fn magnitude(&self) -> Option<u64> {
        Some(self.0)
    }
}

impl Scalar for Period {
    const NAME: &'static str = "duration";
    const EXPECTED: &'static str =
        "a duration such as \"30s\", \"500ms\", \"1m\" or a number of seconds";
    const TYPES: &'static [&'static str] = &["string", "integer"];

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        match written {
            Written::Integer(s) => {
                bounded(u64::try_from(s).ok().and_then(|s| s.checked_mul(1000))).map(Period)
            }
            Written::Text(text) => {
                let (number, unit) = split(text).ok_or_else(Self::unexpected)?;
                let scale_ms = match unit {
                    "ms" => 1,
                    "" | "s" => 1000,
                    "m" | "min" => 60_000,
                    "h" => 3_600_000,
                    "d" => 86_400_000,
                    _ => return Err(unknown_unit(unit, "ms, s, m, h and d")),
                };
                bounded(number.checked_mul(scale_ms)).map(Period)
            }
            _ => Err(Self::unexpected()),
        }
    }

    fn write(&self) -> String {
        match self.0 {
            n if n == 0 || !n.is_multiple_of(1000) => format!("{n}ms"),
            n if n.is_multiple_of(3_600_000) => format!("{}h", n / 3_600_000),
            n if n.is_multiple_of(60_000) && n > 60_000 => format!("{}m", n / 60_000),
            n => format!("{}s", n / 1000),
        }
    }

    fn magnitude(&self) -> Option<u64> {
        Some(self.0)
    }
}

impl Scalar for Percent {
    const NAME: &'static str = "percentage";
    const EXPECTED: &'static str = "a percentage such as \"10%\"";
    const TYPES: &'static [&'static str] = &["string", "integer"];

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let number = match written {
            Written::Integer(number) => u64::try_from(number).ok(),
            Written::Text(text) => match split(text) {
                Some((number, "%" | "")) => Some(number),
                _ => None,
            },
            _ => None,
        };
        let number = number.ok_or_else(Self::unexpected)?;
        match u32::try_from(number) {
            Ok(percent) if percent <= 100 => Ok(Percent(percent)),
            _ => Err(Fault::new(format!("{number}% is more than 100%"))),
        }
    }

    fn write(&self) -> String {
        format!("{}%", self.0)
    }

    fn magnitude(&self) -> Option<u64> {
        Some(self.0.into())
    }
}

/// `"64 MiB"` becomes `(64, "MiB")`. Underscores may group digits, as in TOML.
fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim_start()))
}

fn bounded(value: Option<u64>) -> Result<u64, Fault> {
    value
        .filter(|value| *value <= LARGEST)
        .ok_or_else(|| Fault::new("the number is negative or too large"))
}

fn unknown_unit(unit: &str, known: &str) -> Fault {
    Fault::new(format!("unknown unit `{unit}`")).hint(format!("the units are {known}"))
}
