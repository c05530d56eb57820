//! What developers print, and how scripts end: in development every kind of worker responds as php-fpm does, and a worker
//! script knows where it is.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Configured, Docroot, FpmStack, Site};
use serde_json::{Value, json};

/// The scripts of worker mode.
const SCRIPTS: [&str; 4] = ["serve", "handle", "franken", "rewind"];

fn serving(environment: &str, script: &str) -> Configured {
    let docroot = Docroot::of("debug_output");
    docroot.writable("var");
    let isolation = if script == "rewind" { "rewind" } else { "reset" };
    let tables = format!(
        "[app.site.pool]\nmin = 1\nmax = 1\nmin_idle = 0\n[app.site.worker]\nscript = \"www/{script}.php\"\nisolation = \"{isolation}\"\n"
    );
    let text = Configured::text(&tables);
    let text = text.replace("root = \"www\"\n", "root = \"www\"\nmode = \"worker\"\n");
    let watched = "[development]\nlive_reload = false\nignore = [\"var\"]\n";
    let head = format!("environment = \"{environment}\"\n");
    let tail = if environment == "development" { watched } else { "" };
    Configured::start(docroot, &format!("{head}{text}{tail}"))
}

fn facts(client: &mut Client, target: &str) -> (u16, String) {
    let answer = client.get(target);
    (answer.status, answer.text())
}

#[test]
fn in_development_dumps_and_ends_are_those_of_php_fpm() {
    let reference = Docroot::of("debug_output");
    let php_fpm = FpmStack::start(&reference.app());
    for script in SCRIPTS {
        let site = serving("development", script);
        for what in [
            "nothing",
            "var_dump",
            "exit",
            "die",
            "collected",
            "static",
            "local",
            "buffered",
            "shutdown",
            "generator",
            "throw",
        ] {
            let expected = facts(
                &mut Client::new(php_fpm.address()),
                &format!("/index.php?do={what}&status=418"),
            );
            // Twice: the next request has nothing of this one.
            for _ in 0..2 {
                let found = facts(&mut site.client(), &format!("/?do={what}&status=418"));
                assert_eq!(found, expected, "{script}: {what}");
            }
        }
        if script == "handle" {
            // Behind those that return, and no others.
            let after = std::fs::read_to_string(site.docroot().path().join("var/after"));
            assert_eq!(after.expect("the script has written it"), "....");
        }
    }
}

#[test]
fn in_production_exit_ends_a_request_and_not_its_script() {
    for script in ["serve", "handle", "franken"] {
        let site = serving("production", script);
        let pid = |site: &Configured| site.status()["pools"][0]["workers"][0]["pid"].clone();
        let before = pid(&site);
        for what in ["exit", "collected", "exit"] {
            assert_eq!(
                facts(&mut site.client(), &format!("/?do={what}")),
                (200, "begun\n".to_owned())
            );
        }
        assert_eq!(pid(&site), before, "{script}");
    }
}

#[test]
fn a_worker_script_finds_itself_in_server_while_it_boots() {
    for script in SCRIPTS {
        let site = serving("production", script);
        let text = site.client().get("/?do=boot").expect(200).text();
        let boot: Value =
            serde_json::from_str(text.trim_start_matches("begun\n")).expect("it is JSON");
        let root = site.docroot().path().display().to_string();
        let name = format!("/{script}.php");
        let expected = json!({
            "DOCUMENT_ROOT": root,
            "PHP_SELF": name,
            "SCRIPT_FILENAME": format!("{root}{name}"),
            "SCRIPT_NAME": name,
        });
        assert_eq!(boot, expected);
    }
}
