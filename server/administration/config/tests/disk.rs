//! Validation of files and directories on a real disk.

use outboard_config::{Config, Diagnostics, Kind};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A fresh directory for one test.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn load(directory: &Path, text: &str) -> Result<Config, Diagnostics> {
    let file = directory.join("outboard.toml");
    fs::write(&file, text).unwrap();
    Config::load(&file)
}

fn touch(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "<?php").unwrap();
}

fn only(result: Result<Config, Diagnostics>) -> (Kind, String) {
    let all = result.unwrap_err();
    assert_eq!(all.len(), 1, "{all}");
    let one = all.iter().next().unwrap();
    (one.kind, format!("{} / {}", one.message, one.hint.as_deref().unwrap_or_default()))
}

#[test]
fn a_missing_directory_is_reported_with_its_path() {
    let here = directory("missing-root");
    let (kind, words) = only(load(&here, "[app.a]\nroot = \"public\"\n"));
    assert_eq!(kind, Kind::Path);
    assert!(
        words.contains(&format!("no directory `{}`", here.join("public").display())),
        "{words}"
    );
    assert!(words.contains("relative paths are resolved"), "{words}");
}

#[test]
fn files_and_directories_are_distinguished() {
    let here = directory("wrong-kind");
    touch(&here.join("public/index.php"));
    let (_, words) = only(load(&here, "[app.a]\nroot = \"public/index.php\"\n"));
    assert!(words.contains("is not a directory"), "{words}");
    let (_, words) = only(load(&here, "[php]\nini_file = \".\"\n[app.a]\nroot = \"public\"\n"));
    assert!(words.contains("is not a file"), "{words}");
    let (_, words) =
        only(load(&here, "[log.access]\npath = \"public\"\n[app.a]\nroot = \"public\"\n"));
    assert!(words.contains("is a directory, not a file"), "{words}");
}

#[test]
fn a_symlink_target_must_exist() {
    let here = directory("link-targets");
    touch(&here.join("public/index.php"));
    let text = "[app.a]\nroot = \"public\"\nstatic.symlink_targets = [\"public\", \"nowhere\"]\n";
    let errors = load(&here, text).unwrap_err();
    let position = errors.iter().next().unwrap().position.clone().unwrap();
    assert_eq!((position.line, position.column), (3, 37));
    let (kind, words) = only(load(&here, text));
    assert_eq!(kind, Kind::Path);
    assert!(
        words.contains(&format!("no directory `{}`", here.join("nowhere").display())),
        "{words}"
    );
}

#[test]
fn a_host_that_is_not_executable_is_reported() {
    let here = directory("host");
    touch(&here.join("public/index.php"));
    let text = "[app.a]\nroot = \"public\"\nphp.host_binary = \"public/index.php\"\n";
    let (kind, words) = only(load(&here, text));
    assert_eq!(kind, Kind::Path);
    assert!(words.contains("is not executable / chmod +x"), "{words}");
}

#[test]
fn the_front_controller_is_detected_or_configured() {
    let here = directory("front");
    touch(&here.join("with/index.php"));
    touch(&here.join("without/a.php"));
    let front = |root: &str| {
        load(&here, &format!("[app.a]\nroot = \"{root}\"\n")).unwrap().apps[0]
            .front_controller
            .clone()
    };
    assert_eq!(front("with").as_deref(), Some("/index.php"));
    assert_eq!(front("without"), None);
    let text = "[app.a]\nroot = \"with\"\nfront_controller = \"/b.php\"\n";
    assert!(only(load(&here, text)).1.contains("no file"));
}

#[test]
fn a_root_link_is_preserved_and_dots_are_resolved() {
    let here = directory("links");
    touch(&here.join("releases/1/public/index.php"));
    touch(&here.join("releases/shared/index.php"));
    symlink(here.join("releases/1"), here.join("current")).unwrap();
    let root = |text: &str| load(&here, text).unwrap().apps[0].root.clone();
    assert_eq!(root("[app.a]\nroot = \"./current/public\"\n"), here.join("current/public"));
    let shared = here.join("releases/shared").canonicalize().unwrap();
    assert_eq!(root("[app.a]\nroot = \"current/../shared\"\n"), shared);
}

#[test]
fn an_unreadable_file_is_reported() {
    let here = directory("unreadable");
    assert!(only(Config::load(&here.join("none.toml"))).1.contains("No such file"));
    assert!(only(Config::load(&here)).1.contains("cannot be read"));
    assert!(only(Config::load(Path::new("/dev/zero"))).1.contains("larger than"));
    fs::write(here.join("latin1.toml"), b"# ok\nuser = \"w\xe9\"\n").unwrap();
    let all = Config::load(&here.join("latin1.toml")).unwrap_err();
    let position = all.iter().next().unwrap().position.as_ref().unwrap();
    assert_eq!((position.line, position.column), (2, 10), "{all}");
}

#[test]
fn a_directory_needs_no_configuration() {
    let here = directory("directory");
    let root = |app: &str| {
        Config::for_directory(&here.join(app), "127.0.0.1:0").unwrap().apps[0].root.clone()
    };
    touch(&here.join("framework/public/index.php"));
    touch(&here.join("framework/index.php"));
    assert_eq!(root("framework"), here.join("framework/public"));
    touch(&here.join("plain/index.php"));
    touch(&here.join("plain/web/index.php"));
    assert_eq!(root("plain"), here.join("plain"));
    touch(&here.join("drupal/web/index.php"));
    assert_eq!(root("drupal"), here.join("drupal/web"));
    touch(&here.join("static \"quoted\"\\/index.html"));
    assert_eq!(root("static \"quoted\"\\"), here.join("static \"quoted\"\\"));
}

#[test]
fn a_bad_directory_is_reported_without_a_line() {
    let here = directory("no-directory");
    let all = Config::for_directory(&here.join("none"), "80").unwrap_err();
    assert!(all.iter().all(|error| error.position.is_none()), "{all}");
    let text = all.to_string();
    assert!(text.contains("no directory") && text.contains("not an address"), "{text}");
}

#[test]
fn a_missing_worker_script_is_reported_with_a_hint() {
    let here = directory("worker-script");
    touch(&here.join("public/worker.php"));
    let text = "[app.a]\nroot = \"public\"\nmode = \"worker\"\n";
    let (kind, words) = only(load(&here, text));
    assert_eq!(kind, Kind::Path);
    assert!(words.contains("worker mode needs a script"), "{words}");
    assert!(words.contains("worker.script = \"worker.php\""), "{words}");
    let text = format!("{text}worker.script = \"worker.php\"\n");
    let errors = load(&here, &text).unwrap_err();
    let position = errors.iter().next().unwrap().position.clone().unwrap();
    assert_eq!((position.line, position.column), (4, 17));
    let (_, words) = only(load(&here, &text));
    assert!(words.contains("write \"public/worker.php\""), "{words}");
    let (_, words) = only(load(&here, &text.replace("worker.php", "other.php")));
    assert!(words.contains("there is no file"), "{words}");
    assert!(load(&here, &text.replace("\"worker.php\"", "\"public/worker.php\"")).is_ok());
}

#[test]
fn a_file_without_users_is_an_error_and_weak_hashes_are_listed() {
    let here = directory("users");
    fs::create_dir(here.join("public")).unwrap();
    let text = "[app.site]\nroot = \"public\"\n[[app.site.access]]\nbasic_auth.file = \"users\"\n";
    for empty in ["", "\n# alice left\n"] {
        fs::write(here.join("users"), empty).unwrap();
        let errors = load(&here, text).unwrap_err().to_string();
        assert!(errors.contains("4:19: the file has no user"), "{errors}");
    }
    fs::write(here.join("users"), "bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n").unwrap();
    let config = load(&here, text).unwrap();
    let auth = config.apps[0].access.rules[0].basic_auth.as_ref().unwrap();
    assert_eq!(auth.users.weak(), [("bob", "SHA-1")]);
}
