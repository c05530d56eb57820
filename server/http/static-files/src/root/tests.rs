mod changes;
mod cold;
mod symlinks;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Mode;

use super::*;
use crate::scratch::Scratch;
use crate::{Symlinks, Target, plan};
use outboard_http_semantics::Conditions;

fn open(scratch: &Scratch) -> Root {
    Root::open(scratch.path(), RootOptions::default()).unwrap()
}

/// The result of a lookup as text; a file by its content.
fn look(root: &Root, path: &str, now_ms: u64) -> String {
    describe(root.lookup(path.as_bytes(), now_ms))
}

fn describe(found: Lookup) -> String {
    match found {
        Lookup::File(entry) => {
            let body = entry.body().expect("test files are small");
            format!("file {}", String::from_utf8_lossy(body))
        }
        Lookup::Private(_) => "private".to_owned(),
        Lookup::Restricted(_) => "restricted".to_owned(),
        Lookup::Directory => "folder".to_owned(),
        Lookup::Script => "script".to_owned(),
        Lookup::NotFound => "nothing".to_owned(),
        Lookup::Forbidden(reason) => reason.code().to_owned(),
        Lookup::Linked { to, .. } => describe(to.into()),
        Lookup::Error(error) => error.to_string(),
    }
}

fn file(root: &Root, path: &str, now_ms: u64) -> Rc<Entry> {
    match root.lookup(path.as_bytes(), now_ms) {
        Lookup::File(entry) | Lookup::Linked { to: Target::File(entry), .. } => entry,
        other => panic!("{path} is {other:?}"),
    }
}

fn split<'a>(root: &Root, path: &'a str) -> Option<(&'a [u8], &'a [u8])> {
    let lookup = |candidate: &[u8]| Ok::<_, std::convert::Infallible>(root.lookup(candidate, 0));
    root.split_script(path.as_bytes(), lookup).unwrap()
}

#[test]
fn paths_name_files_folders_scripts_or_nothing() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "A");
    scratch.file("folder/b c.txt", "B");
    scratch.file("folder/\u{fc}.txt", "U");
    scratch.file("index.php", "<?php");
    scratch.file("wp-config.php.bak", "secret");
    scratch.file("lib.inc", "secret");
    scratch.file("folder/wiki.sqlite", "secret");
    scratch.directory("folder.php");
    scratch.directory("folder/app.log");
    let root = open(&scratch);
    for (path, expected) in [
        ("/a.txt", "file A"),
        ("/folder/b c.txt", "file B"),
        ("/folder//b c.txt", "file B"),
        ("/folder/\u{fc}.txt", "file U"),
        ("/", "folder"),
        ("/folder", "folder"),
        ("/folder/", "folder"),
        ("/folder.php", "folder"),
        ("/folder/wiki.sqlite", "private"),
        ("/folder/app.log", "folder"),
        ("/index.php", "script"),
        ("/wp-config.php.bak", "php_source"),
        ("/lib.inc", "php_source"),
        ("/missing", "nothing"),
        ("/missing.php", "nothing"),
        ("/missing.inc", "nothing"),
        ("/missing/a.txt", "nothing"),
        ("/a.txt/", "nothing"),
        ("/a.txt/x.php", "nothing"),
        ("/index.php/x", "nothing"),
        ("/a.txt\0.php", "nothing"),
        ("a.txt", "nothing"),
        ("", "nothing"),
    ] {
        // Twice, because the cached result must be the same.
        for _ in 0..2 {
            assert_eq!(look(&root, path, 0), expected, "{path:?}");
        }
    }
    assert_eq!(look(&root, &format!("/{}", "x".repeat(300)), 0), "nothing");
    assert_eq!(look(&root, &"/x".repeat(5000), 0), "nothing");
    assert!(matches!(root.lookup(b"/\xff\xfe", 0), Lookup::NotFound));
}

#[test]
fn dots_are_refused_before_the_kernel_sees_them() {
    let scratch = Scratch::new();
    for name in [".env", ".git/config", "a/.htaccess", ".well-known/acme", "a/b.txt", "..."] {
        scratch.file(name, "x");
    }
    let with = |options: RootOptions| Root::open(scratch.path(), options).unwrap();
    let cautious = open(&scratch);
    let named = RootOptions { allow_dotfiles: vec![".env".to_owned()], ..RootOptions::default() };
    let named = with(named);
    let all = with(RootOptions { dot_files: true, ..RootOptions::default() });
    for (path, [by_default, by_name, by_option]) in [
        ("/.env", ["dot_file", "file x", "file x"]),
        ("/.git/config", ["dot_file", "dot_file", "file x"]),
        ("/a/.htaccess", ["dot_file", "dot_file", "file x"]),
        ("/.missing", ["dot_file", "dot_file", "nothing"]),
        ("/...", ["dot_file", "dot_file", "file x"]),
        ("/.well-known/acme", ["file x", "dot_file", "file x"]),
        ("/a/../a/b.txt", ["path_traversal"; 3]),
        ("/a/./b.txt", ["path_traversal"; 3]),
        ("/..", ["path_traversal"; 3]),
        ("/../etc/passwd", ["path_traversal"; 3]),
        ("/a/b.txt", ["file x"; 3]),
    ] {
        assert_eq!(look(&cautious, path, 0), by_default, "{path}");
        assert_eq!(look(&named, path, 0), by_name, "{path}");
        assert_eq!(look(&all, path, 0), by_option, "{path}");
    }
}

#[test]
fn a_second_slash_never_means_the_root_of_the_file_system() {
    let scratch = Scratch::new();
    for symlinks in [Symlinks::InsideRoot, Symlinks::SameOwner, Symlinks::Always] {
        let options = RootOptions { symlinks, ..RootOptions::default() };
        let root = Root::open(scratch.path(), options).unwrap();
        assert_eq!(look(&root, "//etc/passwd", 0), "nothing", "{symlinks:?}");
        assert_eq!(look(&root, "///etc/passwd", 0), "nothing", "{symlinks:?}");
    }
}

#[test]
fn only_regular_files_are_served() {
    let scratch = Scratch::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, scratch.at("fifo.txt"), Mode::from_raw_mode(0o666))
        .unwrap();
    let _listener = UnixListener::bind(scratch.at("socket.txt")).unwrap();
    scratch.link("/dev/null", "device.txt");
    scratch.link("fifo.txt", "linked.txt");
    let options = RootOptions { symlinks: Symlinks::Always, ..RootOptions::default() };
    let root = Root::open(scratch.path(), options).unwrap();
    for path in ["/fifo.txt", "/socket.txt", "/device.txt", "/linked.txt"] {
        assert_eq!(look(&root, path, 0), "not_regular", "{path}");
    }
}

/// Runs the test on a thread without root's right to read every file.
fn without_root_privileges(test: impl FnOnce() + Send) {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
            set_capabilities(None, sets).unwrap();
            test();
        });
        thread.join().unwrap();
    });
}

#[test]
fn unreadable_files_are_forbidden_but_scripts_are_not() {
    let scratch = Scratch::new();
    let lock = |path: &Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
    };
    lock(&scratch.file("secret.txt", "x"));
    lock(&scratch.file("index.php", "<?php"));
    scratch.file("locked/a.txt", "x");
    lock(&scratch.at("locked"));
    without_root_privileges(|| {
        let root = open(&scratch);
        assert_eq!(look(&root, "/secret.txt", 0), "unreadable");
        assert_eq!(look(&root, "/locked/a.txt", 0), "unreadable");
        assert_eq!(look(&root, "/index.php", 0), "script");
    });
}

#[test]
fn a_script_is_split_from_its_path_info_only_if_it_is_one() {
    let scratch = Scratch::new();
    scratch.file("index.php", "<?php");
    scratch.file("a/b.php", "<?php");
    scratch.file("folder.php/c.php", "<?php");
    scratch.file("image.jpg", "GIF89a<?php");
    scratch.file("old.phtml", "<?php");
    let root = open(&scratch);
    for (path, expected) in [
        ("/index.php", Some(("/index.php", ""))),
        ("/index.php/", Some(("/index.php", "/"))),
        ("/index.php/x/y", Some(("/index.php", "/x/y"))),
        ("/index.php/x.php/y", Some(("/index.php", "/x.php/y"))),
        ("/index.php/.hidden/..", Some(("/index.php", "/.hidden/.."))),
        ("/a/b.php/c", Some(("/a/b.php", "/c"))),
        ("/folder.php/c.php/d", Some(("/folder.php/c.php", "/d"))),
        ("/folder.php/missing.php/d", None),
        ("/image.jpg/x.php", None),
        ("/image.jpg/x.php/y", None),
        ("/old.phtml/x", None),
        ("/missing.php/x", None),
        ("/a", None),
        ("/", None),
        ("", None),
        ("/..%2f/index.php", None),
        ("/../index.php/x", None),
    ] {
        let expected = expected.map(|(script, info)| (script.as_bytes(), info.as_bytes()));
        assert_eq!(split(&root, path), expected, "{path:?}");
    }
}

#[test]
fn times_that_no_http_date_can_say_are_left_out() {
    let scratch = Scratch::new();
    let has_date = |time: SystemTime| {
        scratch.file("a.txt", "x");
        scratch.date("a.txt", time);
        let entry = file(&open(&scratch), "/a.txt", 0);
        let plan = plan(&entry, None, &Conditions::default());
        plan.headers.iter().any(|(name, _)| *name == "Last-Modified")
    };
    assert!(has_date(UNIX_EPOCH));
    assert!(has_date(SystemTime::now() - Duration::from_secs(1)));
    assert!(!has_date(SystemTime::now() + Duration::from_secs(3600)));
    assert!(!has_date(UNIX_EPOCH - Duration::from_secs(1)));
    assert!(!has_date(UNIX_EPOCH + Duration::from_secs(400_000_000_000)));
}

#[test]
fn siblings_count_if_they_are_fresh_allowed_and_of_use() {
    let scratch = Scratch::new();
    let outside = Scratch::new();
    let codings = |name: &str, options: RootOptions| {
        let root = Root::open(scratch.path(), options).unwrap();
        let entry = file(&root, &format!("/{name}"), 0);
        entry
            .encodings()
            .iter()
            .map(|sibling| sibling.coding().unwrap().token())
            .collect::<Vec<_>>()
    };
    for name in ["a.css", "old.css", "out.css", "a.png", "folder.css"] {
        scratch.file(name, "x");
        scratch.age(name, 100);
    }
    for (name, age_s) in [("a.css.gz", 100), ("a.css.zst", 50), ("a.css.br", 0), ("a.png.gz", 0)] {
        scratch.file(name, "y");
        scratch.age(name, age_s);
    }
    let time = std::fs::metadata(scratch.at("a.css")).unwrap().modified().unwrap();
    scratch.date("a.css.gz", time);
    scratch.file("old.css.gz", "y");
    scratch.age("old.css.gz", 101);
    scratch.link(outside.file("x.gz", "y"), "out.css.gz");
    scratch.directory("folder.css.gz");
    assert_eq!(codings("a.css", RootOptions::default()), ["br", "zstd", "gzip"]);
    for name in ["old.css", "out.css", "a.png", "folder.css"] {
        assert!(codings(name, RootOptions::default()).is_empty(), "{name}");
    }
    let off = RootOptions { precompressed: false, ..RootOptions::default() };
    assert!(codings("a.css", off).is_empty());
}

#[test]
fn a_folder_for_sendfile_serves_what_the_application_names() {
    let scratch = Scratch::new();
    let outside = Scratch::new();
    scratch.file(".hidden/report.php", "text");
    scratch.link(outside.file("secret", "x"), "link");
    let root = Root::open(scratch.path(), RootOptions::for_sendfile(Arc::default())).unwrap();
    assert_eq!(look(&root, "/.hidden/report.php", 0), "file text");
    assert_eq!(look(&root, "/link", 0), "symlink_escape");
    // The application writes the file again and names it in the same millisecond.
    scratch.file(".hidden/report.php", "next");
    assert_eq!(look(&root, "/.hidden/report.php", 0), "file next");
}

#[test]
fn a_root_that_cannot_be_served_is_named() {
    let scratch = Scratch::new();
    let open = |path: &Path, options| Root::open(path, options).unwrap_err().to_string();
    let missing = scratch.at("missing");
    let text = open(&missing, RootOptions::default());
    assert!(text.contains(&missing.display().to_string()), "{text}");
    let text = open(&scratch.file("a.txt", ""), RootOptions::default());
    assert!(text.contains("a.txt") && text.contains("Not a directory"), "{text}");
    let targets = RootOptions { symlink_targets: vec![missing.clone()], ..RootOptions::default() };
    let text = open(scratch.path(), targets);
    assert!(text.contains(&missing.display().to_string()), "{text}");
    let injected = "text/html\r\nX: y".to_owned();
    let mime_overrides = [("htm".to_owned(), injected.clone())].into();
    let text = open(scratch.path(), RootOptions { mime_overrides, ..RootOptions::default() });
    assert!(text.contains("`htm`"), "{text}");
    let headers = [("Cache-Control", injected)].into();
    let text = open(scratch.path(), RootOptions { headers, ..RootOptions::default() });
    assert!(text.contains("Cache-Control"), "{text}");
}
