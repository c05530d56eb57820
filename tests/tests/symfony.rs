//! A Symfony application (kernel, FrameworkBundle, Twig, as Debian ships them) behind its front
//! controller answers as under nginx + php-fpm.

#![forbid(unsafe_code)]

use outboard_e2e::{App, Crawl, Docroot, Multipart, Pair, Request, Scrub, Visited};

/// Each server has its own copy, and with it its own compiled container.
fn applications(docroots: &[Docroot; 2]) -> [App; 2] {
    docroots.each_ref().map(|docroot| {
        docroot.writable("var");
        App::at(docroot.path().join("public")).env("APP_ENV", "prod")
    })
}

fn start(reference: &App, subject: &App) -> Pair {
    Pair::with(reference, subject).scrubbed(
        Scrub::new()
            .times()
            .replace(r"PHPSESSID=[0-9a-zA-Z,-]{22,}", "PHPSESSID=ID")
            .replace(r"outboard-e2e-[0-9-]+docroot", "DOCROOT"),
    )
}

fn goes_through(pair: &Pair) -> Visited {
    let visited = every_page_is_the_same(pair);
    sessions_and_flashes_follow_the_visitor(pair);
    methods_and_bodies_arrive(pair);
    http_caching_by_the_application_works(pair);
    errors_are_the_applications(pair);
    visited
}

#[test]
fn symfony_works_as_under_php_fpm() {
    let docroots = [Docroot::of("symfony"), Docroot::of("symfony")];
    let [reference, subject] = applications(&docroots);
    goes_through(&start(&reference, &subject));
}

/// The steps, and the pages again in random order, with these lines above the request in the front controller.
fn works_rewound(boot: &str, serve: impl Fn(App) -> App) {
    let docroots = [Docroot::of("symfony"), Docroot::of("symfony")];
    let front = std::fs::read_to_string(docroots[1].path().join("public/index.php")).unwrap();
    let request = "$request = Request::createFromGlobals();";
    assert!(front.contains(request));
    docroots[1].put("public/index.php", front.replace(request, &format!("{boot}\n{request}")));
    let [reference, subject] = applications(&docroots);
    let pair = start(&reference, &serve(subject));
    pair.await_snapshot("/");
    for _ in 0..3 {
        goes_through(&pair).again(&mut [pair.visit()], 200);
    }
}

#[test]
fn symfony_rewound_after_its_boot_is_the_same() {
    works_rewound("$kernel->boot(); Outboard\\snapshot();", |app| app.rewound("index.php"));
}

#[test]
fn symfony_rewound_after_a_first_page_is_the_same() {
    let boot = "$kernel->handle(Request::create('/')); Outboard\\snapshot();";
    works_rewound(boot, |app| app.rewound("index.php"));
}

#[test]
fn symfony_in_classic_mode_with_a_snapshot_is_the_same() {
    works_rewound("$kernel->boot(); Outboard\\snapshot();", App::verified);
}

fn every_page_is_the_same(pair: &Pair) -> Visited {
    let visited = Crawl::from(["/"]).walk(&mut pair.visit()).expect_same(15);
    assert_eq!(visited.statuses.get(&500), Some(&1), "{:?}", visited.statuses);
    pair.same(&Request::get("/")).expect(200).holding("Symfony &amp; Debian");
    let request = Request::get("/request?x=1")
        .header("Host", "shop.example:8080")
        .header("Authorization", "Basic dXNlcjpwYXNz")
        .header("Accept-Language", "de-DE,de;q=0.8,en;q=0.5")
        .header("Accept", "application/json;q=0.9, text/html");
    pair.same(&request).expect(200).holding("shop.example:8080");
    visited
}

fn sessions_and_flashes_follow_the_visitor(pair: &Pair) {
    let mut visit = pair.visit();
    for number in 1..=3 {
        visit.same(&Request::get("/visits")).expect(200).saying(&format!("visits {number}\n"));
    }
    visit.same(&Request::form("/flash", &[("text", "a note")])).expect(303);
    visit.same(&Request::get("/flash")).expect(200).holding("Saved: a note");
    visit.same(&Request::get("/flash")).expect(200).saying("[]");
}

fn methods_and_bodies_arrive(pair: &Pair) {
    pair.same(&Request::new("DELETE", "/things/5")).expect(202).holding("\"deleted\":5");
    let disguised = Request::form("/things/6", &[("_method", "DELETE")]);
    pair.same(&disguised).expect(202).holding("\"really\":\"POST\"");
    pair.same(&Request::get("/things/7")).expect(405);
    let json = Request::post("/json", "application/json", r#"{"a":{"b":[1,2]}}"#);
    pair.same(&json).expect(201).holding("\"a\":{\"b\":[1,2]}");
    pair.same(&Request::post("/json", "application/json", "{broken")).expect(400);
    let picture = include_bytes!("../fixtures/wordpress/photo.png");
    let parts = Multipart::new().field("title", "A picture").file(
        "document",
        "p\u{ef}cture.png",
        "image/png",
        picture,
    );
    pair.same(&Request::upload("/upload", parts)).expect(200).holding("\"guessed\":\"png\"");
}

fn http_caching_by_the_application_works(pair: &Pair) {
    pair.same(&Request::get("/cached")).expect(200);
    let again = Request::get("/cached").header("If-None-Match", "\"one\"");
    pair.same(&again).expect(304);
    pair.same(&Request::new("HEAD", "/cached")).expect(200);
    let part = Request::get("/file").header("Range", "bytes=0-9");
    pair.same(&part).expect(206).saying("body { fon");
}

fn errors_are_the_applications(pair: &Pair) {
    pair.same(&Request::get("/broken")).expect(500).holding("Oops");
    pair.same(&Request::get("/forbidden")).expect(403);
    pair.same(&Request::get("/missing")).expect(404);
    pair.same(&Request::get("/missing").header("Accept", "application/json")).expect(404);
}
