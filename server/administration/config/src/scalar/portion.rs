//! A small share: `"0.1%"`.

use super::kind::{Fault, Scalar, Written};

/// A share in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portion(pub(crate) u32);

/// Millionths in a percent.
const PERCENT: f64 = 10_000.0;

impl Scalar for Portion {
    const NAME: &'static str = "share";
    const EXPECTED: &'static str = "a share such as \"0.1%\", or 0";
    const TYPES: &'static [&'static str] = &["string", "integer"];

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let percent = match written {
            Written::Integer(0) => Some(0.0),
            Written::Text(text) => {
                text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok())
            }
            _ => None,
        };
        let percent = percent.filter(|number| number.is_finite()).ok_or_else(Self::unexpected)?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(Fault::new(format!("{percent}% is not between 0% and 100%")));
        }
        Ok(Self((percent * PERCENT).round() as u32))
    }

    fn write(&self) -> String {
        format!("{}%", f64::from(self.0) / PERCENT)
    }

    fn magnitude(&self) -> Option<u64> {
        Some(self.0.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_in_percent_and_written_as_they_are_read() {
        for (text, millionths) in [("0.1%", 1_000), ("100%", 1_000_000), ("0%", 0), ("0.0001 %", 1)]
        {
            let read = Portion::read(Written::Text(text)).unwrap();
            assert_eq!(read, Portion(millionths), "{text}");
            assert_eq!(Portion::read(Written::Text(&read.write())).unwrap(), read);
        }
        for text in ["0.1", "101%", "-1%", "x%", "nan%", "%"] {
            assert!(Portion::read(Written::Text(text)).is_err(), "{text}");
        }
    }
}
