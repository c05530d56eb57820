//! Laravel in one process for all requests, as Octane serves it and by the guide's own configuration: the
//! application boots with the first request, and what it is made of is loaded while requests are
//! answered.
//!
//! Octane itself, which Debian does not have, is taken from the folder that `OUTBOARD_OCTANE` names; a
//! worker of the test's own goes the same way.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Configured, Docroot, Multipart, Request};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The configuration in the guide's part about Octane.
fn of_guide() -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/worker-mode.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, part) = guide.split_once("### From Laravel Octane").expect("the guide has that part");
    let (_, block) = part.split_once("```toml\n").expect("the part has a configuration");
    block.split_once("```").expect("a block ends").0.to_owned()
}

/// The fixture, served by the guide's configuration with this script and one worker.
fn serving(docroot: Docroot, script: &str, more: &str) -> Configured {
    let folder = docroot.path().display().to_string();
    for name in ["framework/views", "framework/sessions", "framework/cache", "app", "."] {
        docroot.writable(&format!("storage/{name}"));
    }
    docroot.writable("bootstrap/cache");
    let text = of_guide()
        .replace("root = \"public\"", "root = \"www/public\"")
        .replace("vendor/laravel/octane/bin/frankenphp-worker.php", script)
        .replace("/srv/site", &folder);
    assert!(text.contains(script) && text.contains(&folder), "{text}");
    let text = format!("listen = \"127.0.0.1:0\"\n{text}{more}\n[pool]\nmin = 1\nmax = 1\n");
    Configured::start(docroot, &text)
}

#[track_caller]
fn said(client: &mut Client, request: &Request) -> Value {
    let answer = client.send(request).expect(200);
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text()))
}

#[track_caller]
fn is_seen(client: &mut Client, user: Value, visits: u32) {
    let page = format!("/?page={visits}");
    let home = said(client, &Request::get(&page));
    assert_eq!((&home["user"], &home["visits"]), (&user, &json!(visits)), "{home}");
    assert_eq!(home["input"], json!({"page": visits.to_string()}), "{home}");
}

/// Login, session, upload and queue, of two visitors who take turns.
fn goes_through(site: &Configured) {
    let [mut anna, mut ben] = [site.client(), site.client()];
    is_seen(&mut anna, Value::Null, 1);
    is_seen(&mut ben, Value::Null, 1);
    let login = |name: &str, password: &str| {
        Request::form("/login", &[("name", name), ("password", password)])
    };
    assert_eq!(said(&mut anna, &login("anna", "wrong")), json!({"in": false}));
    assert_eq!(said(&mut anna, &login("anna", "anna")), json!({"in": true}));
    is_seen(&mut ben, Value::Null, 2);
    assert_eq!(said(&mut ben, &login("ben", "ben")), json!({"in": true}));
    is_seen(&mut anna, json!("anna"), 2);
    is_seen(&mut ben, json!("ben"), 3);

    let parts = Multipart::new().file("file", "notes.txt", "text/plain", b"hello");
    let stored = said(&mut anna, &Request::upload("/upload", parts));
    assert_eq!(stored, json!(["notes.txt", 5, "5d41402abc4b2a76b9719d911017c592"]));

    let queue = Request::form("/queue", &[("text", "put off")]);
    assert_eq!(said(&mut ben, &queue), json!({"queued": 1}));
    let work = Request::form("/work", &[]);
    assert_eq!(said(&mut anna, &work), json!({"text": "put off", "left": 0}));

    anna.get("/broken").expect(500);
    assert_eq!(said(&mut anna, &Request::form("/logout", &[])), json!({"user": null}));
    is_seen(&mut anna, Value::Null, 3);
    is_seen(&mut ben, json!("ben"), 4);
    let output = site.child().output();
    assert!(!output.contains("signal"), "{output}");
}

#[test]
fn an_application_that_boots_lazily_goes_through_laravel() {
    let docroot = Docroot::of("octane");
    goes_through(&serving(docroot, "www/worker.php", ""));
}

#[test]
fn octanes_own_worker_does_as_the_guide_says() {
    let Some(octane) = std::env::var_os("OUTBOARD_OCTANE").map(PathBuf::from) else { return };
    let docroot = Docroot::of("octane");
    let vendor = docroot.writable("vendor/laravel");
    let copied = Command::new("cp").arg("-r").arg(&octane).arg(vendor.join("octane")).status();
    assert!(copied.unwrap().success());
    let vendor = vendor.join("octane").display().to_string();
    let script = "www/vendor/laravel/octane/bin/frankenphp-worker.php";
    goes_through(&serving(docroot, script, &format!("OUTBOARD_OCTANE = \"{vendor}\"\n")));
}
