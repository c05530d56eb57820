//! What is stored, damaged files included.

use super::fixture::directory;
use crate::name::Name;
use crate::plan::{Limits, NameRecord, Step};
use crate::storage::Storage;
use crate::worker::status;
use outboard_tls::Credential;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

const LIMITS: Limits = Limits { orders: 300, orders_per_name: 5 };

/// A certificate for a name, which is valid until a year, with its key.
fn pem(name: &str, until: i32) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(until, 1, 1));
    key.serialize_pem() + &params.self_signed(&key).unwrap().pem()
}

#[test]
fn a_damaged_file_is_named_and_changes_nothing() {
    let directory = directory("damaged");
    let storage = Storage::open(&directory).unwrap();
    fs::write(directory.join("names/a.test.json"), "{").unwrap();
    let (name, fault) = Name::load("a.test", &storage);
    let path = directory.join("names/a.test.json").display().to_string();
    assert!(fault.unwrap().starts_with(&format!("{path}: EOF while parsing")));
    assert_eq!(*name.record.borrow(), NameRecord::default());
    fs::write(directory.join("names/a.test.json"), "{}").unwrap();
    fs::write(directory.join("names/a.test.pem"), "nothing").unwrap();
    let (name, fault) = Name::load("a.test", &storage);
    let fault = fault.unwrap();
    assert!(fault.starts_with("the stored certificate of a.test: "), "{fault}");
    assert!(name.credential().is_none());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_record_of_another_release_is_read() {
    let directory = directory("release");
    let storage = Storage::open(&directory).unwrap();
    let text = r#"{"orders":[5],"failures":2,"error":"no","of_a_later_release":{}}"#;
    fs::write(directory.join("names/a.test.json"), text).unwrap();
    let record: NameRecord = storage.record("a.test").unwrap();
    assert_eq!((record.orders(), record.failures), (&[5][..], 2));
    storage.set_record("a.test", &record).unwrap();
    assert_eq!(storage.record::<NameRecord>("a.test").unwrap(), record);
    assert_eq!(storage.record::<NameRecord>("b.test").unwrap(), NameRecord::default());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_file_of_an_authority_stays_in_its_directory() {
    let directory = directory("authorities");
    let storage = Storage::open(&directory).unwrap();
    for url in ["https://a.test/directory", "https://../../x", "http://a:80/?b=/c", ""] {
        storage.set_authority(url, &BTreeMap::from([("url", url)])).unwrap();
        let stored: BTreeMap<String, String> = storage.authority(url).unwrap().unwrap();
        assert_eq!(stored["url"], url);
    }
    let files = fs::read_dir(directory.join("accounts")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    files.sort();
    let expected = ["..-..-x.json", ".json", "a.test-directory.json", "http---a-80--b--c.json"];
    assert_eq!(files, expected);
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn an_interrupted_write_leaves_the_file_as_it_was() {
    let directory = directory("interrupted-write");
    let storage = Storage::open(&directory).unwrap();
    storage.set_certificate("a.test", "whole").unwrap();
    // What a process has left that ended before the file was complete.
    fs::write(directory.join("names/a.test.pem.new"), "par").unwrap();
    assert_eq!(storage.certificate("a.test"), Ok(Some(b"whole".to_vec())));
    assert_eq!(storage.names(), ["a.test"]);
    storage.set_certificate("a.test", "next").unwrap();
    assert_eq!(storage.certificate("a.test"), Ok(Some(b"next".to_vec())));
    assert!(!directory.join("names/a.test.pem.new").exists());
    // A directory in the place of a file.
    fs::create_dir(directory.join("names/b.test.pem")).unwrap();
    assert!(storage.set_certificate("b.test", "x").unwrap_err().contains("b.test.pem: "));
    assert!(storage.certificate("b.test").is_err());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_directory_that_cannot_be_created_is_named() {
    let directory = directory("file");
    fs::write(&directory, "").unwrap();
    let error = Storage::open(&directory).unwrap_err();
    let start =
        format!("cannot create the directory of certificates {}/accounts: ", directory.display());
    assert!(error.starts_with(&start), "{error}");
    fs::remove_file(directory).unwrap();
}

#[test]
fn a_node_has_its_name_for_good() {
    let directory = directory("node");
    let storage = Storage::open(&directory).unwrap();
    assert_eq!(
        storage.node(|| Err("no random numbers".to_owned())),
        Err("no random numbers".to_owned())
    );
    assert_eq!(storage.node(|| Ok("one".to_owned())), Ok("one".to_owned()));
    assert_eq!(storage.node(|| unreachable!("it has one")), Ok("one".to_owned()));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_state_of_a_name_is_that_of_its_certificate() {
    let directory = directory("status");
    let storage = Storage::open(&directory).unwrap();
    let (name, fault) = Name::load("a.test", &storage);
    assert_eq!(fault, None);
    const NOW: u64 = 1_800_000_000;
    let missing = status(&name, Step::Obtain, NOW);
    assert_eq!((missing.state.as_str(), missing.next_attempt_s), ("missing", Some(NOW)));
    assert_eq!((missing.issuer, missing.not_after_s), (None, None));
    for (until, state) in [(2020, "expired"), (3000, "valid")] {
        let credential = Credential::from_pem(pem("a.test", until).as_bytes()).unwrap();
        name.set_credential(Arc::new(credential));
        let found = status(&name, Step::Wait(NOW + 5), NOW);
        assert_eq!((found.state.as_str(), found.next_attempt_s), (state, Some(NOW + 5)));
        assert!(found.issuer.is_some_and(|issuer| issuer.starts_with("CN=")));
    }
    name.change(&storage, |record| record.failed(NOW, "no".to_owned())).unwrap();
    assert_eq!(status(&name, Step::Obtain, NOW).last_error.as_deref(), Some("no"));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_name_waits_while_another_process_has_it() {
    let directory = directory("other");
    let storage = Storage::open(&directory).unwrap();
    let (name, _) = Name::load("a.test", &storage);
    assert_eq!(name.next_step(100, [0], LIMITS), Step::Obtain);
    name.other_until_s.set(103);
    assert_eq!(name.next_step(100, [0], LIMITS), Step::Wait(103));
    assert_eq!(name.next_step(103, [0], LIMITS), Step::Obtain);
    // The first authority that accepts an order decides.
    assert_eq!(name.next_step(103, [500, 200], LIMITS), Step::Wait(200));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_newer_certificate_of_another_process_is_found() {
    let directory = directory("refresh");
    let storage = Storage::open(&directory).unwrap();
    let (name, _) = Name::load("a.test", &storage);
    assert_eq!(name.validity(), None);
    storage.set_certificate("a.test", &pem("a.test", 3000)).unwrap();
    name.refresh(&storage).unwrap();
    assert_eq!(name.validity().unwrap().not_before_s, 978_307_200);
    // A file that is gone does not remove a certificate that is in use.
    fs::remove_file(directory.join("names/a.test.pem")).unwrap();
    name.refresh(&storage).unwrap();
    assert!(name.credential().is_some());
    fs::remove_dir_all(directory).unwrap();
}
