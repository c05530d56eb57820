//! A Slim application, as Debian ships the framework, answers as under nginx + php-fpm.

#![forbid(unsafe_code)]

use outboard_e2e::{App, Crawl, Docroot, Multipart, Pair, Request, Visited};

#[test]
fn slim_works_as_under_php_fpm() {
    let docroot = Docroot::of("slim");
    goes_through(&Pair::start(&App::at(docroot.path().join("public"))));
}

/// Only the last line of the front controller is below the snapshot.
fn works_rewound(serve: impl Fn(App) -> App) {
    let docroots = [Docroot::of("slim"), Docroot::of("slim")];
    let front = std::fs::read_to_string(docroots[1].path().join("public/index.php")).unwrap();
    let (boot, _) = front.split_once("$app->run();").expect("the front controller ends with it");
    docroots[1].put("public/index.php", format!("{boot}Outboard\\snapshot();\n$app->run();\n"));
    let [reference, subject] =
        docroots.each_ref().map(|docroot| App::at(docroot.path().join("public")));
    let pair = Pair::with(&reference, &serve(subject));
    pair.await_snapshot("/");
    for _ in 0..3 {
        goes_through(&pair).again(&mut [pair.visit()], 200);
    }
}

#[test]
fn slim_rewound_before_its_run_is_the_same() {
    works_rewound(|app| app.rewound("index.php"));
}

#[test]
fn slim_in_classic_mode_with_a_snapshot_is_the_same() {
    works_rewound(App::verified);
}

fn goes_through(pair: &Pair) -> Visited {
    // getallheaders() without a body: nginx sends php-fpm an empty Content-Length and Content-Type,
    // which then count as headers. Outboard lists what the client sent.
    let follow = |link: &str| link != "/psr";
    let visited = Crawl::from(["/"]).follow(follow).walk(&mut pair.visit()).expect_same(8);
    routes_take_arguments_and_bodies(pair);
    files_and_cookies_arrive(pair);
    psr_7_objects_see_the_request(pair);
    visited
}

fn routes_take_arguments_and_bodies(pair: &Pair) {
    pair.same(&Request::get("/hello/w%C3%B6rld")).expect(200).saying("Hello, w\u{f6}rld\n");
    let form = Request::form("/books", &[("title", "A book"), ("tags[]", "x"), ("tags[]", "y")]);
    pair.same(&form).expect(201).holding("\"tags\":[\"x\",\"y\"]");
    let json = Request::post("/books", "application/json", r#"{"title":"JSON"}"#);
    pair.same(&json).expect(201).holding("JSON");
    let xml = Request::post("/books", "application/xml", "<a><b>1</b></a>");
    pair.same(&xml).expect(201);
    pair.same(&Request::new("PUT", "/books/3").body("raw")).expect(200).holding("raw");
    pair.same(&Request::new("PATCH", "/books/3").body("{}")).expect(200).holding("PATCH");
    pair.same(&Request::new("DELETE", "/books/3")).expect(204);
    pair.same(&Request::new("HEAD", "/books/3")).expect(200);
    pair.same(&Request::new("POST", "/hello/x").header("Content-Length", "0")).expect(405);
    pair.same(&Request::new("OPTIONS", "/books/3")).expect(200);
    pair.same(&Request::get("/books/seven")).expect(405);
    pair.same(&Request::get("/broken")).expect(500);
}

fn files_and_cookies_arrive(pair: &Pair) {
    let parts = Multipart::new().file("one", "1.txt", "text/plain", b"first").file(
        "two",
        "2.txt",
        "text/plain",
        b"second",
    );
    pair.same(&Request::upload("/upload", parts)).expect(200).holding("second");
    let request = Request::get("/cookies").header("Cookie", "a=b; c=d%20e");
    assert_eq!(pair.same(&request).expect(200).all("set-cookie").count(), 2);
}

fn psr_7_objects_see_the_request(pair: &Pair) {
    let request = Request::form("/psr?q=1", &[("a", "1")]).header("X-Mixed-Case", "v");
    pair.same(&request).expect(200).holding("\"form\":{\"a\":\"1\"}");
}
