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
