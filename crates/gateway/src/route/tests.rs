//! Routes of fixed sites and, in `properties`, of random ones.

use super::*;
use outboard_config::Config;
use outboard_http1::normalize_path;
use outboard_static_files::RootOptions;
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A root with these files, each of which holds its own path.
struct Site {
    directory: PathBuf,
    config: Config,
    files: Root,
}

impl Site {
    fn new(files: &[String], keys: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("outboard-route-{}-{number}", std::process::id()));
        let root = directory.join("www");
        std::fs::create_dir_all(&root).unwrap();
        for path in files {
            let file = root.join(path.trim_start_matches('/'));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, path).unwrap();
        }
        let text = format!("[app.site]\nroot = \"www\"\n{keys}\n");
        let config = Config::parse(&text, &directory.join("outboard.toml"))
            .unwrap_or_else(|errors| panic!("{errors}\nin\n{text}"));
        let files = Root::open(&root, RootOptions::default()).unwrap();
        Self { directory, config, files }
    }

    fn find(&self, target: &[u8]) -> Route {
        let mut path = Vec::new();
        if normalize_path(target, &mut path).is_err() {
            return Route::Refuse(Reason::BadPath, None);
        }
        let app = &self.config.apps[0];
        Search { app, files: &self.files, full_path: &path, query: None, now_ms: 0 }.find()
    }

    /// The path of the file that is sent or run for a target.
    fn reached(&self, target: &[u8]) -> Option<String> {
        match self.find(target) {
            Route::File(entry) => {
                Some(String::from_utf8(entry.body().expect("a small file").to_vec()).unwrap())
            }
            Route::Script(script) => Some(String::from_utf8(script.path).unwrap()),
            _ => None,
        }
    }

    #[track_caller]
    fn refuses(&self, reason: Reason, targets: &[&str]) {
        for target in targets {
            let found = self.find(target.as_bytes());
            assert!(
                matches!(&found, Route::Refuse(theirs, _) if *theirs == reason),
                "{target} is {found:?}"
            );
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// The rules of WordPress for several sites in subdirectories.
const MULTISITE: &str = r#"
[[app.site.rewrite]]
match = '^/[_0-9a-zA-Z-]+(/wp-(content|admin|includes).*)$'
to = "$1"
when = "missing"
last = false

[[app.site.rewrite]]
match = '^/[_0-9a-zA-Z-]+(/.*\.php)$'
to = "$1"
when = "missing"
"#;

#[test]
fn no_spelling_leads_to_an_uploaded_script() {
    let files = owned(&[
        "/index.php",
        "/xmlrpc.php",
        "/wp-content/uploads/x.php",
        "/wp-content/uploads/y.PHP",
        "/wp-content/uploads/z.pHp",
        "/wp-content/debug.log",
    ]);
    let deny = r#"deny = ["/wp-content/uploads/**.php", "/wp-content/debug.log", "/xmlrpc.php"]"#;
    let site = Site::new(&files, &format!("{deny}\n{MULTISITE}"));
    site.refuses(
        Reason::Denied,
        &[
            "/wp-content/uploads/x.php",
            "/wp-content/uploads/x.php/",
            "/wp-content/uploads/x.php/a",
            "/wp-content/uploads/x.php/a.css",
            "/wp-content/uploads/y.PHP",
            "/wp-content/uploads/z.pHp/",
            "//wp-content///uploads/./x.php",
            "/wp-content/uploads/%78.%70hp",
            "/wp-content/a/../uploads/x.php",
            "/site2/wp-content/uploads/x.php",
            "/site2/wp-content/uploads/y.PHP",
            "/site2/wp-content/uploads/x.php/a",
            "/site2/wp-content/debug.log",
            "/xmlrpc.php/",
            "/site2/xmlrpc.php",
            "/XMLRPC.php",
        ],
    );
}

#[test]
fn a_directory_without_php_serves_files_only() {
    let files = owned(&["/index.php", "/up/x.php", "/up/index.php", "/up/2026/a.PHP", "/up/a.jpg"]);
    let site = Site::new(&files, &format!("no_php_in = [\"/up\"]\n{MULTISITE}"));
    site.refuses(
        Reason::Denied,
        &["/up/x.php", "/up/x.php/y", "/up/", "/up/index.php", "/up/2026/a.PHP", "/b/../up/x.php"],
    );
    assert_eq!(site.reached(b"/up/a.jpg").as_deref(), Some("/up/a.jpg"));
    assert_eq!(site.reached(b"/up/missing.jpg").as_deref(), Some("/index.php"));
}

#[test]
fn an_index_and_the_front_controller_can_be_denied() {
    let files = owned(&["/index.php", "/admin/index.php", "/docs/index.html", "/a.txt"]);
    let deny = "deny = [\"/admin/index.php\", \"/docs/INDEX.*\"]";
    let site = Site::new(&files, deny);
    site.refuses(Reason::Denied, &["/admin/", "/admin/index.php/x", "/docs/", "/docs/index.html"]);
    assert_eq!(site.reached(b"/nothing").as_deref(), Some("/index.php"));
    let site = Site::new(&files, "deny = [\"/index.php\"]");
    site.refuses(Reason::Denied, &["/", "/nothing", "/index.php", "/index.php/x"]);
    assert_eq!(site.reached(b"/a.txt").as_deref(), Some("/a.txt"));
}

#[test]
fn a_redirect_does_not_reveal_a_denied_directory() {
    let files = owned(&["/secret/a.txt", "/open/a.txt", "/worker.php"]);
    for mode in ["", "mode = \"worker\"\nworker = { script = \"www/worker.php\" }\n"] {
        let site = Site::new(&files, &format!("{mode}deny = [\"/secret/\"]"));
        if mode.is_empty() {
            site.refuses(Reason::Denied, &["/secret"]);
            assert!(matches!(site.find(b"/open"), Route::Redirect { status: 301, .. }));
        }
        site.refuses(Reason::Denied, &["/secret/", "/SECRET/a.txt", "/secret/none"]);
    }
}

#[test]
fn a_rule_that_leaves_two_slashes_bypasses_no_pattern() {
    let rule = "[[app.site.rewrite]]\nmatch = '^/files(.*)$'\nto = \"/up/$1\"\n";
    let files = owned(&["/up/x.txt", "/up/in/y.txt"]);
    let site = Site::new(&files, &format!("deny = [\"/up/in/\"]\n{rule}"));
    assert_eq!(site.reached(b"/files/x.txt").as_deref(), Some("/up/x.txt"));
    site.refuses(Reason::Denied, &["/files/in/y.txt", "/filesin/y.txt"]);
}

#[test]
fn private_files_are_sent_only_where_configured() {
    let files = owned(&["/data/db.sqlite", "/downloads/demo.sql", "/index.php"]);
    let site = Site::new(&files, "static = { allow_private = [\"/downloads/*.sql\"] }");
    site.refuses(Reason::PrivateFile, &["/data/db.sqlite", "/data/./db.sqlite"]);
    assert_eq!(site.reached(b"/downloads/demo.sql").as_deref(), Some("/downloads/demo.sql"));
    // The application may have pages of that name.
    assert_eq!(site.reached(b"/export/dump.sql").as_deref(), Some("/index.php"));
}

#[test]
fn a_refusal_names_the_missing_index() {
    let site = Site::new(&owned(&["/a.txt"]), "");
    let Route::Refuse(Reason::NoIndex, Some(hint)) = site.find(b"/") else {
        panic!("it is served")
    };
    assert!(hint.starts_with("there is no index.php or index.html in /"), "{hint}");
}

/// Whether a glob matches the path. Written without regular expressions.
fn glob_matches(glob: &[u8], path: &[u8]) -> bool {
    match glob {
        [] => path.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=path.len()).any(|at| glob_matches(rest, &path[at..])),
        [b'*', rest @ ..] => {
            let segment = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
            (0..=segment).any(|at| glob_matches(rest, &path[at..]))
        }
        [b'?', rest @ ..] => {
            path.first().is_some_and(|&byte| byte != b'/') && glob_matches(rest, &path[1..])
        }
        [byte, rest @ ..] => path.first() == Some(byte) && glob_matches(rest, &path[1..]),
    }
}

/// Whether the pattern matches the file, or a directory above it.
fn is_denied(pattern: &str, file: &str) -> bool {
    let (pattern, file) = (pattern.to_lowercase(), file.to_lowercase());
    let glob = pattern.trim_end_matches('/');
    // The path starts with an empty segment.
    let mut starts = vec![0];
    if !glob.starts_with('/') {
        starts.extend(file.match_indices('/').map(|(at, _)| at + 1));
    }
    let is_directory = pattern.ends_with('/');
    let ends = file.match_indices('/').map(|(at, _)| at);
    let ends: Vec<usize> = ends.chain((!is_directory).then_some(file.len())).collect();
    let mut spans = starts.iter().flat_map(|&start| ends.iter().map(move |&end| (start, end)));
    spans.any(|(start, end)| {
        start <= end && glob_matches(glob.as_bytes(), &file.as_bytes()[start..end])
    })
}

fn segment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "B", "up", "x.php", "é"])
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "x.php",
        "X.PHP",
        "index.php",
        "index.html",
        "y.txt",
        "Y.txt",
        "y.txt.gz",
        "z.css",
        "up",
    ])
}

fn tree() -> impl Strategy<Value = Vec<String>> {
    let file = (prop::collection::vec(segment(), 0..3), name());
    prop::collection::vec(file, 1..12).prop_map(|files| {
        let mut paths: Vec<String> = Vec::new();
        for (folders, name) in files {
            let path = format!("/{}/{name}", folders.join("/")).replace("//", "/");
            let is_new = |other: &String| {
                !other.starts_with(&format!("{path}/")) && !path.starts_with(&format!("{other}/"))
            };
            if paths.iter().all(|other| is_new(other) && *other != path) {
                paths.push(path);
            }
        }
        paths
    })
}

fn pattern() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "UP", "x.php", "*.php", "**.php", "*.txt", "*", "**", "index.*", "y.t?t", "É",
    ]);
    let pieces = prop::collection::vec(piece, 1..4);
    (any::<bool>(), pieces, any::<bool>()).prop_map(|(is_rooted, pieces, is_directory)| {
        let (start, end) = (if is_rooted { "/" } else { "" }, if is_directory { "/" } else { "" });
        // A pattern that matches everything would leave nothing to test.
        let pattern = format!("{start}{}{end}", pieces.join("/"));
        match pattern.trim_matches(['/', '*']) {
            "" => "/a/".to_owned(),
            _ => pattern,
        }
    })
}

/// Another spelling of a path.
fn spelled(path: &str, changes: &[(u8, usize)]) -> Vec<u8> {
    let mut target = path.as_bytes().to_vec();
    for &(change, at) in changes {
        let at = at % (target.len() + 1);
        let slash = target[..at].iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        match change {
            0 => drop(target.splice(slash..slash, *b"/")),
            1 => drop(target.splice(slash..slash, *b"/.")),
            2 => drop(target.splice(slash..slash, *b"/up/..")),
            3 if at < target.len() && target[at] != b'%' => {
                let encoded = format!("%{:02x}", target[at]);
                drop(target.splice(at..=at, encoded.into_bytes()));
            }
            4 => target.push(b'/'),
            5 => target.extend_from_slice(b"/info.css"),
            6 => drop(target.splice(0..0, *b"/site")),
            7 => drop(target.splice(0..0, *b"/r")),
            8 => drop(target.splice(slash..slash, *b"/%2e")),
            9 => target.truncate(slash + 1),
            10 if at < target.len() => {
                target[at] ^= if target[at].is_ascii_alphabetic() { 32 } else { 0 }
            }
            11 => drop(target.splice(at..at, *b"%00")),
            12 => target.extend_from_slice(b";a=b"),
            13 => target.truncate(slash.max(1)),
            14 => drop(target.splice(slash..slash, *b"%2F")),
            _ => target.extend_from_slice(b"?q"),
        }
        if !target.starts_with(b"/") {
            target.insert(0, b'/');
        }
    }
    target
}

const RULES: [&str; 4] = [
    "",
    MULTISITE,
    "[[app.site.rewrite]]\nmatch = '^/r(.*)$'\nto = \"/$1\"\nlast = false\n\
     [[app.site.rewrite]]\nmatch = '^/site(.*)$'\nto = \"/a/$1\"\n",
    "[[app.site.rewrite]]\nmatch = '^(/.*)/info.css$'\nto = \"$1\"\nwhen = \"missing\"\n",
];

proptest! {
    #[test]
    fn nothing_denied_is_run_or_sent(
        files in tree(),
        patterns in prop::collection::vec(pattern(), 1..4),
        folders in prop::collection::vec(pattern(), 0..2),
        rules in prop::sample::select(RULES.to_vec()),
        targets in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec((0u8..16, 0usize..40), 0..5)),
            1..40,
        ),
    ) {
        let keys = format!("deny = {patterns:?}\nno_php_in = {folders:?}\n{rules}");
        let site = Site::new(&files, &keys);
        for (file, changes) in targets {
            let target = spelled(&files[file.index(files.len())], &changes);
            let Some(reached) = site.reached(&target) else { continue };
            let shown = target.escape_ascii();
            for pattern in &patterns {
                prop_assert!(!is_denied(pattern, &reached), "{shown} leads to {reached}, {pattern}");
            }
            let is_script = reached.to_ascii_lowercase().ends_with(".php");
            for folder in folders.iter().filter(|_| is_script) {
                let below = format!("{}/", folder.trim_end_matches('/'));
                prop_assert!(!is_denied(&below, &reached), "{shown} runs {reached}, {folder}");
            }
        }
    }

    #[test]
    fn files_that_no_pattern_matches_are_served(
        files in tree(),
        patterns in prop::collection::vec(pattern(), 0..3),
    ) {
        let site = Site::new(&files, &format!("deny = {patterns:?}"));
        for file in files.iter().filter(|file| !file.ends_with(".gz")) {
            let is_denied = patterns.iter().any(|pattern| is_denied(pattern, file));
            let reached = site.reached(file.as_bytes());
            prop_assert_eq!(reached, (!is_denied).then(|| file.clone()), "{}", file);
        }
    }
}
