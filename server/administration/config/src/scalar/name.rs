//! Names and plain strings with a format: paths, header names, variables, app names.

use super::kind::{Fault, Scalar, Written};
use std::ops::Deref;
use std::path::Path;

/// Declares a kind of string: a newtype that accepts what `$check` does not object to.
macro_rules! strings {
    ($($(#[$doc:meta])* $name:ident($label:literal, $expected:literal) = $check:expr;)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
            pub(crate) struct $name(pub(crate) String);

            impl Scalar for $name {
                const NAME: &'static str = $label;
                const EXPECTED: &'static str = $expected;

                fn read(written: Written<'_>) -> Result<Self, Fault> {
                    let Written::Text(text) = written else { return Err(Self::unexpected()) };
                    let check: fn(&str) -> Result<(), Fault> = $check;
                    check(text).map(|()| $name(text.to_owned()))
                }

                fn write(&self) -> String {
                    self.0.clone()
                }
            }
        )+
    };
}

strings! {
    /// A file or directory, relative to the directory of the configuration file.
    FilePath("path", "a path such as \"public\" or \"/srv/app/public\"") = |text| {
        ensure(!text.is_empty(), || Fault::new("the path is empty"))?;
        ensure(!text.contains('\0'), || Fault::new("a path cannot contain NUL"))
    };

    /// The path of a URL, or its beginning.
    UrlPath("URL path", "a URL path such as \"/blog\"") = url_path;

    /// RFC 9110, 5.1: a token.
    HeaderName("header name", "a header name such as \"X-Frame-Options\"") = |text| {
        ensure(is_token(text), || {
            Fault::new(format!("`{text}` is not a header name"))
                .hint("letters, digits and - _ . ! # $ % & ' * + ^ ` | ~ only")
        })?;
        ensure(!FRAMING.iter().any(|name| name.eq_ignore_ascii_case(text)), || {
            Fault::new(format!("`{text}` is controlled by the server"))
                .hint("remove it")
        })
    };

    /// RFC 9110, 5.5: no control characters, in particular no line break.
    HeaderValue("header value", "a string") = |text| {
        ensure(!text.chars().any(|c| c.is_control() && c != '\t'), || {
            Fault::new("a header value cannot contain control characters or line breaks")
        })?;
        ensure(text.trim() == text, || {
            Fault::new("a header value cannot start or end with white space")
        })
    };

    /// The name of an app in logs and metrics.
    AppName("app name", "a name of letters, digits, - and _") = |text| {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        ensure((1..=64).contains(&text.len()) && text.bytes().all(fits), || {
            Fault::new(format!("`{text}` is not an app name"))
                .hint("up to 64 letters, digits, - and _; it appears in logs and metrics")
        })
    };

    /// The name of an environment variable or of an entry in `$_SERVER`.
    EnvName("variable name", "a variable name such as \"APP_ENV\"") = |text| {
        ensure(!text.is_empty() && !text.contains(['=', '\0']), || {
            Fault::new(format!("`{text}` is not a variable name")).hint("it must not be empty or contain `=`")
        })
    };

    /// The name of a php.ini setting.
    IniName("ini setting", "a php.ini setting such as \"memory_limit\"") = |text| {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        ensure(!text.is_empty() && text.bytes().all(fits), || {
            Fault::new(format!("`{text}` is not the name of a php.ini setting"))
        })
    };

    /// A status code or a class of them: `404`, `5xx`.
    StatusClass("status", "an error status such as \"404\" or \"5xx\"") = |text| {
        let class = matches!(text, "4xx" | "5xx");
        let code = text.len() == 3 && text.parse().is_ok_and(|code: u16| (400..600).contains(&code));
        ensure(class || code, || {
            Fault::new(format!("`{text}` is not an error status"))
                .hint("write a status from 400 to 599, or \"4xx\" or \"5xx\"")
        })
    };

    /// A status code or a class of them, of any response: `200`, `3xx`.
    AnyStatus("response status", "a status such as \"200\" or \"2xx\"") = |text| {
        let class = text.strip_suffix("xx").is_some_and(|class| matches!(class, "2" | "3" | "4" | "5"));
        let code = text.len() == 3 && text.parse().is_ok_and(|code: u16| (200..600).contains(&code));
        ensure(class || code, || {
            Fault::new(format!("`{text}` is not the status of a response")).hint("\"200\" or \"2xx\"")
        })
    };

    /// The end of a file's name, with or without its dot: `woff2`, `.php`.
    FileExtension("file extension", "a file extension such as \"woff2\"") = |text| {
        let name = text.strip_prefix('.').unwrap_or(text);
        ensure(!name.is_empty() && !name.contains(['/', '\0']) && !name.starts_with('.'), || {
            Fault::new(format!("`{text}` is not a file extension"))
        })
    };

    /// A file's name without a directory.
    FileName("file name", "a file name such as \"index.php\"") = |text| {
        let special = matches!(text, "" | "." | "..");
        ensure(!special && !text.contains(['/', '\0']), || {
            Fault::new(format!("`{text}` is not a file name")).hint("write only the name, without a directory")
        })
    };

    /// The name of a prefetched body in `$_SERVER`.
    PrefetchName("prefetch name", "a name of letters, digits and _ such as \"weather\"") = |text| {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        ensure((1..=64).contains(&text.len()) && text.bytes().all(fits), || {
            Fault::new(format!("`{text}` is not a prefetch name"))
                .hint("up to 64 letters, digits and _; it becomes part of a variable's name")
        })
    };

    /// A version of PHP without its last number: `8.2`.
    PhpVersion("PHP version", "a version of PHP such as \"8.2\"") = |text| {
        let is_number = |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        ensure(text.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor)), || {
            Fault::new(format!("`{text}` is not a version of PHP")).hint("write the first two numbers: \"8.2\"")
        })
    };

    /// A condition of an app, or `!` and one that must not hold.
    ConditionName("condition", "a condition such as \"mobile\" or \"!mobile\"") = |text| {
        AppName::read(Written::Text(text.strip_prefix('!').unwrap_or(text))).map(drop).map_err(|_| {
            Fault::new(format!("`{text}` is not the name of a condition"))
                .hint("write [app.NAME.condition.CONDITION], and here \"CONDITION\" or \"!CONDITION\"")
        })
    };

    /// ISO 3166-1: two letters.
    CountryCode("country", "a country of two letters such as \"DE\"") = |text| {
        ensure(text.len() == 2 && text.bytes().all(|b| b.is_ascii_uppercase()), || {
            Fault::new(format!("`{text}` is not a country")).hint("two capital letters (ISO 3166-1): \"DE\", \"GB\"")
        })
    };

    /// RFC 9110, 9.1: methods are written in capitals.
    MethodName("method", "a method such as \"POST\"") = |text| {
        ensure(is_token(text) && !text.bytes().any(|b| b.is_ascii_lowercase()), || {
            Fault::new(format!("`{text}` is not a method")).hint("write it in capitals: \"GET\", \"POST\"")
        })
    };

    /// Any string that C can hold.
    PlainText("string", "a string") = |text| {
        ensure(!text.contains('\0'), || Fault::new("the string cannot contain NUL"))
    };
}

/// The value of a php.ini setting, as in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IniValue(pub(crate) String);

impl Scalar for IniValue {
    const NAME: &'static str = "ini value";
    const EXPECTED: &'static str = "a string, a number or a boolean";
    const TYPES: &'static [&'static str] = &["string", "number", "boolean"];

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        match written {
            Written::Text(text) => {
                PlainText::read(Written::Text(text)).map(|text| IniValue(text.0))
            }
            Written::Integer(number) => Ok(IniValue(number.to_string())),
            Written::Float(number) if number.is_finite() => Ok(IniValue(number.to_string())),
            Written::Float(number) => Err(Fault::new(format!("{number} is not a number"))),
            Written::Boolean(value) => Ok(IniValue(if value { "1" } else { "0" }.to_owned())),
        }
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

impl Deref for FilePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl FileExtension {
    /// The extension without its dot.
    pub(crate) fn bare(text: &str) -> &str {
        text.strip_prefix('.').unwrap_or(text)
    }
}

/// RFC 9112 and RFC 9110, 7.6.1: headers that describe the connection, not the content.
const FRAMING: &[&str] = &[
    "Connection",
    "Content-Length",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
];

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn url_path(text: &str) -> Result<(), Fault> {
    let bad = || Fault::new(format!("`{text}` is not a URL path"));
    ensure(text.starts_with('/'), || bad().hint(format!("it starts with a slash: \"/{text}\"")))?;
    ensure(!text.contains(['?', '#']), || bad().hint("it must not contain `?` or `#`"))?;
    ensure(!text.chars().any(char::is_control), || {
        bad().hint("it must not contain control characters")
    })?;
    ensure(!text.split('/').any(|segment| segment == "." || segment == ".."), || {
        bad().hint("it must not contain `.` or `..`")
    })?;
    ensure(!text.contains("//"), || bad().hint("it must not contain `//`"))
}

fn ensure(holds: bool, fault: impl FnOnce() -> Fault) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(fault()) }
}
