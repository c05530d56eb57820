//! Statements of Apache httpd.

use super::{app, assert_app, whole};
use outboard_import::Kind;

/// The app that these statements of a virtual host become.
#[track_caller]
fn becomes(inner: &str, expected: &str, reasons: &[&str]) {
    let text = format!("<VirtualHost *:80>\nDocumentRoot /srv/www/\n{inner}\n</VirtualHost>\n");
    assert_app(app(Kind::Httpd, &text), expected, reasons, inner);
}

#[test]
fn names_of_a_host_are_hosts() {
    becomes("ServerName A.test:80", "hosts = [\"a.test\"]", &[]);
    becomes("ServerName https://a.test:443", "hosts = [\"a.test\"]", &[]);
    becomes("ServerAlias *.A.test b.test", "hosts = [\"*.a.test\", \"b.test\"]", &[]);
    becomes("ServerAlias b*\nServerAlias *.c.*", "", &["hosts are names", "hosts are names"]);
}

#[test]
fn statements_of_a_site_are_keys_of_the_app() {
    becomes("DirectoryIndex a.html /b.php disabled", "index = [\"a.html\", \"b.php\"]", &[]);
    becomes("FallbackResource /index.php", "front_controller = \"/index.php\"", &[]);
    becomes("FallbackResource disabled", "", &[]);
    becomes("LimitRequestBody 1048576", "limits.body = \"1048576 B\"", &[]);
    becomes("LimitRequestBody 0", "", &["limits.body"]);
    becomes("ProxyTimeout 60", "limits.request_deadline = 60", &[]);
    becomes("ProxyTimeout never", "", &["limits.request_deadline"]);
    becomes("AddOutputFilterByType DEFLATE text/html", "compress = true", &[]);
    becomes("SetEnv APP_ENV prod", "php.params.APP_ENV = \"prod\"", &[]);
    becomes("php_value memory_limit 1G", "php.ini.memory_limit = \"1G\"", &[]);
    becomes("php_admin_flag display_errors On", "php.ini.display_errors = true", &[]);
    becomes("php_flag display_errors off", "php.ini.display_errors = false", &[]);
    becomes("php_flag engine off", "no_php_in = [\"/**\"]", &[]);
    becomes("php_flag engine on", "", &[]);
    becomes("ErrorDocument 404 /404.html", "error_pages.404 = \"404.html\"", &[]);
    for page in ["/404.php", "\"Not here\"", "https://a.test/", "/a?b"] {
        becomes(&format!("ErrorDocument 404 {page}"), "", &["a file below the root"]);
    }
    becomes("Options +FollowSymLinks\nKeepAlive On\nLogLevel warn", "", &[]);
    becomes("Alias /a /srv/a", "", &["`path`"]);
    becomes(
        "ExpiresDefault x\nSSLProxyEngine on\nMystery a",
        "",
        &["cache_control", "[[listen]]", "no such key"],
    );
}

#[test]
fn headers_are_rules_with_constant_values() {
    let rule = |rest: &str| format!("[[headers]]\nstatus = [\"2xx\", \"3xx\"]\n{rest}");
    becomes("Header set X-A b", &rule("set = { X-A = \"b\" }"), &[]);
    becomes("Header append X-A b", &rule("add = { X-A = \"b\" }"), &[]);
    becomes("Header unset X-A", &rule("remove = [\"X-A\"]"), &[]);
    becomes("Header always set X-A b", "[[headers]]\nset = { X-A = \"b\" }", &[]);
    for other in ["set X-A %{a}e", "set X-A b env=c", "edit X-A b c"] {
        becomes(&format!("Header {other}"), "", &["header rule has a constant value"]);
    }
    becomes("Header echo", "", &["not complete"]);
}

#[test]
fn redirects_have_the_status_that_is_named() {
    let rule = |pattern: &str, to: &str, status: u16| {
        format!("[[rewrite]]\nmatch = '{pattern}'\nto = '{to}'\nstatus = {status}")
    };
    becomes("Redirect /a https://b.test/c", &rule("^/a(/.*)?$", "https://b.test/c$1", 302), &[]);
    becomes("Redirect permanent /a /b", &rule("^/a(/.*)?$", "/b$1", 301), &[]);
    becomes("Redirect 307 /a /b", &rule("^/a(/.*)?$", "/b$1", 307), &[]);
    becomes(
        "RedirectPermanent /a/ https://b.test",
        &rule("^/a/(.*)$", "https://b.test/$1", 301),
        &[],
    );
    becomes("Redirect seeother /a.b /c", &rule("^/a\\.b(/.*)?$", "/c$1", 303), &[]);
    becomes("RedirectMatch 301 ^/(a|b)$ /c/$1", &rule("^/(a|b)$", "/c/$1", 301), &[]);
    becomes("Redirect gone /a", "[[rewrite]]\nmatch = '^/a(/.*)?$'\nstatus = 410", &[]);
    becomes("Redirect 404 /a", "[[rewrite]]\nmatch = '^/a(/.*)?$'\nstatus = 404", &[]);
    for (incomplete, reason) in [
        ("Redirect", "not complete"),
        ("Redirect /a", "not complete"),
        ("Redirect 301", "not complete"),
        ("Redirect 200 /a /b", "not a redirect"),
        ("RedirectMatch (?!a) /b", "look-around"),
    ] {
        becomes(incomplete, "", &[reason]);
    }
}

#[test]
fn rules_of_rewriting_take_their_conditions() {
    let front = "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ index.php [L]";
    becomes(front, "front_controller = \"/index.php\"", &[]);
    becomes(
        "RewriteRule ^/?a/(.*)$ /b/$1 [R=301,L]",
        "[[rewrite]]\nmatch = '^/?a/(.*)$'\nto = '/b/$1'\nstatus = 301",
        &[],
    );
    becomes(
        "RewriteRule ^(.*)$ https://b.test$1 [R=301]",
        "[[rewrite]]\nmatch = '^(.*)$'\nto = 'https://b.test$1'\nstatus = 301",
        &[],
    );
    becomes("RewriteRule ^a$ - [F]", "[[rewrite]]\nmatch = '^/a$'\nstatus = 403", &[]);
    becomes("RewriteRule ^a$ - [G,NC]", "[[rewrite]]\nmatch = '(?i)^/a$'\nstatus = 410", &[]);
    becomes(
        "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^a$ b.html",
        "[[rewrite]]\nmatch = '^/a$'\nto = '/b.html'\nwhen = 'missing'",
        &[],
    );
    becomes(
        "RewriteRule ^a$ b?c=1 [QSA]",
        "[[rewrite]]\nmatch = '^/a$'\nto = '/b?c=1'",
        &["query string of the request is not appended"],
    );
    // What only sets a variable that PHP has anyway.
    becomes("RewriteRule .* - [E=HTTP_AUTHORIZATION:%1]", "", &[]);
    becomes("RewriteRule ^a$ -", "", &["ends the others"]);
    becomes("RewriteRule ^a$ /%{HTTP_HOST}", "", &["variables"]);
    becomes("RewriteRule !^a$ /b", "", &["negated"]);
    becomes(
        "RewriteCond %{HTTP_HOST} ^a\nRewriteRule ^b$ /c",
        "",
        &["its rule is not translated", "a condition has no translation"],
    );
}

#[test]
fn sections_of_files_and_directories_hold_there() {
    becomes("<Files a.txt>\nRequire all denied\n</Files>", "deny = [\"a.txt\"]", &[]);
    becomes(
        "<FilesMatch \"\\.(bak|sql)$\">\nRequire all denied\n</FilesMatch>",
        "deny = [\"*.bak\", \"*.sql\"]",
        &[],
    );
    becomes("<Directory /srv/www/a>\nRequire all denied\n</Directory>", "deny = [\"/a\"]", &[]);
    becomes("<Location /a/>\nOrder allow,deny\nDeny from all\n</Location>", "deny = [\"/a\"]", &[]);
    becomes("<Directory /srv/www>\nRequire all granted\n</Directory>", "", &[]);
    becomes(
        "<Directory /srv/www/a>\nphp_flag engine off\nDirectoryIndex x\n</Directory>",
        "no_php_in = [\"/a/\"]",
        &["it holds in /a/ only"],
    );
    becomes("<Directory /srv/wwwx>\nRequire all denied\n</Directory>", "", &["no app has files"]);
    becomes("<Files .htaccess>\nRequire all denied\n</Files>", "", &[]);
}

#[test]
fn conditions_on_versions_and_modules_are_those_of_2_4() {
    for (condition, holds) in [
        ("IfModule mod_x.c", true),
        ("IfModule !mod_x.c", false),
        ("IfDefine X", true),
        ("IfVersion 2.4", true),
        ("IfVersion >= 2.4", true),
        ("IfVersion > 2.4", false),
        ("IfVersion < 2.4", false),
        ("IfVersion <= 2.4.57", true),
        ("IfVersion 2.2", false),
    ] {
        let tag = condition.split(' ').next().unwrap();
        let text = format!("<{condition}>\nSetOutputFilter DEFLATE\n</{tag}>");
        becomes(&text, if holds { "compress = true" } else { "" }, &[]);
    }
}

#[test]
fn a_balancer_is_an_upstream() {
    let text = "<Proxy balancer://app/>\nBalancerMember http://a:80 loadfactor=2\n\
                BalancerMember https://b route=x status=+H retry=30\nBalancerMember ajp://c\n\
                BalancerMember unix:/run/d.sock|http://d hcuri=/up hcinterval=5\n\
                BalancerMember http://e/path\nBalancerMember http://f status=D\n\
                ProxySet lbmethod=bybusyness stickysession=ID maxattempts=99 failonstatus=500,503\n\
                </Proxy>\n\
                <VirtualHost *:80>\nDocumentRoot /srv/www\nProxyPass /a balancer://app/a\n</VirtualHost>\n";
    let (config, reasons) = whole(Kind::Httpd, text);
    let expected: toml::Table = "balance = 'least_connections'\nretries = 10\nsticky = {}\n\
        fail_timeout = '30s'\nfailure_status = ['500', '503']\n\
        health_check = { path = '/up', interval = '5s' }\n\
        servers = [{ url = 'http://a:80', weight = 2 }, { url = 'https://b', backup = true }, 'unix:/run/d.sock']"
        .parse()
        .unwrap();
    assert_eq!(config["upstream"]["app"].as_table().unwrap(), &expected);
    let parts = ["an http or https URL", "has no path", "the server is down"];
    assert_eq!(reasons.len(), parts.len(), "{reasons:?}");
    assert!(reasons.iter().zip(parts).all(|(reason, part)| reason.contains(part)), "{reasons:?}");
}

#[test]
fn a_balancer_without_members_is_not_a_route() {
    for (before, reason) in [
        ("", "there is no `<Proxy>` section with this balancer"),
        ("<Proxy balancer://app>\n</Proxy>\n", "its balancer has no member"),
    ] {
        let text = format!(
            "{before}<VirtualHost *:80>\nDocumentRoot /srv/www\nProxyPass /a balancer://app/a\n</VirtualHost>"
        );
        assert_app(app(Kind::Httpd, &text), "", &[reason], before);
    }
}

#[test]
fn routes_to_servers_keep_their_paths() {
    let route = |host: &str| format!("[[proxy]]\npath = '/a/**'\nupstream = 'http://b:80'\n{host}");
    becomes("ProxyPass /a/ http://b:80/a/", &route("preserve_host = false"), &[]);
    becomes("ProxyPreserveHost On\nProxyPass /a/ http://b:80/a/", &route(""), &[]);
    becomes(
        "<Location /a>\nProxyPass http://b:80/a\n</Location>",
        &route("preserve_host = false"),
        &[],
    );
    becomes("ProxyPass /a/ http://b:80/", "", &["prefix of the path is replaced"]);
    becomes("ProxyPass /a/ !", "", &["exceptions"]);
    becomes("ProxyPass /a/ ftp://b/a/", "", &["http or https URL"]);
    becomes("ProxyPassMatch ^/(.*\\.php)$ fcgi://127.0.0.1:9000/srv/www/$1", "", &[]);
}
