//! Listings of directories: what is in them, what is not, and that names are only text.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Request, Response};
use std::fs;
use std::sync::LazyLock;

const TABLES: &str = r#"
[app.site.static]
autoindex = ["/files/", "/secret/"]
[[app.site.access]]
path = "/secret/"
allow = ["203.0.113.1"]
[[app.site.access]]
path = "/files/sub/closed/"
allow = ["203.0.113.1"]
"#;

fn site() -> &'static Configured {
    static SITE: LazyLock<Configured> = LazyLock::new(|| {
        let docroot = Docroot::of("listing");
        let files = docroot.path().join("files");
        fs::create_dir_all(files.join("sub/closed")).unwrap();
        // What a page would run, were it not text.
        fs::write(files.join("javascript:alert(1).txt"), "").unwrap();
        fs::write(files.join("<img src=x onerror=alert(1)>\".txt"), "").unwrap();
        let text = Configured::text(TABLES);
        let text = text.replace("[app.site]\n", "[app.site]\ndeny = [\"/files/hidden.txt\"]\n");
        Configured::start(docroot, &text)
    });
    &SITE
}

fn get(target: &str) -> Response {
    site().client().send(&Request::get(target))
}

#[test]
fn a_directory_is_listed_where_it_is_configured() {
    let page = get("/files/").expect(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let page = page
        .holding("<a href=\"./sub/\">sub/</a>")
        .holding("<a href=\"./c.zip\">c.zip</a><td>4<td>2");
    let page = page.holding("<a href=\"./a%20&amp;%20b.txt\">a &amp; b.txt</a>");
    let page = page.holding("<a href=\"./javascript:alert(1).txt\">");
    let page = page.holding("%3Cimg%20src=x%20onerror=alert(1)%3E%22.txt\">&lt;img src=x onerror=alert(1)&gt;&quot;.txt<");
    for hidden in ["run.php", "dump.sql", "hidden.txt"] {
        assert!(!page.text().contains(hidden), "{hidden} in {}", page.text());
    }
    get("/files/a%20&%20b.txt").expect(200).saying("one\n");
    get("/").expect(403);
    get("/files/sub").expect(301);
    // What needs more rights than the directory is not shown.
    let sub = get("/files/sub/").expect(200).holding("<a href=\"../\">").holding("deep.txt");
    assert!(!sub.text().contains("closed"), "{}", sub.text());
    get("/secret/").expect(403);
    site().client().send(&Request::post("/files/", "text/plain", "x")).expect(405);
    get("/files/none/").expect(404);
}

#[test]
fn a_program_gets_json() {
    let request = Request::get("/files/").header("Accept", "application/json");
    let response = site().client().send(&request).expect(200);
    assert_eq!(response.header("vary"), Some("Accept"));
    let files: serde_json::Value = serde_json::from_str(&response.text()).unwrap();
    assert_eq!(files[0]["name"], "sub");
    assert_eq!(
        (&files[0]["type"], &files[0]["bytes"]),
        (&"directory".into(), &serde_json::Value::Null)
    );
    let zip = files.as_array().unwrap().iter().find(|file| file["name"] == "c.zip").unwrap();
    assert_eq!((&zip["type"], &zip["bytes"]), (&"file".into(), &4.into()));
    assert!(zip["modified"].as_str().unwrap().ends_with('Z'));
}
