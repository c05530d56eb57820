//! What holds for every kind of value.

use super::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Texts that are hard to read as anything.
const NASTY: [&str; 22] = [
    "",
    " ",
    "\0",
    "\n",
    "%",
    "-",
    "+1",
    "1e400",
    "NaN",
    "/",
    "//",
    "..",
    "unix:",
    ":",
    "[",
    "]",
    "[]",
    "*",
    "é",
    "\u{202e}",
    "(",
    "99999999999999999999999",
];

#[test]
fn no_text_panics_and_every_error_has_words() {
    let long = "a".repeat(10_000);
    let texts = NASTY.into_iter().chain([long.as_str()]);
    for text in texts {
        for format in FORMATS {
            if let Err(fault) = (format.inspect)(Written::Text(text)) {
                assert!(!fault.message.is_empty(), "{}: {text:?}", format.name);
                assert!(
                    fault.hint.is_none_or(|hint| !hint.is_empty()),
                    "{}: {text:?}",
                    format.name
                );
            }
        }
    }
}

#[test]
fn a_value_of_another_type_is_an_error_with_what_is_expected() {
    let mut names = BTreeSet::new();
    let twice = FORMATS.iter().map(|format| format.name).filter(|name| !names.insert(*name));
    assert_eq!(twice.collect::<Vec<_>>(), [Secret::NAME], "a secret is any string");
    for format in FORMATS {
        for other in [Written::Boolean(true), Written::Float(0.5)] {
            if let Err(fault) = (format.inspect)(other) {
                assert!(
                    fault.message.starts_with("expected "),
                    "{}: {}",
                    format.name,
                    fault.message
                );
            }
        }
    }
}

/// Reads, writes and reads again.
fn same<S: Scalar>(texts: &[&str]) {
    for text in texts {
        let read = |text: &str| match S::read(Written::Text(text)) {
            Ok(value) => value,
            Err(fault) => panic!("{} `{text}`: {}", S::NAME, fault.message),
        };
        let (value, written) = (read(text), read(text).write());
        let again = read(&written);
        assert_eq!(again.write(), written, "{} `{text}`", S::NAME);
        assert_eq!(again.magnitude(), value.magnitude(), "{} `{text}`", S::NAME);
    }
}

#[test]
fn what_is_written_is_read_as_the_same() {
    same::<ByteSize>(&["0", "1", "1023", "1k", "1536k", "1 GiB", "8388608 GiB"]);
    same::<Period>(&["0", "1ms", "999ms", "1s", "60s", "61s", "90m", "24h", "7d", "1500ms"]);
    same::<Percent>(&["0%", "100%", "7"]);
    same::<RateText>(&["1/s", "300/min", "7/90s", "1/1ms", "1000000000/d", "5r/m"]);
    same::<Portion>(&["0%", "0.0001%", "33.3333%", "99.9999 %", "100%"]);
    same::<MemoryBudget>(&["auto", "16 MiB", "1%", "100%"]);
    same::<Address>(&["127.0.0.1:0", "[::]:65535", ":80", "*:1", "localhost:1", "unix:a b"]);
    same::<MetricsAt>(&["/metrics", "127.0.0.1:9100", "unix:/run/a"]);
    same::<FileMode>(&["0", "7", "0660", "777"]);
    same::<Peer>(&["unix", "10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1"]);
    same::<HostPattern>(&["A.test.", "*.a.test", "[::1]", "a_b.test", "localhost"]);
    same::<PathPattern>(&["*.sql", "/vendor/", "/a?/**/ü"]);
    same::<Expression>(&["^/a/(.*)$", "(?i)\\.PHP"]);
    same::<IniValue>(&["", "256M", "a b"]);
    same::<FileExtension>(&[".php", "woff2", "tar.gz"]);
    same::<Schedule>(&["every 5m", "0 3 * * *", "*/15 8-18 * * 1-5"]);
}

#[test]
fn a_value_is_a_number_in_json_if_it_is_written_as_one() {
    for (value, expected) in [
        (serde_json::to_value(Count::Fixed(8)), json!(8)),
        (serde_json::to_value(Count::Auto), json!("auto")),
        (serde_json::to_value(FileMode(0o660)), json!("0660")),
        (serde_json::to_value(ByteSize(0)), json!(0)),
        (serde_json::to_value(ByteSize(1 << 20)), json!("1 MiB")),
        (serde_json::to_value(IniValue("007".to_owned())), json!("007")),
        (serde_json::to_value(IniValue("7".to_owned())), json!(7)),
    ] {
        assert_eq!(value.unwrap(), expected);
    }
}

#[test]
fn serde_reads_what_the_format_accepts_and_repeats_its_error() {
    fn read<S: serde::de::DeserializeOwned>(value: Value) -> Result<S, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
    assert_eq!(read(json!("5s")), Ok(Period(5_000)));
    assert_eq!(read(json!(5)), Ok(Period(5_000)));
    assert_eq!(read(json!(true)), Ok(IniValue("1".to_owned())));
    assert_eq!(read(json!(0.5)), Ok(IniValue("0.5".to_owned())));
    let error = read::<Period>(json!("5 weeks")).unwrap_err();
    assert_eq!(error, "unknown unit `weeks`");
    assert!(read::<Period>(json!(u64::MAX)).is_err() && read::<Count>(json!(-1)).is_err());
    let error = read::<Period>(json!([])).unwrap_err();
    assert!(error.contains("expected a duration such as"), "{error}");
}

#[test]
fn the_schema_of_a_value_has_its_types_and_its_format() {
    let schema = |schema: schemars::Schema| schema.to_value();
    assert_eq!(
        schema(schemars::schema_for!(Address)).get("type"),
        Some(&json!("string")),
        "one type is not a list"
    );
    let of_size = schema(schemars::schema_for!(ByteSize));
    assert_eq!(
        (of_size.get("type"), of_size.get("format")),
        (Some(&json!(["string", "integer"])), Some(&json!("size")))
    );
}
