//! Laravel (Debian's package, with the application of `examples/laravel-rewind`), rewound after its boot, answers as
//! under nginx + php-fpm.

#![forbid(unsafe_code)]

use outboard_e2e::{App, Crawl, Docroot, Pair, Request, Scrub, Visit, Visited};
use std::path::Path;

/// Of the front controller.
const LINE: &str = "Outboard\\Laravel\\Snapshot::take($app);";

/// Each server has its own copy, and with it its own compiled views and sessions.
fn application() -> Docroot {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/laravel-rewind");
    let docroot = Docroot::copy(&example);
    for name in ["storage/framework/views", "storage/framework/sessions", "bootstrap/cache"] {
        docroot.writable(name);
    }
    docroot.writable("storage/logs");
    docroot
}

fn scrub() -> Scrub {
    Scrub::new()
        .times()
        .replace(r#"(name="_token" value=")[0-9A-Za-z]{40}"#, "${1}TOKEN")
        .replace(r"(packing_list|XSRF-TOKEN)=[^;]*", "$1=COOKIE")
        .replace(r"\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d:\d\d", "TIME")
        // What is left of two hours when the cookie is written.
        .replace(r"Max-Age=(?:7200|7199)", "Max-Age=SECONDS")
        // Each server's own.
        .replace(r#"(process"?:? ?)\d+"#, "${1}NUMBER")
}

fn every_page_is_the_same(visit: &mut Visit<'_>) -> Visited {
    let pages = ["/", "/process", "/broken", "/missing", "/style.css", "/?things[]=1", "/%C3%A9"];
    Crawl::from(pages).walk(visit).expect_same(pages.len())
}

fn things_are_kept_in_the_visitors_session(visit: &mut Visit<'_>) {
    for thing in ["a <rope>", "zw\u{f6}lf"] {
        visit.same_form("/", "method=\"post\"", |form| form.set("thing", thing)).expect(302);
        visit.same(&Request::get("/")).expect(200).holding("<li>a &lt;rope&gt;</li>");
    }
    // Validation redirects back, with the errors in the session.
    visit.same_form("/", "method=\"post\"", |form| form.set("thing", "")).expect(302);
    visit.same(&Request::get("/")).expect(200);
    visit.same(&Request::form("/", &[("_token", "forged"), ("thing", "x")])).expect(419);
}

fn works_rewound(serve: impl Fn(App) -> App) {
    let docroots = [application(), application()];
    let front = std::fs::read_to_string(docroots[1].path().join("public/index.php")).unwrap();
    assert!(front.contains(LINE));
    let [reference, subject] =
        docroots.each_ref().map(|docroot| App::at(docroot.path().join("public")));
    let pair = Pair::with(&reference, &serve(subject)).scrubbed(scrub());
    pair.await_snapshot("/");
    for _ in 0..3 {
        let [mut ada, mut ben] = [pair.visit(), pair.visit()];
        things_are_kept_in_the_visitors_session(&mut ada);
        ben.same(&Request::get("/")).expect(200).holding("Nothing yet.");
        let visited = every_page_is_the_same(&mut ben);
        visited.again(&mut [ada, ben], 200);
    }
}

#[test]
fn laravel_rewound_after_its_boot_is_the_same() {
    works_rewound(|app| app.rewound("index.php"));
}

#[test]
fn laravel_in_classic_mode_with_a_snapshot_is_the_same() {
    works_rewound(App::verified);
}
