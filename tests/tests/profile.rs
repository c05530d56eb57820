//! `outboard profile`: what PHP functions a running server is in, seen from outside.

#![forbid(unsafe_code)]

use outboard_e2e::{Browser, Client, Docroot, Scratch, Server, Site, repeating};
use std::process::{Command, Output};

/// Profiles the server while a client requests `path` all the time; folded stacks and output.
fn profile(server: &Server, path: &str, scratch: &Scratch, further: &[&str]) -> (String, Output) {
    let client = |is_over: &dyn Fn() -> bool| {
        let mut client = Client::new(server.address());
        while !is_over() {
            client.get(path).expect(200);
        }
    };
    repeating(1, client, || {
        let (page, folded) = (scratch.path().join("profile.html"), scratch.path().join("folded"));
        let mut command = Command::new(Server::binary());
        command.arg("profile").arg("--admin").arg(server.admin_socket());
        command.args(["--duration", "1s", "--hz", "199"]).args(further);
        command.arg("--output").arg(&page).arg("--folded").arg(&folded);
        let output = command.output().expect("the binary is there");
        assert!(output.status.success(), "{output:?}");
        (std::fs::read_to_string(folded).expect("it was written"), output)
    })
}

#[test]
fn the_functions_that_compute_are_named_from_the_script_inwards() {
    let docroot = Docroot::of("profile");
    let server = Server::start(&docroot.app());
    let scratch = Scratch::new("profile");
    let (folded, output) = profile(&server, "/", &scratch, &[]);
    let place = format!("{{main}} {}/index.php", docroot.path().display());
    let whole = format!("{place};Kernel::handle;Kernel::digest;hash ");
    assert!(folded.lines().any(|line| line.contains(&whole)), "{whole:?} is not in:\n{folded}");
    assert!(!folded.contains("(waiting)"), "{folded}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Kernel::digest") && text.contains("flame graph: "), "{text}");

    let mut browser = Browser::start();
    let page = scratch.path().join("profile.html");
    browser.visit(&format!("file://{}", page.display()));
    assert_eq!(browser.complaints("file:"), Vec::<String>::new());
    let frames = "[...document.querySelectorAll('.flame .f > a')]";
    let width = |browser: &mut Browser, name: &str| {
        let frame = format!("{frames}.find(frame => frame.textContent === {name:?})");
        let width = browser.evaluate(&format!("{frame}.getBoundingClientRect().width"));
        width.as_f64().unwrap_or_else(|| panic!("{name} is not on the page"))
    };
    let before = width(&mut browser, "hash");
    let click = format!("{frames}.find(frame => frame.textContent === 'hash').click()");
    browser.evaluate(&click);
    let after = width(&mut browser, "hash");
    assert!(after > before, "a click shows it over the whole width: {before} to {after} px");
}

#[test]
fn waiting_is_seen_where_it_is_asked_for() {
    let docroot = Docroot::of("profile");
    let server = Server::start(&docroot.app());
    let scratch = Scratch::new("profile");
    let (folded, _) = profile(&server, "/?wait=1", &scratch, &["--wall"]);
    assert!(folded.contains(";usleep;(waiting) "), "{folded}");
}

#[test]
fn a_missing_server_is_reported() {
    let scratch = Scratch::new("profile");
    let mut command = Command::new(Server::binary());
    command.arg("profile").arg("--admin").arg(scratch.path().join("none.sock"));
    let output = command.output().expect("the binary is there");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("check that it is running"),
        "{output:?}"
    );
}
