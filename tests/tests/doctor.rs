//! `outboard doctor state` names what requests leave behind, and nothing else.

#![forbid(unsafe_code)]

use outboard_e2e::{Scratch, Server};
use std::process::{Command, Output};

fn examine(script: &str, configuration: Option<&str>, arguments: &[&str]) -> Output {
    let scratch = Scratch::new("doctor");
    scratch.folder("public");
    scratch.file("worker.php", script);
    if let Some(text) = configuration {
        scratch.file("outboard.toml", text);
    }
    let mut command = Command::new("timeout");
    command.arg("60").arg(Server::binary()).args(["doctor", "state"]).arg(scratch.path());
    command.args(arguments).output().expect("the binary is there")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const DIRTY: &str = r#"<?php
class Kept
{
    public static $log = [];
}
function counted() { static $n = 0; return ++$n; }
$seen = 0;
Outboard\serve(function ($request) use (&$seen) {
    $seen++;
    Kept::$log[] = $request->path();
    counted();
    return "ok";
});
"#;

#[test]
fn leftovers_of_requests_are_named_by_file_and_line() {
    let output = examine(DIRTY, None, &["--request", "GET /a"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = said(&output);
    for words in [
        "global $seen: 0 -> 1, and again with every request",
        "static property Kept::$log[0]: nothing -> \"/a\"",
        "worker.php:2",
        "static variable counted() $n: nothing -> 1",
        "worker.php:6",
    ] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
}

#[test]
fn known_findings_can_be_ignored() {
    let ignored = [
        "--ignore",
        "$seen",
        "--ignore",
        "Kept::$",
        "--ignore",
        "counted()",
        "--ignore",
        "{closure}",
    ];
    let output = examine(DIRTY, None, &ignored);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn an_application_that_leaves_nothing_is_clean() {
    let script = r#"<?php
        class Unchanged { public static $list = ["a" => 1]; }
        Outboard\serve(function ($request) {
            ini_set("precision", "3"); putenv("A=1"); chdir("/"); setlocale(LC_ALL, "C.UTF-8");
            set_error_handler(fn () => true); session_name("X"); $_SESSION["a"] = 1; mt_srand(1);
            return (string) count(Unchanged::$list);
        });"#;
    let output = examine(script, None, &[]);
    assert_eq!(
        (output.status.code(), said(&output).contains("clean")),
        (Some(0), true),
        "{output:?}"
    );
}

#[test]
fn with_isolation_by_rewind_nothing_is_left() {
    let configuration = "[app.site]\nroot = \"public\"\nmode = \"worker\"\n\
                         [app.site.worker]\nscript = \"worker.php\"\nisolation = \"rewind\"\n";
    let output = examine(DIRTY, Some(configuration), &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn findings_are_to_be_had_as_json() {
    let output = examine(DIRTY, None, &["--json"]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let names: Vec<_> = found["findings"].as_array().expect("a list").iter().collect();
    assert!(names.iter().any(|one| one["name"] == "$seen" && one["keeps_changing"] == true));
}

#[test]
fn invalid_arguments_exit_with_2() {
    assert_eq!(examine(DIRTY, None, &["--request", "nonsense"]).status.code(), Some(2));
    let classic = "[app.site]\nroot = \"public\"\n";
    assert_eq!(examine(DIRTY, Some(classic), &[]).status.code(), Some(2));
}

#[test]
fn a_failed_request_is_reported() {
    let output = examine("<?php Outboard\\serve(fn () => throw new Exception('x'));", None, &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said(&output).contains("GET / got status 500"), "{output:?}");
}

#[test]
fn a_page_that_is_not_a_worker_is_reported_without_its_output() {
    let page = "<html><body><h1>Welcome</h1><?php echo 'to the page'; ?></body></html>";
    let output = examine(page, None, &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("worker.php is no worker script"), "{complaint}");
    assert!(!complaint.contains("Welcome") && !complaint.contains("to the page"), "{complaint}");
}
