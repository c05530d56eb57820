//! Numbers and memory sizes that can be `"auto"`.

use super::kind::{Fault, Scalar, Written};
use super::quantity::{ByteSize, Percent};

/// A number or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// The server decides.
    Auto,
    /// This number.
    Fixed(u32),
}

/// A memory limit of a pool or of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBudget {
    /// The server decides, based on the memory of the machine or its cgroup.
    Auto,
    /// This number of bytes.
    Bytes(u64),
    /// This percentage of the memory of the machine or its cgroup: 1 to 100.
    Percent(u32),
}

impl Scalar for Count {
    const NAME: &'static str = "number or \"auto\"";
    const EXPECTED: &'static str = "a number or \"auto\"";
    const TYPES: &'static [&'static str] = &["integer", "string"];

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        match written {
            Written::Text("auto") => Ok(Count::Auto),
            Written::Integer(number) => u32::try_from(number)
                .map(Count::Fixed)
                .map_err(|_| Fault::new(format!("{number} is negative or too large"))),
            _ => Err(Self::unexpected()),
        }
    }

    fn write(&self) -> String {
        match self {
            Count::Auto => "auto".to_owned(),
            Count::Fixed(number) => number.to_string(),
        }
    }

    fn magnitude(&self) -> Option<u64> {
        match self {
            Count::Auto => None,
            Count::Fixed(number) => Some((*number).into()),
        }
    }
}

impl Scalar for MemoryBudget {
    const NAME: &'static str = "size, percentage or \"auto\"";
    const EXPECTED: &'static str =
        "\"auto\", a size such as \"512 MiB\" or a share such as \"50%\"";
    const TYPES: &'static [&'static str] = &["string", "integer"];

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        match written {
            Written::Text("auto") => Ok(MemoryBudget::Auto),
            Written::Text(text) if text.trim_end().ends_with('%') => {
                match Percent::read(written)? {
                    Percent(0) => Err(Fault::new("0% is not enough memory")),
                    Percent(percent) => Ok(MemoryBudget::Percent(percent)),
                }
            }
            Written::Text(text) if !text.starts_with(|c: char| c.is_ascii_digit()) => {
                Err(Self::unexpected())
            }
            _ => match ByteSize::read(written)? {
                ByteSize(bytes) if bytes < 16 << 20 => {
                    Err(Fault::new("at least 16 MiB are required"))
                }
                ByteSize(bytes) => Ok(MemoryBudget::Bytes(bytes)),
            },
        }
    }

    fn write(&self) -> String {
        match self {
            MemoryBudget::Auto => "auto".to_owned(),
            MemoryBudget::Bytes(bytes) => ByteSize(*bytes).write(),
            MemoryBudget::Percent(percent) => Percent(*percent).write(),
        }
    }
}
