//! Files that no server would accept: they end in a configuration or an error, and never in a panic.

use super::{app, translated, whole};
use outboard_import::{ImportError, Kind};
use proptest::prelude::*;

const NAMES: [&str; 40] = [
    "server",
    "location",
    "upstream",
    "http",
    "listen",
    "server_name",
    "root",
    "return",
    "rewrite",
    "allow",
    "deny",
    "limit_req",
    "limit_req_zone",
    "auth_basic",
    "expires",
    "add_header",
    "index",
    "error_page",
    "proxy_pass",
    "try_files",
    "hash",
    "fastcgi_param",
    "<VirtualHost",
    "<Directory",
    "<Location",
    "<FilesMatch",
    "<Proxy",
    "<IfVersion",
    "DocumentRoot",
    "ServerName",
    "ServerAlias",
    "Require",
    "Order",
    "Allow",
    "Redirect",
    "RedirectMatch",
    "RewriteCond",
    "RewriteRule",
    "ProxyPass",
    "BalancerMember",
];

const WORDS: [&str; 44] = [
    "",
    "/",
    "a",
    "é",
    "~",
    "~*",
    "=",
    "^~",
    "/srv/www",
    "/srv/www/é",
    "\\.é?$",
    "\\.(é?|a)$",
    "^(.*)$",
    "(?!a)b",
    "(",
    "$1",
    "${x}",
    "https://a.test/",
    "http://up",
    "balancer://up",
    "unix:",
    "unix:/a|b",
    "all",
    "deny,allow",
    "from",
    "ip",
    "10.0.0.0/8",
    "10.",
    "zone=one",
    "rate=1r/s",
    "burst=9223372036854775807",
    "99999999999999999999",
    "-1",
    "30d",
    "301",
    "G",
    "[R=301,QSA]",
    "set",
    "X-A",
    "always",
    "80",
    "*:443",
    "ssl",
    ".ht",
];

fn directive() -> impl Strategy<Value = Vec<&'static str>> {
    let name = proptest::sample::select(&NAMES[..]);
    let words = proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..4);
    (name, words).prop_map(|(name, words)| [vec![name], words].concat())
}

/// Statements in blocks, as `depth` states the change before each.
fn text(kind: Kind, statements: &[(Vec<&str>, bool)]) -> String {
    let mut text = String::new();
    let mut open = Vec::new();
    for (words, opens) in statements {
        let quoted = words[1..].iter().map(|word| format!(" \"{word}\"")).collect::<String>();
        let name = words[0].trim_start_matches('<');
        match (kind, opens) {
            (Kind::Nginx, true) => text += &format!("{name}{quoted} {{\n"),
            (Kind::Nginx, false) => text += &format!("{name}{quoted};\n"),
            (Kind::Httpd, true) => text += &format!("<{name}{quoted}>\n"),
            (Kind::Httpd, false) => text += &format!("{name}{quoted}\n"),
        }
        if *opens {
            open.push(name);
        } else if open.len() > 2 {
            text += &close(kind, open.pop().unwrap());
        }
    }
    while let Some(name) = open.pop() {
        text += &close(kind, name);
    }
    text
}

fn close(kind: Kind, name: &str) -> String {
    if kind == Kind::Nginx { "}\n".to_owned() } else { format!("</{name}>\n") }
}

#[test]
fn a_server_of_an_upstream_without_an_address_is_not_fatal() {
    let text = "upstream up { server; server a weight=2; }\n\
                server { root /srv/www; location /a { proxy_pass http://up; } }";
    let (config, _) = whole(Kind::Nginx, text);
    assert_eq!(config["upstream"]["up"]["servers"][1]["weight"], 2.into());
}

#[test]
fn letters_of_any_alphabet_are_no_extension() {
    for pattern in ["\\.é?$", "\\.(a|é?)$", "\\.(é|ü?x)$"] {
        let nginx = format!("server {{ root /srv/www; location ~ \"{pattern}\" {{ deny all; }} }}");
        let (app, _) = app(Kind::Nginx, &nginx);
        assert_eq!(app["rewrite"][0]["match"], pattern.into());
        assert_eq!(app["rewrite"][0]["status"], 403.into());
    }
}

#[test]
fn a_burst_is_limited() {
    for (burst, expected) in [("9223372036854775807", 1_000_000), ("-5", 1), ("x", 1), ("9", 10)] {
        let text = format!(
            "limit_req_zone $remote_addr zone=one rate=1r/s;\n\
             server {{ root /srv/www; location /a {{ limit_req zone=one burst={burst}; }} }}"
        );
        let (app, _) = app(Kind::Nginx, &text);
        assert_eq!(app["access"][0]["rate_limit"]["burst"], expected.into(), "{burst}");
    }
}

#[test]
fn text_of_the_other_server_is_never_toml() {
    let evil = "a\"\n[app.evil]\nroot = \"/";
    let text = format!(
        "server {{ root /srv/www; add_header X-A '{evil}'; location = '/${{HOME}}' {{ deny all; }} }}"
    );
    let (app, _) = app(Kind::Nginx, &text);
    assert_eq!(app["headers"][0]["set"]["X-A"], evil.into());
    assert_eq!(app["deny"][0], "/$${HOME}".into());
    let httpd = "DocumentRoot /srv/www\nHeader set X-A \"a ${HOME}\n";
    assert!(translated(Kind::Httpd, httpd).is_err(), "an open quote");
    let httpd = "DocumentRoot /srv/www\nHeader set X-A \"a ${HOME}\"\n";
    let (app, _) = super::app(Kind::Httpd, httpd);
    assert_eq!(app["headers"][0]["set"]["X-A"], "a $${HOME}".into());
}

#[test]
fn deep_blocks_are_an_error_with_the_line() {
    for (kind, text) in
        [(Kind::Nginx, "a {\n".repeat(10_000)), (Kind::Httpd, "<A>\n".repeat(10_000))]
    {
        let error = translated(kind, &text).unwrap_err();
        let ImportError::Syntax { line, message, .. } = &error else { panic!("{error}") };
        assert!((32..=35).contains(line), "{line}");
        assert!(message.ends_with("are nested too deep"), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn statements_in_any_order_are_translated_or_listed(
        is_nginx in any::<bool>(),
        statements in proptest::collection::vec((directive(), any::<bool>()), 0..24),
    ) {
        let kind = if is_nginx { Kind::Nginx } else { Kind::Httpd };
        let site = if is_nginx { "server { root /srv/www;\n" } else { "<VirtualHost *:80>\nDocumentRoot /srv/www\n" };
        let end = if is_nginx { "}\n" } else { "</VirtualHost>\n" };
        let text = format!("{site}{}{end}", text(kind, &statements));
        let lines = text.lines().count();
        if let Ok(imported) = translated(kind, &text) {
            prop_assert!(imported.toml.parse::<toml::Table>().is_ok(), "{}", imported.toml);
            for omission in imported.omissions {
                prop_assert!((1..=lines).contains(&omission.line), "{:?}", omission);
                prop_assert!(!omission.reason.is_empty());
            }
        }
    }

    #[test]
    fn any_text_is_translated_or_an_error(text in "[a-z<>/{};#\"'\\\\$ \né]{0,80}") {
        for kind in [Kind::Nginx, Kind::Httpd] {
            if let Err(error) = translated(kind, &text) {
                prop_assert!(error.to_string().starts_with("/etc/site.conf"), "{}", error);
            }
        }
    }
}
