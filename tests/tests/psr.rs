//! The Composer package's PSR-7 bridge: a worker under Outboard answers as php-fpm does, request
//! for request, from the same script.

#![forbid(unsafe_code)]

use outboard_e2e::{
    App, Client, Configured, Docroot, FpmStack, Multipart, Protocol, Request, Response, Site,
};
use std::path::Path;

struct Both {
    worker: Configured,
    php_fpm: FpmStack,
}

impl Both {
    fn start() -> Both {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../php");
        let package = package.canonicalize().expect("the repository holds the package");
        let docroot = Docroot::of("psr");
        let copied = docroot.beside().path().join("php");
        copy(&package.join("src"), &copied.join("src"));
        copy(&package.join("autoload.php"), &copied.join("autoload.php"));
        let copied = copied.to_string_lossy().into_owned();
        let app = App::at(docroot.path().join("public")).env("OUTBOARD_PACKAGE", &copied);
        let php_fpm = FpmStack::start(&app);
        let text = format!(
            "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n\
             [app.site]\nroot = \"www/public\"\nmode = \"worker\"\n\
             [app.site.pool]\nmin = 1\nmax = 1\nmin_idle = 0\n\
             [app.site.php.env]\nOUTBOARD_PACKAGE = {copied:?}\n"
        );
        Both { worker: Configured::start(docroot, &text), php_fpm }
    }

    /// The worker's answer, after status, type and body were held against php-fpm's.
    #[track_caller]
    fn same(&self, request: &Request) -> Response {
        let reference = Client::new(self.php_fpm.address()).send(request);
        let subject = self.worker.client().send(request);
        let facts = |answer: &Response| (answer.status, answer.text());
        assert_eq!(facts(&subject), facts(&reference), "{}", request.target);
        subject
    }
}

/// Readable by PHP's user, whatever the checkout's modes are.
fn copy(source: &Path, target: &Path) {
    std::fs::create_dir_all(target.parent().expect("it is in a folder")).expect("a scratch folder");
    let status = std::process::Command::new("cp").arg("-r").arg(source).arg(target).status();
    assert!(status.expect("cp is there").success());
    let status = std::process::Command::new("chmod").args(["-R", "a+rX"]).arg(target).status();
    assert!(status.expect("chmod is there").success());
}

#[test]
fn a_psr_15_worker_answers_as_under_php_fpm() {
    let both = Both::start();
    requests_arrive_whole(&both);
    answers_of_every_kind_leave(&both);
    uploads_can_be_read_and_moved(&both);
    the_script_stays(&both);
}

fn requests_arrive_whole(both: &Both) {
    let host = |request: Request| request.header("Host", "shop.example:8443");
    let request = Request::get("/caf%C3%A9/a%2Fb?q=a+b&list[]=1&list[]=2")
        .header("X-Mixed-Case", "v")
        .header("Cookie", "sid=a%20b; other=1");
    both.same(&host(request)).expect(200).holding("\"port\":8443");
    let form = Request::form("/form", &[("a[]", "1"), ("a[]", "\u{fc}")]);
    both.same(&host(form)).expect(200).holding("\"form\":{\"a\":[\"1\",");
    let json = Request::new("PUT", "/json").header("Content-Type", "application/json");
    both.same(&host(json.body("{\"a\":1}"))).expect(200).holding("{\\\"a\\\":1}");
    // No form of a request that came before is left.
    both.same(&host(Request::get("/after"))).expect(200).holding("\"form\":null");
}

fn answers_of_every_kind_leave(both: &Both) {
    let tea = both.same(&Request::get("/teapot")).expect(418).saying("short");
    if Protocol::of_run() == Protocol::Http1 {
        assert_eq!(tea.reason, "Stout");
    }
    assert_eq!(tea.header("X-Kind"), Some("tea"));
    assert_eq!(tea.all("Set-Cookie").collect::<Vec<_>>(), ["a=1", "b=2"]);
    both.same(&Request::get("/nothing")).expect(204);
    assert_eq!(both.same(&Request::get("/large")).expect(200).body.len(), 3_000_000);
    let head = both.same(&Request::new("HEAD", "/large")).expect(200);
    assert_eq!(head.header("Content-Length"), Some("3000000"));
    both.same(&Request::get("/broken")).expect(500).saying("Internal Server Error\n");
    both.worker.logs(&["uncaught RuntimeException: a secret"]);
}

fn uploads_can_be_read_and_moved(both: &Both) {
    let parts = || {
        Multipart::new()
            .file("one", "1.txt", "text/plain", b"first")
            .file("deep[a][]", "x.txt", "text/plain", b"second")
            .field("title", "Two files")
    };
    both.same(&Request::upload("/upload", parts()).header("Host", "localhost"))
        .expect(200)
        .holding("\"deep\":{\"a\":[[\"x.txt\",0,6,\"second\"]]}");
    both.same(&Request::upload("/move", parts())).expect(200).saying("first");
}

fn the_script_stays(both: &Both) {
    let served = || both.worker.client().get("/served").expect(200).text();
    let first: u32 = served().parse().expect("a number");
    assert_eq!(served(), (first + 1).to_string());
    Client::new(both.php_fpm.address()).get("/served").expect(200).saying("1");
}
