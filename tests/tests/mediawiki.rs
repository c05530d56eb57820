//! MediaWiki, as Debian ships it, in classic mode behind the page cache: visitors get stored pages,
//! who has logged in gets their own, and an edit is there for everybody, by MediaWiki's own purges.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Configured, Docroot, Form, Request, Response, eventually};
use std::path::Path;
use std::process::Command;

const PASSWORD: &str = "an e2e password";

/// What the installer does not write.
const SETTINGS: &str = r#"
$wgServer = 'http://' . ($_SERVER['HTTP_HOST'] ?? 'localhost');
$wgArticlePath = '/wiki/$1';
$wgUseCdn = true;
$wgCdnServers = [$_SERVER['HTTP_HOST'] ?? 'localhost'];
$wgMainCacheType = CACHE_NONE;
$wgCacheDirectory = __DIR__ . '/cache';
$wgJobRunRate = 0;
"#;

/// A wiki with its database beside the document root, which is Debian's own.
fn serving() -> Configured {
    let docroot = Docroot::of("mediawiki");
    let folder = docroot.beside().folder("wiki");
    for name in ["database", "cache"] {
        std::fs::create_dir(folder.join(name)).expect("a scratch folder");
    }
    let installed = Command::new("php")
        .arg("/usr/share/mediawiki/maintenance/install.php")
        .args(["--dbtype", "sqlite", "--dbname", "wiki", "--scriptpath", "", "--lang", "en"])
        .arg("--dbpath")
        .arg(folder.join("database"))
        .arg("--confpath")
        .arg(&folder)
        .args(["--server", "http://localhost", "--pass", PASSWORD, "End to end", "Admin"])
        .output()
        .expect("php is there");
    assert!(installed.status.success(), "{installed:?}");
    let file = folder.join("LocalSettings.php");
    let written = std::fs::read_to_string(&file).expect("the installer writes it");
    std::fs::write(&file, written + SETTINGS).expect("a scratch file");
    let open = Command::new("chmod").args(["-R", "a+rwX"]).arg(&folder).status();
    assert!(open.expect("chmod is there").success());
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n\
         [app.wiki]\nroot = \"/var/lib/mediawiki\"\nfront_controller = \"/index.php\"\n\
         page_cache = \"auto\"\n\
         [app.wiki.static]\nsymlink_targets = [\"/usr/share/mediawiki\"]\n\
         [app.wiki.php.env]\nMW_CONFIG_FILE = {:?}\n",
        file.display().to_string()
    );
    Configured::start(docroot, &text)
}

#[track_caller]
fn submit(client: &mut Client, page: &str, marker: &str, fill: fn(Form) -> Form) -> Response {
    let html = client.get(page).expect(200).text();
    client.follow(&fill(Form::find(&html, marker, page)).submit())
}

#[test]
fn visitors_get_stored_pages_and_edits_are_there_at_once() {
    assert!(Path::new("/var/lib/mediawiki").is_dir(), "ci/setup installs mediawiki");
    let site = serving();
    let main = "/wiki/Main_Page";
    let mut visitor = site.client();
    let first = visitor.get(main).expect(200).holding("MediaWiki has been installed");
    assert_eq!(first.header("X-Cache"), Some("MISS"));
    assert_eq!(visitor.get(main).expect(200).header("X-Cache"), Some("HIT"));

    let mut admin = site.client();
    submit(&mut admin, "/index.php?title=Special:UserLogin", "name=\"userlogin\"", |form| {
        form.set("wpName", "Admin").set("wpPassword", PASSWORD)
    })
    .expect(200);
    let own = admin.get(main).expect(200).holding("Log out");
    assert_ne!(own.header("X-Cache"), Some("HIT"));
    assert!(!visitor.get(main).expect(200).text().contains("Log out"));

    submit(&mut admin, "/index.php?title=Main_Page&action=edit", "id=\"editform\"", |form| {
        form.set("wpTextbox1", "The harbour is '''open'''.").press("wpSave")
    })
    .expect(200)
    .holding("The harbour is <b>open</b>.");
    eventually("visitors get the edited page", || {
        visitor.get(main).expect(200).text().contains("The harbour is <b>open</b>.")
    });

    let styles = "/load.php?lang=en&modules=skins.vector.styles.legacy&only=styles&skin=vector";
    visitor.get(styles).expect(200);
    visitor.get("/resources/assets/licenses/cc-0.png").expect(200);
    visitor
        .get("/api.php?action=query&meta=siteinfo&format=json")
        .expect(200)
        .holding("End to end");
    visitor.send(&Request::get("/wiki/Nowhere")).expect(404);
}
