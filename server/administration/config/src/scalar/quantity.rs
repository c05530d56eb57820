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
                    _ => return Err(unknown_unit(text, unit, &SIZES, |n| ByteSize(n).write())),
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
                    _ => return Err(unknown_unit(text, unit, &TIMES, |n| Period(n).write())),
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

/// How people write units, each with its scale; the last entry names those that are accepted.
type Units = [(&'static str, u64)];

const SIZES: [(&str, u64); 6] = [
    ("b byte bytes", 1),
    ("k kb kib kilobyte kilobytes", KIB),
    ("m mb mib megabyte megabytes", MIB),
    ("g gb gib gigabyte gigabytes", GIB),
    ("t tb tib terabyte terabytes", 1 << 40),
    ("B, KiB, MiB and GiB (or k, m, g)", 0),
];

const TIMES: [(&str, u64); 7] = [
    ("ms msec msecs millisecond milliseconds", 1),
    ("s sec secs second seconds", 1000),
    ("m min mins minute minutes", 60_000),
    ("h hr hrs hour hours", 3_600_000),
    ("d day days", 86_400_000),
    ("w week weeks", 604_800_000),
    ("ms, s, m, h and d", 0),
];

/// The error, with the same quantity in a unit that is accepted.
fn unknown_unit(text: &str, unit: &str, units: &Units, write: fn(u64) -> String) -> Fault {
    let known = units.last().map_or("", |(known, _)| known);
    let end = text.find(|c: char| !c.is_ascii_digit() && !"_.".contains(c)).unwrap_or(text.len());
    let (number, spelt) = (text[..end].replace('_', ""), text[end..].trim().to_lowercase());
    let scale = units.iter().find(|(words, _)| words.split(' ').any(|word| word == spelt));
    let count =
        number.parse::<f64>().ok().zip(scale).map(|(number, (_, scale))| number * *scale as f64);
    let fault = Fault::new(match unit.starts_with('.') {
        true => format!("`{text}` is not a whole number"),
        false => format!("unknown unit `{unit}`"),
    });
    fault.hint(match count {
        Some(count) if count.fract() == 0.0 && count <= LARGEST as f64 => {
            format!("write \"{}\"", write(count as u64))
        }
        _ => format!("the units are {known}"),
    })
}
