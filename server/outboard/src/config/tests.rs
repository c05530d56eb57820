//! The pages of `outboard config show`.

use super::*;
use crate::tests::admin_server::directory;
use serde_json::{Value, json};

fn setting(key: &str, value: Value, origin: &str) -> Setting {
    Setting {
        key: key.to_owned(),
        value,
        origin: origin.to_owned(),
        file: None,
        line: None,
        sources: Vec::new(),
    }
}

#[test]
fn a_value_is_shown_with_its_place() {
    let mut at = setting("app.a.root", json!("/srv"), "file");
    (at.file, at.line) = (Some("outboard.toml".to_owned()), Some(3));
    assert_eq!(place(&at), "outboard.toml:3");
    at.origin = "environment".to_owned();
    at.sources = vec!["SRV".to_owned(), "HOME".to_owned()];
    assert_eq!(place(&at), "environment SRV, HOME (outboard.toml:3)");
    at.origin = "secret-file".to_owned();
    assert_eq!(place(&at), "secret file SRV, HOME (outboard.toml:3)");
    assert_eq!(place(&setting("threads", json!(2), "command-line")), "command line");
    assert_eq!(place(&setting("threads", json!(2), "default")), "default");
}

#[test]
fn every_key_is_a_line() {
    let settings = vec![
        setting("threads", json!(2), "default"),
        setting("app.a.root", json!("/a \"b\""), "default"),
        setting("app.a.index", json!(["a", "b"]), "command-line"),
    ];
    let configuration = Configuration { file: String::new(), files: Vec::new(), settings };
    let page = |origin| {
        let mut page = String::new();
        write_page(&mut page, &configuration, origin).unwrap();
        page
    };
    assert_eq!(
        page(false),
        "threads = 2\napp.a.root = \"/a \\\"b\\\"\"\napp.a.index = [\"a\",\"b\"]\n"
    );
    assert!(page(true).ends_with("app.a.index = [\"a\",\"b\"]  # command line\n"));
}

#[test]
fn a_file_with_errors_has_exit_code_2() {
    let directory = directory("config-show");
    let file = directory.join("outboard.toml");
    let show = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let admin = AdminArguments { admin: None, json: true };
        let (file, running, origin) = (file.clone(), false, false);
        let arguments = ConfigShowArguments { file, running, origin, admin };
        let terminal = Terminal { color_out: false, color_err: false };
        format!("{:?}", run(&ConfigAction::Show(arguments), &terminal))
    };
    assert_eq!(show("x = 1\n"), format!("{:?}", ExitCode::from(2)));
    let valid = format!("[app.a]\nroot = \"{}\"\n", directory.display());
    assert_eq!(show(&valid), format!("{:?}", ExitCode::SUCCESS));
    std::fs::remove_dir_all(directory).unwrap();
}
