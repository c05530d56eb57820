//! `$_SERVER`, getenv() and the request headers are what nginx and php-fpm would give.

mod driver;

use driver::{Host, RequestSpec, Worker, finished, fixtures, get, ini, post, settings};

fn server(worker: &mut Worker, request: &RequestSpec) -> Vec<(String, String)> {
    let text = finished(&worker.request(request));
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn value<'a>(server: &'a [(String, String)], name: &str) -> Option<&'a str> {
    server.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[test]
fn variables_equal_those_of_nginx_and_php_fpm() {
    let mut worker = Host::new();
    let mut worker = worker.fork();
    let request = post("server.php", "text/plain", "abc")
        .header("Authorization", "Basic Ym9iOnB3")
        .path_info("/some info")
        .query("x=1&y=2");
    let server = server(&mut worker, &request);
    let user = value(&server, "USER").unwrap().to_owned();
    let home = value(&server, "HOME").unwrap().to_owned();
    let root = fixtures().to_str().unwrap().to_owned();
    let expected = [
        ("APP_COLOUR", "blue"),
        ("USER", &user),
        ("HOME", &home),
        ("HTTP_AUTHORIZATION", "Basic Ym9iOnB3"),
        ("HTTP_CONTENT_TYPE", "text/plain"),
        ("HTTP_HOST", "example.test"),
        ("REDIRECT_STATUS", "200"),
        ("SERVER_NAME", "example.test"),
        ("SERVER_PORT", "8080"),
        ("SERVER_ADDR", "192.0.2.1"),
        ("REMOTE_USER", "bob"),
        ("REMOTE_PORT", "40000"),
        ("REMOTE_ADDR", "192.0.2.7"),
        ("SERVER_SOFTWARE", concat!("outboard/", env!("CARGO_PKG_VERSION"), " (like nginx)")),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("REQUEST_SCHEME", "http"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("DOCUMENT_ROOT", &root),
        ("DOCUMENT_URI", "/server.php/some info"),
        ("REQUEST_URI", "/server.php/some info?x=1&y=2"),
        ("SCRIPT_NAME", "/server.php"),
        ("CONTENT_LENGTH", "3"),
        ("CONTENT_TYPE", "text/plain"),
        ("REQUEST_METHOD", "POST"),
        ("QUERY_STRING", "x=1&y=2"),
        ("SCRIPT_FILENAME", &format!("{root}/server.php")),
        ("PATH_INFO", "/some info"),
        ("PATH_TRANSLATED", &format!("{root}/some info")),
        ("REQUEST_ID", "r-1"),
        ("FCGI_ROLE", "RESPONDER"),
        ("PHP_SELF", "/server.php/some info"),
        ("PHP_AUTH_USER", "bob"),
        ("PHP_AUTH_PW", "pw"),
        ("REQUEST_TIME_FLOAT", "1700000000.25"),
        ("REQUEST_TIME", "1700000000"),
    ];
    let expected: Vec<_> = expected.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
    assert_eq!(server, expected);
}

#[test]
fn headers_are_joined_and_forgeable_names_left_out() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let request = get("server.php")
        .header("X-Tag", "one")
        .header("Cookie", "a=1")
        .header("Proxy", "http://evil.test")
        .header("X_Tag", "forged")
        .header("x-tag", "two")
        .header("Cookie", "b=2");
    let server = server(&mut worker, &request);
    assert_eq!(value(&server, "HTTP_X_TAG"), Some("one, two"));
    assert_eq!(value(&server, "HTTP_COOKIE"), Some("a=1; b=2"));
    assert_eq!(value(&server, "HTTP_PROXY"), None);
}

#[test]
fn missing_body_and_port_are_empty_as_in_nginx() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let server = server(&mut worker, &get("server.php"));
    for name in ["CONTENT_LENGTH", "CONTENT_TYPE", "QUERY_STRING", "PATH_INFO", "REMOTE_USER"] {
        assert_eq!(value(&server, name), Some(""), "{name}");
    }
    for name in ["HTTPS", "PATH_TRANSLATED", "PHP_AUTH_USER"] {
        assert_eq!(value(&server, name), None, "{name}");
    }
}

#[test]
fn https_is_on_for_a_secure_request_only() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let request = RequestSpec { scheme: "https".into(), ..get("server.php") };
    assert_eq!(value(&server(&mut worker, &request), "HTTPS"), Some("on"));
}

#[test]
fn configured_parameters_take_precedence() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let request = get("server.php").param("SERVER_NAME", "public.test").param("STAGE", "live");
    let server = server(&mut worker, &request);
    assert_eq!(value(&server, "SERVER_NAME"), Some("public.test"));
    assert_eq!(value(&server, "STAGE"), Some("live"));
}

#[test]
fn digest_authorization_is_passed_to_the_script() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let request = get("server.php").header("Authorization", "Digest username=\"bob\"");
    let server = server(&mut worker, &request);
    assert_eq!(value(&server, "PHP_AUTH_DIGEST"), Some("username=\"bob\""));
}

#[test]
fn argv_is_built_from_the_query_if_enabled() {
    let mut settings = settings();
    settings.ini.insert("register_argc_argv".into(), "1".into());
    let mut host = Host::with(settings);
    let mut worker = host.fork();
    let server = server(&mut worker, &get("server.php").query("a+b"));
    assert_eq!(value(&server, "argv"), Some(r#"["a","b"]"#));
    assert_eq!(value(&server, "argc"), Some("2"));
}

#[test]
fn getenv_and_filter_input_see_the_request() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let request = get("getenv.php").header("Proxy", "http://evil.test");
    let text = finished(&worker.request(&request));
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "string(12) \"example.test\"",
        "string(4) \"blue\"",
        "bool(false)",
        "bool(false)",
        "string(3) \"GET\"",
        "string(3) \"GET\"",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn getallheaders_spells_names_as_php_fpm() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let request = get("headers_in.php").header("x-fancy-thing", "1");
    let text = finished(&worker.request(&request));
    assert_eq!(text, "{\"X-Fancy-Thing\":\"1\",\"Host\":\"example.test\"}\n");
}

#[test]
fn each_script_starts_in_its_own_directory() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = driver::TempDir::new();
    let there = folder.write("deep/there.php", "<?php include 'beside.php';");
    folder.write("deep/beside.php", "<?php echo getcwd();");
    let here = fixtures();
    for _ in 0..2 {
        let text = finished(&worker.request(&get("where.php")));
        let file = here.join("where.php");
        assert_eq!(text, format!("{}\n{1}\n{1}\n", here.display(), file.display()));
        let text = finished(&worker.request(&get("deep/there.php").root(&folder.0)));
        assert_eq!(text, there.parent().unwrap().to_str().unwrap());
    }
}

#[test]
fn variables_order_with_e_fills_env() {
    let folder = driver::TempDir::new();
    folder
        .write("env.php", "<?php echo $_ENV['APP_COLOUR'] ?? 'none', $_SERVER['REQUEST_METHOD'];");
    let mut settings = settings();
    settings.ini.extend(ini(&[("variables_order", "EGPCS")]));
    let mut host = Host::with(settings);
    let text = finished(&host.fork().request(&get("env.php").root(&folder.0)));
    assert_eq!(text, "blueGET");
}
