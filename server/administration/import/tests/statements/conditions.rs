//! Rules under a condition: `if`, `map`, `geo` and `valid_referers` of nginx, `RewriteCond` of Apache; and what the sites of
//! both have beside their apps.

use super::{app, assert_app, whole};
use outboard_config::Config;
use outboard_import::Kind;
use std::path::Path;

#[track_caller]
fn nginx(around: &str, inner: &str, expected: &str, reasons: &[&str]) {
    let text = format!("{around}\nserver {{ root /srv/www;\n{inner}\n}}");
    assert_app(app(Kind::Nginx, &text), expected, reasons, inner);
}

#[track_caller]
fn httpd(inner: &str, expected: &str, reasons: &[&str]) {
    let text = format!("<VirtualHost *:80>\nDocumentRoot /srv/www\n{inner}\n</VirtualHost>\n");
    assert_app(app(Kind::Httpd, &text), expected, reasons, inner);
}

/// A condition, and a refusal under it.
fn refused(name: &str, keys: &str, only_if: &str) -> String {
    format!("[condition.{name}]\n{keys}\n[[rewrite]]\nmatch = '^'\nstatus = 403\nif = '{only_if}'")
}

#[test]
fn conditions_of_nginx_are_conditions() {
    for (expression, name, keys, only_if) in [
        (
            "$http_user_agent ~* (bot|crawl)",
            "user_agent",
            "header = { User-Agent = ['*bot*', '*crawl*'] }",
            "user_agent",
        ),
        (
            "$http_user_agent ~* \"Sogou web\"",
            "user_agent",
            "header = { User-Agent = ['*Sogou web*'] }",
            "user_agent",
        ),
        ("$host = old.test", "host", "host = ['old.test']", "host"),
        ("$host != shop.test", "host", "host = ['shop.test']", "!host"),
        (
            "$request_method !~ ^(GET|HEAD|POST)$",
            "method",
            "method = ['GET', 'HEAD', 'POST']",
            "!method",
        ),
        ("$cookie_beta = 1", "cookie_beta", "cookie = { beta = ['1'] }", "cookie_beta"),
        ("$http_cookie ~* \"beta=1\"", "cookie", "header = { Cookie = ['*beta=1*'] }", "cookie"),
        ("$arg_debug = 1", "query_debug", "query = { debug = ['1'] }", "query_debug"),
        ("$args ~ (^|&)debug=1(&|$)", "query_debug", "query = { debug = ['1'] }", "query_debug"),
        ("$remote_addr = 192.0.2.1", "client", "client = ['192.0.2.1']", "client"),
    ] {
        let inner = format!("if ({expression}) {{ return 403; }}");
        nginx("", &inner, &refused(name, keys, only_if), &[]);
    }
    let present = "[condition.x_a]\nheader = { X-A = ['*'] }\nif = '!x_a_empty'\n\
                   [condition.x_a_empty]\nheader = { X-A = [''] }\n[[rewrite]]\nmatch = '^'\nstatus = 403\nif = '!x_a'";
    nginx("", "if ($http_x_a = '') { return 403; }", present, &[]);
    nginx(
        "",
        "if ($host != shop.test) { return 301 https://shop.test$request_uri; }",
        "[condition.host]\nhost = ['shop.test']\n[[rewrite]]\nmatch = '^(.*)$'\nto = 'https://shop.test$1'\nstatus = 301\nif = '!host'",
        &[],
    );
    nginx(
        "",
        "location /a/ { try_files $uri =404; if ($request_method = POST) { return 405; } }",
        "[condition.method]\nmethod = ['POST']\n[[rewrite]]\nmatch = '^/a/'\nstatus = 405\nif = 'method'",
        &[],
    );
    nginx(
        "",
        "if ($cookie_beta) { add_header X-Beta 1 always; set $x 1; }",
        "[condition.cookie_beta]\ncookie = { beta = ['*'] }\nif = '!cookie_beta_empty'\n[condition.cookie_beta_empty]\ncookie = { beta = ['', '0'] }\n[[headers]]\nset = { X-Beta = '1' }\nif = 'cookie_beta'",
        &["left out: it holds under a condition"],
    );
}

#[test]
fn a_restriction_whose_condition_has_no_translation_refuses() {
    let all = "[[rewrite]]\nmatch = '^'\nstatus = 403";
    // Header fields are compared in any case: a token would be accepted in other spellings.
    nginx("", "if ($http_x_token != s3cret) { return 403; }", all, &["compared in any case"]);
    nginx("", "if ($http_x_token !~ ^[0-9]+$) { return 403; }", all, &["its paths are refused"]);
    nginx(
        "",
        "location /i/ { try_files $uri =404; if ($invalid_referer) { return 403; } }",
        "[[rewrite]]\nmatch = '^/i/'\nstatus = 403",
        &["its paths are refused"],
    );
    nginx("", "if ($http_user_agent ~ ^[0-9]+$) { return 403; }", "", &["left out"]);
    nginx("", "if ($request_uri ~ x) { rewrite ^ /y last; }", "", &["left out"]);
    httpd(
        "RewriteCond %{HTTP:X-Token} !^s3cret$\nRewriteRule ^ - [F]",
        "[[rewrite]]\nmatch = '^/'\nstatus = 403",
        &["not translated", "are refused"],
    );
    httpd("RewriteCond %{TIME_HOUR} >12\nRewriteRule ^ - [F]", "", &["not translated", "left out"]);
}

#[test]
fn variables_of_map_and_geo_are_conditions_of_what_they_compare() {
    let bots = "map $http_user_agent $bad { default 0; ~*bot 1; ~*Crawl 1; }";
    let keys = "header = { User-Agent = ['*bot*', '*Crawl*'] }";
    nginx(bots, "if ($bad) { return 403; }", &refused("user_agent", keys, "user_agent"), &[]);
    nginx(bots, "if ($bad = 0) { return 403; }", &refused("user_agent", keys, "!user_agent"), &[]);
    let office = "geo $office { default 0; 10.0.0.0/8 1; 192.0.2.1 1; }";
    let keys = "client = ['10.0.0.0/8', '192.0.2.1']";
    nginx(office, "if ($office = 0) { return 403; }", &refused("client", keys, "!client"), &[]);
    let mixed = "map $http_user_agent $bad { default 0; ~*good 0; ~*bot 1; }";
    nginx(mixed, "if ($bad) { return 403; }", "", &["left out"]);
    nginx(
        "map $uri $x { default 0; /a 1; }",
        "gzip on;",
        "compress = true",
        &["variables are not"],
    );
}

#[test]
fn images_are_for_own_pages() {
    nginx(
        "",
        "server_name a.test; valid_referers none blocked server_names; if ($invalid_referer) { return 403; }",
        "hosts = ['a.test']\n[condition.referer]\nheader = { Referer = ['http://a.test', 'http://a.test/*', 'https://a.test', 'https://a.test/*'] }\n\
         [condition.referer_2]\nheader = { Referer = ['https://*', 'http://*'] }\nif = '!referer'\n\
         [[rewrite]]\nmatch = '^'\nstatus = 403\nif = 'referer_2'",
        &[],
    );
}

#[test]
fn paths_without_a_file_and_maintenance_have_keys() {
    nginx(
        "",
        "if (!-e $request_filename) { rewrite ^(.*)$ /index.php last; }",
        "front_controller = '/index.php'",
        &[],
    );
    nginx(
        "",
        "if (!-e $request_filename) { rewrite ^/(.*)$ /index.php?q=$1 last; }",
        "[[rewrite]]\nmatch = '^/(.*)$'\nto = '/index.php?q=$1'\nwhen = 'missing'",
        &["query string"],
    );
    nginx(
        "",
        "if (-f $document_root/down.html) { return 503; }",
        "maintenance.file = '/srv/www/down.html'",
        &[],
    );
}

#[test]
fn conditions_of_apache_are_conditions() {
    for (conditions, name, keys, only_if) in [
        (
            "RewriteCond %{HTTP_USER_AGENT} (bot|crawl) [NC]",
            "user_agent",
            "header = { User-Agent = ['*bot*', '*crawl*'] }",
            "user_agent",
        ),
        (
            "RewriteCond %{HTTP_HOST} ^(www\\.)?a\\.test$ [NC]",
            "host",
            "host = ['www.a.test', 'a.test']",
            "host",
        ),
        ("RewriteCond %{HTTP_HOST} !=a.test", "host", "host = ['a.test']", "!host"),
        (
            "RewriteCond %{REMOTE_ADDR} !^192\\.0\\.2\\.",
            "client",
            "client = ['192.0.2.0/24']",
            "!client",
        ),
        (
            "RewriteCond %{REQUEST_METHOD} ^TRAC[EK]",
            "method",
            "method = ['TRACE', 'TRACK']",
            "method",
        ),
        (
            "RewriteCond %{HTTP_COOKIE} beta=1",
            "cookie",
            "header = { Cookie = ['*beta=1*'] }",
            "cookie",
        ),
        (
            "RewriteCond %{HTTP_REFERER} spam\\.test",
            "referer",
            "header = { Referer = ['*spam.test*'] }",
            "referer",
        ),
        (
            "RewriteCond %{QUERY_STRING} (^|&)p=1(&|$)",
            "query_p",
            "query = { p = ['1'] }",
            "query_p",
        ),
    ] {
        let inner = format!("{conditions}\nRewriteRule ^ - [F]");
        httpd(&inner, &refused(name, keys, only_if).replace("'^'", "'^/'"), &[]);
    }
    httpd(
        "RewriteCond %{HTTP_HOST} =a.test [OR]\nRewriteCond %{HTTP_HOST} =b.test\n\
         RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^x$ https://c.test/x [R=301,L]",
        "[condition.any]\nany = ['host', 'host_2']\n[condition.host]\nhost = ['a.test']\n[condition.host_2]\nhost = ['b.test']\n\
         [[rewrite]]\nmatch = '^/x$'\nto = 'https://c.test/x'\nstatus = 301\nwhen = 'missing'\nif = 'any'",
        &[],
    );
    // The front controller of some requests is not that of all.
    httpd(
        "RewriteCond %{HTTP_HOST} =m.test\nRewriteRule ^ mobile.php [L]",
        "[condition.host]\nhost = ['m.test']\n[[rewrite]]\nmatch = '^/'\nto = '/mobile.php'\nif = 'host'",
        &[],
    );
    httpd(
        "RewriteCond %{HTTP_HOST} ^www\\.(.+)$\nRewriteRule ^ https://%1/ [R=301]",
        "",
        &["not translated", "variables"],
    );
}

#[test]
fn what_a_section_with_a_condition_says_is_listed_as_written() {
    let text = "<VirtualHost *:80>\nDocumentRoot /srv/www\n<If \"%{HTTP_USER_AGENT} =~ /Bot>/\">\nHeader set X-A B\n</If>\n</VirtualHost>\n";
    let imported = super::translated(Kind::Httpd, text).unwrap();
    let directives: Vec<&str> =
        imported.omissions.iter().map(|one| one.directive.as_str()).collect();
    assert_eq!(directives, ["<If \"%{HTTP_USER_AGENT} =~ /Bot>/\">"]);
}

#[test]
fn a_redirect_of_a_host_is_no_app() {
    let site = "server { listen 80; server_name shop.test; root /srv/www; }";
    let of = |text: &str| {
        let (config, reasons) = whole(Kind::Nginx, &format!("{site}\n{text}"));
        (config.get("redirect").cloned(), reasons)
    };
    let expected: toml::Table =
        "[[redirect]]\nhosts = ['www.shop.test']\nto = 'https://shop.test'".parse().unwrap();
    let redirect = |listen: &str| {
        format!(
            "server {{ listen {listen}; server_name www.shop.test; return 301 https://shop.test$request_uri; }}"
        )
    };
    assert_eq!(of(&redirect("80")), (expected.get("redirect").cloned(), vec![]));
    assert_eq!(
        of(&(redirect("80") + &redirect("8080"))),
        (expected.get("redirect").cloned(), vec![])
    );
    let taken = "server { server_name shop.test; return 302 https://b.test$request_uri; }";
    assert_eq!(of(taken), (None, vec!["another site has these names".to_owned()]));
    let host = |inner: &str| format!("<VirtualHost *:80>\n{inner}\n</VirtualHost>\n");
    let text = host("ServerName shop.test\nDocumentRoot /srv/www")
        + &host("ServerName www.shop.test\nRedirect permanent / https://shop.test/");
    assert_eq!(whole(Kind::Httpd, &text).0.get("redirect"), expected.get("redirect"));
}

#[test]
fn texts_listings_formats_and_proxies_have_keys() {
    nginx(
        "",
        "location = /up { default_type application/json; return 200 '{}'; }",
        "[[headers]]\npath = '/up'\nstatus = ['2xx', '3xx']\nset = { Content-Type = 'application/json' }\n\
         [[rewrite]]\nmatch = '^/up$'\nstatus = 200\nbody = '{}'",
        &[],
    );
    nginx("", "location /files/ { autoindex on; }", "static.autoindex = ['/files/**']", &[]);
    nginx("", "autoindex on; location /a/ { autoindex off; }", "", &["not listed either"]);
    nginx(
        "log_format x '$remote_addr \"$request\"';",
        "access_log /var/log/a x;",
        "log.access.format = '{client} \"{method} {target} {protocol}\"'",
        &[],
    );
    nginx("log_format x '$connection';", "access_log /var/log/a x;", "", &["has no field"]);
    httpd(
        "<Directory /srv/www>\nOptions +Indexes\n</Directory>",
        "static.autoindex = ['/**']",
        &[],
    );
    httpd(
        "Options Indexes\n<Directory /srv/www/a>\nOptions -Indexes\n</Directory>",
        "",
        &["not listed either"],
    );
    httpd(
        "LogFormat \"%h %>s\" short\nCustomLog /var/log/a short",
        "log.access.format = '{client} {status}'",
        &[],
    );
    let one =
        "server { root /srv/www; set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; }";
    let (config, reasons) = whole(Kind::Nginx, one);
    assert_eq!((config["trusted_proxies"][0].as_str(), reasons.len()), (Some("10.0.0.0/8"), 0));
    let two = format!("{one} server {{ server_name b.test; root /srv/b; }}");
    let (config, reasons) = whole(Kind::Nginx, &two);
    assert!(config.get("trusted_proxies").is_none() && reasons.len() == 1, "{reasons:?}");
}

/// What is written is a configuration.
#[test]
fn conditions_are_valid() {
    let text = "map $http_user_agent $bad { default 0; ~*bot 1; }\n\
        log_format x '$remote_addr $http_x_id';\n\
        server { root /srv; access_log a x; server_name a.test; autoindex on;\n\
        valid_referers none *.b.test; if ($invalid_referer) { return 403; } if ($bad) { return 403; }\n\
        if ($host != a.test) { return 301 https://a.test$request_uri; } if ($remote_addr ~ ^10\\.) { return 503; }\n\
        if ($request_method !~ ^(GET|POST)$) { return 405; } location = /up { return 200 ok; } }";
    let imported = super::translated(Kind::Nginx, text).unwrap();
    let toml = imported.toml.replace("/srv", "/tmp");
    Config::parse(&toml, Path::new("/tmp/outboard.toml"))
        .unwrap_or_else(|errors| panic!("{errors}\n{toml}"));
    assert_eq!(imported.omissions.len(), 1, "{:?}", imported.omissions);
}
