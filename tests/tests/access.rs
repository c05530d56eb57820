//! Which clients may request what, and how often: rules, rate limits and bans, against a real server.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Certificate, Client, Configured, Connection, Docroot, Protocol, Request, Response,
    Server, connect, eventually, read_to_any_end,
};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Output};

fn docroot() -> Docroot {
    let docroot = Docroot::of("routing");
    docroot.put("index.php", "<?php echo 'RAN ', $_SERVER['REQUEST_URI'];");
    docroot.put("admin/users.php", "<?php echo 'RAN users';");
    docroot.put("admin/notes.txt", "SENT notes");
    docroot.put("admin/index.html", "SENT index");
    docroot.put("open.txt", "SENT open");
    docroot
}

fn text(tables: &str) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n\
         [app.site]\nroot = \"www\"\n{tables}\n"
    )
}

fn serve(tables: &str) -> Configured {
    Configured::start(docroot(), &text(tables))
}

#[track_caller]
fn refused(response: Response, status: u16, reason: &str) {
    assert!(!response.text().contains("RAN") && !response.text().contains("SENT"), "{response:?}");
    let response = response.expect(status);
    assert_eq!(response.header("x-outboard-reason"), Some(reason));
}

#[track_caller]
fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A new connection gets no response.
#[track_caller]
fn closed(address: SocketAddr) {
    let mut stream = connect(address);
    // It may be closed already.
    let _ = stream.write_all(b"GET /open.txt HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let received = read_to_any_end(&mut stream);
    assert!(!String::from_utf8_lossy(&received).contains("SENT"), "{received:?}");
}

const FOR_OTHERS: &str = r#"
page_cache = "on"
[[app.site.access]]
path = "/admin/"
allow = ["192.0.2.0/24"]
[[app.site.rewrite]]
match = '^/shortcut/(.*)$'
to = '/admin/$1'
"#;

#[test]
fn a_protected_directory_is_closed_in_every_spelling() {
    let site = serve(FOR_OTHERS);
    for target in [
        "/admin",
        "/admin/",
        "/admin/users.php",
        "/admin/users.php/",
        "/admin/users.php/x.css",
        "/admin/notes.txt",
        "/ADMIN/notes.txt",
        "/%61dmin/notes.txt",
        "//admin///notes.txt",
        "/./admin/notes.txt",
        "/open.txt/../admin/notes.txt",
        "/admin/%2e/notes.txt",
        "/admin%2fnotes.txt",
        "/shortcut/notes.txt",
        "/shortcut/",
        "/index.php/admin/users",
        "/index.PHP/admin",
        "/INDEX.php/ADMIN/",
    ] {
        for method in ["GET", "POST", "HEAD", "OPTIONS", "PURGE"] {
            let request = Request::new(method, target).header("X-Forwarded-For", "192.0.2.1");
            let request = request.header("X-Original-URL", "/open.txt");
            refused(site.client().send(&request), 403, "address_denied");
        }
    }
    site.client().get("/open.txt").expect(200).holding("SENT open");
    site.client().get("/administrator").expect(200).holding("RAN /administrator");
    site.logs(&["reason=address_denied", "client=127.0.0.1", "app=site"]);
}

#[test]
fn a_rate_holds_for_files_and_scripts_and_across_a_reload() {
    let tables = "page_cache = \"on\"\n[[app.site.access]]\nrate_limit = \"4/h\"\n";
    let site = serve(tables);
    for target in ["/open.txt", "/index.php", "/index.php", "/missing"] {
        site.client().get(target).expect(200);
    }
    let limited = || {
        let response = site.client().get("/open.txt");
        assert!(response.header("retry-after").is_some(), "{response:?}");
        refused(response, 429, "rate_limited");
    };
    limited();
    site.rewrite(&text(&format!("{tables}[[app.site.headers]]\nset = {{ X-New = \"1\" }}\n")));
    assert!(site.command("reload", &[]).status.success());
    assert_eq!(site.client().get("/open.txt").header("x-new"), Some("1"));
    limited();
    let reasons = site.status()["reasons"].to_string();
    assert!(reasons.contains("{\"count\":3,\"reason\":\"rate_limited\""), "{reasons}");
}

#[test]
fn a_ban_holds_across_reload_and_restart_until_it_is_removed() {
    let tables = "[bans]\nfile = \"bans\"\n";
    let site = serve(tables);
    // A connection that is open already.
    let mut open = site.client();
    open.get("/open.txt").expect(200);
    let banned =
        site.command("ban", &["127.0.0.0/8", "--for", "1h", "--reason", "a scan\nof ports"]);
    assert_eq!(printed(&banned), "banned 127.0.0.0/8\n");
    let list = printed(&site.command("bans", &[]));
    assert!(list.contains("127.0.0.0/8") && list.contains("a scan of ports"), "{list}");
    refused(open.get("/open.txt"), 403, "banned");
    closed(site.address());
    assert!(site.command("reload", &[]).status.success());
    closed(site.address());
    drop(open);
    let site = Configured::start(site.into_killed(), &text(tables));
    closed(site.address());
    let json: serde_json::Value =
        serde_json::from_str(&printed(&site.command("bans", &["--json"]))).unwrap();
    assert_eq!(json["bans"][0]["network"], "127.0.0.0/8");
    assert_eq!(printed(&site.command("unban", &["127.0.0.0/8"])), "unbanned 127.0.0.0/8\n");
    site.client().get("/open.txt").expect(200);
    assert_eq!(site.command("unban", &["127.0.0.0/8"]).status.code(), Some(1));
    for network in ["0.0.0.0/0", "nonsense", "::/8", "10.0.0.0/40"] {
        assert_eq!(site.command("ban", &[network]).status.code(), Some(1), "{network}");
    }
    let site = Configured::start(site.into_stopped(), &text(tables));
    site.client().get("/open.txt").expect(200);
}

#[test]
fn a_listener_closes_connections_of_denied_addresses() {
    let tables = "[[listen]]\naddress = \"127.0.0.1:0\"\n\
                  [[listen]]\naddress = \"127.0.0.1:0\"\nname = \"closed\"\ndeny = [\"127.0.0.0/8\"]\n\
                  [log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n";
    let site = Configured::start(docroot(), tables);
    site.client().get("/open.txt").expect(200);
    closed(site.address_of(1));
    site.logs(&["reason=address_denied", "client=127.0.0.1"]);
}

/// The file that Apache's program writes.
fn htpasswd(docroot: &Docroot, user: &str, password: &str) {
    let path = docroot.beside().path().join("htpasswd");
    let create = if path.exists() { "-bB" } else { "-cbB" };
    let mut program = Command::new("htpasswd");
    let output = program.args([create, "-C", "5"]).arg(&path).args([user, password]).output();
    let output = output.expect("ci/setup installs apache2-utils");
    assert!(output.status.success(), "{output:?}");
}

fn authorized(target: &str, token: &str) -> Request {
    Request::get(target).header("Authorization", &format!("Basic {token}"))
}

#[test]
fn users_of_an_htpasswd_file_are_admitted_until_they_leave() {
    let docroot = docroot();
    docroot.put(
        "who.php",
        "<?php echo 'RAN ', $_SERVER['REMOTE_USER'], ' ', $_SERVER['PHP_AUTH_PW'];",
    );
    htpasswd(&docroot, "alice", "open:sesame");
    htpasswd(&docroot, "bob", "second");
    let tables = "page_cache = \"on\"\n[[app.site.access]]\npath = \"/who.php\"\n\
                  basic_auth = { file = \"htpasswd\" }\n";
    let site = Configured::start(docroot, &text(tables));
    let (alice, bob) = ("YWxpY2U6b3BlbjpzZXNhbWU=", "Ym9iOnNlY29uZA==");
    for _ in 0..2 {
        let response = site.client().send(&authorized("/who.php", alice)).expect(200);
        assert_eq!(response.text(), "RAN alice open:sesame");
        let response = site.client().send(&authorized("/who.php/x", bob)).expect(200);
        assert_eq!(response.text(), "RAN bob second");
        refused(site.client().get("/who.php"), 401, "auth_required");
        // bob with the password of alice.
        let wrong = authorized("/WHO.php", "Ym9iOm9wZW46c2VzYW1l");
        refused(site.client().send(&wrong), 401, "auth_failed");
        refused(site.client().send(&authorized("/who.php", "YWxpY2U6")), 401, "auth_failed");
        refused(site.client().send(&authorized("/who.php", "Y2Fyb2w6eA==")), 401, "auth_failed");
    }
    site.client().get("/open.txt").expect(200);
    site.logs(&["reason=auth_failed", "client=127.0.0.1"]);
    // alice leaves.
    let file = site.docroot().beside().path().join("htpasswd");
    let users = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        users.lines().filter(|line| !line.starts_with("alice")).collect::<String>(),
    )
    .unwrap();
    assert!(site.command("reload", &[]).status.success());
    refused(site.client().send(&authorized("/who.php", alice)), 401, "auth_failed");
    site.client().send(&authorized("/who.php", bob)).expect(200);
    // A file that is damaged does not open the path: the reload is refused.
    std::fs::write(&file, "bob:second\n").unwrap();
    let reload = site.command("reload", &[]);
    let said = String::from_utf8_lossy(&reload.stderr).into_owned();
    assert!(!reload.status.success() && said.contains("line 1, user `bob`"), "{said}");
    refused(site.client().get("/who.php"), 401, "auth_required");
}

#[test]
fn users_of_older_htpasswd_files_are_admitted_with_a_warning() {
    let docroot = docroot();
    let hash = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        printed(&output).trim().to_owned()
    };
    let sha2 = |kind| format!("{kind}:{}\n", hash("openssl", &["passwd", kind, "secret"]));
    let lines = [
        hash("htpasswd", &["-nbm", "apr1", "secret"]) + "\n",
        hash("htpasswd", &["-nbs", "sha1", "secret"]) + "\n",
        sha2("-5"),
        sha2("-6"),
    ];
    let file = docroot.beside().file("htpasswd", lines.concat());
    let tables = "[[app.site.access]]\nbasic_auth = { file = \"htpasswd\" }\n";
    let site = Configured::start(docroot, &text(tables));
    for token in ["YXByMTpzZWNyZXQ=", "c2hhMTpzZWNyZXQ=", "LTU6c2VjcmV0", "LTY6c2VjcmV0"] {
        site.client().send(&authorized("/open.txt", token)).expect(200).saying("SENT open");
    }
    for wrong in ["YXByMTpTZWNyZXQ=", "c2hhMTpTZWNyZXQ=", "LTU6U2VjcmV0", "LTY6U2VjcmV0"] {
        refused(site.client().send(&authorized("/open.txt", wrong)), 401, "auth_failed");
    }
    let check = |arguments: &[&str]| {
        let mut program = Command::new(Server::binary());
        program.arg("check").args(arguments).arg(file.with_file_name("outboard.toml"));
        program.output().unwrap()
    };
    let users = "guessed fast: `apr1` (MD5), `sha1` (SHA-1)";
    let printed_by_check = printed(&check(&[]));
    assert!(printed_by_check.contains("[app.site.access.0.basic_auth]"), "{printed_by_check}");
    assert!(printed_by_check.contains(users), "{printed_by_check}");
    assert!(printed(&check(&["--json"])).contains(users));
    // A file without a user does not open the path: the reload is refused.
    std::fs::write(&file, "# none\n").unwrap();
    let reload = site.command("reload", &[]);
    let said = String::from_utf8_lossy(&reload.stderr).into_owned();
    assert!(!reload.status.success() && said.contains("the file has no user"), "{said}");
    refused(site.client().get("/open.txt"), 401, "auth_required");
}

/// A listener whose local peers are proxies, on a port that no bridge is before.
fn behind_proxy() -> Configured {
    let docroot = docroot();
    docroot.put(
        "ends.php",
        "<?php echo 'RAN ', $_SERVER['REMOTE_ADDR'], ' ', $_SERVER['SERVER_ADDR'], ' ', $_SERVER['SERVER_PORT'];",
    );
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n\
                [[listen]]\naddress = \"127.0.0.1:0\"\nname = \"proxied\"\n\
                proxy_protocol = [\"127.0.0.0/8\"]\n\
                [[listen]]\naddress = \"127.0.0.1:0\"\nname = \"for others\"\n\
                proxy_protocol = [\"192.0.2.0/24\"]\n\
                [log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n\
                [[app.site.access]]\ndeny = [\"203.0.113.0/24\"]\n";
    Configured::start(docroot, text)
}

fn sent(address: SocketAddr, header: &[u8]) -> String {
    let mut stream = connect(address);
    let request = b"GET /ends.php HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let _ = stream.write_all(&[header, request].concat());
    String::from_utf8_lossy(&read_to_any_end(&mut stream)).into_owned()
}

#[test]
fn a_proxy_header_names_the_client() {
    // The bytes of the connection are those of HTTP/1.1.
    if Protocol::of_run() != Protocol::Http1 {
        return;
    }
    let site = behind_proxy();
    let to = |header: &[u8]| sent(site.address_of(1), header);
    let v1 = to(b"PROXY TCP4 198.51.100.7 192.0.2.80 4000 443\r\n");
    assert!(v1.contains("RAN 198.51.100.7 192.0.2.80 443"), "{v1}");
    let v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc6\x33\x64\x07\xc0\0\x02\x50\x0f\xa0\x01\xbb";
    assert!(to(v2).contains("RAN 198.51.100.7 192.0.2.80 443"));
    let own = to(b"PROXY UNKNOWN\r\n");
    assert!(own.contains("RAN 127.0.0.1 127.0.0.1"), "{own}");
    let denied = to(b"PROXY TCP6 ::ffff:203.0.113.9 ::1 4000 443\r\n");
    assert!(denied.contains(" 403 "), "{denied}");
    assert!(site.command("ban", &["198.51.100.0/24"]).status.success());
    assert_eq!(to(b"PROXY TCP4 198.51.100.7 192.0.2.80 4000 443\r\n"), "");
    assert!(to(b"PROXY TCP4 198.51.99.7 192.0.2.80 4000 443\r\n").contains("RAN 198.51.99.7"));
}

#[test]
fn a_proxy_without_a_header_is_not_served_and_others_send_none() {
    // The bytes of the connection are those of HTTP/1.1.
    if Protocol::of_run() != Protocol::Http1 {
        return;
    }
    let site = behind_proxy();
    for start in [&b""[..], b"PROXY TCP4 198.51.100.7\r\n", b"\r\n\r\n\0\r\nQUIT\n\x11\x11\0\0"] {
        let received = sent(site.address_of(1), start);
        assert_eq!(received, "", "{}", start.escape_ascii());
    }
    site.logs(&["reason=proxy_header", "client=127.0.0.1"]);
    assert!(sent(site.address_of(2), b"").contains("RAN 127.0.0.1"));
    let forged = sent(site.address_of(2), b"PROXY TCP4 198.51.100.7 192.0.2.80 4000 443\r\n");
    assert!(forged.starts_with("HTTP/1.1 400 ") && !forged.contains("RAN"), "{forged}");
}

/// A service that admits `Cookie: who=NAME` and names the user, twice for mallory; and sees what it is asked.
fn verifier() -> Docroot {
    let docroot = docroot();
    docroot.put(
        "verify.php",
        "<?php if (!preg_match('/^[a-z]+$/', $who = $_COOKIE['who'] ?? '')) {
            header('Location: https://login.test/?to=' . $_SERVER['HTTP_X_FORWARDED_URI'], true, 302);
            header('Set-Cookie: asked=' . $_SERVER['HTTP_X_FORWARDED_METHOD']);
            exit('log in');
        }
        if (isset($_SERVER['HTTP_REMOTE_USER'])) exit(http_response_code(500));
        if ($who === 'nobody') exit;
        header('Remote-User: ' . $who);",
    );
    docroot.put(
        "who.php",
        "<?php echo 'RAN ', json_encode([$_SERVER['HTTP_REMOTE_USER'] ?? null,
            $_SERVER['HTTP_REMOTE_GROUPS'] ?? null, $_SERVER['HTTP_X_OTHER'] ?? null,
            file_get_contents('php://input')]);",
    );
    docroot
}

#[test]
fn a_script_of_the_app_decides_and_names_the_user() {
    let worker = "mode = \"worker\"\n[app.site.worker]\nscript = \"www/worker.php\"\n";
    for (mode, script) in [("", "/auth.php"), (worker, "/any/path")] {
        let docroot = verifier();
        docroot.put(
            "auth.php",
            "<?php if (($who = $_COOKIE['who'] ?? '') === '') {
                header('Location: /login?to=' . $_SERVER['OUTBOARD_AUTH_URI'], true, 302);
                exit($_SERVER['OUTBOARD_AUTH_METHOD'] . ' ' . $_SERVER['REQUEST_METHOD']
                    . file_get_contents('php://input'));
            }
            if ($who === 'slow') sleep(3);
            if ($who === 'crash') posix_kill(getmypid(), SIGKILL);
            if (isset($_SERVER['HTTP_REMOTE_USER'])) exit(http_response_code(500));
            header('Remote-User: ' . $who);",
        );
        docroot.put(
            "worker.php",
            "<?php while (Outboard\\handle_request(static function (): void {
                isset($_SERVER['OUTBOARD_AUTH_URI']) && $_SERVER['REQUEST_URI'] !== '/any/path' && exit('no');
                require __DIR__ . (isset($_SERVER['OUTBOARD_AUTH_URI']) ? '/auth.php' : '/who.php');
            })) {}",
        );
        let rule = format!(
            "{mode}[[app.site.access]]\nforward_auth = {{ script = \"{script}\", timeout = \"500ms\", \
             copy_headers = [\"Remote-User\"] }}\n"
        );
        let site = Configured::start(docroot, &text(&rule));
        let post =
            || Request::post("/who.php?a=1", "text/plain", "body").header("Remote-User", "root");
        let refused_one = site.client().send(&post()).expect(302);
        assert_eq!(refused_one.header("location"), Some("/login?to=/who.php?a=1"));
        assert_eq!(refused_one.text(), "POST GET");
        let admitted = site.client().send(&post().header("Cookie", "who=alice")).expect(200).text();
        assert_eq!(admitted, "RAN [\"alice\",null,null,\"body\"]");
        for who in ["slow", "crash"] {
            let response = site.client().send(&post().header("Cookie", &format!("who={who}")));
            assert!(response.status >= 500 && !response.text().contains("RAN"), "{who}");
        }
    }
}

#[test]
fn a_service_decides_and_names_the_user() {
    let service = Configured::start(verifier(), &text(""));
    let rule = format!(
        "page_cache = \"on\"\n[[app.site.access]]\npath = \"/who.php\"\nforward_auth = {{ upstream = \
         \"http://{}/verify.php\", copy_headers = [\"Remote-User\", \"Remote-Groups\"] }}\n",
        service.address()
    );
    let site = Configured::start(verifier(), &text(&rule));
    let lies = |request: Request| {
        let request = request.header("Remote-User", "root").header("REMOTE-GROUPS", "wheel");
        request.header("Remote_User", "root").header("X-Other", "kept")
    };
    for target in ["/who.php", "/who.php/x", "/WHO.php"] {
        let response = site.client().send(&lies(Request::post(target, "text/plain", "body")));
        let response = response.expect(302);
        assert!(response.header("location").unwrap().starts_with("https://login.test/?to=/"));
        assert_eq!(response.header("set-cookie"), Some("asked=POST"));
        assert_eq!(response.text(), "log in");
    }
    for (who, expected) in
        [("alice", "[\"alice\",null,"), ("bob", "[\"bob\",null,"), ("nobody", "[null,null,")]
    {
        for _ in 0..2 {
            let request = lies(Request::post("/who.php", "text/plain", "body"));
            let request = request.header("Cookie", &format!("who={who}"));
            let text = site.client().send(&request).expect(200).text();
            assert_eq!(text, format!("RAN {expected}\"kept\",\"body\"]"));
            let text = site
                .client()
                .send(&lies(Request::get("/who.php")).header("Cookie", &format!("who={who}")));
            assert_eq!(text.expect(200).text(), format!("RAN {expected}\"kept\",\"\"]"));
        }
    }
    // Later versions of HTTP have no such field.
    if Protocol::of_run() == Protocol::Http1 {
        let nominated = Request::get("/who.php").header("Cookie", "who=alice");
        let nominated = nominated.header("Connection", "close, remote-USER");
        refused(site.client().send(&nominated), 400, "bad_request");
    }
    // A path without the rule: the client does not name itself there either.
    let open = site.client().send(&lies(Request::get("/index.php"))).expect(200);
    assert!(open.text().starts_with("RAN"));
    site.logs(&["reason=auth_refused", "client=127.0.0.1"]);
    // Without its service nobody is admitted.
    drop(service);
    let request = Request::get("/who.php").header("Cookie", "who=alice");
    refused(site.client().send(&request), 502, "upstream_failed");
}

#[test]
fn named_origins_may_read_and_no_others() {
    let docroot = docroot();
    docroot.put(
        "api.php",
        "<?php header('Access-Control-Allow-Origin: *'); header('X-Own: 1'); echo 'RAN';",
    );
    htpasswd(&docroot, "alice", "secret");
    let tables = "[[app.site.access]]\npath = \"/api.php\"\nbasic_auth = { file = \"htpasswd\" }\n\
                  cors = { origins = [\"https://a.test\"], methods = [\"PUT\"], headers = [\"X-Key\"], \
                  credentials = true }\n";
    let site = Configured::start(docroot, &text(tables));
    let ask = |method: &str, origin: &str| {
        let request = Request::new(method, "/api.php").header("Origin", origin);
        let request = request.header("Access-Control-Request-Method", "PUT");
        site.client().send(&request)
    };
    let allowed = "access-control-allow-origin";
    let preflight = ask("OPTIONS", "https://a.test").expect(204);
    assert_eq!(preflight.header(allowed), Some("https://a.test"));
    assert_eq!(preflight.header("access-control-allow-methods"), Some("PUT"));
    assert_eq!(preflight.header("access-control-allow-headers"), Some("X-Key"));
    assert_eq!(preflight.header("vary"), Some("Origin"));
    for origin in ["https://b.test", "https://a.test.b.test", "http://a.test", "null"] {
        assert_eq!(ask("OPTIONS", origin).expect(204).header(allowed), None, "{origin}");
    }
    // A page can read that it has to log in.
    assert_eq!(ask("GET", "https://a.test").expect(401).header(allowed), Some("https://a.test"));
    let mut client = site.client();
    for (origin, expected) in [("https://b.test", None), ("https://a.test", Some("https://a.test"))]
    {
        let request = authorized("/api.php", "YWxpY2U6c2VjcmV0").header("Origin", origin);
        let response = client.send(&request).expect(200);
        assert_eq!(
            response.all(allowed).collect::<Vec<_>>(),
            expected.into_iter().collect::<Vec<_>>()
        );
        assert_eq!(response.header("x-own"), Some("1"));
    }
    // Two origins are none.
    let twice = Request::new("OPTIONS", "/api.php").header("Origin", "https://a.test");
    let twice =
        twice.header("Access-Control-Request-Method", "PUT").header("Origin", "https://b.test");
    assert_eq!(site.client().send(&twice).expect(204).header(allowed), None);
    let other = client.send(&Request::get("/open.txt").header("Origin", "https://a.test"));
    assert_eq!(other.expect(200).header(allowed), None);
}

#[test]
fn a_rule_bounds_the_bodies_of_its_paths() {
    let tables = "[[app.site.access]]\npath = \"/admin/\"\nbody = \"10 B\"\n";
    let site = serve(tables);
    let post =
        |target: &str, length: usize| Request::post(target, "text/plain", vec![b'a'; length]);
    let mut client = site.client();
    client.send(&post("/admin/users.php", 10)).expect(200);
    refused(client.send(&post("/admin/users.php", 11)), 413, "body_too_large");
    let mut client = site.client();
    client.send(&post("/admin/users.php", 10)).expect(200);
    client.send(&post("/index.php", 100)).expect(200);
    let chunked = "POST /admin/users.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
                   Transfer-Encoding: chunked\r\n\r\nb\r\naaaaaaaaaaa\r\n0\r\n\r\n";
    let received = site.exchange(chunked);
    assert!(received.starts_with("HTTP/1.1 413 "), "{received}");
}

/// Of `secret`, by bcrypt.
const HASH: &str = "$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe";

const LIMIT: &str = r#"<?php
$answer = function (): void {
    $limit = new Outboard\RateLimit($_GET['limit'] ?? 'login');
    try {
        $result = $limit->{$_GET['do'] ?? 'take'}($_GET['key'] ?? '', (int) ($_GET['tokens'] ?? 1));
        printf('%d %d %.0f %d', $result->allowed, $result->remaining, $result->retryAfter / 60, $result->limit);
    } catch (\ValueError $error) {
        echo $error->getMessage();
    }
};
RUN
"#;

#[test]
fn scripts_take_tokens_of_their_own_keys() {
    let in_worker_mode = "mode = \"worker\"\n[app.site.worker]\nscript = \"www/limit.php\"\n";
    for (worker, run) in
        [("", "$answer();"), (in_worker_mode, "while (Outboard\\handle_request($answer)) {}")]
    {
        let docroot = docroot();
        docroot.put("limit.php", LIMIT.replace("RUN", run));
        let limits = "[app.site.rate_limits.login]\nrate = \"3/h\"\n";
        let site = Configured::start(docroot, &text(&format!("{worker}{limits}")));
        let said = |query: &str| {
            let response = site.client().get(&format!("/limit.php?{query}")).expect(200);
            response.text()
        };
        assert_eq!(said("key=ann&do=look"), "1 2 0 3", "{worker}");
        assert_eq!(said("key=ann"), "1 2 0 3", "{worker}");
        assert_eq!(said("key=ann&tokens=2"), "1 0 20 3");
        assert_eq!(said("key=ann"), "0 0 20 3");
        assert_eq!(said("key=ann&do=look"), "0 0 20 3");
        assert_eq!(said("key=bob&tokens=3"), "1 0 20 3");
        assert!(said("key=eve&tokens=4").contains("1 to 3 tokens"), "{}", said("key=eve&tokens=4"));
        assert!(said("key=").contains("a key has 1 to 1024 bytes"));
        assert!(said("key=a&limit=other").contains("no rate limit `other`"));
        // The limit is the same after a reload.
        assert!(site.command("reload", &[]).status.success());
        assert_eq!(said("key=ann"), "0 0 20 3");
    }
}

#[test]
fn a_listener_bounds_the_connections_of_an_address() {
    let tables = "[[listen]]\naddress = \"127.0.0.1:0\"\n\
                  [[listen]]\naddress = \"127.0.0.1:0\"\nname = \"narrow\"\n\
                  connections_per_ip = 2\nconnections = 3\n\
                  [log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n";
    let site = Configured::start(docroot(), tables);
    let mut open: Vec<Client> = (0..2).map(|_| Client::new(site.address_of(1))).collect();
    open.iter_mut().for_each(|client| _ = client.get("/open.txt").expect(200));
    closed(site.address_of(1));
    site.logs(&["reason=too_many_connections", "client=127.0.0.1"]);
    // The other listener has room, and a place that becomes free is taken.
    site.client().get("/open.txt").expect(200);
    open.pop();
    eventually("there is a place", || {
        let mut connection = Connection::open(site.address_of(1));
        connection.send(&Request::get("/open.txt").to_bytes("a.test"))?;
        connection.response().map(|response| assert_eq!(response.status, 200))
    });
    let reasons = site.status()["reasons"].to_string();
    assert!(reasons.contains("\"reason\":\"too_many_connections\""), "{reasons}");
}

#[test]
fn a_listener_bounds_connections_of_tls_and_quic() {
    let docroot = docroot();
    Certificate::make(docroot.beside().path(), "one", "IP:127.0.0.1");
    let tables = "[[listen]]\naddress = \"127.0.0.1:0\"\nhttp3 = true\nconnections_per_ip = 3\n\
                  tls = [{ certificate = \"one.pem\", key = \"one.key\" }]\n\
                  [log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n";
    let site = Configured::start(docroot, tables);
    let url = format!("https://{}/open.txt", site.served_at());
    let failures = |protocol: &str, connections: &str| {
        let file = site.root().join("result.json");
        let mut command = Command::new(Server::binary());
        command.args(["bench", protocol, "--insecure", "--quiet", "--json"]).arg(&file);
        command.args(["--connections", connections, "--requests", "100", &url]);
        let output = command.output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap())
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        report["failures"]["total"].as_u64().unwrap()
    };
    let refusals = || {
        let reasons = site.status()["reasons"].clone();
        let one = |reason: &&serde_json::Value| reason["reason"] == "too_many_connections";
        reasons.as_array().unwrap().iter().find(one).map_or(0, |one| one["count"].as_u64().unwrap())
    };
    for protocol in ["--http2", "--http3"] {
        let before = refusals();
        eventually("the connections are closed", || failures(protocol, "3") == 0);
        let more = failures(protocol, "6");
        assert!(more > 0 && refusals() >= before + 3, "{protocol}: {more}, {}", refusals());
    }
}

/// The segments of a path whose dot segments are removed, without a look above the root.
fn resolved<'p>(segments: impl Iterator<Item = &'p str>) -> String {
    let mut path = Vec::new();
    for segment in segments {
        match segment.to_lowercase().replace("%2e", ".").as_str() {
            "." => {}
            ".." => drop(path.pop()),
            _ => path.push(segment),
        }
    }
    path.join("/")
}

fn decoded(text: &str) -> String {
    let codes =
        ["%2f", "%5c", "%70", "%3b", "%2e", "%25"].iter().zip(["/", "\\", "p", ";", ".", "%"]);
    codes.fold(text.to_lowercase(), |text, (code, byte)| text.replace(code, byte))
}

/// Where programs think that a path leads: the URL parser of browsers and Node (WHATWG URL, 4.4), Tomcat, a router
/// that compares segments, one that compares what is decoded, IIS, and one behind a proxy that has decoded already.
fn readings(path: &str) -> [String; 6] {
    let slashes = path.replace('\\', "/");
    let bare = |path: &str| -> Vec<String> {
        path.split('/').map(|one| one.split(';').next().unwrap_or_default().to_owned()).collect()
    };
    let servlet = decoded(&bare(path).join("/"));
    let without_empty = |path: &str| -> Vec<String> {
        path.split('/').filter(|one| !one.is_empty()).map(str::to_owned).collect()
    };
    let twice = without_empty(&decoded(&decoded(path)));
    let windows = without_empty(&decoded(path).replace('\\', "/"));
    [
        resolved(slashes.split('/').skip(1)),
        resolved(without_empty(&servlet).iter().map(String::as_str)),
        path.trim_start_matches('/').to_lowercase(),
        decoded(path).trim_start_matches('/').to_owned(),
        resolved(windows.iter().map(String::as_str)),
        resolved(twice.iter().map(String::as_str)),
    ]
}

#[test]
fn no_upstream_reads_a_protected_path_that_rules_did_not() {
    let backend = Backend::start();
    let app = |kind: &str, rule: &str| {
        format!(
            "[app.{kind}]\nroot = \"www\"\nhosts = [\"{kind}.test\"]\n{rule}\n[[app.{kind}.proxy]]\n\
             path = \"/text/**\"\nupstream = \"{}\"\n",
            backend.url()
        )
    };
    let access = |kind: &str, rule: &str| {
        app(kind, &format!("[[app.{kind}.access]]\npath = \"/text/private/\"\n{rule}"))
    };
    let text = [
        "listen = \"127.0.0.1:0\"\n".to_owned(),
        app("deny", "deny = [\"/text/private/\"]"),
        access("allow", "allow = [\"192.0.2.0/24\"]"),
        access("password", &format!("basic_auth = {{ users = {{ a = '{HASH}' }} }}")),
        access(
            "service",
            &format!("forward_auth = {{ upstream = \"{}/status/401\" }}", backend.url()),
        ),
        app(
            "except",
            "[[app.except.access]]\nexcept = [\"/text/open/\"]\ndeny = [\"127.0.0.0/8\"]",
        ),
    ];
    let site = Configured::start(docroot(), &text.concat());
    let mut targets: Vec<String> = [
        "private/x",
        "private//../x",
        "private//%2e%2e/x",
        "private//..//x",
        "private\\x",
        "x/..\\private/x",
        "private/..%2fx",
        "private%2f..%2fx",
        "private/../x",
        "private/./../x",
        "x/..;/private/x",
        "x/..;a=b/private/x",
        "private;a=b/x",
        "private%3Ba/x",
        ";/private/x",
        "x/%2e%2e;/private",
        "private%5cx",
        "x%5C..%5Cprivate",
        "%2570rivate/x",
        "x/%252e%252e/private/x",
        "x%2f%2e%2e%2fprivate",
        "PRIVATE;x",
        "open/..%2fprivate/x",
        "open//../../private",
        "open/x//../../private/y",
        "open;/private",
        "open%2fx/y",
        "open/%2e%2e%3b/private/x",
        "./private/x",
        "%2e/private//",
        "x//../private",
        "private/x/../..%2f",
    ]
    .map(|rest| format!("/text/{rest}"))
    .to_vec();
    targets.extend(
        ["//text/private/x", "/x/../text/private/x", "/text;x/private", "/text%2fprivate"]
            .map(str::to_owned),
    );
    let mut client = site.client();
    for kind in ["deny", "allow", "password", "service", "except"] {
        for target in &targets {
            for upgrade in [None, Some("websocket")] {
                let request = Request::get(target).header("Host", &format!("{kind}.test"));
                let request = match upgrade {
                    Some(name) => request.header("Connection", "Upgrade").header("Upgrade", name),
                    None => request,
                };
                let before = backend.heard().len();
                let response = client.send(&request);
                for heard in
                    backend.heard().iter().skip(before).filter(|heard| *heard != "/status/401")
                {
                    let is_protected = |path: &String| match kind {
                        "except" => !path.starts_with("text/open/"),
                        // It denies what is in the directory.
                        "deny" => path.starts_with("text/private/"),
                        _ => path == "text/private" || path.starts_with("text/private/"),
                    };
                    let seen = readings(heard).into_iter().find(is_protected);
                    assert_eq!(seen, None, "{kind} {target} {upgrade:?} {heard} {response:?}");
                }
            }
        }
        let request =
            Request::get("/text/open/a%20b;c=d/%2Fe").header("Host", &format!("{kind}.test"));
        assert_eq!(client.send(&request).expect(200).text(), "open/a%20b;c=d/%2Fe", "{kind}");
    }
}

/// A script routes by the target as well.
#[test]
fn rules_hold_for_what_a_script_may_read_in_its_target() {
    let site = serve(FOR_OTHERS);
    for target in [
        "/admin/../x",
        "/x/..%2fadmin%2f",
        "/admin//../x",
        "/admin;x/y",
        "/%2561dmin/x",
        "/admin%5cx",
    ] {
        refused(site.client().get(target), 403, "address_denied");
    }
    site.client().get("/x/../y;z//%25").expect(200).holding("RAN /x/../y;z//%25");
}

#[test]
fn services_and_upstreams_get_one_cookie_field() {
    let backend = Backend::start();
    let tables = format!(
        "[[app.site.access]]\npath = \"/echo\"\nforward_auth = {{ upstream = \"{0}/text/\" }}\n\
         [[app.site.proxy]]\npath = \"/**\"\nupstream = \"{0}\"\n",
        backend.url()
    );
    let site = serve(&tables);
    let request = Request::get("/echo").header("Cookie", "a=1").header("X-A", "b");
    let request = request.header("COOKIE", "who=alice; b=2").header("Cookie", "c=3");
    let heard = site.client().send(&request).expect(200).text();
    let cookies: Vec<_> =
        heard.lines().filter(|line| line.to_lowercase().starts_with("cookie:")).collect();
    assert_eq!(cookies.len(), 1, "{heard}");
    assert!(cookies[0].ends_with(": a=1; who=alice; b=2; c=3"), "{heard}");
}

#[test]
fn rules_hold_for_websocket_upgrades() {
    let backend = Backend::start();
    let tables = format!(
        "[[app.site.proxy]]\npath = \"/**\"\nupstream = \"{}\"\n\
         [[app.site.access]]\npath = \"/closed/\"\ndeny = [\"127.0.0.0/8\"]\n\
         [[app.site.access]]\npath = \"/few/\"\nrate_limit = \"1/h\"\n\
         [[app.site.access]]\npath = \"/named/\"\nbasic_auth = {{ users = {{ a = '{HASH}' }} }}\n",
        backend.url(),
    );
    let site = serve(&tables);
    let upgrade = |target: &str| {
        let request = Request::get(target).header("Connection", "Upgrade");
        let request = request.header("Upgrade", "websocket").header("Sec-WebSocket-Version", "13");
        let mut stream = connect(site.address());
        let bytes = request.header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        stream.write_all(&bytes.to_bytes("a.test")).unwrap();
        let mut head = Vec::new();
        // One that is closed instead has no head.
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap_or_else(|error| panic!("{target}: {error}"));
            head.extend(byte);
        }
        let head = String::from_utf8(head).unwrap();
        head.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok()).unwrap_or_default()
    };
    assert_eq!(upgrade("/closed/switch"), 403);
    assert_eq!(upgrade("/CLOSED/switch"), 403);
    assert_eq!(upgrade("/named/switch"), 401);
    assert_ne!(upgrade("/few/switch"), 429);
    assert_eq!(upgrade("/few/switch"), 429);
    assert_eq!(upgrade("/switch"), 101);
    assert!(site.command("ban", &["127.0.0.0/8", "--for", "1h"]).status.success());
    closed(site.address());
}

#[test]
fn security_headers_are_sent_with_every_kind_of_response() {
    let docroot = docroot();
    docroot.put("own.php", "<?php header('X-Frame-Options: DENY'); echo 'RAN own';");
    let tables = "security_headers = \"basic\"\n[[app.site.access]]\npath = \"/admin/\"\n\
                  deny = [\"127.0.0.0/8\"]\n";
    let site = Configured::start(docroot, &text(tables));
    for (target, status) in
        [("/open.txt", 200), ("/index.php", 200), ("/admin/x", 403), ("/missing.txt", 200)]
    {
        let response = site.client().get(target).expect(status);
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{target}");
    }
    let own = site.client().get("/own.php").expect(200);
    assert_eq!(own.header("x-frame-options"), Some("DENY"));
}

#[test]
fn a_file_begins_and_ends_maintenance_without_a_reload() {
    let tables = "page_cache = \"on\"\n[app.site.maintenance]\nfile = \"www/on.flag\"\n\
                  page = \"admin/index.html\"\nassets = [\"/admin/\"]\nretry_after = \"7s\"\n";
    let docroot = docroot();
    docroot.put("admin/index.html", "the page");
    let site = Configured::start(docroot, &text(tables));
    let get = |target: &str| site.client().send(&Request::get(target));
    get("/").expect(200).holding("RAN /");
    get("/open.txt").expect(200).saying("SENT open");
    site.docroot().put("on.flag", "");
    eventually("the maintenance begins", || get("/").status == 503);
    for target in ["/", "/open.txt", "//open.txt", "/%6fpen.txt", "/missing", "/admin/users.php"] {
        let response = get(target);
        assert_eq!(response.header("retry-after"), Some("7"), "{target}");
        assert_eq!(response.text(), "the page", "{target}");
        refused(response, 503, "maintenance");
    }
    refused(site.client().send(&Request::form("/", &[("a", "b")])), 503, "maintenance");
    get("/admin/notes.txt").expect(200).saying("SENT notes");
    std::fs::remove_file(site.root().join("on.flag")).unwrap();
    eventually("the maintenance ends", || get("/").status == 200);
}

#[test]
fn only_allowed_clients_get_an_app_in_maintenance() {
    let tables = |network: &str| format!("[app.site.maintenance]\nallow = [\"{network}\"]\n");
    serve(&tables("127.0.0.0/8")).client().send(&Request::get("/")).expect(200).holding("RAN /");
    let site = serve(&tables("192.0.2.0/24"));
    let claim = Request::get("/").header("X-Forwarded-For", "192.0.2.1");
    refused(site.client().send(&claim), 503, "maintenance");
}
