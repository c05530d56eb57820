//! What a request leaves to those after it and to the processes beside it: memory, programs, zombies, signals.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Request};
use serde_json::{Value, json};

const MODES: [&str; 4] = ["classic", "reset", "rewind", "fork"];

/// One script in each mode, with two workers of each.
fn serving(each: &str) -> Configured {
    let worker = |isolation: &str| {
        format!(
            "mode = \"worker\"\nworker.script = \"www/front.php\"\nworker.isolation = \"{isolation}\"\n"
        )
    };
    let app = |mode: &&str| {
        let (keys, env) = match *mode {
            "classic" => ("front_controller = \"/front.php\"\n".to_owned(), ""),
            "reset" => (worker(mode), "loop"),
            _ => (worker(mode), ""),
        };
        format!(
            "[app.{mode}]\nroot = \"www\"\nhosts = [\"{mode}.test\"]\n{keys}{each}\n\
             [app.{mode}.pool]\nmin = 2\nmax = 2\nloopback_slots = 0\n\
             [app.{mode}.php.env]\nMODE = \"{env}\"\nOUTBOARD_VERIFY_REWIND = \"1\"\n"
        )
    };
    let apps: String = MODES.iter().map(app).collect();
    let text =
        format!("listen = \"127.0.0.1:0\"\nthreads = 1\n[log.access]\npath = \"off\"\n{apps}");
    Configured::start(Docroot::of("remains"), &text)
}

fn get(site: &Configured, mode: &str, query: &str) -> Value {
    let request = Request::get(&format!("/?{query}")).header("Host", &format!("{mode}.test"));
    let response = site.client().send(&request).expect(200);
    serde_json::from_str(&response.text()).unwrap_or_else(|_| panic!("{mode}: {}", response.text()))
}

/// Root opens everything, so then PHP runs as another user.
#[test]
fn php_opens_the_memory_of_its_worker_in_no_mode() {
    for sandbox in ["default", "off"] {
        let site = serving(&format!("sandbox = \"{sandbox}\""));
        for mode in MODES {
            for visit in 0..2 {
                let found = get(&site, mode, "w=memory");
                let ways = found.as_object().expect("ways");
                let open: Vec<_> =
                    ways.iter().filter(|(_, is_open)| **is_open != Value::Bool(false)).collect();
                assert!(
                    ways.len() > 10 && open.is_empty(),
                    "{mode}, visit {visit}, sandbox {sandbox}: {open:?}"
                );
            }
        }
    }
}

#[test]
fn php_signals_neither_its_zygote_nor_other_workers() {
    let site = serving("");
    for mode in MODES {
        let found = get(&site, mode, "w=signals");
        assert!(found[0].as_u64() >= Some(2), "{mode}: {found}");
        assert_eq!(found[1], json!([]), "{mode}");
    }
}
