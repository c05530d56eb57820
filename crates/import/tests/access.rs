//! Rules about clients: none becomes weaker.

use outboard_import::import;
use std::io;
use std::path::Path;

/// The access rules and denied paths of the first site, and the reasons of what was left out.
fn imported(text: &str) -> (toml::Table, Vec<String>) {
    let read = |path: &Path| match path.to_str() {
        Some("/etc/site.conf") => Ok(text.to_owned()),
        Some("/etc/shared/inside.conf") => Ok("Require ip 10.9.0.0/16\n".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let imported = import(Path::new("/etc/site.conf"), None, &read).expect("it is understood");
    let mut config: toml::Table = imported.toml.parse().expect("it is TOML");
    let apps = config.remove("app").expect("it has an app");
    let app = apps.as_table().unwrap().values().next().unwrap().as_table().unwrap().clone();
    let kept = ["access", "deny"];
    let app = app.into_iter().filter(|(key, _)| kept.contains(&key.as_str())).collect();
    (app, imported.omissions.into_iter().map(|one| one.reason).collect())
}

#[track_caller]
fn becomes(statements: &str, expected: &str, reasons: &[&str]) {
    let (app, omitted) = imported(statements);
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
        &["THE PATHS ARE OPEN", "THE PATHS ARE OPEN"],
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
    becomes(&nginx("location /a { auth_basic x; }"), "", &["THE PATHS ARE OPEN"]);
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

const ADMIN: &str = "[[access]]\npath = \"/admin/**\"\n";

#[test]
fn requirements_of_apache_are_those_of_rules() {
    for (inner, expected) in [
        ("Require all granted", String::new()),
        ("Require all denied", "deny = [\"/admin/\"]".to_owned()),
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
        ("Order allow,deny", "deny = [\"/admin/\"]".to_owned()),
        ("<IfVersion < 2.3>\nDeny from all\n</IfVersion>", String::new()),
    ] {
        becomes(&httpd(inner), &expected, &[]);
    }
}

#[test]
fn requirements_without_a_rule_refuse_everyone_and_are_listed() {
    let denied = "deny = [\"/admin/\"]";
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
