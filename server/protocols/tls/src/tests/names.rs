//! Distinguished names, times and encodings of any bytes.

use crate::certificate_fields::{Fields, Time};
use crate::client_certificate;
use crate::der::{self, Der, Value};
use crate::distinguished_name::text;
use proptest::prelude::*;

const OIDS: [&[u8]; 4] = [&[0x55, 4, 3], &[0x55, 4, 10], &[0x55, 4, 99], &[0x2a, 0x86, 0x48, 1]];

fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x82][..], &length, content].concat()
}

/// A name of relative names, each of which has attributes: the place of an identifier, and a string.
fn name(relative: &[Vec<(usize, String)>]) -> Vec<u8> {
    let attribute = |(oid, string): &(usize, String)| {
        let oid = value(der::OBJECT_IDENTIFIER, OIDS[*oid]);
        value(der::SEQUENCE, &[oid, value(der::UTF8_STRING, string.as_bytes())].concat())
    };
    let set = |attributes: &Vec<(usize, String)>| {
        value(der::SET, &attributes.iter().flat_map(attribute).collect::<Vec<_>>())
    };
    relative.iter().flat_map(set).collect()
}

fn names() -> impl Strategy<Value = Vec<Vec<(usize, String)>>> {
    let string = prop_oneof!["[ab,+=\\\\ #\"]{0,3}", any::<String>()];
    let attributes = proptest::collection::vec((0..OIDS.len(), string), 1..3);
    proptest::collection::vec(attributes, 0..3)
}

#[test]
fn times_outside_of_the_calendar_do_not_fail() {
    let unix_s = |text: &str| {
        let value = Value { tag: der::GENERALIZED_TIME, content: text.as_bytes(), whole: &[] };
        Time::read(value).map(Time::unix_s)
    };
    assert_eq!(unix_s("99991231235959Z"), Some(253_402_300_799));
    assert_eq!(unix_s("00000000000000Z"), Some(0));
    assert_eq!(unix_s("19691231235959Z"), Some(0));
    assert_eq!(unix_s("19700101000001Z"), Some(1));
    assert!(unix_s("99999999999999Z").is_some());
    for invalid in ["2024022923595Z", "+0240229235959Z", "20240229235959", "20240229 35959Z"] {
        assert_eq!(unix_s(invalid), None, "{invalid}");
    }
}

#[test]
fn each_day_of_four_centuries_is_one_day_after_the_other() {
    let is_leap = |year: u32| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut expected_s = 0;
    for year in 1970..2401 {
        let february = if is_leap(year) { 29 } else { 28 };
        let days = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, days) in (1..).zip(days) {
            for day in 1..=days {
                let time = Time { year, month, day, clock: "000000" };
                assert_eq!(time.unix_s(), expected_s, "{year}-{month}-{day}");
                expected_s += 86_400;
            }
        }
    }
}

proptest! {
    #[test]
    fn different_names_have_different_texts(first in names(), second in names()) {
        let (one, other) = (text(&name(&first)).unwrap(), text(&name(&second)).unwrap());
        prop_assert_eq!(one == other, first == second, "{} {}", one, other);
        prop_assert!(!one.chars().any(char::is_control), "{}", one);
    }

    #[test]
    fn any_bytes_have_a_text_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let without_control = |text: String| !text.chars().any(char::is_control);
        prop_assert!(text(&bytes).is_none_or(without_control));
        prop_assert!(text(&value(der::SET, &bytes)).is_none_or(without_control));
    }

    #[test]
    fn values_follow_each_other_without_a_gap(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut rest = &bytes[..];
        for value in Der(&bytes) {
            prop_assert!(rest.starts_with(value.whole));
            prop_assert!(value.whole.ends_with(value.content));
            prop_assert_eq!(value.whole[0], value.tag);
            rest = &rest[value.whole.len()..];
        }
        prop_assert_eq!(Der(rest).next(), None);
    }

    #[test]
    fn a_damaged_certificate_is_read_without_panic(
        cut in 0..2000_usize, at in 0..2000_usize, byte in any::<u8>(),
    ) {
        let mut certificate = CERTIFICATE.with(Clone::clone);
        let at = at % certificate.len();
        certificate[at] = byte;
        certificate.truncate(cut.max(1));
        let fields = Fields::read(&certificate);
        let _ = fields.map(|fields| fields.authority_key());
        let variables = client_certificate::variables(&certificate);
        prop_assert!(variables.len() >= 2, "its text and its fingerprint");
        for (name, value) in variables {
            let is_plain = |text: &str| !text.chars().any(char::is_control);
            prop_assert!(name == "SSL_CLIENT_CERT" || is_plain(&value), "{}", name);
        }
    }
}

thread_local! {
    static CERTIFICATE: Vec<u8> = {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["a.test".to_owned()]).unwrap();
        params.use_authority_key_identifier_extension = true;
        params.self_signed(&key).unwrap().der().to_vec()
    };
}
