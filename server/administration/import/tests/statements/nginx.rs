//! Statements of nginx.

use super::{app, assert_app, translated, whole};
use outboard_import::Kind;

/// The app that these statements of a server become.
#[track_caller]
fn becomes(inner: &str, expected: &str, reasons: &[&str]) {
    let text = format!("server {{ root /srv/www;\n{inner}\n}}");
    assert_app(app(Kind::Nginx, &text), expected, reasons, inner);
}

/// The listeners of these servers.
fn listeners(text: &str) -> Vec<toml::Table> {
    let (config, _) = whole(Kind::Nginx, text);
    let all = config.get("listen").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    all.into_iter().map(|one| one.as_table().unwrap().clone()).collect()
}

#[test]
fn names_of_a_server_are_hosts() {
    becomes("server_name A.test *.b.test;", "hosts = [\"a.test\", \"*.b.test\"]", &[]);
    becomes("server_name .c.test;", "hosts = [\"c.test\", \"*.c.test\"]", &[]);
    becomes("server_name _ localhost '';", "", &[]);
    becomes(
        "server_name a.test ~^www\\d www.* $host;",
        "hosts = [\"a.test\"]",
        &["`~^www\\d`: hosts", "`www.*`: hosts", "`$host`: hosts"],
    );
}

#[test]
fn statements_of_a_site_are_keys_of_the_app() {
    becomes("index index.html /index.php $x;", "index = [\"index.html\", \"index.php\"]", &[]);
    becomes("client_max_body_size 64m;", "limits.body = \"64 MiB\"", &[]);
    becomes("client_max_body_size 0;", "", &["limits.body"]);
    becomes("client_max_body_size 64x;", "", &["limits.body"]);
    becomes("gzip on;", "compress = true", &[]);
    becomes("gzip off;", "compress = false", &[]);
    becomes("fastcgi_read_timeout 2m;", "limits.request_deadline = 120", &[]);
    becomes("fastcgi_read_timeout 0;", "limits.request_deadline = 1", &[]);
    becomes("fastcgi_read_timeout soon;", "", &["limits.request_deadline"]);
    becomes("expires 1h;", "static.cache_control = \"max-age=3600\"", &[]);
    becomes("expires max;", "static.cache_control = \"max-age=315360000\"", &[]);
    becomes("expires epoch;", "static.cache_control = \"no-cache\"", &[]);
    becomes("expires off;", "", &[]);
    becomes("expires modified +24h;", "", &["depends"]);
    becomes("sendfile on; gzip_vary on; include mime.types;", "", &[]);
    becomes("map a b;", "", &["variables"]);
    becomes("if ($a) { return 403; }", "", &["condition has no translation"]);
}

#[test]
fn an_error_page_is_a_file_with_the_status_of_the_error() {
    becomes(
        "error_page 500 502 /50x.html;",
        "error_pages = { 500 = \"50x.html\", 502 = \"50x.html\" }",
        &[],
    );
    for page in ["404 =200 /a.html", "404 /a.php", "404 /a$uri", "404 https://b.test/", "404 @b"] {
        becomes(&format!("error_page {page};"), "", &["a file below the root"]);
    }
}

#[test]
fn a_front_controller_is_the_last_part_of_try_files() {
    let location = |last: &str| format!("location / {{ try_files $uri $uri/ {last}; }}");
    let script = "front_controller = \"/index.php\"";
    becomes(&location("/index.php?$query_string"), script, &[]);
    becomes(&location("/index.php$is_args$args"), script, &[]);
    becomes(&location("=404"), "", &[]);
    becomes(&location("/index.html"), "", &["not a script"]);
    let named =
        format!("{} location @app {{ rewrite ^(.*)$ /index.php/$1 last; }}", location("@app"));
    becomes(&named, script, &[]);
    becomes(&location("@none"), "", &["not a script"]);
}

#[test]
fn redirects_and_errors_of_a_site_are_rewrites() {
    becomes(
        "return 301 http://b.test$request_uri;",
        "[[rewrite]]\nmatch = \"^(.*)$\"\nto = \"http://b.test$1\"\nstatus = 301",
        &[],
    );
    becomes(
        "location = /old { return 302 /new; }",
        "[[rewrite]]\nmatch = \"^/old$\"\nto = \"/new?\"\nstatus = 302",
        &[],
    );
    becomes("return 404;", "[[rewrite]]\nmatch = \"^\"\nstatus = 404", &[]);
    becomes("return 200 hello;", "[[rewrite]]\nmatch = \"^\"\nstatus = 200\nbody = \"hello\"", &[]);
    becomes("return 200 $host;", "", &["has variables"]);
    becomes("return 301 https://$host/;", "", &["has variables"]);
    becomes(
        "rewrite ^/a/(.*)$ /b/$1 permanent;",
        "[[rewrite]]\nmatch = \"^/a/(.*)$\"\nto = \"/b/$1\"\nstatus = 301",
        &[],
    );
    becomes(
        "rewrite ^/a$ https://b.test/;",
        "[[rewrite]]\nmatch = \"^/a$\"\nto = \"https://b.test/\"\nstatus = 302",
        &[],
    );
    becomes(
        "rewrite ^/a$ /b?c=1 last;",
        "[[rewrite]]\nmatch = \"^/a$\"\nto = \"/b?c=1\"",
        &["query string of the request is not appended"],
    );
    becomes("rewrite ^/a$ /b$arg_c;", "", &["variables or look-around"]);
    becomes("rewrite ^/(?!a)$ /b;", "", &["variables or look-around"]);
}

#[test]
fn a_denied_block_is_denied_here() {
    for (location, expected) in [
        ("/a/ { deny all; }", "deny = [\"/a/\"]"),
        ("/a { return 403; }", "deny = [\"/a**\"]"),
        ("= /a { return 404; }", "deny = [\"/a\"]"),
        ("^~ /a/ { internal; }", "deny = [\"/a/\"]"),
        ("~* \\.(bak|sql)$ { deny all; }", "deny = [\"*.bak\", \"*.sql\"]"),
        // Names with a leading dot are never served.
        ("~ /\\. { deny all; }", ""),
        ("~ ^/(a|b)/ { deny all; }", "[[rewrite]]\nmatch = \"^/(a|b)/\"\nstatus = 403"),
    ] {
        becomes(&format!("location {location}"), expected, &[]);
    }
    becomes("location / { deny all; }", "deny = [\"/**\"]", &["denied as a whole"]);
    becomes(
        "location ~ \\.php$ { deny all; }",
        "[[rewrite]]\nmatch = \"^(/index\\\\.php(?:/.*)?)$\"\nto = \"$1\"\n\
         [[rewrite]]\nmatch = \"\\\\.php$\"\nstatus = 403",
        &[],
    );
}

#[test]
fn settings_of_php_are_those_of_the_app() {
    becomes(
        "location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; fastcgi_param APP_ENV prod;\n\
         fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_param HTTPS on; }",
        "php.params.APP_ENV = \"prod\"",
        &[],
    );
    becomes(
        "location ~ \\.php$ { fastcgi_pass a; fastcgi_param PHP_VALUE \"memory_limit=1G\n upload = '2M'\"; }",
        "php.ini = { memory_limit = \"1G\", upload = \"'2M'\" }",
        &[],
    );
    becomes(
        "location ~ \\.php$ { fastcgi_pass a; fastcgi_param PHP_ADMIN_VALUE open_basedir=$root; }",
        "",
        &["php.ini"],
    );
}

#[test]
fn a_proxied_block_is_a_route() {
    let route = |path: &str, upstream: &str| {
        format!("[[proxy]]\npath = \"{path}\"\nupstream = \"{upstream}\"\npreserve_host = false")
    };
    becomes("location /a/ { proxy_pass http://b:80; }", &route("/a/**", "http://b:80"), &[]);
    becomes("location /a/ { proxy_pass http://b/a/; }", &route("/a/**", "http://b"), &[]);
    becomes("location = /a { proxy_pass https://b; }", &route("/a", "https://b"), &[]);
    becomes(
        "location /a/ { proxy_pass http://b; proxy_set_header Host $host; proxy_set_header X-Real-IP $a; }",
        "[[proxy]]\npath = \"/a/**\"\nupstream = \"http://b\"",
        &[],
    );
    for (statements, reason) in [
        ("proxy_pass http://b/other/;", "prefix of the path is replaced"),
        ("proxy_pass http://b/;", "prefix of the path is replaced"),
        ("proxy_pass http://$a;", "has variables"),
        ("proxy_pass http://unix:/run/a.sock;", "has variables"),
    ] {
        let text = format!("location /a/ {{ {statements} }}");
        let reason = if statements.contains("unix") { "prefix" } else { reason };
        becomes(&text, "", &[reason]);
    }
    becomes("location ~ ^/a(b|c) { proxy_pass http://b; }", "", &["a path pattern"]);
    becomes(
        "location /a/ { proxy_pass http://b; proxy_read_timeout 5s; proxy_set_header X-A b; }",
        &route("/a/**", "http://b"),
        &["[[app.NAME.proxy]]", "[[app.NAME.proxy]]"],
    );
}

#[test]
fn addresses_of_servers_are_listeners() {
    let of = |listen: &str| {
        let all = listeners(&format!("server {{ root /srv/www; {listen} }}"));
        all.iter().map(|one| one["address"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (listen, expected) in [
        ("listen 8080;", &["0.0.0.0:8080"][..]),
        ("listen *:8080;", &["0.0.0.0:8080"]),
        ("listen [::]:80; listen 127.0.0.1;", &["127.0.0.1:80", "[::]:80"]),
        ("listen unix:/run/a.sock;", &["unix:/run/a.sock"]),
        ("listen 80 default_server; listen 80;", &["0.0.0.0:80"]),
        // Without a certificate it could not speak TLS.
        ("listen 443 ssl;", &[]),
        ("", &[]),
    ] {
        assert_eq!(of(listen), expected, "{listen}");
    }
}

#[test]
fn a_server_that_redirects_to_https_is_a_listener() {
    let tls = "server { listen 443 ssl; server_name a.test; root /srv/www; ssl_protocols TLSv1.3;\n\
               ssl_certificate /etc/a.pem; ssl_certificate_key /etc/a.key; }";
    let redirect =
        "server { listen 80; server_name a.test; return 301 https://$host$request_uri; }";
    let all = listeners(&format!("{redirect}\n{tls}"));
    let expected: toml::Table = "[[listen]]\naddress = \"0.0.0.0:443\"\ntls_minimum = \"1.3\"\n\
         tls = [{ certificate = \"/etc/a.pem\", key = \"/etc/a.key\" }]\n\
         [[listen]]\naddress = \"0.0.0.0:80\"\nredirect_to_https = true"
        .parse()
        .unwrap();
    assert_eq!(toml::Value::from(all), expected["listen"]);
    // Another site is served there.
    let plain = "server { listen 80; server_name b.test; root /srv/b; }";
    let all = listeners(&format!("{redirect}\n{tls}\n{plain}"));
    assert!(!all[1].contains_key("redirect_to_https"), "{all:?}");
}

#[test]
fn a_second_server_with_a_name_of_the_first_is_listed() {
    let text = "server { server_name a.test b.test; root /srv/a; }\n\
                server { server_name b.test c.test; root /srv/b; }\n\
                server { server_name d.test; }";
    let (config, reasons) = whole(Kind::Nginx, text);
    assert_eq!(config["app"].as_table().unwrap().keys().collect::<Vec<_>>(), ["a-test"]);
    let expected =
        ["another server has the same names: merge the two", "a site without `root` is not an app"];
    assert_eq!(reasons, expected);
}

#[test]
fn apps_have_different_names_of_letters_and_digits() {
    let long = "x".repeat(60);
    let text = format!(
        "server {{ server_name www.A_b.test; root /a; }} server {{ server_name *.a-b.test; root /b; }}\n\
         server {{ server_name {long}.test; root /c; }} server {{ root /d; }}\n\
         server {{ server_name é; root /e; }}"
    );
    let (config, _) = whole(Kind::Nginx, &text);
    let names: Vec<&String> = config["app"].as_table().unwrap().keys().collect();
    assert_eq!(names, ["a-b-test", "a-b-test-2", "site", "site-2", &"x".repeat(40)]);
}

#[test]
fn servers_inherit_what_they_do_not_set() {
    let text = "http { root /srv/www; gzip on; index a.html; perl x;\n\
                server { index b.html; } }";
    let expected = "compress = true\nindex = [\"b.html\"]";
    assert_app(app(Kind::Nginx, text), expected, &["no such key"], text);
}

#[test]
fn blocks_of_lua_are_skipped() {
    let text = "server { root /srv/www; content_by_lua_block { local a = { 1, { 2 } } } gzip on; }";
    let (app, reasons) = app(Kind::Nginx, text);
    assert_eq!(app["compress"], true.into());
    assert_eq!(reasons, ["there is no such key"]);
    let open = "server { root /srv/www; x_by_lua_block { { } }";
    assert!(translated(Kind::Nginx, open).is_err());
}
