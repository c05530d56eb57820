//! Upstream answers that a classic script finds among its request's parameters.

#![forbid(unsafe_code)]

use outboard_e2e::{Backend, Configured, Connection, Docroot, Request};

fn serving(backend: &Backend, prefetches: &[(&str, &str, &str)], tables: &str) -> Configured {
    let mut text =
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n"
            .to_owned();
    text += tables;
    for (name, path, more) in prefetches {
        text += &format!(
            "[[app.site.prefetch]]\npath = \"/page.php\"\nname = \"{name}\"\n\
             fetch = \"{}{path}\"\n{more}\n",
            backend.url()
        );
    }
    Configured::start(Docroot::of("prefetch"), &text)
}

#[test]
fn a_script_finds_what_was_fetched_for_it() {
    let backend = Backend::start();
    let site = serving(
        &backend,
        &[
            ("weather", "/text/sunny-{query:place}", ""),
            ("gone", "/status/404", ""),
            ("packed", "/gzip", ""),
        ],
        "",
    );
    site.client().get("/page.php?place=Bern%26").expect(200).saying(
        "WEATHER=sunny-Bern%26\nWEATHER_STATUS=200\n\
         GONE=a body of the upstream\nGONE_STATUS=404\n\
         PACKED=from a gzip body\nPACKED_STATUS=200\nGET \n",
    );
}

#[test]
fn a_prefetch_that_fails_leaves_an_empty_body_and_says_why() {
    let backend = Backend::start();
    let site = serving(
        &backend,
        &[
            ("cut", "/cut", ""),
            ("silent", "/silent", "timeout = \"100ms\""),
            ("large", "/large/5000", "max_body = \"4 KiB\""),
            ("fine", "/text/fine", ""),
        ],
        "",
    );
    let text = site.client().get("/page.php").expect(200).text();
    for (name, kind) in [("CUT", "protocol"), ("SILENT", "timeout"), ("LARGE", "too_large")] {
        let expected = format!("{name}=\n{name}_STATUS=0\n{name}_ERROR={kind}: ");
        assert!(text.contains(&expected), "{expected} in\n{text}");
    }
    assert!(text.contains("FINE=fine\nFINE_STATUS=200\nGET"), "{text}");
    site.logs(&["prefetch ", "/silent", "timeout"]);
}

#[test]
fn bodies_that_do_not_fit_together_fail_and_the_script_runs() {
    let backend = Backend::start();
    let more = "max_body = \"64 KiB\"";
    let site =
        serving(&backend, &[("one", "/large/60000", more), ("two", "/large/60000", more)], "");
    let text = site.client().get("/page.php").expect(200).text();
    assert!(text.starts_with("ONE=60000 bytes\nONE_STATUS=200\nTWO=\nTWO_STATUS=0\n"), "{text}");
    assert!(text.contains("TWO_ERROR=too_large: "), "{text}");
}

#[test]
fn prefetches_run_at_the_same_time_and_hold_no_worker() {
    let backend = Backend::start();
    let site = serving(
        &backend,
        &[
            ("one", "/meet/3/one", ""),
            ("two", "/meet/3/two", ""),
            ("held", "/held/three", "timeout = \"1m\""),
        ],
        "[app.site.pool]\nmin = 1\nmax = 1\n",
    );
    let mut connection = Connection::open(site.address());
    let request = Request::post("/page.php", "text/plain", "the body");
    connection.send(&request.to_bytes("a")).unwrap();
    backend.hears("/held/three", 1);
    // The only worker serves another client meanwhile, and that page's script the others meet.
    site.client().get("/hello.php").expect(200).saying("hello");
    let mut third = Connection::open(backend.address());
    third.send(&Request::get("/meet/3/third").to_bytes("a")).unwrap();
    third.response().unwrap().expect(200).saying("met third");
    backend.release("three");
    connection.response().unwrap().expect(200).saying(
        "ONE=met one\nONE_STATUS=200\nTWO=met two\nTWO_STATUS=200\n\
         HELD=held three\nHELD_STATUS=200\nPOST the body\n",
    );
}

#[test]
fn paths_without_a_prefetch_fetch_nothing() {
    let backend = Backend::start();
    let site = serving(&backend, &[("weather", "/text/sunny", "")], "");
    site.client().get("/hello.php").expect(200).saying("hello");
    assert_eq!(backend.heard(), Vec::<String>::new());
}

#[test]
fn a_client_cannot_say_what_was_prefetched() {
    let backend = Backend::start();
    let site = serving(&backend, &[("weather", "/status/500", "")], "");
    let request = Request::get("/page.php?OUTBOARD_PREFETCH_WEATHER=forged")
        .header("OUTBOARD-PREFETCH-WEATHER", "forged")
        .header("OUTBOARD_PREFETCH_WEATHER", "forged");
    let response = site.client().send(&request).expect(200);
    response.saying("WEATHER=a body of the upstream\nWEATHER_STATUS=500\nGET \n");
}
