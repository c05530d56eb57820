use super::*;
use crate::disk::FullDisk;

fn expand(text: &str) -> Result<Expanded, Unexpanded> {
    let variable = |name: &str| match name {
        "PORT" => Some("8081".into()),
        "EMPTY" => Some(String::new().into()),
        "DB_PASSWORD" => Some("hunter2".into()),
        _ => None,
    };
    Expansion { disk: &FullDisk, directory: Path::new("/srv"), variable: &variable }.expand(text)
}

fn text(written: &str) -> String {
    expand(written).unwrap_or_else(|error| panic!("{}", error.fault.message)).text
}

#[test]
fn variables_and_defaults_are_inserted() {
    assert_eq!(text("127.0.0.1:${PORT}/x"), "127.0.0.1:8081/x");
    assert_eq!(text("${NONE:-a b}${EMPTY:-c}${EMPTY}${PORT:-d}"), "a bc8081");
    assert_eq!(text("${NONE:-}"), "");
}

#[test]
fn a_doubled_dollar_sign_is_an_escape_before_a_brace_only() {
    assert_eq!(text("$${PORT}"), "${PORT}");
    assert_eq!(text("$$ and $1 ${PORT}"), "$$ and $1 8081");
}

#[test]
fn a_variable_that_is_not_set_is_an_error_with_a_hint() {
    let fault = expand("${NONE}").unwrap_err().fault;
    assert!(fault.message.contains("`NONE` is not set"), "{}", fault.message);
    assert_eq!(fault.hint.unwrap(), "set it, or write a default: `${NONE:-value}`");
}

#[test]
fn what_is_not_a_variable_is_an_error() {
    for bad in ["${", "${PORT", "${}", "${1}", "${A B}", "${:-x}", "${ÄH}", "${file}"] {
        assert!(expand(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_file_loses_its_last_newline_and_becomes_a_secret() {
    let found = expand("redis://:${file:secrets/redis.txt}@a").unwrap();
    assert_eq!(found.text, "redis://:content of redis.txt@a");
    assert_eq!(found.secrets, ["content of redis.txt"]);
    assert_eq!(found.sources, [ValueSource::File("/srv/secrets/redis.txt".into())]);
}

#[test]
fn a_variable_that_is_named_like_a_secret_is_one() {
    assert_eq!(expand("${DB_PASSWORD}${PORT}").unwrap().secrets, ["hunter2"]);
}
