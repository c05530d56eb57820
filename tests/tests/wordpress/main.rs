//! WordPress, as Debian ships it, is installed and used through its web pages on both servers at
//! once: every answer is compared, then the whole site and its administration are walked through.
//! The steps build on each other, so they are one test.

#![forbid(unsafe_code)]

mod crawls;
mod loopback;
mod rewound;
mod visitors;
mod writing;

use outboard_e2e::{MariaDb, Pair, Request, Visit, Visited, WordPress};

struct Sites {
    pair: Pair,
    reference: WordPress,
    subject: WordPress,
    _database: MariaDb,
}

fn prepare() -> Sites {
    let database = MariaDb::start();
    let reference = WordPress::prepare(&database, "wp_reference");
    let subject = WordPress::prepare(&database, "wp_subject");
    let pair = Pair::with(&reference.app(), &subject.app()).scrubbed(WordPress::scrub());
    Sites { pair, reference, subject, _database: database }
}

#[test]
fn wordpress_works_as_under_php_fpm() {
    goes_through(&prepare());
}

/// Returns the pages of a guest.
fn goes_through(sites: &Sites) -> Visited {
    let mut admin = sites.pair.visit();
    the_installer_installs(&mut admin);
    the_administrator_logs_in(&mut admin);
    permalinks_are_set(&mut admin);
    writing::a_post_is_drafted_on_the_dashboard(&mut admin);
    writing::a_post_is_published_by_the_editor(&mut admin);
    writing::a_picture_is_uploaded_and_resized(&mut admin, [&sites.reference, &sites.subject]);
    let mut guest = sites.pair.visit();
    writing::a_guest_comments_and_the_comment_is_approved(&mut guest, &mut admin);
    writing::a_page_gets_a_place_in_the_menu_of_pages(&mut admin);
    loopback::wp_cron_calls_its_own_site(sites);
    loopback::site_health_reaches_its_own_site(&mut admin);
    let public = crawls::the_public_site_is_the_same(&mut guest);
    crawls::the_administration_is_the_same(&mut admin);
    the_administrator_logs_out(&mut admin);
    public
}

fn the_installer_installs(admin: &mut Visit<'_>) {
    let response = admin.same(&Request::get("/")).expect(302);
    assert!(response.header("location").is_some_and(|to| to.ends_with("/wp-admin/install.php")));
    let installed = admin.same_form("/wp-admin/install.php", "id=\"setup\"", |form| {
        form.set("weblog_title", "End to end & \u{fc}n\u{ef}code")
            .set("user_name", WordPress::ADMIN)
            .set("admin_password", WordPress::PASSWORD)
            .set("admin_password2", WordPress::PASSWORD)
            .set("pw_weak", "on")
            .set("admin_email", "admin@example.org")
            .set("blog_public", "1")
    });
    installed.expect(200).holding("WordPress has been installed");
    admin.same(&Request::get("/wp-admin/install.php")).expect(200).holding("already installed");
}

fn the_administrator_logs_in(admin: &mut Visit<'_>) {
    let log_in = |form: outboard_e2e::Form, password: &str| {
        form.set("log", WordPress::ADMIN).set("pwd", password).press("wp-submit")
    };
    let target = "/wp-login.php";
    let refused = admin.same_form(target, "loginform", |form| log_in(form, "a wrong one"));
    refused.expect(200).holding("is incorrect");
    let response = admin.same_form(target, "loginform", |form| log_in(form, WordPress::PASSWORD));
    let response = response.expect(302);
    assert!(response.all("set-cookie").any(|cookie| cookie.starts_with("wordpress_logged_in")));
    admin.same(&Request::get("/wp-admin/")).expect(200).holding("Dashboard");
}

fn permalinks_are_set(admin: &mut Visit<'_>) {
    let response = admin.same_form("/wp-admin/options-permalink.php", "name=\"form\"", |form| {
        form.set("selection", "/%year%/%monthnum%/%postname%/")
            .set("permalink_structure", "/%year%/%monthnum%/%postname%/")
            .press("submit")
    });
    response.expect(302);
    admin.same(&Request::get("/wp-admin/options-permalink.php?settings-updated=true")).expect(200);
    let home = admin.same(&Request::get("/")).expect(200);
    assert!(home.text().contains("/hello-world/"), "{}", home.text());
}

fn the_administrator_logs_out(admin: &mut Visit<'_>) {
    let question = admin.same(&Request::get("/wp-login.php?action=logout")).expect(403);
    assert!(question.text().contains("log out"));
    let mut targets = Vec::new();
    for client in [&mut admin.reference, &mut admin.subject] {
        let page = client.get("/wp-login.php?action=logout").text();
        let start = page.find("action=logout").expect("the page asks whether to log out");
        let end = page[start..].find(['"', '\'']).expect("the link ends") + start;
        targets.push(format!("/wp-login.php?{}", page[start..end].replace("&amp;", "&")));
    }
    let requests = [Request::get(&targets[0]), Request::get(&targets[1])];
    admin.same_each(&requests[0], &requests[1]).expect(302);
    admin.same(&Request::get("/wp-admin/")).expect(302);
}
