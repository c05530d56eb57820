//! What is denied is neither run nor sent, and nothing private is published by default.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Request, Response, eventually};
use std::sync::LazyLock;

/// As docs/guide/wordpress.md has it, several sites in subfolders among it.
const RULES: &str = r#"
[[app.site.rewrite]]
match = '^/[_0-9a-zA-Z-]+(/wp-(content|admin|includes).*)$'
to = "$1"
when = "missing"
last = false

[[app.site.rewrite]]
match = '^/[_0-9a-zA-Z-]+(/.*\.php)$'
to = "$1"
when = "missing"

[[app.site.compose]]
path = "/composed"

[[app.site.compose.part]]
script = "/parts/part.php"
[[app.site.compose.part]]
file = "/parts/part.txt"
"#;

const DENY: &str = r#"
deny = [
    "/wp-content/uploads/**.php", "/wp-content/debug.log", "/xmlrpc.php", "/secret.php",
    "/admin2/index.php", "/protected/", "/parts/", "*.secret",
]
no_php_in = ["/media"]
"#;

fn docroot() -> Docroot {
    let docroot = Docroot::of("routing");
    let ran = "<?php echo 'RAN ', $_SERVER['SCRIPT_NAME'];";
    for script in [
        "wp-content/uploads/x.php",
        "wp-content/uploads/y.PHP",
        "xmlrpc.php",
        "secret.php",
        "admin2/index.php",
        "media/x.php",
        "media/in/y.pHp",
        "protected/script.php",
        "parts/part.php",
    ] {
        docroot.put(script, ran);
    }
    for file in [
        "wp-content/debug.log",
        "a.secret",
        "a.secret.gz",
        "protected/file.txt",
        "parts/part.txt",
        "media/picture.jpg",
        "data/db.sqlite",
        "data/db.sqlite-wal",
        "dump.sql.gz",
        "page.html~",
        "#page.html#",
        "wp-config.php.txt",
        "error_log",
        "composer.json",
        "docker-compose.yml",
        "key.PEM",
        "downloads/sample.sql",
    ] {
        docroot.put(file, format!("SENT {file}"));
    }
    let order = "<?php header('Content-Disposition: attachment; filename=\"a b.txt\"');
        header('Set-Cookie: a=b'); header('Cache-Control: private');
        header($_GET['by'] . ': ' . $_GET['to']);";
    docroot.put("order.php", order);
    docroot
}

fn text(more: &str) -> String {
    let site = format!("[app.site]\nroot = \"www\"\n{DENY}{more}\n{RULES}");
    format!("listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n{site}")
}

fn site() -> &'static Configured {
    static SITE: LazyLock<Configured> = LazyLock::new(|| {
        Configured::start(docroot(), &text("static.allow_private = [\"/downloads/*.sql\"]"))
    });
    &SITE
}

fn get(target: &str) -> Response {
    site().client().send(&Request::get(target).header("Accept-Encoding", "gzip"))
}

#[track_caller]
fn refused(target: &str, reason: &str) {
    let response = get(target);
    let body = response.text();
    assert!(!body.contains("RAN") && !body.contains("SENT"), "{target}: {body}");
    let response = response.expect(404);
    assert_eq!(response.header("x-outboard-reason"), Some(reason), "{target}");
}

#[test]
fn a_denied_script_runs_by_no_spelling_of_the_request() {
    for target in [
        "/wp-content/uploads/x.php",
        "/wp-content/uploads/x.php/",
        "/wp-content/uploads/x.php/a",
        "/wp-content/uploads/x.php/a.css",
        "/wp-content/uploads/y.PHP",
        "/wp-content/uploads/y.PHP/",
        "/site2/wp-content/uploads/x.php",
        "/site2/wp-content/uploads/x.php/a",
        "/site2/wp-content/debug.log",
        "/wp-content//uploads/x.php",
        "/wp-content/./uploads/%78.php",
        "/wp-content/uploads%2Fx.php",
        "/wp-content/uploads/%2e/x.php",
        "/secret.php/x",
        "/secret.php/",
        "/SECRET.php",
        "/xmlrpc.php/",
        "/admin2/",
        "/admin2/index.php/x",
        "/a.secret",
        "/a.SECRET",
        "/a.secret.gz",
        "/protected",
        "/protected/",
        "/protected/script.php",
    ] {
        refused(target, "denied");
    }
    // What leads to no file of that name is the application's.
    for target in ["/wp-content/uploads/x.php;a", "/wp-content/uploads/x.php.", "/xmlrpc.php%20"] {
        assert!(!get(target).text().contains("RAN"), "{target}");
    }
}

#[test]
fn a_folder_without_php_is_served_and_nothing_in_it_is_run() {
    for target in ["/media/x.php", "/media/x.php/a.jpg", "/media/in/y.pHp", "/media//in/y.pHp/"] {
        refused(target, "denied");
    }
    get("/media/picture.jpg").expect(200).saying("SENT media/picture.jpg");
    get("/media/none.jpg").expect(200).holding("SCRIPT_NAME=/index.php");
}

#[test]
fn databases_backups_logs_and_keys_are_not_published() {
    for target in [
        "/data/db.sqlite",
        "/DATA/../data/./db.sqlite",
        "/data/db.sqlite-wal",
        "/dump.sql.gz",
        "/page.html~",
        "/%23page.html%23",
        "/wp-config.php.txt",
        "/error_log",
        "/composer.json",
        "/docker-compose.yml",
        "/key.PEM",
    ] {
        refused(target, "private_file");
    }
    get("/downloads/sample.sql").expect(200).saying("SENT downloads/sample.sql");
    // The name alone says nothing: this page is the application's.
    get("/export/dump.sqlite").expect(200).holding("SCRIPT_NAME=/index.php");
}

#[test]
fn a_script_may_have_a_denied_file_sent_but_not_run() {
    let root = site().root().display().to_string();
    for (target, file) in [
        ("/order.php?by=X-Accel-Redirect&to=/protected/file.txt".to_owned(), "protected/file.txt"),
        ("/order.php?by=X-Accel-Redirect&to=/data/db.sqlite".to_owned(), "data/db.sqlite"),
        (format!("/order.php?by=X-Sendfile&to={root}/protected/file.txt"), "protected/file.txt"),
    ] {
        let sent = get(&target).expect(200).saying(&format!("SENT {file}"));
        assert_eq!(sent.header("x-accel-redirect"), None);
    }
    let script = get("/order.php?by=X-Accel-Redirect&to=/protected/script.php").expect(404);
    assert!(!script.text().contains("RAN"), "{}", script.text());
}

#[test]
fn x_sendfile_keeps_the_headers_of_the_script() {
    let root = site().root().display().to_string();
    for order in ["X-Accel-Redirect&to=".to_owned(), format!("X-Sendfile&to={root}")] {
        for file in ["/media/picture.jpg", "/protected/file.txt"] {
            let sent = get(&format!("/order.php?by={order}{file}")).expect(200);
            let has = |name: &str| sent.header(name).unwrap_or("nothing").to_owned();
            assert_eq!(has("content-disposition"), "attachment; filename=\"a b.txt\"", "{order}");
            assert_eq!(has("set-cookie"), "a=b", "{order}");
            assert_eq!(has("cache-control"), "private", "{order}");
            assert_eq!(has("accept-ranges"), "bytes", "{order}");
        }
    }
}

#[test]
fn a_page_may_be_composed_of_denied_parts() {
    get("/composed").expect(200).saying("RAN /parts/part.phpSENT parts/part.txt");
    refused("/parts/part.php", "denied");
}

#[test]
fn a_page_that_was_kept_is_denied_from_the_reload_on() {
    let cache = "page_cache = \"on\"";
    let head = "listen = \"127.0.0.1:0\"\n[app.site]\nroot = \"www\"\n";
    let docroot = docroot();
    docroot.put("kept.php", "<?php header('Cache-Control: max-age=600'); echo 'RAN';");
    let site = Configured::start(docroot, &format!("{head}{cache}\n"));
    for _ in 0..2 {
        site.client().get("/kept.php").expect(200).saying("RAN");
    }
    site.rewrite(&format!("{head}{cache}\ndeny = [\"/kept.php\"]\n"));
    let reloaded = site.command("reload", &[]);
    assert!(reloaded.status.success(), "{reloaded:?}");
    site.client().get("/kept.php").expect(404);
}

#[test]
fn a_refused_file_reveals_nothing_to_visitors() {
    let docroot = docroot();
    docroot.put("wp-config.php~", "SENT");
    let text = format!("reason_header = false\n{}", text("front_controller = \"none\""));
    let site = Configured::start(docroot, &text);
    let none = site.client().get("/none.txt").expect(404);
    for target in [
        "/wp-config.php~",
        "/wp-config.php.txt",
        "/data/db.sqlite",
        "/secret.php",
        "/.env",
        "/none~",
    ] {
        let refused = site.client().get(target).expect(404);
        assert_eq!(refused.header("x-outboard-reason"), None, "{target}");
        assert_eq!(refused.text(), none.text(), "{target}");
        assert_eq!(refused.headers.len(), none.headers.len(), "{target}");
    }
    site.logs(&["reason=php_source", "/wp-config.php~"]);
    site.logs(&["static.allow_private"]);
}

/// Applications rely on them, and plugins write them while the server runs.
#[test]
fn restrictions_of_htaccess_files_are_honored() {
    let docroot = docroot();
    docroot.put("data/.htaccess", "Require all denied\n");
    docroot.put("data/a.txt", "SECRET");
    docroot.put("data/deep/b.txt", "SECRET");
    docroot.put("data/x.php", "<?php echo 'SECRET';");
    docroot.put("media/.htaccess", "php_flag engine off\n");
    docroot.put("media/x.php", "<?php echo 'SECRET';");
    docroot.put("media/x.txt", "public");
    docroot.put("members/.htaccess", "AuthType Basic\nRequire valid-user\n");
    docroot.put("members/index.html", "SECRET");
    docroot.put(
        "plugin/.htaccess",
        "Require all denied\n<FilesMatch \"^a\\.css$\">\nRequire all granted\n</FilesMatch>\n",
    );
    docroot.put("plugin/a.css", "public");
    docroot.put("plugin/b.css", "SECRET");
    docroot.put("later/a.txt", "SECRET");
    docroot.put("send.php", "<?php header('X-Accel-Redirect: /data/a.txt');");
    docroot.put("sendfile.php", "<?php header('X-Sendfile: ' . __DIR__ . '/data/a.txt');");
    docroot.put("blocked/.htaccess", "Deny from 192.0.2.1\n");
    docroot.put("blocked/a.txt", "public");
    let text =
        "listen = \"127.0.0.1:0\"\n[app.site]\nroot = \"www\"\nfront_controller = \"none\"\n";
    let site = Configured::start(docroot, text);
    site.logs(&["warn", "app=site", "5 .htaccess files", "4 restrict access", "is denied"]);
    let paths = [
        "/data/a.txt",
        "/data/deep/b.txt",
        "/data/x.php",
        "/data/x.php/y",
        "/media/x.php",
        "/members/",
        "/members/index.html",
        "/plugin/b.css",
    ];
    for path in paths {
        assert_eq!(site.client().get(path).status, 404, "{path}");
    }
    for path in ["/media/x.txt", "/plugin/a.css", "/blocked/a.txt"] {
        assert_eq!(site.client().get(path).body, b"public", "{path}");
    }
    // A shop sends what it has sold.
    for path in ["/send.php", "/sendfile.php"] {
        assert_eq!(site.client().get(path).body, b"SECRET", "{path}");
    }
    // A file that appears later counts, for one that has been served as well.
    assert_eq!(site.client().get("/later/a.txt").status, 200);
    site.docroot().put("later/.htaccess", "Deny from all\n");
    eventually("the new file counts", || site.client().get("/later/a.txt").status == 404);
    let check = || {
        let file = site.docroot().beside().path().join("outboard.toml");
        let mut command = std::process::Command::new(outboard_e2e::Server::binary());
        let output = command.arg("check").arg(file).output().expect("the binary is there");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    };
    let printed = check();
    for part in
        ["/members/.htaccess", "/later/.htaccess", "/blocked/.htaccess:1: Deny from 192.0.2.1"]
    {
        assert!(printed.contains(part), "{printed}");
    }
    site.rewrite(&format!("{text}[app.site.static]\nhtaccess = false\n"));
    assert!(check().contains("they are ignored"), "{}", check());
}
