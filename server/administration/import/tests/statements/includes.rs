//! Included files, files that cannot be read, and how the server is recognised.

use outboard_import::{ImportError, Imported, Kind, import};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

fn of_files(files: &[(&str, &str)]) -> Result<Imported, ImportError> {
    let files: BTreeMap<PathBuf, &str> =
        files.iter().map(|(path, text)| (Path::new("/etc").join(path), *text)).collect();
    let read = |path: &Path| match files.get(path) {
        Some(text) => Ok((*text).to_owned()),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    import(Path::new("/etc/main.conf"), None, &read)
}

fn listed(imported: &Imported) -> Vec<String> {
    let all = imported.omissions.iter();
    all.map(|one| format!("{}:{}: {}", one.file.display(), one.line, one.directive)).collect()
}

#[test]
fn the_server_is_recognised_by_its_syntax() {
    for (text, kind) in [
        ("server {\n root /srv/www;\n}\n", Kind::Nginx),
        ("server { root /srv/www; }", Kind::Nginx),
        ("<VirtualHost *:80>\nDocumentRoot /srv/www\n</VirtualHost>\n", Kind::Httpd),
        ("DocumentRoot /srv/www\n", Kind::Httpd),
        // A line that ends like a statement of nginx.
        ("DocumentRoot /srv/www\nHeader set X a;\n<Files a>\n</Files>\n", Kind::Httpd),
    ] {
        assert_eq!(of_files(&[("main.conf", text)]).unwrap().kind, kind, "{text}");
    }
}

#[test]
fn what_cannot_be_imported_is_named_with_its_cause() {
    let missing = of_files(&[]).unwrap_err();
    assert_eq!(missing.to_string(), "/etc/main.conf cannot be read: entity not found");
    let source = missing.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(source.kind(), io::ErrorKind::NotFound);
    for (text, expected) in [
        ("server {\n root '/srv;\n}", "/etc/main.conf:3: a quoted text has no end"),
        (
            "server {\n root /srv;\n",
            "/etc/main.conf:3: the file ends within a statement or a block",
        ),
        ("a b;\n}\n", "/etc/main.conf:2: unexpected `}`"),
        ("a;\n;\n", "/etc/main.conf:2: a statement without a name"),
        ("<A>\n</B>\n", "/etc/main.conf:2: `</b>` closes no section"),
        ("x\n<A>\ny\n", "/etc/main.conf:2: `<a>` is not closed"),
        ("http { gzip on; }", "/etc/main.conf has no site with a document root"),
        ("ServerName a.test\n", "/etc/main.conf has no site with a document root"),
        ("", "/etc/main.conf has no site with a document root"),
    ] {
        let error = of_files(&[("main.conf", text)]).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
        assert!(error.source().is_none());
    }
}

#[test]
fn statements_of_included_files_have_their_own_lines() {
    let imported = of_files(&[
        ("main.conf", "server {\n  include inner/php.conf;\n  root /srv/www;\n  mirror /x;\n}\n"),
        ("inner/php.conf", "\n\nperl a;\n"),
    ]);
    // The path of a file is relative to that of the first one.
    let listed = listed(&imported.unwrap());
    assert_eq!(listed, ["/etc/inner/php.conf:3: perl a", "/etc/main.conf:4: mirror /x"]);
}

#[test]
fn an_include_that_is_a_pattern_or_damaged_is_listed() {
    let main =
        "server {\n root /srv/www;\n include sites/*;\n include broken;\n include mime.types;\n}";
    let imported = of_files(&[("main.conf", main), ("broken", "a {")]).unwrap();
    assert_eq!(
        listed(&imported),
        ["/etc/main.conf:3: include sites/*", "/etc/main.conf:4: include broken"]
    );
    let reason = "the file is not there or the name is a pattern: import the file itself";
    assert!(imported.omissions.iter().all(|one| one.reason == reason));
}

#[test]
fn files_that_include_themselves_are_read_a_bounded_number_of_times() {
    let count = RefCell::new(0);
    let read = |_: &Path| {
        *count.borrow_mut() += 1;
        Ok("server { root /srv/www; include main.conf; include main.conf; }".to_owned())
    };
    let imported = import(Path::new("/etc/main.conf"), None, &read);
    assert!(imported.is_ok());
    assert!((100..=201).contains(&*count.borrow()), "{}", count.borrow());
}

#[test]
fn apache_includes_relative_to_its_root() {
    let imported = of_files(&[
        ("main.conf", "ServerRoot /etc/apache2\nInclude a.conf\nIncludeOptional none.conf\n"),
        ("apache2/a.conf", "DocumentRoot /srv/www\nAddHandler x .y\nMystery on\n"),
    ]);
    let imported = imported.unwrap();
    assert!(imported.toml.contains("root = \"/srv/www\""), "{}", imported.toml);
    assert_eq!(
        listed(&imported),
        ["/etc/apache2/a.conf:3: Mystery on", "/etc/main.conf:3: IncludeOptional none.conf"]
    );
}
