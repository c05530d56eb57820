//! MediaWiki behind the page cache, unmodified: nobody gets what is another's.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Form, MediaWiki, Request, Server, Site};

const TABLES: &str = "[app.site.page_cache]\nmode = \"on\"\nwait = \"60s\"\n";
const THREADS: usize = 4;

/// Visitors who are logged in and who are not ask for the same pages at the same time.
fn mixed(rounds: usize, one_admin_in: usize) {
    let wiki = MediaWiki::install();
    let server = Server::with_configuration(&wiki.app(), TABLES);
    let mut admin = Client::new(server.address());
    let page = "/index.php?title=Special:UserLogin";
    let html = admin.get(page).expect(200).text();
    let form = Form::find(&html, "name=\"userlogin\"", page)
        .set("wpName", MediaWiki::ADMIN)
        .set("wpPassword", MediaWiki::PASSWORD);
    admin.send(&form.submit()).expect(302);
    let cookies: Vec<String> =
        admin.cookies().map(|(name, value)| format!("{name}={value}")).collect();
    let cookies = cookies.join("; ");
    let address = server.address();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let cookies = &cookies;
            scope.spawn(move || {
                for round in 0..rounds {
                    let title = ["Main_Page", "Special:Version", "Nothing"][(thread + round) % 3];
                    let target = format!("/index.php?title={title}");
                    let is_admin = (thread * 7 + round) % one_admin_in == 0;
                    let request = match is_admin {
                        true => Request::get(&target).header("Cookie", cookies),
                        false => Request::get(&target),
                    };
                    let text = Client::new(address).send(&request).text();
                    let is_of_admin = text.contains("\"wgUserName\":\"Admin\"");
                    let is_of_nobody = text.contains("\"wgUserName\":null");
                    assert_eq!((is_of_admin, is_of_nobody), (is_admin, !is_admin), "{target}");
                }
            });
        }
    });
}

#[test]
fn nobody_gets_the_page_of_another() {
    mixed(40, 3);
}

#[test]
#[ignore = "minutes; the shorter one above is the same"]
fn nobody_gets_the_page_of_another_in_a_hundred_thousand_requests() {
    mixed(100_000 / THREADS, 25);
}
