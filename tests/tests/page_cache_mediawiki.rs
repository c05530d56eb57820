//! MediaWiki behind the page cache, unmodified: nobody gets what is another's.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Form, MediaWiki, Request, Server, Site};
use std::sync::atomic::{AtomicUsize, Ordering};

/// On a machine that does other things a page takes many seconds: nobody is turned away for that.
const TABLES: &str = "[pool]\nqueue_timeout = \"2m\"\n\
                      [app.site.page_cache]\nmode = \"on\"\nlock_timeout = \"60s\"\n";
const THREADS: usize = 4;

/// What is asked for: a page that is not there and one that is made anew each time are never kept,
/// and slow.
fn title(number: usize) -> &'static str {
    match number % 20 {
        0 => "Special:Version",
        10 => "Nothing",
        odd if odd % 2 == 1 => "Main_Page",
        _ => "MediaWiki:Aboutsite",
    }
}

/// Tells MediaWiki that there is a cache; without it every page says that it is private.
const PURGING: &str = "$wgUseCdn = true;\n";

/// Visitors who are logged in and who are not ask for the same pages at the same time; how many
/// answers came from the cache.
fn mixed(wiki: &MediaWiki, rounds: usize, one_admin_in: usize) -> usize {
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
    let hits = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cookies, hits) = (&cookies, &hits);
            scope.spawn(move || {
                for round in 0..rounds {
                    let target = format!("/index.php?title={}", title(5 * thread + round));
                    let is_admin = (thread * 7 + round) % one_admin_in == 0;
                    let request = match is_admin {
                        true => Request::get(&target).header("Cookie", cookies),
                        false => Request::get(&target),
                    };
                    let answer = Client::new(address).send(&request);
                    let is_hit = answer.header("x-cache") == Some("HIT");
                    hits.fetch_add(usize::from(is_hit), Ordering::Relaxed);
                    assert!(answer.status < 500, "{target}: {answer:?}");
                    let text = answer.text();
                    let is_of_admin = text.contains("\"wgUserName\":\"Admin\"");
                    let is_of_nobody = text.contains("\"wgUserName\":null");
                    assert_eq!((is_of_admin, is_of_nobody), (is_admin, !is_admin), "{target}");
                }
            });
        }
    });
    hits.into_inner()
}

#[test]
fn no_visitor_gets_the_page_of_another() {
    mixed(&MediaWiki::install(), 40, 3);
    assert!(mixed(&MediaWiki::install_with(PURGING), 40, 3) > 0, "some came from the cache");
}

#[test]
#[ignore = "minutes; the shorter one above is the same"]
fn no_page_of_another_user_in_a_hundred_thousand_requests() {
    let hits = mixed(&MediaWiki::install_with(PURGING), 100_000 / THREADS, 23);
    println!("{hits} of 100,000 from the cache");
    assert!(hits > 50_000);
}
