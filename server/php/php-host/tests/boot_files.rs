//! What a zygote reports that the start of its script has read.

mod driver;

use driver::{Host, TempDir, settings_of_worker, start};
use outboard_ring::boot_files::{Kind, decode};
use outboard_ring::control::{Event, Isolation};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

/// A directory with a script of this code.
fn with_script(code: &str) -> TempDir {
    let directory = TempDir::new();
    directory.write("worker.php", &format!("<?php {code}"));
    directory.write("code.php", "<?php return 1;");
    directory.write("setting.yaml", "a: 1");
    directory.write("classes/Unused.php", "<?php");
    directory.write("classes/Used.php", "<?php");
    directory
}

fn started(directory: &TempDir, isolation: Isolation, lists_files: bool) -> Host {
    let mut settings = settings_of_worker(directory.0.join("worker.php"));
    settings.document_root = directory.0.clone();
    let worker = settings.worker.as_mut().unwrap();
    (worker.isolation, worker.lists_files) = (isolation, lists_files);
    start(settings)
}

/// What is listed below the directory, and whether it exists.
fn listed(host: &mut Host, directory: &TempDir) -> BTreeSet<(String, Kind, bool)> {
    let Some((_, descriptors)) = &mut host.boot_read else { panic!("{:?}", host.started) };
    let mut list = Vec::new();
    File::from(descriptors.remove(0)).read_to_end(&mut list).unwrap();
    let (mut rest, mut listed) = (&list[..], BTreeSet::new());
    let below = format!("{}/", directory.0.canonicalize().unwrap().display());
    while let Some(file) = decode(&mut rest).unwrap() {
        if let Some(name) = std::str::from_utf8(file.path).unwrap().strip_prefix(&below) {
            listed.insert((name.to_owned(), file.kind, file.state.is_some()));
        }
    }
    listed
}

fn keys(host: &Host) -> &[String] {
    match &host.boot_read {
        Some((Event::BootRead { keys, .. }, _)) => keys,
        other => panic!("{other:?}"),
    }
}

const READING: &str = "
    require __DIR__ . '/code.php';
    spl_autoload_register(fn ($name) => include_once __DIR__ . \"/classes/$name.php\");
    class_exists('Used');
    file_get_contents(__DIR__ . '/setting.yaml');
    is_file(__DIR__ . '/missing.php');
    file_put_contents(__DIR__ . '/written.txt', file_get_contents(__DIR__ . '/code.php'));
    Outboard\\snapshot_depends('options', 'theme');
    Outboard\\snapshot_depends('options');";

fn expected() -> BTreeSet<(String, Kind, bool)> {
    let files = [
        ("classes", Kind::PathPart, true),
        ("classes/Used.php", Kind::Contents, true),
        ("code.php", Kind::Contents, true),
        ("missing.php", Kind::Contents, false),
        ("setting.yaml", Kind::Contents, true),
        ("worker.php", Kind::Contents, true),
    ];
    files.map(|(name, kind, exists)| (name.to_owned(), kind, exists)).into()
}

#[test]
fn the_files_and_keys_of_a_start_are_reported() {
    for isolation in [Isolation::Fork, Isolation::Rewind] {
        let directory = with_script(&format!("{READING} Outboard\\serve(fn () => 'a');"));
        let mut host = started(&directory, isolation, true);
        assert!(matches!(host.started, Event::Started { .. }), "{:?}", host.started);
        assert_eq!(keys(&host), ["options", "theme"]);
        assert_eq!(listed(&mut host, &directory), expected(), "{isolation:?}");
    }
}

#[test]
fn a_start_that_fails_reports_what_it_has_read() {
    for failure in ["none();", "exit;", "require __DIR__ . '/none.php';"] {
        let directory = with_script(&format!("{READING} {failure}"));
        let mut host = started(&directory, Isolation::Rewind, true);
        assert!(matches!(host.started, Event::StartFailed { .. }), "{:?}", host.started);
        let mut files = listed(&mut host, &directory);
        files.remove(&("none.php".to_owned(), Kind::Contents, false));
        assert_eq!(files, expected(), "{failure}");
    }
}

#[test]
fn files_are_not_listed_unless_that_is_set() {
    let directory = with_script(&format!("{READING} Outboard\\serve(fn () => 'a');"));
    let host = started(&directory, Isolation::Rewind, false);
    assert_eq!(keys(&host), ["options", "theme"]);
    assert!(host.boot_read.as_ref().is_some_and(|(_, descriptors)| descriptors.is_empty()));
    assert!(started(&directory, Isolation::Reset, true).boot_read.is_none());
}

#[test]
fn a_worker_records_nothing_and_has_no_list() {
    let code = "Outboard\\serve(function () { Outboard\\snapshot_depends('late'); \
                require __DIR__ . '/code.php'; return implode(' ', array_map(fn ($fd) => @readlink($fd), \
                glob('/proc/self/fd/*'))); });";
    let directory = with_script(code);
    let mut host = started(&directory, Isolation::Rewind, true);
    let mut worker = host.fork();
    let response = worker.request(&driver::get("a"));
    let descriptors = driver::finished(&response);
    assert!(!descriptors.contains("boot-files") && descriptors.contains("pipe"), "{descriptors}");
}
