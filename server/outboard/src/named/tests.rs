//! Which named servers a command is for, and its exit code.

use super::*;
use crate::instances::InstanceDirs;
use crate::tests::admin_server::directory;
use std::fs;
use std::sync::Mutex;

const PLAIN: Terminal = Terminal { color_out: false, color_err: false };

/// Names of servers in a directory with the configurations of `shop` and `blog`.
fn pick(directory: &std::path::Path, names: &[&str]) -> InstanceSelector {
    let (conf_dir, run_dir) = (directory.join("conf"), directory.join("run"));
    fs::create_dir_all(&conf_dir).unwrap();
    fs::create_dir_all(&run_dir).unwrap();
    for name in ["shop.toml", "blog.toml", ".hidden.toml", "shop.conf", "a b.toml"] {
        fs::write(conf_dir.join(name), "").unwrap();
    }
    let dirs = InstanceDirs { conf_dir: Some(conf_dir), run_dir: Some(run_dir) };
    InstanceSelector { names: names.iter().map(|name| (*name).to_owned()).collect(), dirs }
}

fn names(servers: Result<Vec<Named>, String>) -> Vec<String> {
    servers.unwrap().into_iter().map(|server| server.name).collect()
}

#[test]
fn without_names_all_servers_are_selected() {
    let directory = directory("selected");
    assert_eq!(names(selected(&pick(&directory, &[]))), ["blog", "shop"]);
    assert_eq!(names(selected(&pick(&directory, &["shop"]))), ["shop"]);
    // One that runs, whose configuration was removed.
    fs::write(directory.join("run/old.pid"), "").unwrap();
    assert_eq!(names(selected(&pick(&directory, &[]))), ["blog", "old", "shop"]);
    let server = selected(&pick(&directory, &["old"])).unwrap().remove(0);
    assert_eq!(server.admin_socket(), directory.join("run/old.sock"));
    assert_eq!(server.config, directory.join("conf/old.toml"));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn an_unknown_server_is_reported_with_the_known_ones() {
    let directory = directory("unknown");
    let error = selected(&pick(&directory, &["shop", "shpo"])).unwrap_err();
    let missing = directory.join("conf/shpo.toml");
    let expected = format!(
        "there is no server `shpo`: {} is missing; existing servers: blog, shop",
        missing.display()
    );
    assert_eq!(error, expected);
    let error = selected(&pick(&directory, &["../shop"])).unwrap_err();
    assert!(error.starts_with("`../shop` is not a valid server name"), "{error}");
    let mut none = pick(&directory, &[]);
    none.dirs.conf_dir = Some(directory.join("run"));
    let error = selected(&none).unwrap_err();
    assert!(error.starts_with("there is no server in "), "{error}");
    none.dirs.conf_dir = Some(directory.join("none"));
    let error = selected(&none).unwrap_err();
    assert!(
        error.ends_with("none cannot be used: No such file or directory (os error 2)"),
        "{error}"
    );
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_command_runs_once_for_each_server() {
    let directory = directory("each");
    let all = Directories::of(&pick(&directory, &[]).dirs).unwrap();
    let servers: Vec<Named> = (0..20).map(|at| all.named(format!("server-{at}"))).collect();
    let ran = Mutex::new(Vec::new());
    let code = run_each(&servers, &PLAIN, |server| {
        ran.lock().unwrap().push(server.name.clone());
        CommandOutcome::done("done")
    });
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
    let mut ran = ran.into_inner().unwrap();
    ran.sort();
    let mut expected: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
    expected.sort();
    assert_eq!(ran, expected);
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn one_failure_is_the_exit_code_of_all() {
    let directory = directory("failure");
    let pick = pick(&directory, &[]);
    let code = run_selected(&pick, &PLAIN, |server| match server.name.as_str() {
        "blog" => CommandOutcome::failed("it is not running", 7),
        _ => CommandOutcome::done("STOPPED"),
    });
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(7)));
    let unknown = InstanceSelector { names: vec!["x".to_owned()], ..pick };
    let code = run_selected(&unknown, &PLAIN, |_| unreachable!("there is no such server"));
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(2)));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_stop_of_what_does_not_run_succeeds() {
    let directory = directory("stop");
    for (pick, stop_code, reload_code) in
        [(pick(&directory, &["shop"]), 0, 7), (pick(&directory, &[]), 0, 0)]
    {
        let codes = [stop::run(&pick, &PLAIN), stop::reload(&pick, &PLAIN)];
        let expected = [stop_code, reload_code].map(|code| format!("{:?}", ExitCode::from(code)));
        assert_eq!(codes.map(|code| format!("{code:?}")), expected);
    }
    // A server that was killed leaves its file, which goes.
    let pid_file = directory.join("run/shop.pid");
    fs::write(&pid_file, "4711\n").unwrap();
    let code = stop::run(&pick(&directory, &["shop"]), &PLAIN);
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
    assert!(!pid_file.exists());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_server_with_an_invalid_configuration_is_not_restarted() {
    let directory = directory("restart");
    let pick = pick(&directory, &["shop"]);
    fs::write(directory.join("conf/shop.toml"), "no_such_key = 1\n").unwrap();
    let code = stop::restart(&pick, &PLAIN);
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(2)));
    fs::remove_dir_all(directory).unwrap();
}
