//! The header that C gets of the boundary to Rust (`build/boundary.rs`).

#[path = "../build/boundary.rs"]
mod boundary;

use std::fs;
use std::path::Path;

fn read(directory: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("a directory of the crate").flatten() {
        if entry.path().is_dir() {
            read(&entry.path(), texts);
        } else {
            texts.push(fs::read_to_string(entry.path()).expect("a readable file"));
        }
    }
}

fn header_of_the_crate() -> String {
    let mut texts = Vec::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
    texts.retain(|text| boundary::concerns(text));
    boundary::header(&texts)
}

/// The header, with one more file.
fn with(source: &str) -> String {
    let mut texts = Vec::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
    texts.push(source.to_owned());
    boundary::header(&texts)
}

#[test]
fn each_function_of_both_sides_has_a_prototype() {
    let header = header_of_the_crate();
    let prototypes = header.lines().filter(|line| line.ends_with(");") && !line.starts_with('\t'));
    assert!(prototypes.count() >= 90, "{header}");
    for prototype in [
        "void outboard_rs_ready(void *events);",
        "bool outboard_engine_start(const char *sapi_name, const char *ini_file, const char *ini_entries);",
        "void outboard_program_prepare(int32_t count, const char *const *arguments);",
        "bool outboard_rs_offload(void *events, uint64_t waiter, void (*run)(void *), void *data);",
    ] {
        assert!(header.lines().any(|line| line == prototype), "{prototype}\n{header}");
    }
}

#[test]
fn structures_have_the_fields_of_rust_in_their_order() {
    let header = header_of_the_crate();
    let text = "typedef struct {\n\tconst char *ptr;\n\tsize_t len;\n} outboard_str;";
    assert!(header.contains(text), "{header}");
    assert!(
        header.contains("\tconst outboard_pair *headers;\n\tsize_t header_count;\n"),
        "{header}"
    );
}

#[test]
fn a_function_with_several_lines_is_one_prototype() {
    let source = "#[unsafe(no_mangle)]\nunsafe extern \"C\" fn outboard_rs_example(\n    first: *mut u8, // one\n    \
                  second: *const *mut c_char,\n) -> *const c_void {\n}\n";
    let prototype = "const void *outboard_rs_example(uint8_t *first, char *const *second);\n";
    assert!(with(source).contains(prototype));
}

#[test]
fn c_has_the_numbers_of_the_calls_that_it_makes() {
    let operation = include_str!("../../ring/src/operation.rs").to_owned();
    assert!(boundary::concerns(&operation));
    let header = with(&operation);
    assert!(header.contains("\n#define OUTBOARD_CALL_RETIRE_SNAPSHOT 19\n"), "{header}");
    assert!(!header.contains("_FETCH "), "the other numbers are ring's own");
}

#[test]
#[should_panic(expected = "the boundary to C has no type String")]
fn a_type_that_c_does_not_have_is_refused() {
    with("unsafe extern \"C\" {\n    fn outboard_example(text: String);\n}\n");
}
