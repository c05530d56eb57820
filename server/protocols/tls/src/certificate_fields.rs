//! [`Fields`]: fields of a certificate (RFC 5280 4.1), and their times.
//!
//! Read from certificates of clients and of the server, which webpki has parsed. Invariant: any input ends
//! in fields or `None`.

use crate::der::{self, Der, Value};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) serial: &'a [u8],
    pub(crate) issuer: &'a [u8],
    pub(crate) not_before: Value<'a>,
    pub(crate) not_after: Value<'a>,
    pub(crate) subject: &'a [u8],
    /// What follows the subject: the public key, and the extensions.
    rest: Der<'a>,
}

/// Digits of a time, without the century if the encoding has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time<'a> {
    pub(crate) year: u32,
    pub(crate) month: u32,
    pub(crate) day: u32,
    /// `203630`.
    pub(crate) clock: &'a str,
}

impl<'a> Fields<'a> {
    pub(crate) fn read(certificate: &'a [u8]) -> Option<Self> {
        let mut fields = Der(certificate).enter(der::SEQUENCE)?.enter(der::SEQUENCE)?;
        const VERSION: u8 = 0xa0;
        fields.skip_optional(VERSION);
        let serial = fields.expect(der::INTEGER)?;
        let _signature = fields.expect(der::SEQUENCE)?;
        let issuer = fields.expect(der::SEQUENCE)?;
        let mut validity = fields.enter(der::SEQUENCE)?;
        let (not_before, not_after) = (validity.next()?, validity.next()?);
        let subject = fields.expect(der::SEQUENCE)?;
        Some(Self { serial, issuer, not_before, not_after, subject, rest: fields })
    }

    /// The identifier of the authority's key (RFC 5280 4.2.1.1).
    pub(crate) fn authority_key(&self) -> Option<&'a [u8]> {
        const EXTENSIONS: u8 = 0xa3;
        const AUTHORITY_KEY_IDENTIFIER: [u8; 3] = [0x55, 29, 35];
        const KEY_IDENTIFIER: u8 = 0x80;
        let extensions = { self.rest }.find(|value| value.tag == EXTENSIONS)?;
        let mut all = Der(extensions.content).enter(der::SEQUENCE)?;
        let found = all.find_map(|extension| {
            let mut parts = Der(extension.content);
            let is_it = parts.expect(der::OBJECT_IDENTIFIER)? == AUTHORITY_KEY_IDENTIFIER;
            // A boolean before the value states whether the extension is critical.
            parts.filter(|_| is_it).find(|part| part.tag == der::OCTET_STRING)
        })?;
        Der(found.content).enter(der::SEQUENCE)?.expect(KEY_IDENTIFIER)
    }
}

impl<'a> Time<'a> {
    /// Reads a time (RFC 5280 4.1.2.5).
    pub(crate) fn read(value: Value<'a>) -> Option<Self> {
        let digits = std::str::from_utf8(value.content).ok()?.strip_suffix('Z')?;
        let (year_digits, digits_of_all) = match value.tag {
            der::UTC_TIME => (2, 12),
            der::GENERALIZED_TIME => (4, 14),
            _ => return None,
        };
        if digits.len() != digits_of_all || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (year, rest) = digits.split_at(year_digits);
        let year: u32 = year.parse().ok()?;
        let year = match year_digits {
            2 if year < 50 => 2000 + year,
            2 => 1900 + year,
            _ => year,
        };
        let (month, day) = (rest[..2].parse().ok()?, rest[2..4].parse().ok()?);
        Some(Self { year, month, day, clock: &rest[4..] })
    }

    /// Seconds since 1970; 0 before.
    pub(crate) fn unix_s(self) -> u64 {
        let digits = |at: usize| self.clock[at..at + 2].parse::<u64>().unwrap_or_default();
        // The days from March 1st of the year 0 on, so that a leap day is the last of its year.
        let (year, month) = match self.month {
            ..3 => (u64::from(self.year.saturating_sub(1)), u64::from(self.month) + 9),
            month => (u64::from(self.year), u64::from(month) - 3),
        };
        let leap_days = year / 4 - year / 100 + year / 400;
        let days = year * 365 + leap_days + (month * 153 + 2) / 5 + u64::from(self.day);
        const DAYS_TO_1970: u64 = 719_469;
        let seconds = digits(0) * 3600 + digits(2) * 60 + digits(4);
        days.checked_sub(DAYS_TO_1970).map_or(0, |days| days * 86_400 + seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        let unix_s = |tag, text: &str| {
            Time::read(Value { tag, content: text.as_bytes(), whole: &[] }).map(Time::unix_s)
        };
        assert_eq!(unix_s(der::UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(unix_s(der::UTC_TIME, "261103203630Z"), Some(1_793_738_190));
        assert_eq!(unix_s(der::GENERALIZED_TIME, "20240229235959Z"), Some(1_709_251_199));
        assert_eq!(unix_s(der::GENERALIZED_TIME, "21000301000000Z"), Some(4_107_542_400));
        assert_eq!(unix_s(der::GENERALIZED_TIME, "19500101000000Z"), Some(0));
        for invalid in ["261103203630", "2611032036Z", "26110320363xZ", ""] {
            assert_eq!(unix_s(der::UTC_TIME, invalid), None, "{invalid}");
        }
    }
}
