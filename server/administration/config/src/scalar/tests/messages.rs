//! What a user reads about an invalid value: the error, and what to write instead.

use super::*;

/// The error of a format, as `message / hint`.
fn fault_of(name: &str, written: Written<'_>) -> String {
    let format = FORMATS.iter().find(|format| format.name == name);
    let format = format.unwrap_or_else(|| panic!("there is no format {name}"));
    let fault = (format.inspect)(written).map(|_| ()).expect_err(name);
    format!("{} / {}", fault.message, fault.hint.unwrap_or_default())
}

#[test]
fn an_invalid_text_is_explained() {
    for (name, text, expected) in [
        ("size", "5 TiB", "unknown unit `TiB` / write \"5120 GiB\""),
        ("size", "99999999 GiB", "the number is negative or too large / "),
        ("duration", "5 weeks", "unknown unit `weeks` / write \"840h\""),
        (
            "duration",
            "soon",
            "expected a duration such as \"30s\", \"500ms\", \"1m\" or a number of seconds / ",
        ),
        ("percentage", "101%", "101% is more than 100% / "),
        ("percentage", "5‰", "expected a percentage such as \"10%\" / "),
        ("rate", "0/s", "a rate of 0 admits no request / use `deny` to refuse clients"),
        ("rate", "1/2d", "the period is at most a day, the count at most 1000000000 / "),
        ("share", "100.1%", "100.1% is not between 0% and 100% / "),
        ("size, percentage or \"auto\"", "0%", "0% is not enough memory / "),
        ("size, percentage or \"auto\"", "1 MiB", "at least 16 MiB are required / "),
        (
            "address",
            "8080",
            "`8080` is not an address / write \"127.0.0.1:8080\" for local connections, \"0.0.0.0:8080\" for all",
        ),
        ("address", "::1", "`::1` is not an address / the port is missing: \"[::1]:8080\""),
        (
            "address",
            "localhost:http",
            "`localhost:http` is not an address / `http` is not a port (0 to 65535)",
        ),
        (
            "address",
            "a.test:80",
            "`a.test:80` is not an address / write \"0.0.0.0:80\"; a name is for `hosts` of an app: hosts = [\"a.test\"]",
        ),
        (
            "address",
            "/run/a.sock",
            "`/run/a.sock` is not an address / a Unix socket is written \"unix:/run/a.sock\"",
        ),
        (
            "file mode",
            "0888",
            "expected a file mode such as \"0660\" or 0o660 / octal, at most \"0777\"",
        ),
        (
            "file mode",
            "1777",
            "expected a file mode such as \"0660\" or 0o660 / octal, at most \"0777\"",
        ),
        (
            "network",
            "10.0.0.0/8/8",
            "`10.0.0.0/8/8` is not a network / a network such as \"10.0.0.0/8\", an IP address, the name of networks or \"unix\"",
        ),
        (
            "host name",
            "http://a.test",
            "`http://a.test` is not a host name / write only the name: \"a.test\"",
        ),
        (
            "host name",
            "a.test:80",
            "`a.test:80` is not a host name / write \"a.test\"; the port belongs to `listen`",
        ),
        (
            "host name",
            "bücher.test",
            "`bücher.test` is not a host name / write an international name in its ASCII form (xn--…)",
        ),
        ("host name", "*", "`*` is not a host name / omit `hosts` to match every host"),
        ("host name", "_", "`_` is not a host name / omit `hosts` to match every host"),
        ("path", "", "the path is empty / "),
        ("path", "a\0b", "a path cannot contain NUL / "),
        ("URL path", "blog", "`blog` is not a URL path / it starts with a slash: \"/blog\""),
        ("URL path", "/a/../b", "`/a/../b` is not a URL path / it must not contain `.` or `..`"),
        ("URL path", "/a#b", "`/a#b` is not a URL path / it must not contain `?` or `#`"),
        (
            "header name",
            "X:",
            "`X:` is not a header name / letters, digits and - _ . ! # $ % & ' * + ^ ` | ~ only",
        ),
        ("header name", "connection", "`connection` is controlled by the server / remove it"),
        (
            "app name",
            "a/b",
            "`a/b` is not an app name / up to 64 letters, digits, - and _; it appears in logs and metrics",
        ),
        (
            "variable name",
            "A=B",
            "`A=B` is not a variable name / it must not be empty or contain `=`",
        ),
        ("ini setting", "memory limit", "`memory limit` is not the name of a php.ini setting / "),
        (
            "status",
            "399",
            "`399` is not an error status / write a status from 400 to 599, or \"4xx\" or \"5xx\"",
        ),
        ("response status", "1xx", "`1xx` is not the status of a response / \"200\" or \"2xx\""),
        ("file extension", "..php", "`..php` is not a file extension / "),
        (
            "file name",
            "a/index.php",
            "`a/index.php` is not a file name / write only the name, without a directory",
        ),
        ("PHP version", "8", "`8` is not a version of PHP / write the first two numbers: \"8.2\""),
        (
            "PHP version",
            "8.2.1",
            "`8.2.1` is not a version of PHP / write the first two numbers: \"8.2\"",
        ),
        (
            "prefetch name",
            "a-b",
            "`a-b` is not a prefetch name / up to 64 letters, digits and _; it becomes part of a variable's name",
        ),
        ("string", "a\0", "the string cannot contain NUL / "),
    ] {
        assert_eq!(fault_of(name, Written::Text(text)), expected, "{name}: {text}");
    }
}

#[test]
fn a_number_out_of_its_range_is_explained() {
    for (name, number, expected) in [
        ("size", -1, "the number is negative or too large / "),
        ("size", i64::MAX, "the number is negative or too large / "),
        ("duration", i64::MAX, "the number is negative or too large / "),
        ("percentage", 101, "101% is more than 100% / "),
        ("percentage", i64::MAX, "9223372036854775807% is more than 100% / "),
        ("number or \"auto\"", -1, "-1 is negative or too large / "),
        ("number or \"auto\"", 1 << 32, "4294967296 is negative or too large / "),
        (
            "file mode",
            0o1000,
            "expected a file mode such as \"0660\" or 0o660 / octal, at most \"0777\"",
        ),
        ("share", 1, "expected a share such as \"0.1%\", or 0 / "),
    ] {
        assert_eq!(fault_of(name, Written::Integer(number)), expected, "{name}: {number}");
    }
}

#[test]
fn a_network_with_bits_beyond_its_address_is_explained() {
    for text in ["10.0.0.0/33", "::/129"] {
        let words = fault_of("network", Written::Text(text));
        assert!(words.starts_with(&format!("`{text}` is not a network / ")), "{words}");
        let bits = if text.contains(':') { "128" } else { "32" };
        assert!(words.contains(bits), "{words}");
    }
}
