use crate::checked::testing::{APP, assert_error, parse, site, valid};
use crate::*;
use std::path::{Path, PathBuf};

#[test]
fn files_are_compressed_with_the_app_within_the_memory_for_them() {
    let bytes = |keys: &str| valid(&format!("{APP}{keys}")).apps[0].compressed_files_bytes;
    assert_eq!(bytes(""), None);
    assert_eq!(bytes("compress = true\n"), Some(8 << 20));
    assert_eq!(bytes("compress = true\nstatic.compressed_memory = \"64k\"\n"), Some(64 << 10));
    assert_eq!(bytes("compress = true\nstatic.compressed_memory = 0\n"), None);
    let inherited = format!("static.compressed_memory = \"1m\"\n{APP}compress = true\n");
    assert_eq!(valid(&inherited).apps[0].compressed_files_bytes, Some(1 << 20));
    let development = format!("environment = \"development\"\n{APP}compress = true\n");
    assert_eq!(valid(&development).apps[0].compressed_files_bytes, None);
}

#[test]
fn a_file_without_an_app_is_rejected() {
    for text in ["", "# nothing\n", "[app]\n"] {
        let all = parse(text).unwrap_err();
        assert_eq!(all.len(), 1, "{all}");
        assert_eq!(all.iter().next().unwrap().kind, Kind::MissingKey);
    }
}

#[test]
fn two_apps_cannot_claim_the_same_host_and_path() {
    let second = "[app.two]\nroot = \"two\"\n";
    assert_error(&format!("{APP}{second}"), Kind::Duplicate, 3, "every host at `/`");
    let text = format!("{APP}hosts = [\"a.b\", \"*.c\"]\n{second}hosts = \"*.C\"\n");
    assert_error(&text, Kind::Duplicate, 4, "`*.c`");
    assert_eq!(valid(&format!("{APP}{second}path = \"/two\"\n")).apps.len(), 2);
    assert_eq!(valid(&format!("{APP}{second}hosts = \"two.org\"\n")).apps.len(), 2);
}

#[test]
fn a_front_controller_is_a_script_below_the_root() {
    assert_eq!(site("front_controller = \"none\"\n").front_controller, None);
    let app = site("front_controller = \"app/front.php\"\n");
    assert_eq!(app.front_controller.as_deref(), Some("/app/front.php"));
    for bad in ["index.html", "../x.php", "/"] {
        let text = format!("{APP}front_controller = \"{bad}\"\n");
        assert_error(&text, Kind::BadValue, 3, "not a PHP script");
    }
}

#[test]
fn an_error_page_of_a_status_precedes_its_class() {
    let pages = site("error_pages = { 404 = \"/a.html\", 4xx = \"b.html\" }\n").error_pages;
    assert_eq!(pages[&404], Path::new("/srv/www/public/a.html"));
    assert_eq!(pages[&400], Path::new("/srv/www/public/b.html"));
    assert!(!pages.contains_key(&500));
}

#[test]
fn symlink_targets_are_inherited_and_absolute() {
    let config = valid(
        "[static]\nsymlink_targets = [\"/usr/share/javascript\", \"shared\"]\n\
         [app.one]\nroot = \"one\"\n\
         [app.two]\nroot = \"two\"\npath = \"/two\"\nstatic.symlink_targets = [\"/var/lib/two\"]\n",
    );
    let targets = |app: usize| config.apps[app].static_files.symlink_targets.clone();
    assert_eq!(targets(0), ["/usr/share/javascript", "/srv/www/shared"].map(PathBuf::from));
    assert_eq!(targets(1), [PathBuf::from("/var/lib/two")]);
}

#[test]
fn an_accel_prefix_has_slashes_at_both_ends() {
    let accel =
        site("sendfile.accel = { \"/a\" = \"/files\", \"/b/\" = \"more\" }\n").sendfile.accel;
    assert_eq!(accel["/a/"], Path::new("/files"));
    assert_eq!(accel["/b/"], Path::new("/srv/www/more"));
}

#[test]
fn a_worker_script_and_no_listing_is_for_a_directory() {
    let app = "mode = \"worker\"\nworker.script = \"w.php\"\n";
    let own = format!("{APP}{app}static.autoindex = [\"/files/\"]\n");
    assert_error(&own, Kind::Conflict, 5, "an app of its own");
}
