//! DokuWiki, as Debian ships it: reading, logging in, writing, uploading, the administration.

#![forbid(unsafe_code)]

use outboard_e2e::{
    App, Crawl, Docroot, Form, Multipart, Pair, Request, Scrub, Visit, Visited, another_second,
};
use std::path::Path;

const PASSWORD: &str = "e2e-password";
/// Its MD5, which is how the plain authentication keeps it at Debian's set-up.
const PASSWORD_MD5: &str = "1113620c168a256b5a6104822c9dac1c";

/// Debian keeps configuration and pages outside of the document root and says so in
/// `inc/preload.php`; without that file DokuWiki looks for them where its makers put them.
fn prepare() -> Docroot {
    let wiki = Docroot::package(Path::new("/usr/share/dokuwiki"));
    std::fs::remove_file(wiki.path().join("inc/preload.php")).expect("Debian's package has it");
    for entry in std::fs::read_dir("/etc/dokuwiki").expect("Debian's package has it").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Ok(content) = std::fs::read(entry.path()) {
            wiki.put(&format!("conf/{name}"), content);
        }
    }
    wiki.writable("conf");
    wiki.put("conf/acl.auth.php", "# acl.auth.php\n# <?php exit()?>\n* @ALL 1\n* @user 8\n");
    wiki.put(
        "conf/users.auth.php",
        format!("admin:{PASSWORD_MD5}:Admin:a@example.org:admin,user\n"),
    );
    wiki.put(
        "conf/local.php",
        "<?php\n$conf['title'] = 'End to end';\n$conf['useacl'] = 1;\n$conf['superuser'] = '@admin';\n\
         $conf['userewrite'] = 2;\n$conf['useslash'] = 1;\n$conf['savedir'] = './data';\n$conf['updatecheck'] = 0;\n",
    );
    for folder in [
        "attic",
        "cache",
        "index",
        "locks",
        "log",
        "media",
        "media/wiki",
        "media_attic",
        "media_meta",
        "meta",
        "pages",
        "pages/wiki",
        "tmp",
    ] {
        wiki.writable(&format!("data/{folder}"));
    }
    wiki.put("data/pages/wiki/syntax.txt", include_str!("../fixtures/dokuwiki/syntax.txt"));
    // Signs the addresses of scaled pictures (auth_cookiesalt in inc/auth.php).
    wiki.put("data/meta/_htcookiesalt2", "the same salt for both wikis");
    wiki
}

fn app(wiki: &Docroot) -> App {
    wiki.app().deny("/data/").deny("/conf/").deny("/inc/").deny("/bin/").deny("/vendor/")
}

fn scrub() -> Scrub {
    Scrub::new()
        .times()
        .replace(r"DW[0-9a-f]{32}", "DWSITE")
        .replace(r"\b[0-9a-f]{32}\b", "TOKEN")
        .replace(r"(DokuWiki|DW[0-9a-zA-Z]+)=[^;]*", "$1=COOKIE")
        // The administration's page on extensions and the error log name the day.
        .replace(r"\b\d{4}-\d\d-\d\d\b", "DAY")
        // The signature that the editor offers names the minute.
        .replace(r"\d{4}\\/\d\d\\/\d\d \d\d:\d\d", "MINUTE")
        .replace(r"just now|\d+ (?:seconds?|minutes?) ago", "SPAN")
}

#[test]
fn dokuwiki_works_as_under_php_fpm() {
    let wikis = [prepare(), prepare()];
    goes_through(&Pair::with(&app(&wikis[0]), &app(&wikis[1])).scrubbed(scrub()), &[]);
}

#[test]
fn dokuwiki_rewound_is_the_same() {
    let wikis = [prepare(), prepare()];
    let subject = app(&wikis[1]).rewound_entirely();
    let pair = Pair::with(&app(&wikis[0]), &subject).scrubbed(scrub());
    // The log has backtraces, which end in the script that takes the snapshot.
    let (public, admin) = goes_through(&pair, &["page=logviewer"]);
    public.again(&mut [pair.visit(), admin], 500);
}

/// Returns the pages of a guest, and the administrator, for whom these pages are left out.
fn goes_through<'a>(pair: &'a Pair, left_out: &[&str]) -> (Visited, Visit<'a>) {
    let mut guest = pair.visit();
    let public = the_public_wiki_is_the_same(&mut guest);
    what_is_denied_is_denied(&mut guest);
    let mut admin = pair.visit();
    the_administrator_logs_in(&mut admin);
    a_page_is_written_and_changed(&mut admin);
    a_picture_is_uploaded_and_scaled(&mut admin);
    everything_is_the_same_for_the_administrator(&mut admin, left_out);
    guest.same(&Request::get("/doku.php/e2e/page")).expect(200).holding("Changed text");
    (public, admin)
}

fn the_public_wiki_is_the_same(guest: &mut Visit<'_>) -> Visited {
    guest
        .same(&Request::get("/doku.php/wiki/syntax"))
        .expect(200)
        .holding("A page with everything");
    let starts = [
        "/",
        "/doku.php/wiki/syntax",
        "/doku.php?id=wiki:syntax",
        "/doku.php/wiki/syntax?do=export_xhtml",
        "/doku.php/wiki/syntax?do=export_raw",
        "/doku.php/start?do=index",
        "/doku.php/start?do=recent",
        "/doku.php/start?do=search&q=everything",
        "/doku.php/start?do=sitemap",
        "/feed.php",
        "/lib/exe/css.php?t=dokuwiki",
        "/lib/exe/js.php?t=dokuwiki",
        "/lib/exe/jquery.php",
        "/lib/exe/opensearch.php",
        "/lib/exe/manifest.php",
        "/lib/exe/xmlrpc.php",
        "/lib/exe/taskrunner.php?id=start",
        "/lib/images/license/button/cc-by-sa.png",
        "/lib/tpl/dokuwiki/images/favicon.ico",
        "/no/such/page",
        "/lib/exe/ajax.php?call=linkwiz&q=wi",
    ];
    let follow = |link: &str| !link.contains("do=login") && !link.contains("sectok");
    let visited = Crawl::from(starts).follow(follow).at_most(120).walk(guest).expect_same(60);
    assert!(visited.statuses[&200] > 40, "{:?}", visited.statuses);
    visited
}

fn what_is_denied_is_denied(guest: &mut Visit<'_>) {
    for target in [
        "/data/pages/wiki/syntax.txt",
        "/conf/users.auth.php",
        "/inc/init.php",
        "/bin/wantedpages.php",
    ] {
        for client in [&mut guest.reference, &mut guest.subject] {
            client.send(&Request::get(target)).expect(404);
        }
    }
}

fn the_administrator_logs_in(admin: &mut Visit<'_>) {
    let fill = |form: Form, password: &str| form.set("u", "admin").set("p", password).set("r", "1");
    let target = "/doku.php/start?do=login";
    let refused = admin.same_form(target, "dw__login", |form| fill(form, "a wrong one"));
    refused.expect(403).holding("username or password was wrong");
    admin.same_form(target, "dw__login", |form| fill(form, PASSWORD)).expect(302);
    admin
        .same(&Request::get("/doku.php/start?do=admin"))
        .expect(200)
        .holding("Configuration Settings");
}

fn a_page_is_written_and_changed(admin: &mut Visit<'_>) {
    let target = "/doku.php/e2e/page?do=edit";
    for text in
        ["====== New page ======\nFirst text.", "====== New page ======\nChanged text, \u{fc}."]
    {
        let saved = admin.same_form(target, "dw__editform", |form| {
            form.set("wikitext", text)
                .set("summary", "a test")
                .press("do[save]")
                .set("do[save]", "1")
        });
        saved.expect(302);
        admin.same(&Request::get("/doku.php/e2e/page")).expect(200).holding("New page");
        // DokuWiki takes two changes of a page within a second for one.
        another_second();
    }
    admin.same(&Request::get("/doku.php/e2e/page?do=revisions")).expect(200).holding("a test");
    let preview = admin.same_form(target, "dw__editform", |form| {
        form.set("wikitext", "//preview//").set("do[preview]", "1")
    });
    preview.expect(200).holding("<em>preview</em>");
}

fn a_picture_is_uploaded_and_scaled(admin: &mut Visit<'_>) {
    let picture = include_bytes!("../fixtures/wordpress/photo.png");
    let target = "/lib/exe/mediamanager.php?ns=wiki";
    let [reference, subject] = admin.forms(target, "dw__upload");
    let upload = |form: &Form| {
        let parts = form.fields().iter().fold(Multipart::new(), |parts, (name, value)| {
            parts.field(name, if name == "mediaid" { "photo.png" } else { value })
        });
        Request::upload(form.action(), parts.file("upload", "photo.png", "image/png", picture))
    };
    admin.same_each(&upload(&reference), &upload(&subject)).expect(200).holding("photo.png");
    let fetched = admin.same(&Request::get("/lib/exe/fetch.php?media=wiki:photo.png")).expect(200);
    assert_eq!(fetched.body, picture);
    let page = admin.same(&Request::get("/doku.php/wiki/syntax")).expect(200).text();
    let start = page.find("/lib/exe/fetch.php").expect("the page shows the picture, scaled");
    let link = page[start..].split('"').next().expect("the link ends").replace("&amp;", "&");
    assert!(admin.same(&Request::get(&link)).expect(200).body.starts_with(b"\x89PNG"));
}

fn everything_is_the_same_for_the_administrator(admin: &mut Visit<'_>, left_out: &[&str]) {
    let starts = [
        "/doku.php/start?do=admin",
        "/doku.php/start?do=admin&page=config",
        "/doku.php/start?do=admin&page=acl",
        "/doku.php/start?do=admin&page=usermanager",
        "/doku.php/start?do=admin&page=revert",
        "/doku.php/start?do=admin&page=styling",
        "/doku.php/start?do=profile",
        "/doku.php/start?do=media&ns=wiki",
        "/doku.php/e2e/page?do=diff",
        "/doku.php/e2e/page?do=backlink",
        "/lib/exe/detail.php?media=wiki:photo.png&id=start",
        "/doku.php/e2e/page?do=recent",
    ];
    // What changes something, and what asks the makers' site or lists the machine.
    const LEFT_OUT: &[&str] = &[
        "sectok",
        "logout",
        "do=login",
        "page=extension",
        "page=popularity",
        "do=check",
        "rev=",
        "rev2",
        "do=edit",
        "do=subscribe",
    ];
    let follow = |link: &str| LEFT_OUT.iter().chain(left_out).all(|part| !link.contains(part));
    Crawl::from(starts).follow(follow).at_most(90).walk(admin).expect_same(40);
}
