//! `outboard list` and `status` of servers that do not run.

use super::*;
use crate::tests::admin_server::directory;
use std::fs;
use std::path::Path;

const PLAIN: Terminal = Terminal { color_out: false, color_err: false };

fn seen(directory: &Path, name: &str, config: &str) -> Seen {
    fs::write(directory.join(format!("{name}.toml")), config).unwrap();
    let dirs =
        InstanceDirs { conf_dir: Some(directory.to_owned()), run_dir: Some(directory.join("run")) };
    Seen::of(Directories::of(&dirs).unwrap().server(name).unwrap())
}

#[test]
fn the_exit_code_is_that_of_the_linux_standard_base() {
    let directory = directory("seen");
    fs::create_dir_all(directory.join("run")).unwrap();
    let config = format!("[app.a]\nroot = \"{}\"\n", directory.display());
    let stopped = seen(&directory, "stopped", &config);
    assert_eq!((stopped.code, stopped.state(), stopped.pid), (3, "STOPPED", None));
    fs::write(directory.join("run/dead.pid"), "4711\n").unwrap();
    let dead = seen(&directory, "dead", &config);
    assert_eq!((dead.code, dead.state()), (1, "DEAD"));
    std::os::unix::fs::symlink("odd.pid", directory.join("run/odd.pid")).unwrap();
    let odd = seen(&directory, "odd", &config);
    assert_eq!((odd.code, odd.state()), (4, "UNKNOWN"));
    assert!(odd.trouble.is_some_and(|trouble| trouble.contains("odd.pid: ")));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_list_has_the_addresses_of_the_configuration() {
    let directory = directory("list");
    let root = directory.display();
    let config = format!("[[listen]]\naddress = \"127.0.0.1:8123\"\n[app.a]\nroot = \"{root}\"\n");
    let all = [seen(&directory, "shop", &config), seen(&directory, "longer-name", "x = 1\n")];
    let mut page = String::new();
    write_list(&mut page, &all, &PLAIN).unwrap();
    let words = |at: usize| page.lines().nth(at).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(0), ["NAME", "STATE", "ENVIRONMENT", "PID", "LISTENING"]);
    assert_eq!(words(1), ["shop", "STOPPED", "production", "–", "127.0.0.1:8123"]);
    assert_eq!(words(2)[..4], ["longer-name", "STOPPED", "?", "–"]);
    assert!(page.ends_with("its file has errors: run outboard check\n"), "{page}");
    let columns: Vec<_> = page.lines().take(2).map(|line| line.find("ST").unwrap()).collect();
    assert_eq!(columns[0], columns[1], "{page}");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_server_that_was_killed_is_shown_with_what_to_do() {
    let directory = directory("killed");
    fs::create_dir_all(directory.join("run")).unwrap();
    fs::write(directory.join("run/shop.pid"), "4711\n").unwrap();
    let dead = seen(&directory, "shop", "x = 1\n");
    let mut page = String::new();
    write_server(&mut page, &dead, &PLAIN).unwrap();
    let lines: Vec<&str> = page.lines().collect();
    assert!(lines[0].starts_with("shop  ?  "), "{page}");
    assert_eq!(lines[1..3], ["DEAD", "it was killed; `outboard start shop`"]);
    assert!(page.contains("`x`") || page.contains(" x"), "the error of its file: {page}");
    let json = dead.as_json();
    assert_eq!((&json["state"], &json["pid"]), (&Value::from("DEAD"), &Value::Null));
    assert!(json["config_error"].is_string() && json["status"].is_null());
    fs::remove_dir_all(directory).unwrap();
}
