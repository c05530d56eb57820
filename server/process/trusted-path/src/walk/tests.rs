//! Walks through directories that the tests create.

use super::*;
use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

/// A directory that the test's user owns, which is PHP's where a test has it so.
fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("outboard-walk-{}-{name}", std::process::id()));
    fs::create_dir_all(path.join("app/releases/1/public")).unwrap();
    fs::create_dir_all(path.join("other")).unwrap();
    path.canonicalize().unwrap()
}

/// As the directory belongs to PHP.
fn of_php() -> Users {
    Users { php: vec![geteuid().as_raw()], foreign_groups: Vec::new() }
}

#[test]
fn a_link_of_php_leads_only_below_its_own_directory() {
    let at = scratch("below");
    let other = at.join("other").display().to_string();
    let releases = at.join("app/releases").display().to_string();
    let link = at.join("app/current");
    for (target, is_followed) in [
        ("releases/1", true),
        ("./releases/../releases/1/", true),
        (releases.as_str(), true),
        ("../app/releases/1", true),
        (other.as_str(), false),
        ("../other", false),
        ("releases/../../other", false),
        ("/", false),
        ("..", false),
    ] {
        symlink(target, &link).unwrap();
        let opened = open(&link, &of_php());
        assert_eq!(opened.is_ok(), is_followed, "{target}: {opened:?}");
        // As a component, too, and when another link has led there.
        assert_eq!(open(&link.join("."), &of_php()).is_ok(), is_followed, "{target}");
        symlink("app/current", at.join("way")).unwrap();
        assert_eq!(open(&at.join("way"), &of_php()).is_ok(), is_followed, "{target}");
        // No PHP runs as this user.
        assert!(open(&link, &Users::default()).is_ok(), "{target}");
        fs::remove_file(at.join("way")).unwrap();
        fs::remove_file(&link).unwrap();
    }
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn a_link_counts_as_phps_wherever_others_may_write() {
    let at = scratch("modes");
    let link = at.join("app/public");
    symlink(at.join("other"), &link).unwrap();
    let set = |mode| fs::set_permissions(at.join("app"), Permissions::from_mode(mode)).unwrap();
    let group = fs::metadata(&at).map(|about| std::os::unix::fs::MetadataExt::gid(&about));
    for (mode, is_followed) in
        [(0o755, true), (0o1777, true), (0o777, false), (0o775, group.unwrap() == 0)]
    {
        set(mode);
        assert_eq!(open(&link, &Users::default()).is_ok(), is_followed, "{mode:o}");
    }
    set(0o755);
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn a_result_names_the_place_without_links() {
    let at = scratch("path");
    symlink("releases/1", at.join("app/current")).unwrap();
    let opened = open(&at.join("app/current/public"), &of_php()).unwrap();
    assert_eq!(opened.path, at.join("app/releases/1/public"));
    assert!(matches!(open(&at.join("none"), &of_php()), Err(Refusal::System(Errno::NOENT))));
    symlink("loop", at.join("loop")).unwrap();
    assert!(matches!(open(&at.join("loop"), &of_php()), Err(Refusal::System(Errno::LOOP))));
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn what_only_another_apps_group_may_read_is_foreign() {
    let at = scratch("foreign");
    let file = at.join("file");
    fs::write(&file, "").unwrap();
    let mut stat = rustix::fs::stat(&file).unwrap();
    stat.st_uid = geteuid().as_raw() + 1;
    let users = Users { php: Vec::new(), foreign_groups: vec![4711] };
    for (mode, gid, is_foreign) in [(0o640, 4711, true), (0o644, 4711, false), (0o640, 4712, false)]
    {
        (stat.st_mode, stat.st_gid) = (0o100_000 | mode, gid);
        assert_eq!(users.is_foreign(&stat), is_foreign, "{mode:o} {gid}");
    }
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn as_many_links_as_the_kernel_permits_are_followed() {
    let at = scratch("many");
    symlink("other", at.join("0")).unwrap();
    for number in 1..=LINKS_MAX {
        symlink((number - 1).to_string(), at.join(number.to_string())).unwrap();
    }
    let last = open(&at.join((LINKS_MAX - 1).to_string()), &of_php()).unwrap();
    assert_eq!((last.path, last.is_directory), (at.join("other"), true));
    let error = open(&at.join(LINKS_MAX.to_string()), &of_php());
    assert!(matches!(error, Err(Refusal::System(Errno::LOOP))), "{error:?}");
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn a_path_is_read_component_by_component() {
    let at = scratch("components");
    fs::write(at.join("other/file"), "").unwrap();
    let path = |text: &str| open(Path::new(text), &of_php()).map(|opened| opened.path);
    let base = at.display();
    for (text, expected) in [
        ("/".to_owned(), PathBuf::from("/")),
        ("/../..".to_owned(), PathBuf::from("/")),
        (format!("//{base}/./other/"), at.join("other")),
        (format!("{base}/app/../other/file"), at.join("other/file")),
    ] {
        assert_eq!(path(&text).unwrap(), expected, "{text}");
    }
    for (text, errno) in [("other/file/x", Errno::NOTDIR), ("none/../other", Errno::NOENT)] {
        let error = path(&format!("{base}/{text}"));
        assert!(
            matches!(error, Err(Refusal::System(found)) if found == errno),
            "{text}: {error:?}"
        );
    }
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn what_a_link_of_proc_leads_to_is_not_opened() {
    let at = scratch("proc");
    let file = fs::File::open(&at).unwrap();
    let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    for open in [open, open_any] {
        let error = open(Path::new(&link), &Users::default());
        assert!(matches!(error, Err(Refusal::System(Errno::LOOP))), "{error:?}");
    }
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn links_of_any_owner_are_followed_where_none_is_trusted() {
    let at = scratch("any");
    symlink(at.join("other"), at.join("app/out")).unwrap();
    assert!(open(&at.join("app/out"), &of_php()).is_err());
    let opened = open_any(&at.join("app/out"), &of_php()).unwrap();
    assert_eq!(opened.path, at.join("other"));
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn a_refusal_states_what_to_write_instead() {
    let at = scratch("text");
    let link = at.join("app/out");
    symlink("../other", &link).unwrap();
    let refusal = open(&link, &of_php()).unwrap_err();
    let text = format!(
        "the symbolic link {} leads out of its directory, and PHP can change it: write {} in the \
         configuration, or let root own the link and all directories of its path",
        link.display(),
        at.join("other").display()
    );
    assert_eq!(refusal.to_string(), text);
    let error = io::Error::from(refusal);
    assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::PermissionDenied, text));
    let foreign = io::Error::from(Refusal::Foreign(PathBuf::from("/srv/blog")));
    assert_eq!(foreign.to_string(), "/srv/blog belongs to the group of another app's user");
    let missing = io::Error::from(Refusal::System(Errno::NOENT));
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    assert_eq!(Refusal::System(Errno::NOENT).to_string(), missing.to_string());
    fs::remove_dir_all(at).unwrap();
}
