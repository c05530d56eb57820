//! Rules about clients: none becomes weaker.

use outboard_import::import;
use std::io;
use std::path::Path;

/// The access rules and denied paths of the first site, and the reasons of what was left out.
fn imported(text: &str, kept: &[&str]) -> (toml::Table, Vec<String>) {
    let read = |path: &Path| match path.to_str() {
        Some("/etc/site.conf") => Ok(text.to_owned()),
        Some("/etc/shared/inside.conf") => Ok("Require ip 10.9.0.0/16\n".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let imported = import(Path::new("/etc/site.conf"), None, &read).expect("it is understood");
    let mut config: toml::Table = imported.toml.parse().expect("it is TOML");
    let apps = config.remove("app").expect("it has an app");
    let app = apps.as_table().unwrap().values().next().unwrap().as_table().unwrap().clone();
    let app = app.into_iter().filter(|(key, _)| kept.contains(&key.as_str())).collect();
    (app, imported.omissions.into_iter().map(|one| one.reason).collect())
}

#[track_caller]
fn becomes(statements: &str, expected: &str, reasons: &[&str]) {
    let (app, omitted) = imported(statements, &["access", "deny"]);
    let expected: toml::Table = expected.parse().expect("it is TOML");
    assert_eq!(app, expected, "{statements}\n{app}");
    assert_eq!(omitted.len(), reasons.len(), "{omitted:#?}");
    for (reason, part) in omitted.iter().zip(reasons) {
        assert!(reason.contains(part), "{omitted:#?}");
    }
}

fn nginx(inner: &str) -> String {
    format!(
        "limit_req_zone $binary_remote_addr zone=one:10m rate=2r/s;\n\
         limit_req_zone $request_uri zone=uri:10m rate=2r/s;\n\
         server {{ root /srv/www; {inner} }}"
    )
}

#[test]
fn networks_of_nginx_are_those_of_rules() {
    becomes(
        &nginx("location /admin { deny 10.0.0.9; allow 10.0.0.0/8; allow unix:; deny all; }"),
        "[[access]]\npath = \"/admin**\"\nallow = [\"10.0.0.0/8\", \"unix\"]\ndeny = [\"10.0.0.9\"]",
        &[],
    );
    becomes(
        &nginx("location /a { deny 10.0.0.9; }"),
        "[[access]]\npath = \"/a**\"\ndeny = [\"10.0.0.9\"]",
        &[],
    );
    becomes(&nginx("location /a { allow all; deny 10.0.0.9; }"), "", &[]);
    becomes(&nginx("location /a/ { deny all; }"), "deny = [\"/a/\"]", &[]);
    becomes(&nginx("allow 10.0.0.1; deny all;"), "[[access]]\nallow = [\"10.0.0.1\"]", &[]);
    becomes(
        &nginx("location /a { allow host.example; deny all; }"),
        "[[access]]\npath = \"/a**\"\ndeny = [\"0.0.0.0/0\", \"::/0\"]",
        &["refused"],
    );
    becomes(
        &nginx("location /a { allow 10.0.0.9; deny 10.0.0.0/8; }"),
        "[[access]]\npath = \"/a**\"\ndeny = [\"10.0.0.0/8\"]",
        &["precedes"],
    );
    becomes(
        &nginx("location ~ /(a|b)/ { allow 10.0.0.9; deny all; }"),
        "",
        &["are refused", "are refused"],
    );
}

#[test]
fn passwords_and_rates_of_nginx_are_those_of_rules() {
    becomes(
        &nginx("location /a { auth_basic \"A b\"; auth_basic_user_file /etc/users; }"),
        "[[access]]\npath = \"/a**\"\nbasic_auth = { realm = \"A b\", file = \"/etc/users\" }",
        &[],
    );
    becomes(&nginx("location /a { auth_basic off; }"), "", &["requires"]);
    becomes(
        &nginx("location /a { auth_basic x; }"),
        "[[access]]\npath = \"/a**\"\ndeny = [\"0.0.0.0/0\", \"::/0\"]",
        &["all clients are refused"],
    );
    becomes(
        &nginx("location = /login { limit_req zone=one burst=4 nodelay; }"),
        "[[access]]\npath = \"/login\"\nrate_limit = { rate = \"2/s\", burst = 5, key = \"address\" }",
        &[],
    );
    becomes(&nginx("location /a { limit_req zone=uri; }"), "", &["another key"]);
}

fn httpd(inner: &str) -> String {
    format!(
        "<VirtualHost *:80>\nDocumentRoot /srv/www\n<Directory /srv/www/admin>\n{inner}\n</Directory>\n</VirtualHost>\n"
    )
}

const ADMIN: &str = "[[access]]\npath = \"/admin\"\n";

#[test]
fn requirements_of_apache_are_those_of_rules() {
    for (inner, expected) in [
        ("Require all granted", String::new()),
        ("Require all denied", "deny = [\"/admin\"]".to_owned()),
        (
            "Require ip 10.1 192.168.1.7",
            format!("{ADMIN}allow = [\"10.1.0.0/16\", \"192.168.1.7\"]"),
        ),
        ("Require local", format!("{ADMIN}allow = [\"127.0.0.0/8\", \"::1\"]")),
        (
            "AuthType Basic\nAuthName A\nAuthUserFile /etc/users\nRequire valid-user",
            format!("{ADMIN}basic_auth = {{ realm = \"A\", file = \"/etc/users\" }}"),
        ),
        (
            "<RequireAll>\nRequire all granted\nRequire not ip 10.0.0.9\n</RequireAll>",
            format!("{ADMIN}deny = [\"10.0.0.9\"]"),
        ),
        (
            "<RequireAny>\nRequire ip 10.0.0.9\n</RequireAny>",
            format!("{ADMIN}allow = [\"10.0.0.9\"]"),
        ),
        ("Include shared/inside.conf", format!("{ADMIN}allow = [\"10.9.0.0/16\"]")),
        (
            "Order deny,allow\nDeny from all\nAllow from 10.0.0.9",
            format!("{ADMIN}allow = [\"10.0.0.9\"]"),
        ),
        (
            "Order allow,deny\nAllow from all\nDeny from 10.0.0.9",
            format!("{ADMIN}deny = [\"10.0.0.9\"]"),
        ),
        ("Order allow,deny\nAllow from all", String::new()),
        ("Order allow,deny", "deny = [\"/admin\"]".to_owned()),
        ("<IfVersion < 2.3>\nDeny from all\n</IfVersion>", String::new()),
    ] {
        becomes(&httpd(inner), &expected, &[]);
    }
}

/// `/net` itself may be a page of the front controller.
#[test]
fn a_location_of_apache_includes_its_own_path() {
    let host = |inner: &str| {
        format!("<VirtualHost *:80>\nDocumentRoot /srv/www\n{inner}\n</VirtualHost>\n")
    };
    for path in ["/net", "/net/"] {
        let section = |inner: &str| host(&format!("<Location {path}>\n{inner}\n</Location>"));
        let rule = "[[access]]\npath = \"/net\"\nallow = [\"10.0.0.0/8\"]";
        becomes(&section("Require ip 10"), rule, &[]);
        becomes(&section("Require all denied"), "deny = [\"/net\"]", &[]);
    }
}

#[test]
fn requirements_without_a_rule_refuse_everyone_and_are_listed() {
    let denied = "deny = [\"/admin\"]";
    for inner in [
        "Require host example.org",
        "Require expr \"%{TIME_HOUR} -ge 9\"",
        "<RequireNone>\nRequire ip 10.0.0.9\n</RequireNone>",
        "<RequireAll>\nRequire ip 10.0.0.0/8\nRequire env x\n</RequireAll>",
        "AuthType Digest\nAuthUserFile /etc/users\nRequire valid-user",
        "Order deny,allow\nDeny from all\nAllow from host.example",
    ] {
        becomes(&httpd(inner), denied, &["refused"]);
    }
}

#[test]
fn sections_for_other_directories_are_listed() {
    let elsewhere = "<VirtualHost *:80>\nDocumentRoot /srv/www\n<Directory /srv/other>\n\
                     Require ip 10.0.0.9\n</Directory>\n<Directory />\nRequire all denied\n\
                     Header set X y\n</Directory>\n</VirtualHost>\n";
    becomes(elsewhere, "", &["no app has files", "there is no such key"]);
}

/// The rules of paths, as TOML; and how often something is left out.
#[track_caller]
fn rules(statements: &str, expected: &str, omissions: usize) {
    let kept = ["access", "deny", "rewrite", "headers", "index", "require_client_certificate"];
    let (app, omitted) = imported(statements, &kept);
    let expected: toml::Table = expected.parse().expect("it is TOML");
    assert_eq!(app, expected, "{statements}\n{app}");
    assert_eq!(omitted.len(), omissions, "{omitted:#?}");
}

fn host(inner: &str) -> String {
    format!("<VirtualHost *:80>\nDocumentRoot /srv/www\n{inner}\n</VirtualHost>\n")
}

#[test]
fn a_rewrite_of_a_block_holds_in_the_block() {
    let one = |pattern: &str, to: &str| format!("[[rewrite]]\nmatch = '{pattern}'\nto = \"{to}\"");
    for (location, rewrite, pattern) in [
        ("= /login", "rewrite ^ /index.php last", "^/login$"),
        ("= /login", "rewrite ^(.*)$ /index.php last", "^(/login)$"),
        ("/api/", "rewrite ^/(.*)$ /index.php last", "^/(api/.*)$"),
        ("/api/", "rewrite ^/api/v1/x$ /index.php last", "^/api/v1/x$"),
        ("/", "rewrite ^/a$ /index.php last", "^/a$"),
    ] {
        let inner = format!("location {location} {{ {rewrite}; }}");
        rules(&nginx(&inner), &one(pattern, "/index.php"), 0);
    }
    rules(&nginx("location /api/ { rewrite ^/other$ /x last; }"), "", 1);
    rules(&nginx("location /api/ { rewrite v(.*) /x/$1 last; }"), "", 1);
}

#[test]
fn a_redirect_of_a_path_is_for_whole_segments() {
    let one = |pattern: &str, to: &str| {
        format!("[[rewrite]]\nmatch = '{pattern}'\nto = \"{to}\"\nstatus = 301")
    };
    for (line, pattern, to) in [
        ("Redirect 301 /blog https://b.test", "^/blog(/.*)?$", "https://b.test$1"),
        ("Redirect 301 /blog/ https://b.test/", "^/blog/(.*)$", "https://b.test/$1"),
        ("RedirectPermanent / http://b.test", "^/(.*)$", "http://b.test/$1"),
    ] {
        rules(&host(line), &one(pattern, to), 0);
    }
}

#[test]
fn what_holds_in_a_directory_is_not_for_the_site() {
    for line in ["DirectoryIndex disabled", "php_value memory_limit 1M", "LimitRequestBody 10"] {
        rules(&host(&format!("<Directory /srv/www/a>\n{line}\n</Directory>")), "", 1);
    }
    rules(&host("DirectoryIndex disabled"), "index = []", 0);
}

#[test]
fn a_restriction_that_cannot_be_expressed_refuses() {
    let refused = |pattern: &str| format!("[[rewrite]]\nmatch = '{pattern}'\nstatus = 403");
    let everywhere = "deny = [\"/**\"]";
    for (inner, expected) in [
        ("location ~ ^/(?!pub)x { deny all; }", refused("^/x")),
        ("location ~ ((( { deny all; }", everywhere.to_owned()),
        ("location /a { auth_request /auth; try_files $uri =404; }", refused("^/a")),
        ("auth_request /auth;", everywhere.to_owned()),
        ("ssl_verify_client on;", "require_client_certificate = true".to_owned()),
    ] {
        rules(&nginx(inner), &expected, 1);
    }
    let front = "[[rewrite]]\nmatch = '^(/index\\.php(?:/.*)?)$'\nto = \"$1\"\n";
    let scripts = format!("{front}{}", refused("\\.php$"));
    rules(&nginx("location ~ \\.php$ { return 404; }"), &scripts, 0);
    for (inner, expected) in [
        ("<Limit GET>\nRequire valid-user\n</Limit>", everywhere.to_owned()),
        ("<If \"%{HTTP_HOST} == 'x'\">\nRequire all denied\n</If>", everywhere.to_owned()),
        ("SSLVerifyClient require", "require_client_certificate = true".to_owned()),
    ] {
        rules(&host(inner), &expected, 1);
    }
}

#[test]
fn headers_have_the_statuses_that_the_other_server_means() {
    let js = |name: &str, action: &str, value: &str, status: &str| {
        format!("[[headers]]\npath = \"/a/**\"\n{status}{action} = {{ {name} = \"{value}\" }}\n")
    };
    let (good, all) =
        ("status = [\"2xx\", \"3xx\"]\n", "status = [\"2xx\", \"3xx\", \"4xx\", \"5xx\"]\n");
    let both = js("Cache-Control", "set", "max-age=2592000", good)
        + &js("Cache-Control", "add", "public, immutable", good);
    let missing = "[[rewrite]]\nmatch = '^/a/'\nstatus = 404\nwhen = \"missing\"";
    let inner = "location /a/ { add_header Cache-Control \"public, immutable\"; expires 30d; }";
    rules(&nginx(inner), &format!("{both}{missing}"), 0);
    let tried = "try_files $uri =404;";
    let inner = format!("location /a/ {{ {tried} add_header X-A 1; add_header X-B 2 always; }}");
    rules(&nginx(&inner), &(js("X-A", "set", "1", good) + &js("X-B", "set", "2", "")), 0);
    let inner = format!("location /a/ {{ {tried} add_header Cache-Control no-store always; }}");
    rules(&nginx(&inner), &js("Cache-Control", "add", "no-store", all), 0);
}

#[test]
fn a_site_that_only_redirects_to_a_page_is_an_app() {
    let text = "server { server_name www.shop.test; return 301 http://shop.test/welcome; }\n\
                server { server_name shop.test; root /srv/www; }";
    let read = |_: &Path| Ok(text.to_owned());
    let imported = import(Path::new("/etc/site.conf"), None, &read).expect("it is understood");
    let config: toml::Table = imported.toml.parse().expect("it is TOML");
    let www = &config["app"]["shop-test-2"];
    assert_eq!(www["root"].as_str(), Some("/srv/www"));
    assert_eq!(www["rewrite"][0]["to"].as_str(), Some("http://shop.test/welcome?"));
    assert!(imported.omissions.is_empty(), "{:?}", imported.omissions);
}
