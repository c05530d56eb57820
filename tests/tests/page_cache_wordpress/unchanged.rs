//! A WordPress that nobody changed. The steps build on each other, so they are one test.

use crate::blog::{Blog, rest};
use outboard_e2e::{Client, Connection, Request, Site};

const CLIENTS: usize = 500;
const ROUNDS: usize = 60;

#[test]
fn an_unmodified_wordpress_is_cached_safely() {
    let mut blog = Blog::install(&[]);
    anonymous_pages_are_made_once(&blog);
    no_visitor_gets_the_page_of_another(&blog, ROUNDS, 3);
    a_post_is_there_after_a_purge(&mut blog);
    a_crowd_has_the_home_page_made_once(&blog);
}

#[test]
#[ignore = "minutes; a part of the test above is the same"]
fn no_page_of_another_user_in_a_hundred_thousand_requests() {
    no_visitor_gets_the_page_of_another(&Blog::install(&[]), 25_000, 25);
}

fn anonymous_pages_are_made_once(blog: &Blog) {
    let presets = blog.cache(&["stats"])["apps"]["site"]["presets"].clone();
    assert_eq!(presets, serde_json::json!(["generic", "wordpress"]));
    for target in ["/", "/?s=hello", "/?feed=rss2"] {
        blog.visitor().get(target).expect(200);
        let again = blog.visitor().get(target).expect(200);
        assert_eq!(again.header("x-cache"), Some("HIT"), "{target}: {:#?}", again.headers);
    }
    let login = blog.visitor().get("/wp-login.php").expect(200);
    assert_eq!(login.header("x-cache"), Some("BYPASS"));
}

/// Visitors who are logged in and who are not ask for the same pages at the same time.
fn no_visitor_gets_the_page_of_another(blog: &Blog, rounds: usize, one_admin_in: usize) {
    let cookies = blog.admin_cookies();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (cookies, address) = (&cookies, blog.server.address());
            scope.spawn(move || {
                for round in 0..rounds {
                    let target = ["/", "/?s=hello", "/?s=nothing"][(thread + round) % 3];
                    let is_admin = (thread * 7 + round) % one_admin_in == 0;
                    let mut request = Request::get(target);
                    if is_admin {
                        request = request.header("Cookie", cookies);
                    }
                    let page = Client::new(address).send(&request).expect(200);
                    let has_bar = page.text().contains("id=\"wpadminbar\"");
                    assert_eq!(has_bar, is_admin, "{target}: {:#?}", page.headers);
                    if is_admin {
                        assert_eq!(page.header("x-cache"), Some("BYPASS"));
                    }
                }
            });
        }
    });
}

fn a_post_is_there_after_a_purge(blog: &mut Blog) {
    let home = blog.visitor().get("/").expect(200);
    assert!(!home.text().contains("Published under a cache"));
    let nonce = blog.nonce();
    let post = r#"{"title":"Published under a cache","content":"x","status":"publish"}"#;
    blog.admin.send(&rest("/wp/v2/posts", &nonce, post)).expect(201);
    blog.cache(&["purge", "--all"]);
    let home = blog.visitor().get("/").expect(200);
    assert!(home.text().contains("Published under a cache"));
    assert_eq!(home.header("x-cache"), Some("MISS"));
}

fn a_crowd_has_the_home_page_made_once(blog: &Blog) {
    blog.cache(&["purge", "--all"]);
    let before = blog.count("miss");
    let address = blog.server.address();
    let mut crowd: Vec<Connection> = (0..CLIENTS)
        .map(|_| {
            let mut connection = Connection::open(address);
            let request = Request::get("/").to_bytes(&address.to_string());
            connection.send(&request).expect("the server reads");
            connection
        })
        .collect();
    let pages: Vec<String> = crowd
        .iter_mut()
        .map(|connection| connection.response().unwrap().expect(200).text())
        .collect();
    assert!(pages.iter().all(|page| *page == pages[0]));
    assert_eq!(blog.count("miss") - before, 1);
}
