//! Settings of php.ini in every mode: what a script sees and what its client gets are those of php-fpm.
//!
//! Settings that do not affect each other are in one group, which costs a start of php-fpm and of the modes.

use outboard_e2e::{Client, Configured, Docroot, FpmStack, Multipart, Request, Site};
use std::collections::BTreeMap;
use std::path::Path;

/// The tables of each mode; a worker script includes the same probe.
const MODES: [(&str, &str); 5] = [
    ("classic", ""),
    ("reset", "mode = \"worker\"\nworker.script = \"www/settings_worker.php\"\n"),
    (
        "concurrency",
        "mode = \"worker\"\nworker = { script = \"www/settings_worker.php\", concurrency = 8 }\n",
    ),
    (
        "rewind",
        "mode = \"worker\"\nworker = { script = \"www/settings_worker.php\", isolation = \"rewind\" }\n",
    ),
    (
        "fork",
        "mode = \"worker\"\nworker = { script = \"www/settings_worker.php\", isolation = \"rewind\" }\nphp.env.OUTBOARD_FORBID_REWIND = \"1\"\n",
    ),
];

type Group = &'static [(&'static str, &'static str)];

const GROUPS: [Group; 7] = [
    &[
        ("max_input_vars", "20"),
        ("post_max_size", "1000"),
        ("max_input_nesting_level", "5"),
        ("display_errors", "0"),
        ("expose_php", "1"),
        ("default_charset", "iso-8859-1"),
        ("default_mimetype", "text/plain"),
        ("output_buffering", "0"),
        ("precision", "5"),
        ("serialize_precision", "7"),
        ("date.timezone", "Asia/Tokyo"),
        ("include_path", "/tmp"),
        ("user_agent", "probe"),
        ("memory_limit", "77M"),
        ("max_execution_time", "17"),
        ("default_socket_timeout", "7"),
        ("error_reporting", "1"),
    ],
    &[
        ("implicit_flush", "1"),
        ("auto_globals_jit", "0"),
        ("variables_order", "EGPCS"),
        ("request_order", "PG"),
        ("register_argc_argv", "1"),
        ("arg_separator.input", ";&"),
        ("arg_separator.output", ";"),
        ("output_buffering", "4096"),
        ("short_open_tag", "1"),
        ("zend.assertions", "-1"),
        ("disable_functions", "strrev"),
        ("unserialize_max_depth", "3"),
        ("pcre.backtrack_limit", "1000"),
        ("pcre.jit", "0"),
    ],
    &[
        ("session.auto_start", "1"),
        ("session.name", "OWN"),
        ("session.cookie_httponly", "1"),
        ("session.cookie_samesite", "Lax"),
        ("session.cookie_path", "/own"),
        ("session.use_strict_mode", "1"),
        ("session.cache_limiter", "public"),
        ("session.cache_expire", "10"),
        ("session.serialize_handler", "php_serialize"),
        ("session.sid_length", "40"),
        ("session.lazy_write", "0"),
    ],
    &[
        ("enable_post_data_reading", "0"),
        ("opcache.enable", "0"),
        ("html_errors", "0"),
        ("display_errors", "1"),
        ("error_prepend_string", "before"),
        ("error_append_string", "after"),
        ("log_errors", "0"),
        ("output_handler", "ob_gzhandler"),
    ],
    &[
        ("file_uploads", "0"),
        ("zlib.output_compression", "1"),
        ("zlib.output_compression_level", "9"),
        ("output_buffering", "0"),
        ("opcache.jit_buffer_size", "0"),
    ],
    &[
        ("max_file_uploads", "1"),
        ("upload_max_filesize", "10"),
        ("max_multipart_body_parts", "3"),
        ("filter.default", "special_chars"),
        ("mbstring.language", "Japanese"),
        ("mbstring.substitute_character", "long"),
        ("internal_encoding", "UTF-8"),
        ("zend.exception_ignore_args", "1"),
    ],
    &[
        ("mbstring.encoding_translation", "1"),
        ("mbstring.http_input", "ISO-8859-1"),
        ("session.upload_progress.enabled", "0"),
        ("session.use_cookies", "0"),
        ("session.use_only_cookies", "0"),
        ("session.use_trans_sid", "1"),
        ("url_rewriter.tags", "a=href"),
        ("expose_php", "0"),
    ],
];

/// What the reference has where a group says nothing else.
const DEFAULTS: Group = &[
    ("variables_order", "GPCS"),
    ("request_order", "GP"),
    ("register_argc_argv", "0"),
    ("output_buffering", "4096"),
    ("display_errors", "0"),
    ("log_errors", "1"),
    ("html_errors", "1"),
    ("error_reporting", "22527"),
    ("session.gc_probability", "0"),
    ("opcache.enable", "1"),
    ("opcache.file_update_protection", "0"),
    ("expose_php", "1"),
    ("short_open_tag", "0"),
    ("zend.assertions", "1"),
    ("zend.exception_ignore_args", "0"),
];

const PROBE: &str = r##"<?php
$seen = ['get' => $_GET, 'post' => $_POST, 'cookie' => array_diff_key($_COOKIE, ['OWN' => 1]), 'request' => $_REQUEST, 'argc' => $_SERVER['argc'] ?? null,
    'session' => $_SESSION ?? null, 'status' => session_status(), 'input' => strlen(file_get_contents('php://input')),
    'buffers' => ob_list_handlers(), 'strrev' => function_exists('strrev'), 'float' => (string) (1 / 3), 'headers' => headers_sent()];
foreach ($_FILES as $name => $file) { $seen['files'][$name] = [$file['name'] ?? '', $file['error'] ?? '', $file['size'] ?? '']; }
foreach (NAMES as $name) { $seen['ini'][$name] = ini_get($name); }
if (isset($_SESSION)) { $_SESSION['visits'] = ($_SESSION['visits'] ?? 0) + 1; }
if (isset($_GET['warn'])) { echo $missing; }
echo json_encode($seen, JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE), '<a href="x">';
"##;

/// Requests of one visitor, one after the other.
fn requests() -> Vec<Request> {
    let form = "application/x-www-form-urlencoded";
    let many = |separator: &str| {
        (0..30).map(|at| format!("v{at}=%E9{at}")).collect::<Vec<_>>().join(separator)
    };
    let text = "text/plain";
    let files = Multipart::new().field("a", "1").field("b", "<2>");
    let files = files.file("f", "f.txt", text, b"0123").file("g", "g.txt", text, &[b'x'; 50]);
    vec![
        Request::get("/settings.php?a=1&b[]=2;c=3&d=%3Cx%3E"),
        Request::get("/settings.php?warn=1"),
        Request::get(&format!("/settings.php?{}", many("&"))),
        Request::get("/settings.php").header("Cookie", &many("; ")),
        Request::post("/settings.php", form, "a=1&b[x][y]=2&c[1][2][3][4][5][6]=7&d=<x>"),
        Request::post("/settings.php", form, many("&")),
        Request::post("/settings.php", form, format!("a={}", "x".repeat(2_000))),
        Request::post("/settings.php", "multipart/form-data", "x"),
        Request::upload("/settings.php?b=3", files),
        Request::get("/settings.php").header("Accept-Encoding", "gzip"),
    ]
}

/// What the client of a site gets for each request.
fn responses(mut client: Client, root: &Path) -> Vec<String> {
    let compared = |name: &str| {
        let names =
            ["content-type", "x-powered-by", "cache-control", "pragma", "content-encoding", "vary"];
        names.contains(&name) || name == "expires"
    };
    let of = |request: &Request| {
        let response = client.send(request);
        let mut headers: Vec<String> = response
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .filter(|(name, _)| compared(name))
            .map(|(name, value)| format!("{name}: {}", if name == "expires" { "" } else { value }))
            .collect();
        headers.sort();
        let cookies = response.all("set-cookie").map(|cookie| {
            let (name, rest) = cookie.split_once('=').unwrap_or((cookie, ""));
            format!("{name}={}", rest.split_once(';').map_or("", |(_, attributes)| attributes))
        });
        let cookies: Vec<_> = cookies.collect();
        format!(
            "{} {headers:?} {cookies:?} {}",
            response.status,
            response.text().replace(&*root.to_string_lossy(), "ROOT")
        )
    };
    requests().iter().map(of).collect()
}

#[test]
fn settings_of_php_have_the_same_effect_in_every_mode() {
    let mut differences = Vec::new();
    for group in GROUPS {
        let names: Vec<String> = group.iter().map(|(name, _)| format!("'{name}'")).collect();
        let probe = PROBE.replace("NAMES", &format!("[{}]", names.join(", ")));
        let docroot = || {
            let docroot = Docroot::of("fidelity");
            docroot.put("settings.php", &probe);
            docroot.put(
                "settings_worker.php",
                "<?php set_error_handler(fn ($n, $text) => throw new ErrorException($text));
                 while (Outboard\\handle_request(function () { restore_error_handler(); include __DIR__ . '/settings.php'; })) {}",
            );
            docroot
        };
        let reference = docroot();
        let settings: BTreeMap<_, _> = DEFAULTS.iter().chain(group).copied().collect();
        let app = settings.iter().fold(reference.app().workers(1), |app, (name, value)| {
            app.ini(name, &format!("\"{value}\""))
        });
        let fpm = FpmStack::start(&app);
        let expected = responses(Client::new(fpm.address()), reference.path());
        for (mode, tables) in MODES {
            let ini: String = settings
                .iter()
                .map(|(name, value)| format!("\"{name}\" = \"{value}\"\n"))
                .collect();
            let text = Configured::text(&format!("{ini}[app.site.pool]\nmin = 1\nmax = 1\n"));
            let text = text
                .replace("expose_php = false\n", "")
                .replace("root = \"www\"\n", &format!("root = \"www\"\n{tables}"));
            let site = Configured::start(docroot(), &text);
            for (at, (seen, expected)) in
                responses(site.client(), site.root()).iter().zip(&expected).enumerate()
            {
                if seen != expected {
                    differences
                        .push(format!("{mode}, request {at}, {group:?}:\n  {seen}\n  {expected}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
