//! With the must-use plugin: what changes is purged, at once and nothing else.

use crate::blog::{Blog, rest, submit};
use outboard_e2e::{Client, Request, Site, eventually, repeating};
use std::sync::atomic::{AtomicUsize, Ordering};

const PLUGIN: &str = include_str!("../../../php/drop-ins/wordpress/outboard-page-cache.php");
const SNAPSHOT_PLUGIN: &str = include_str!("../../../php/drop-ins/wordpress/outboard-snapshot.php");
/// What runs by itself would purge by itself.
const NO_CRON: &str = "<?php define('DISABLE_WP_CRON', true);";
/// Shows and stores a field of a term, a user and a comment.
const FIELDS: &str = r#"<?php
add_action('wp_footer', function () {
    foreach (['term', 'user', 'comment'] as $kind) {
        echo "<!-- $kind ", get_metadata($kind, 1, 'e2e', true), ' -->';
    }
});
add_action('wp_loaded', function () {
    if (isset($_POST['e2e_field'])) {
        update_metadata($_POST['e2e_field'], 1, 'e2e', $_POST['value']);
        exit('stored');
    }
});
"#;
const POSTS: usize = 8;
const VISITORS: usize = 3;

#[test]
fn with_the_plugin_every_change_is_seen_at_the_next_request() {
    every_change_is_seen(&[]);
}

/// The pages that the cache stores come from a snapshot, which a setting or another theme retires.
#[test]
fn with_a_snapshot_every_change_is_seen_at_the_next_request() {
    every_change_is_seen(&[("outboard-snapshot.php", SNAPSHOT_PLUGIN)]);
}

fn every_change_is_seen(more: &[(&str, &str)]) {
    let plugins =
        [("outboard-page-cache.php", PLUGIN), ("no-cron.php", NO_CRON), ("fields.php", FIELDS)];
    let mut blog = Blog::install(&[&plugins, more].concat());
    let nonce = blog.nonce();
    pages_say_what_they_show(&blog);
    posts_published_under_load_are_never_missed(&mut blog, &nonce);
    a_change_purges_what_shows_it_and_nothing_else(&mut blog, &nonce);
    a_comment_is_there(&mut blog);
    fields_of_terms_users_and_comments_are_there(&blog);
    a_setting_and_a_theme_are_there(&mut blog, &nonce);
    assert_eq!(blog.server.rewinds() > 0, !more.is_empty());
}

fn pages_say_what_they_show(blog: &Blog) {
    for (target, tags) in [
        ("/", &["site", "post-1", "posts-post"][..]),
        ("/?p=1", &["site", "post-1"]),
        ("/?page_id=2", &["site", "post-2"]),
        ("/?feed=rss2", &["site", "post-1", "posts-post"]),
        ("/?feed=comments-rss2", &["site", "comments"]),
        ("/index.php?rest_route=/wp/v2/posts", &["site", "post-1", "posts-post"]),
        ("/?s=hello", &["site", "posts-any"]),
    ] {
        let page = blog.visitor().get(target).expect(200);
        let sent = page.header("cache-tag").unwrap_or_default();
        let sent: Vec<&str> = sent.split(',').collect();
        assert!(tags.iter().all(|tag| sent.contains(tag)), "{target}: {sent:?}");
    }
}

/// The promise: who asks after the answer to the editor sees the post, and nobody who asks after
/// another visitor has seen it gets an older page.
fn posts_published_under_load_are_never_missed(blog: &mut Blog, nonce: &str) {
    let published = AtomicUsize::new(0);
    let seen = AtomicUsize::new(0);
    let address = blog.server.address();
    let visitor = |is_over: &dyn Fn() -> bool| {
        let mut visitor = Client::new(address);
        while !is_over() {
            let least = published.load(Ordering::SeqCst).max(seen.load(Ordering::SeqCst));
            let page = visitor.get("/").expect(200).text();
            let newest = (1..=POSTS).rev().find(|n| page.contains(&title(*n))).unwrap_or(0);
            assert!(newest >= least, "post {least} is out, and the page has {newest}");
            seen.fetch_max(newest, Ordering::SeqCst);
        }
    };
    repeating(VISITORS, visitor, || {
        for number in 1..=POSTS {
            let post = format!(
                r#"{{"title":"{}","content":"x","status":"publish","sticky":false}}"#,
                title(number)
            );
            blog.admin.send(&rest("/wp/v2/posts", nonce, &post)).expect(201);
            published.store(number, Ordering::SeqCst);
            eventually("a visitor sees the post", || seen.load(Ordering::SeqCst) >= number);
        }
    });
    assert_eq!(seen.into_inner(), POSTS);
}

fn title(number: usize) -> String {
    format!("Published as number {number}.")
}

#[track_caller]
fn is_kept(blog: &Blog, target: &str) -> bool {
    let request = Request::get(target).header("Cache-Control", "only-if-cached");
    match blog.visitor().send(&request).status {
        504 => false,
        200 => true,
        status => panic!("{target}: {status}"),
    }
}

/// Where WordPress wants a page to be asked for.
fn canonical(blog: &Blog, target: &str) -> String {
    let answer = blog.visitor().send(&Request::get(target));
    let origin = format!("http://{}", blog.server.address());
    match answer.header("location") {
        Some(location) => location.trim_start_matches(&origin).to_owned(),
        None => target.to_owned(),
    }
}

fn a_change_purges_what_shows_it_and_nothing_else(blog: &mut Blog, nonce: &str) {
    let [home, post, page] = ["/", "/?p=1", "/?page_id=2"].map(|target| canonical(blog, target));
    let [home, post, page] = [&home[..], &post, &page];
    let fill = |blog: &Blog| {
        for target in [home, post, page] {
            let page = blog.visitor().get(target).expect(200);
            assert!(is_kept(blog, target), "{target}: {:#?}", page.headers);
        }
    };
    fill(blog);
    let draft = r#"{"title":"Not yet","content":"x","status":"draft"}"#;
    let draft = blog.admin.send(&rest("/wp/v2/posts", nonce, draft)).expect(201);
    assert!([home, post, page].iter().all(|target| is_kept(blog, target)), "a draft is on no page");
    let id = serde_json::from_slice::<serde_json::Value>(&draft.body).unwrap()["id"].clone();
    let publish = rest(&format!("/wp/v2/posts/{id}"), nonce, r#"{"status":"publish"}"#);
    blog.admin.send(&publish).expect(200);
    assert!(!is_kept(blog, home));
    assert!(is_kept(blog, page), "a page does not list posts");
    blog.visitor().get(home).expect(200).holding("Not yet");
    fill(blog);
    let change = rest("/wp/v2/pages/2", nonce, r#"{"title":"Renamed"}"#);
    blog.admin.send(&change).expect(200);
    assert!(!is_kept(blog, page));
    blog.visitor().get(page).expect(200).holding("Renamed");
}

fn a_comment_is_there(blog: &mut Blog) {
    let page = blog.visitor().get("/?p=1").expect(200);
    assert!(!page.text().contains("A word under the cache"));
    let sent = submit(&mut blog.admin, "/?p=1", "id=\"commentform\"", |form| {
        form.set("comment", "A word under the cache")
    });
    sent.expect(302);
    blog.visitor().get("/?p=1").expect(200).holding("A word under the cache");
}

fn fields_of_terms_users_and_comments_are_there(blog: &Blog) {
    let home = canonical(blog, "/");
    for (kind, value) in [("term", "1"), ("user", "2"), ("comment", "3"), ("term", "4")] {
        blog.visitor().get(&home).expect(200);
        assert!(is_kept(blog, &home));
        let body = format!("e2e_field={kind}&value={value}");
        let change = Request::post("/", "application/x-www-form-urlencoded", body);
        blog.visitor().send(&change).expect(200).holding("stored");
        blog.visitor().get(&home).expect(200).holding(&format!("<!-- {kind} {value} -->"));
    }
}

fn a_setting_and_a_theme_are_there(blog: &mut Blog, nonce: &str) {
    let page = canonical(blog, "/?page_id=2");
    blog.visitor().get(&page).expect(200);
    blog.admin.send(&rest("/wp/v2/settings", nonce, r#"{"title":"Another name"}"#)).expect(200);
    blog.visitor().get(&page).expect(200).holding("Another name");
    assert!(is_kept(blog, &page));
    let themes = blog.admin.get("/wp-admin/themes.php").text();
    let themes = themes.replace("&#038;", "&").replace("&amp;", "&");
    let (_, rest) = themes.split_once("themes.php?action=activate&").expect("there is another");
    let link = rest.split(['"', '\'']).next().expect("it ends");
    blog.admin.get(&format!("/wp-admin/themes.php?action=activate&{link}")).expect(200);
    assert!(!is_kept(blog, &page));
}
