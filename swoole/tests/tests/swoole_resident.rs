//! The scripts of a resident system that was measured against mod_php: each answers what its variant
//! for mod_php prints, whatever else is served at the same time.

#![forbid(unsafe_code)]

use outboard_e2e::{Docroot, MariaDb, Program};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// Visitors at the same time, and requests of each.
const VISITORS: usize = 20;
const REQUESTS: usize = 5;

fn database() -> &'static MariaDb {
    static DATABASE: OnceLock<MariaDb> = OnceLock::new();
    DATABASE.get_or_init(|| {
        let database = MariaDb::start();
        database.create("resident");
        let tables = include_str!("../../resident/site/database.sql");
        database.run(&format!("USE resident; {tables}"));
        database
    })
}

/// With the settings of the database, and the tree of classes that some scripts load.
fn docroot() -> Docroot {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../resident/site");
    let docroot = Docroot::copy(&scripts);
    let settings = format!(
        "<?php return ['socket' => '{}', 'user' => '{}', 'password' => '{}', 'database' => \
         'resident', 'connections' => 5];",
        database().socket().display(),
        MariaDb::USER,
        MariaDb::PASSWORD,
    );
    docroot.put("include/settings.php", settings);
    let mut names = String::new();
    for number in 0..120 {
        let (part, class) = (format!("Part{}", number % 10), format!("Class{number:03}"));
        let text = format!(
            "<?php\n\nnamespace Framework\\{part};\n\nclass {class}\n{{\n    public function number(): \
             int\n    {{\n        return {number};\n    }}\n}}\n"
        );
        docroot.put(&format!("include/classes/Framework/{part}/{class}.php"), text);
        names.push_str(&format!("    'Framework\\\\{part}\\\\{class}',\n"));
    }
    docroot.put("include/available_classes.php", format!("<?php\n\nreturn [\n{names}];\n"));
    docroot
}

/// What the variant for mod_php prints.
fn expected(docroot: &Docroot, script: &str) -> String {
    let output = Command::new("php")
        .arg(docroot.path().join("mod_php").join(script))
        .output()
        .expect("PHP is installed");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[track_caller]
fn answers_as_mod_php(script: &str) {
    let docroot = docroot();
    let expected = expected(&docroot, script);
    let program = Program::start_in(docroot, &format!("programs/{script}"), &[]);
    std::thread::scope(|scope| {
        for _ in 0..VISITORS {
            scope.spawn(|| {
                let mut client = program.client();
                for _ in 0..REQUESTS {
                    assert_eq!(client.get("/").expect(200).text(), expected);
                }
            });
        }
    });
}

#[test]
fn basic() {
    answers_as_mod_php("basic.php");
}

#[test]
fn basic_class_load() {
    answers_as_mod_php("basic_class_load.php");
}

#[test]
fn basic_class_load_multiple() {
    answers_as_mod_php("basic_class_load_multiple.php");
}

#[test]
fn basic_query() {
    answers_as_mod_php("basic_query.php");
}

#[test]
fn basic_query_with_pool() {
    answers_as_mod_php("basic_query_with_pool.php");
}

#[test]
fn basic_query_with_pool_and_caching() {
    answers_as_mod_php("basic_query_with_pool_and_caching.php");
}

#[test]
fn simple_real_app_simulation() {
    answers_as_mod_php("simple_real_app_simulation.php");
}

#[test]
fn real_app_simulation() {
    answers_as_mod_php("real_app_simulation.php");
}
