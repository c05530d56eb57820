//! What a broken invariant of the shim does (`sapi/check.h`).

mod driver;

use driver::TempDir;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

const SIGABRT: i32 = 6;

/// Runs `code` in a program that has only the assertions, built with `flags`.
fn run(code: &str, flags: &[&str]) -> Output {
    let folder = TempDir::new();
    let sapi = Path::new(env!("CARGO_MANIFEST_DIR")).join("sapi");
    let text = format!("#include \"check.h\"\nint main(int count, char **_) {{\n{code}\n}}\n");
    let source = folder.write("program.c", &text);
    let program = folder.0.join("program");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-D_GNU_SOURCE", "-iquote"])
        .args([&sapi, &source, &sapi.join("check.c")])
        .args(flags)
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(built.success());
    Command::new(program).output().unwrap()
}

#[test]
fn a_broken_invariant_names_its_place_and_ends_the_process() {
    let output = run("OUTBOARD_ASSERT(count == 2);", &[]);
    assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.ends_with("program.c:3: an invariant does not hold: count == 2\n"), "{text}");
}

#[test]
fn an_invariant_that_holds_says_nothing() {
    let output = run("OUTBOARD_ASSERT(count == 1); OUTBOARD_ASSERT_SLOWLY(count == 1);", &[]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn what_takes_long_is_checked_in_debug_builds_alone() {
    let code = "OUTBOARD_ASSERT_SLOWLY(++count == 0); return count == 1 ? 0 : 1;";
    let output = run(code, &[]);
    assert!(output.status.success(), "it is not even evaluated: {output:?}");
    let output = run(code, &["-DOUTBOARD_SLOW_ASSERTIONS"]);
    assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
}
