//! `outboard import` with files.

use super::*;
use crate::tests::admin_server::directory;
use std::fs;

const PLAIN: Terminal = Terminal { color_out: false, color_err: false };

fn code(first: &str, file: Option<&Path>, out: Option<&Path>) -> String {
    let arguments = ImportArguments {
        first: first.into(),
        file: file.map(Path::to_owned),
        out: out.map(Path::to_owned),
        json: true,
    };
    format!("{:?}", run(&arguments, &PLAIN))
}

fn exit(code: u8) -> String {
    format!("{:?}", ExitCode::from(code))
}

#[test]
fn a_configuration_is_written_once() {
    let directory = directory("import");
    let (site, out) = (directory.join("site.conf"), directory.join("outboard.toml"));
    fs::write(&site, "server { root /srv/www; perl x; }").unwrap();
    assert_eq!(code(site.to_str().unwrap(), None, Some(&out)), exit(0));
    let text = fs::read_to_string(&out).unwrap();
    assert!(text.contains("root = \"/srv/www\""), "{text}");
    fs::write(&out, "mine").unwrap();
    assert_eq!(code("nginx", Some(&site), Some(&out)), exit(2), "it exists");
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn arguments_that_name_no_server_are_refused() {
    let directory = directory("import-arguments");
    let site = directory.join("site.conf");
    fs::write(&site, "server { root /srv/www; }").unwrap();
    for (first, expected) in [("nginx", 0), ("httpd", 2), ("apache", 2), ("caddy", 2)] {
        assert_eq!(code(first, Some(&site), None), exit(expected), "{first}");
    }
    assert_eq!(code("/none.conf", None, None), exit(2));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let directory = directory("import-large");
    let file = directory.join("site.conf");
    File::create(&file).unwrap().set_len(FILE_MAX_BYTES).unwrap();
    assert_eq!(read(&file).unwrap().len() as u64, FILE_MAX_BYTES);
    File::create(&file).unwrap().set_len(FILE_MAX_BYTES + 1).unwrap();
    assert_eq!(read(&file).unwrap_err().to_string(), "it is larger than 4 MiB");
    fs::write(&file, [0xff]).unwrap();
    assert_eq!(read(&file).unwrap_err().kind(), io::ErrorKind::InvalidData);
    fs::remove_dir_all(directory).unwrap();
}
