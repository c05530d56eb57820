//! State of one request that the next in the same worker process was able to see.

use outboard_e2e::{Backend, Configured, Docroot, Request};

/// One process that serves every request, without isolation.
fn serving() -> Configured {
    let text = Configured::text(
        "mode = \"worker\"\nworker.script = \"www/worker.php\"\n[app.site.pool]\nmin = 1\nmax = 1\n",
    );
    // Keys of the app come before its tables.
    let (head, tables) = text.split_once("[php.ini]\nexpose_php = false\n").unwrap();
    let text = format!("{head}{tables}[app.site.php.ini]\nexpose_php = false\n");
    Configured::start(Docroot::of("advisories"), &text)
}

fn get(site: &Configured, target: &str, upstream: &Backend) -> (String, String) {
    let url = format!("{}/to/elsewhere", upstream.url());
    let text = site.client().send(&Request::get(target).header("X-Upstream", &url));
    let text = text.expect(200).text();
    let (process, said) = text.split_once(' ').expect("the fixture says its process");
    (process.to_owned(), said.to_owned())
}

/// FrankenPHP CVE-2026-24894, CVE-2026-82416, CVE-2026-128021, CVE-2026-122233, CVE-2026-128019 and
/// CVE-2026-128016.
#[test]
fn the_next_visitor_of_a_worker_sees_nothing_of_the_last() {
    let (site, upstream) = (serving(), Backend::start());
    let nothing = "{\"session\":null,\"session_id\":\"\",\"xml\":0,\"last_xml\":false,\
                   \"secret\":[false,false,false],\"headers\":null,\"file\":true}";
    let (process, seen) = get(&site, "/seen", &upstream);
    assert_eq!(seen, nothing, "before");
    for round in 0..3 {
        assert_eq!(get(&site, "/fill", &upstream), (process.clone(), "filled".to_owned()));
        let (same, seen) = get(&site, "/seen", &upstream);
        assert_eq!(same, process, "the worker did not end in round {round}");
        assert_eq!(seen, nothing, "round {round}");
    }
}
