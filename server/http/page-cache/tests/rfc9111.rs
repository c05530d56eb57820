//! The tests that `docs/reference/rfc9111.md` names exist.

use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

fn source(test: &str) -> (String, String) {
    let (folder, test) = match test.strip_prefix("e2e ") {
        Some(test) => ("tests/tests", test),
        None => ("server/http/page-cache/tests", test),
    };
    let (file, name) = test.split_once("::").expect("a test is FILE::NAME");
    let path = Path::new(ROOT).join(folder).join(format!("{file}.rs"));
    let text = std::fs::read_to_string(&path);
    (text.unwrap_or_else(|error| panic!("{}: {error}", path.display())), name.to_owned())
}

#[test]
fn every_requirement_names_existing_tests() {
    let table = std::fs::read_to_string(Path::new(ROOT).join("docs/reference/rfc9111.md")).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.contains("::")).collect();
    assert!(rows.len() > 40, "there are {} rows", rows.len());
    for row in rows {
        let tests: Vec<&str> = row.split('`').filter(|part| part.contains("::")).collect();
        assert!(!tests.is_empty(), "{row}");
        for test in tests.into_iter().filter(|test| *test != "FILE::TEST") {
            let (text, name) = source(test);
            assert!(text.contains(&format!("fn {name}(")), "there is no test {test}");
        }
    }
}
