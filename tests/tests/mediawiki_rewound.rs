//! MediaWiki, as Debian ships it and unmodified: run entirely below a snapshot, so that each rewind undoes all of it,
//! it answers as under nginx + php-fpm.

#![forbid(unsafe_code)]

use outboard_e2e::{Crawl, Form, MediaWiki, Multipart, Pair, Request, Scrub, Visit, Visited};

const UPLOADS: &str = "$wgEnableUploads = true; $wgUploadDirectory = __DIR__ . '/data/images';\n";

fn scrub() -> Scrub {
    Scrub::new()
        .times()
        .replace(r"outboard-e2e-[0-9-]+mediawiki", "FOLDER")
        // Tokens, ids of requests, hashes of what has a time in it.
        .replace(r"\b[0-9a-f]{32}(\+|%2B|\\u002B)", "TOKEN$1")
        .replace(r#"("wgRequestId":")[0-9a-f]+"#, "${1}ID")
        .replace(r"\b[0-9a-f]{24,40}\b", "HASH")
        // The second of the last write.
        .replace(r"(cpPosIndex=\d+%40)\d+", "${1}TIME")
        .replace(r"(wiki[A-Za-z_]*|WMF[A-Za-z-]*)=[^;]*", "$1=COOKIE")
        .replace(r#""wgBackendResponseTime":\d+"#, "\"wgBackendResponseTime\":TIME")
        .replace(r"\d{14}", "TIME")
        .replace(r#""(cputime|walltime)":"[\d.]+""#, "\"$1\":TIME")
        // The version of a script that has the server's address in it.
        .replace(r#"(\["[a-z][\w.-]*",")[0-9a-z]{5}""#, "${1}VERSION\"")
        .replace(r"\d\d:\d\d, \d\d? [A-Z][a-z]+ \d{4}|\d\d? [A-Z][a-z]+ \d{4}(?:, at)? \d\d:\d\d", "TIME")
        // The minute of a change, in lists.
        .replace(r"([> ])\d\d:\d\d([ <])", "${1}TIME$2")
        .replace(r"\b[\d.]+ (?:seconds?|minutes?)(?: and [\d.]+ seconds?)?\b", "SPAN")
        // The report of the parser in a comment.
        .replace(r"(?:CPU time usage|Real time usage|Cached time|Complications|Transclusion expansion time report.*): .*", "REPORT")
        .replace(r"\d+\.\d\d% +\d+\.\d+ +\d+ ", "REPORT ")
}

fn public_pages(guest: &mut Visit<'_>) -> Visited {
    let starts = [
        "/index.php/Main_Page",
        "/index.php?title=Main_Page&action=history",
        "/index.php?title=Main_Page&action=info",
        "/index.php?title=Main_Page&action=raw",
        "/index.php/Special:AllPages",
        "/index.php/Special:RecentChanges",
        "/index.php/Special:SpecialPages",
        "/index.php/Special:Version",
        "/index.php/Special:Search?search=main",
        "/index.php/No_such_page",
        "/api.php?action=query&meta=siteinfo&format=json",
        "/api.php?action=parse&page=Main_Page&format=json",
        "/api.php",
        "/rest.php/v1/page/Main_Page",
        "/load.php?lang=en&modules=startup&only=scripts&raw=1&skin=vector",
        "/load.php?lang=en&modules=site.styles&only=styles&skin=vector",
        "/opensearch_desc.php",
        "/resources/assets/poweredby_mediawiki_88x31.png",
    ];
    const LEFT_OUT: &[&str] =
        &["Special:Random", "UserLogin", "CreateAccount", "oldid", "diff=", "Special:Log", "hide"];
    let follow = |link: &str| LEFT_OUT.iter().all(|part| !link.contains(part));
    Crawl::from(starts).follow(follow).at_most(90).walk(guest).expect_same(40)
}

fn the_administrator_logs_in(admin: &mut Visit<'_>) {
    let fill = |form: Form, password: &str| {
        form.set("wpName", MediaWiki::ADMIN).set("wpPassword", password).press("wploginattempt")
    };
    let target = "/index.php?title=Special:UserLogin";
    let refused = admin.same_form(target, "userlogin", |form| fill(form, "a wrong one"));
    refused.expect(200).holding("Incorrect username or password");
    admin.same_form(target, "userlogin", |form| fill(form, MediaWiki::PASSWORD)).expect(302);
}

fn a_page_is_written_and_a_file_uploaded(admin: &mut Visit<'_>) {
    let target = "/index.php?title=Rewound&action=edit";
    let text = "== A heading ==\nSome ''text'', \u{fc}n\u{ef}code, [[Main Page]].";
    let saved = admin.same_form(target, "id=\"editform\"", |form| {
        form.set("wpTextbox1", text).set("wpSummary", "a test").press("wpSave")
    });
    saved.expect(302);
    admin.same(&Request::get("/index.php/Rewound")).expect(200).holding("A heading");
    let picture = include_bytes!("../fixtures/wordpress/photo.png");
    let [reference, subject] = admin.forms("/index.php/Special:Upload", "mw-upload-form");
    let upload = |form: &Form| {
        let parts = form.fields().iter().fold(Multipart::new(), |parts, (name, value)| {
            parts.field(name, if name == "wpDestFile" { "Photo.png" } else { value })
        });
        let parts = parts.file("wpUploadFile", "photo.png", "image/png", picture);
        Request::upload(form.action(), parts.field("wpUpload", "Upload file"))
    };
    admin.same_each(&upload(&reference), &upload(&subject));
}

#[test]
fn mediawiki_rewound_is_the_same() {
    let wikis = [MediaWiki::install_with(UPLOADS), MediaWiki::install_with(UPLOADS)];
    let subject = wikis[1].app().rewound_entirely();
    let pair = Pair::with(&wikis[0].app(), &subject).scrubbed(scrub());
    let [mut guest, mut admin] = [pair.visit(), pair.visit()];
    let public = public_pages(&mut guest);
    the_administrator_logs_in(&mut admin);
    a_page_is_written_and_a_file_uploaded(&mut admin);
    guest.same(&Request::get("/index.php/Rewound")).expect(200).holding("A heading");
    public.again(&mut [guest, admin], 200);
}
