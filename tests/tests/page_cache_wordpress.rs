//! WordPress behind the page cache, unmodified: nobody gets what is another's, and what is
//! published is there after a purge. The steps build on each other, so they are one test.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Connection, Form, MariaDb, Request, Response, Server, Site, WordPress};
use serde_json::Value;
use std::process::Command;

const TABLES: &str = "[app.site.page_cache]\nmode = \"on\"\nwait = \"60s\"\n";
const CLIENTS: usize = 500;
const ROUNDS: usize = 60;

#[test]
fn a_wordpress_that_nobody_changed_is_cached_safely() {
    let database = MariaDb::start();
    let wordpress = WordPress::prepare(&database, "wp_cached");
    let server = Server::with_configuration(&wordpress.app(), TABLES);
    install(&server);
    let mut admin = Client::new(server.address());
    log_in(&mut admin);
    anonymous_pages_are_made_once(&server);
    nobody_gets_the_page_of_another(&server, &admin);
    a_post_is_there_after_a_purge(&server, &mut admin);
    a_crowd_has_the_home_page_made_once(&server);
}

fn submit(
    client: &mut Client,
    page: &str,
    marker: &str,
    fill: impl FnOnce(Form) -> Form,
) -> Response {
    let html = client.get(page).expect(200).text();
    let form = fill(Form::find(&html, marker, page));
    client.send(&form.submit())
}

fn install(server: &Server) {
    let mut visitor = Client::new(server.address());
    let installed = submit(&mut visitor, "/wp-admin/install.php", "id=\"setup\"", |form| {
        form.set("weblog_title", "Cached")
            .set("user_name", WordPress::ADMIN)
            .set("admin_password", WordPress::PASSWORD)
            .set("admin_password2", WordPress::PASSWORD)
            .set("pw_weak", "on")
            .set("admin_email", "admin@example.org")
            .set("blog_public", "1")
    });
    installed.expect(200).holding("WordPress has been installed");
}

fn log_in(admin: &mut Client) {
    let response = submit(admin, "/wp-login.php", "loginform", |form| {
        form.set("log", WordPress::ADMIN).set("pwd", WordPress::PASSWORD).press("wp-submit")
    });
    response.expect(302);
    admin.get("/wp-admin/").expect(200).holding("Dashboard");
}

fn cache(server: &Server, arguments: &[&str]) -> Value {
    let mut command = Command::new(Server::binary());
    command.arg("cache").args(arguments).arg("--json").arg("--admin").arg(server.admin_socket());
    let output = command.output().expect("the binary is there");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn count(server: &Server, name: &str) -> u64 {
    cache(server, &["stats"])["apps"]["site"][name].as_u64().expect("it is a number")
}

fn anonymous_pages_are_made_once(server: &Server) {
    let presets = cache(server, &["stats"])["apps"]["site"]["presets"].clone();
    assert_eq!(presets, serde_json::json!(["generic", "wordpress"]));
    for target in ["/", "/?s=hello", "/?feed=rss2"] {
        Client::new(server.address()).get(target).expect(200);
        let again = Client::new(server.address()).get(target).expect(200);
        assert_eq!(again.header("x-cache"), Some("HIT"), "{target}: {:#?}", again.headers);
    }
    let login = Client::new(server.address()).get("/wp-login.php").expect(200);
    assert_eq!(login.header("x-cache"), Some("BYPASS"));
}

/// Visitors who are logged in and who are not ask for the same pages at the same time.
fn nobody_gets_the_page_of_another(server: &Server, admin: &Client) {
    let cookies: Vec<String> =
        admin.cookies().map(|(name, value)| format!("{name}={value}")).collect();
    let cookies = cookies.join("; ");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cookies = &cookies;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let target = ["/", "/?s=hello", "/?s=nothing"][(thread + round) % 3];
                    let is_admin = (thread * 7 + round) % 3 == 0;
                    let mut request = Request::get(target);
                    if is_admin {
                        request = request.header("Cookie", cookies);
                    }
                    let page = Client::new(server.address()).send(&request).expect(200);
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

fn a_post_is_there_after_a_purge(server: &Server, admin: &mut Client) {
    let home = Client::new(server.address()).get("/").expect(200);
    assert!(!home.text().contains("Published under a cache"));
    let page = admin.get("/wp-admin/post-new.php").text();
    let (_, rest) = page.split_once("createNonceMiddleware( \"").expect("the editor has a nonce");
    let nonce = rest.split('"').next().expect("it ends").to_owned();
    let request = Request::new("POST", "/index.php?rest_route=/wp/v2/posts")
        .header("X-WP-Nonce", &nonce)
        .header("Content-Type", "application/json")
        .body(r#"{"title":"Published under a cache","content":"x","status":"publish"}"#);
    admin.send(&request).expect(201);
    cache(server, &["purge", "--all"]);
    let home = Client::new(server.address()).get("/").expect(200);
    assert!(home.text().contains("Published under a cache"));
    assert_eq!(home.header("x-cache"), Some("MISS"));
}

fn a_crowd_has_the_home_page_made_once(server: &Server) {
    cache(server, &["purge", "--all"]);
    let before = count(server, "miss");
    let mut crowd: Vec<Connection> = (0..CLIENTS)
        .map(|_| {
            let mut connection = Connection::open(server.address());
            let request = Request::get("/").to_bytes(&server.address().to_string());
            connection.send(&request).expect("the server reads");
            connection
        })
        .collect();
    let pages: Vec<String> = crowd
        .iter_mut()
        .map(|connection| connection.response().unwrap().expect(200).text())
        .collect();
    assert!(pages.iter().all(|page| *page == pages[0]));
    assert_eq!(count(server, "miss") - before, 1);
}
