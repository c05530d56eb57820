//! Arguments of `outboard run`, and the files that a program names.

use super::*;
use crate::tests::admin_server::directory;

#[test]
fn a_setting_of_php_may_have_no_value() {
    for (text, name, value) in [
        ("memory_limit=1G", "memory_limit", "1G"),
        ("display_errors", "display_errors", "1"),
        ("a = \"b c\" ", "a", "b c"),
        ("a=b=c", "a", "b=c"),
        ("a=", "a", ""),
    ] {
        assert_eq!(ini_setting(text), (name.to_owned(), value.to_owned()), "{text}");
    }
}

#[test]
fn a_pid_file_is_emptied_and_a_log_is_not() {
    let directory = directory("run-files");
    let path = directory.join("file");
    std::fs::write(&path, "before").unwrap();
    write!(open("log_file", Some(&path), false).unwrap().unwrap(), "+").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before+");
    let pid_file = open("pid_file", Some(&path), true).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    write_pid(pid_file);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), std::process::id().to_string());
    assert!(open("log_file", None, false).unwrap().is_none());
    let missing = directory.join("none/file");
    let error = open("pid_file", Some(&missing), true).unwrap_err();
    assert_eq!(
        error,
        format!("pid_file {}: No such file or directory (os error 2)", missing.display())
    );
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let arguments = RunArguments {
        script: "/none/server.php".into(),
        arguments: Vec::new(),
        listen: None,
        ini: Vec::new(),
        user: None,
        admin: None,
        php_host: None,
    };
    let Err(error) = prepare(&arguments) else { panic!("there is no program") };
    assert_eq!(error, "there is no file /none/server.php");
}

#[test]
fn root_runs_programs_as_another_user() {
    let mut arguments = RunArguments {
        script: PathBuf::new(),
        arguments: Vec::new(),
        listen: None,
        ini: Vec::new(),
        user: Some("no-such-user".to_owned()),
        admin: None,
        php_host: None,
    };
    let is_root = rustix::process::geteuid().is_root();
    let error = user_of(&arguments, None).err();
    let expected = is_root.then(|| "there is no user no-such-user on this machine".to_owned());
    assert_eq!(error, expected);
    // What the command line names precedes what the program names.
    arguments.user = Some("daemon".to_owned());
    let user = user_of(&arguments, Some("no-such-user")).unwrap();
    assert_eq!(user.map(|user| user.name), is_root.then(|| "daemon".to_owned()));
    arguments.user = None;
    let user = user_of(&arguments, None).unwrap();
    assert!(user.is_none_or(|user| user.uid != 0));
}
