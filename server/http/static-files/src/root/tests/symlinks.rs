//! The links that each policy follows.

use super::*;

/// A root beside two directories: one that links may lead into, and one with that name as a prefix.
struct Site {
    scratch: Scratch,
}

impl Site {
    fn new() -> Self {
        let scratch = Scratch::new();
        scratch.file("root/a.txt", "A");
        scratch.file("root/folder/b.txt", "B");
        scratch.file("shared/s.txt", "S");
        scratch.file("shared/run.php", "<?php");
        scratch.file("shared-not/n.txt", "N");
        scratch.link("a.txt", "root/inside.txt");
        scratch.link("folder", "root/inside");
        scratch.link("inside.txt", "root/chain.txt");
        scratch.link(scratch.at("root/a.txt"), "root/absolute.txt");
        scratch.link("../a.txt", "root/folder/up.txt");
        scratch.link("../shared/s.txt", "root/s.txt");
        scratch.link(scratch.at("shared"), "root/shared");
        scratch.link(scratch.at("shared-not"), "root/shared-not");
        scratch.link("../root/a.txt", "root/detour.txt");
        scratch.link("missing", "root/dangling.txt");
        scratch.link("/nonexistent/file", "root/dangling-out.txt");
        scratch.link("loop.txt", "root/loop.txt");
        Self { scratch }
    }

    fn open(&self, symlinks: Symlinks, targets: &[&str]) -> Root {
        let symlink_targets = targets.iter().map(|name| self.scratch.at(name)).collect();
        let options = RootOptions { symlinks, symlink_targets, ..RootOptions::default() };
        Root::open(&self.scratch.at("root"), options).unwrap()
    }

    fn check(&self, root: &Root, expected: &[(&str, &str)]) {
        for (path, expected) in expected {
            assert_eq!(look(root, path, 0), *expected, "{path}");
        }
    }
}

#[test]
fn by_default_links_stay_inside_of_the_root() {
    let site = Site::new();
    site.check(
        &site.open(Symlinks::InsideRoot, &[]),
        &[
            ("/inside.txt", "file A"),
            ("/inside/b.txt", "file B"),
            ("/inside", "folder"),
            ("/chain.txt", "file A"),
            ("/absolute.txt", "file A"),
            ("/folder/up.txt", "file A"),
            ("/detour.txt", "file A"),
            ("/s.txt", "symlink_escape"),
            ("/shared", "symlink_escape"),
            ("/shared/s.txt", "symlink_escape"),
            ("/shared/run.php", "symlink_escape"),
            ("/shared-not/n.txt", "symlink_escape"),
            ("/dangling.txt", "nothing"),
            ("/dangling-out.txt", "nothing"),
            ("/loop.txt", "symlink_loop"),
        ],
    );
}

#[test]
fn named_targets_may_be_entered_and_no_others() {
    let site = Site::new();
    site.check(
        &site.open(Symlinks::InsideRoot, &["shared"]),
        &[
            ("/s.txt", "file S"),
            ("/shared", "folder"),
            ("/shared/", "folder"),
            ("/shared/s.txt", "file S"),
            ("/shared/s.txt/", "nothing"),
            ("/shared/run.php", "script"),
            ("/shared/missing", "nothing"),
            ("/shared-not/n.txt", "symlink_escape"),
        ],
    );
    let root = site.open(Symlinks::InsideRoot, &["shared"]);
    let split = split(&root, "/shared/run.php/info");
    assert_eq!(split, Some((&b"/shared/run.php"[..], &b"/info"[..])));
}

#[test]
fn always_follows_every_link() {
    let site = Site::new();
    site.check(
        &site.open(Symlinks::Always, &[]),
        &[
            ("/inside.txt", "file A"),
            ("/s.txt", "file S"),
            ("/shared/run.php", "script"),
            ("/shared-not/n.txt", "file N"),
            ("/dangling.txt", "nothing"),
            ("/loop.txt", "symlink_loop"),
        ],
    );
}

#[test]
fn same_owner_follows_links_of_the_targets_owner_anywhere() {
    let site = Site::new();
    let root = site.open(Symlinks::SameOwner, &[]);
    site.check(
        &root,
        &[
            ("/", "folder"),
            ("/a.txt", "file A"),
            ("/folder/b.txt", "file B"),
            ("/inside.txt", "file A"),
            ("/inside/b.txt", "file B"),
            ("/chain.txt", "file A"),
            ("/absolute.txt", "file A"),
            ("/folder/up.txt", "file A"),
            ("/s.txt", "file S"),
            ("/shared", "folder"),
            ("/shared/", "folder"),
            ("/shared/s.txt", "file S"),
            ("/shared/run.php", "script"),
            ("/a.txt/", "nothing"),
            ("/a.txt/x", "nothing"),
            ("/dangling.txt", "nothing"),
            ("/loop.txt", "symlink_loop"),
        ],
    );
}

#[test]
fn same_owner_refuses_a_link_of_another_user() {
    let site = Site::new();
    // Only root can change a link's owner; other users link to files of root.
    if rustix::process::geteuid().is_root() {
        let link = site.scratch.link("a.txt", "root/foreign.txt");
        std::os::unix::fs::lchown(link, Some(12345), None).unwrap();
        let link = site.scratch.link("folder", "root/foreign");
        std::os::unix::fs::lchown(link, Some(12345), None).unwrap();
    } else {
        site.scratch.link("/etc/passwd", "root/foreign.txt");
        site.scratch.link("/etc", "root/foreign");
    }
    site.scratch.link("foreign.txt", "root/chained.txt");
    site.check(
        &site.open(Symlinks::SameOwner, &[]),
        &[
            ("/foreign.txt", "symlink_owner"),
            ("/chained.txt", "symlink_owner"),
            ("/foreign", "symlink_owner"),
            ("/foreign/b.txt", "symlink_owner"),
        ],
    );
}

#[test]
fn magic_links_are_not_links_to_follow() {
    let site = Site::new();
    let open = std::fs::File::open(site.scratch.at("shared/s.txt")).unwrap();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&open);
    site.scratch.link(format!("/proc/self/fd/{descriptor}"), "root/magic.txt");
    for symlinks in [Symlinks::Always, Symlinks::InsideRoot] {
        let root = site.open(symlinks, &[]);
        assert!(!look(&root, "/magic.txt", 0).starts_with("file"), "{symlinks:?}");
    }
}

#[test]
fn a_link_does_not_turn_a_source_into_a_plain_file() {
    let site = Site::new();
    site.scratch.link("../shared/run.php", "root/notes.txt");
    site.scratch.link("../shared/run.php", "root/style.css.gz");
    site.scratch.file("root/style.css", "C");
    let root = site.open(Symlinks::Always, &[]);
    assert_eq!(look(&root, "/notes.txt", 0), "php_source");
    assert!(file(&root, "/style.css", 0).encodings().is_empty());
}

#[test]
fn every_refusal_that_an_option_lifts_says_which() {
    for (reason, option) in [
        (ForbiddenReason::SymlinkEscape, "static.symlinks"),
        (ForbiddenReason::SymlinkOwner, "static.symlinks"),
        (ForbiddenReason::DotFile, "`static.allow_dotfiles`"),
        (ForbiddenReason::PhpSource, "php.extensions"),
    ] {
        assert!(reason.hint().unwrap().contains(option), "{reason}");
    }
}

#[test]
fn a_link_reports_its_path_below_the_root() {
    let scratch = Scratch::new();
    let outside = Scratch::new();
    outside.file("a", "x");
    scratch.file("up/a.txt", "a");
    scratch.file("up/x.php", "");
    scratch.file("up/dump.sql", "x");
    scratch.file(".git/config", "x");
    for (target, name) in [
        ("up", "u"),
        ("up/dump.sql", "d.txt"),
        (".git", "g"),
        ("u/a.txt", "twice"),
        ("..", "u/root"),
    ] {
        scratch.link(target, name);
    }
    scratch.link(scratch.at("up"), "absolute");
    scratch.link(outside.at("a"), "out");
    let options =
        RootOptions { symlink_targets: vec![outside.path().to_owned()], ..RootOptions::default() };
    let root = Root::open(scratch.path(), options).unwrap();
    let real = |path: &str| {
        let (found, real) = root.lookup(path.as_bytes(), 0).followed();
        let real = real.map(|real| String::from_utf8_lossy(&real).into_owned());
        (describe(found), real.unwrap_or_default())
    };
    for (path, found, at) in [
        ("/up/a.txt", "file a", ""),
        ("/u/a.txt", "file a", "/up/a.txt"),
        ("/twice", "file a", "/up/a.txt"),
        ("/absolute/a.txt", "file a", "/up/a.txt"),
        ("/u/x.php", "script", "/up/x.php"),
        ("/u", "folder", "/up/"),
        ("/u/", "folder", "/up/"),
        ("/u/root/up/a.txt", "file a", "/up/a.txt"),
        ("/d.txt", "private", "/up/dump.sql"),
        ("/g/config", "dot_file", ""),
        ("/out", "file x", ""),
    ] {
        assert_eq!(real(path), (found.to_owned(), at.to_owned()), "{path}");
        assert_eq!(real(path), (found.to_owned(), at.to_owned()), "{path}, from the cache");
    }
}

#[test]
fn what_only_the_group_of_another_app_may_read_is_not_served() {
    use std::os::unix::fs::PermissionsExt;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = Scratch::new();
    let own = |path: std::path::PathBuf, mode: u32| {
        std::os::unix::fs::chown(&path, Some(4711), Some(4712)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    own(scratch.file("private.txt", "x"), 0o640);
    own(scratch.file("public.txt", "x"), 0o644);
    let other = Scratch::new();
    other.file("a.txt", "x");
    scratch.link(other.at("a.txt"), "elsewhere.txt");
    own(other.path().to_owned(), 0o750);
    for (foreign, found) in [(4712, "other_app"), (4713, "file x")] {
        let users = std::sync::Arc::new(outboard_trusted_path::Users::new([4711], vec![foreign]));
        let options = RootOptions { users, symlinks: Symlinks::Always, ..RootOptions::default() };
        let root = Root::open(scratch.path(), options).unwrap();
        assert_eq!(look(&root, "/private.txt", 0), found);
        assert_eq!(look(&root, "/elsewhere.txt", 0), found);
        assert_eq!(look(&root, "/public.txt", 0), "file x");
    }
}

#[test]
fn a_pinned_root_stays_where_its_link_led_and_another_follows() {
    for (is_pinned, found) in [(false, "file 2"), (true, "file 1")] {
        let scratch = Scratch::new();
        scratch.file("1/a.txt", "1");
        scratch.file("2/a.txt", "2");
        let link = scratch.link("1", "current");
        let options = RootOptions { is_pinned, ..RootOptions::default() };
        let root = Root::open(&link, options).unwrap();
        assert_eq!(look(&root, "/a.txt", 0), "file 1");
        std::fs::remove_file(&link).unwrap();
        scratch.link("2", "current");
        assert_eq!(look(&root, "/a.txt", 10_000), found);
        let directory = scratch.at(if is_pinned { "1" } else { "2" });
        assert_eq!(*root.real_path(), directory);
        // A directory in the place of the old one is the same release.
        let options = RootOptions { is_pinned, ..RootOptions::default() };
        let root = Root::open(&directory, options).unwrap();
        std::fs::rename(&directory, scratch.at("old")).unwrap();
        scratch.file(&directory.join("a.txt").display().to_string(), "new");
        assert_eq!(look(&root, "/a.txt", 20_000), "file new");
    }
}
