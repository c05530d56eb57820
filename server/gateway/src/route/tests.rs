//! Routes of fixed sites and, in `properties`, of random ones.

mod properties;

use super::*;
use outboard_config::Config;
use outboard_http1::normalize_path;
use outboard_static_files::RootOptions;
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
        let (files, mut looked) = (&self.files, Vec::new());
        loop {
            let findings = &Findings::default();
            let (full_path, looked_up) = (&path[..], &looked);
            let search = Search {
                app,
                files,
                full_path,
                query: None,
                now_ms: 0,
                looked: looked_up,
                findings,
                leads_to_denied: Cell::new(false),
            };
            match search.find() {
                Ok(route) => return route,
                Err(cold) => looked.push((cold.path().to_vec(), files.complete(cold.run(), 0))),
            }
        }
    }

    /// The path of the file that is sent or run for a target.
    fn reached(&self, target: &[u8]) -> Option<String> {
        match self.find(target) {
            Route::File(entry) => {
                Some(String::from_utf8(entry.body().expect("a small file").to_vec()).unwrap())
            }
            Route::Script(script) => Some(String::from_utf8(script.path.into_vec()).unwrap()),
            _ => None,
        }
    }

    #[track_caller]
    fn refuses(&self, reason: Reason, targets: &[&str]) {
        for target in targets {
            let found = self.find(target.as_bytes());
            assert!(
                matches!(&found, Route::Refuse(refused, _) if *refused == reason),
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

#[test]
fn rules_hold_for_what_a_link_below_the_root_leads_to() {
    let files = ["/up/x.php", "/up/a.txt", "/private/b.txt", "/private/index.html", "/sub/y.php"];
    let files: Vec<String> = files.map(str::to_owned).to_vec();
    let keys = "deny = [\"/up/**.php\", \"/private/\"]\nno_php_in = [\"/sub/\"]\n\
                [[app.site.rewrite]]\nmatch = \"^/short/(.*)$\"\nto = \"/u/$1\"\n";
    let site = Site::new(&files, keys);
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, site.directory.join("www").join(name)).unwrap();
    };
    link("up", "u");
    link("private", "p");
    link("sub", "s");
    link("private/b.txt", "b.txt");
    link("private/index.html", "index.html");
    for denied in [
        "/u/x.php",
        "/u/x.php/info",
        "/short/x.php",
        "/p/",
        "/p",
        "/p/b.txt",
        "/s/y.php",
        "/b.txt",
        "/",
    ] {
        let route = site.find(denied.as_bytes());
        assert!(matches!(route, Route::Refuse(Reason::Denied, _)), "{denied}: {route:?}");
    }
    assert_eq!(site.reached(b"/u/a.txt").as_deref(), Some("/up/a.txt"));
}
