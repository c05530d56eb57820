//! Posts, pages, pictures and comments.

use outboard_e2e::{Client, Form, Multipart, Request, Visit, WordPress};

pub(crate) fn a_post_is_drafted_on_the_dashboard(admin: &mut Visit<'_>) {
    let response = admin.same_form("/wp-admin/", "id=\"quick-press\"", |form| {
        form.set("post_title", "A quick draft")
            .set("content", "Drafted \u{2014} quickly.")
            .press("save")
    });
    response.expect(200).holding("A quick draft");
}

/// The REST nonce that the editor's page carries for its own requests.
fn rest_nonce(client: &mut Client) -> String {
    let page = client.get("/wp-admin/post-new.php").text();
    let (_, rest) =
        page.split_once("createNonceMiddleware( \"").expect("the editor's page has one");
    rest.split('"').next().expect("it ends").to_owned()
}

/// Sends a REST request to both, each with its own nonce.
#[track_caller]
pub(crate) fn rest(
    admin: &mut Visit<'_>,
    method: &str,
    target: &str,
    body: &str,
) -> outboard_e2e::Response {
    let [reference, subject] = [&mut admin.reference, &mut admin.subject].map(|client| {
        let request = Request::new(method, target)
            .header("X-WP-Nonce", &rest_nonce(client))
            .header("Content-Type", "application/json")
            .header("X-HTTP-Method-Override", method);
        if body.is_empty() { request } else { request.body(body) }
    });
    admin.same_each(&reference, &subject)
}

/// Lists are in the order of dates, to the second and no further: the dates are far apart.
pub(crate) fn a_post_is_published_by_the_editor(admin: &mut Visit<'_>) {
    let body = r#"{"title":"Published by the editor","content":"<!-- wp:paragraph --><p>First <b>paragraph</b>, ünïcode and 漢字.</p><!-- /wp:paragraph -->","status":"publish","date":"2020-02-03T04:05:06","categories":[1],"excerpt":"An excerpt"}"#;
    let created = rest(admin, "POST", "/index.php?rest_route=/wp/v2/posts&_locale=user", body);
    created.expect(201).holding("\"status\":\"publish\"");
    admin.same(&Request::get("/")).expect(200).holding("Published by the editor");
    let found = rest(admin, "GET", "/wp-json/wp/v2/posts?search=editor", "");
    found.expect(200).holding("published-by-the-editor");
    rest(admin, "OPTIONS", "/wp-json/wp/v2/posts/1", "").expect(200);
    rest(
        admin,
        "PUT",
        "/wp-json/wp/v2/posts/1",
        r#"{"title":"Hello, changed world","date":"2019-01-02T03:04:05"}"#,
    )
    .expect(200);
    rest(admin, "GET", "/wp-json/wp/v2/posts/999", "").expect(404);
}

pub(crate) fn a_picture_is_uploaded_and_resized(admin: &mut Visit<'_>, sites: [&WordPress; 2]) {
    let picture = include_bytes!("../../fixtures/wordpress/photo.png");
    let forms = admin.forms("/wp-admin/media-new.php?browser-uploader", "id=\"file-form\"");
    let upload = |form: &Form| {
        let parts = form
            .fields()
            .iter()
            .fold(Multipart::new(), |parts, (name, value)| parts.field(name, value));
        let parts = parts.file("async-upload", "photo.png", "image/png", picture);
        Request::upload(form.action(), parts.field("html-upload", "Upload"))
    };
    let [reference, subject] = forms;
    admin.same_each(&upload(&reference), &upload(&subject)).expect(302);
    admin.same(&Request::get("/wp-admin/upload.php?mode=list")).expect(200).holding("photo");
    let sizes = rest(admin, "GET", "/wp-json/wp/v2/media?per_page=1", "").expect(200);
    let text = sizes.text().replace("\\/", "/");
    let (_, folder) = text.split_once("/wp-content/uploads/").expect("the picture has an address");
    let folder = &folder[..folder.find("photo").expect("and a name")];
    for name in ["photo.png", "photo-150x150.png", "photo-300x197.png"] {
        let target = format!("/wp-content/uploads/{folder}{name}");
        let response = admin.same(&Request::get(&target)).expect(200);
        assert!(response.body.starts_with(b"\x89PNG"), "{target}");
        for site in sites {
            assert!(site.docroot().path().join(&target[1..]).exists(), "{target}");
        }
    }
}

pub(crate) fn a_guest_comments_and_the_comment_is_approved(
    guest: &mut Visit<'_>,
    admin: &mut Visit<'_>,
) {
    let home = guest.same(&Request::get("/")).expect(200).text();
    let at = home.find("/published-by-the-editor/").expect("the post is on the home page");
    let start = home[..at].rfind(['"', '\'']).expect("it is a link") + 1;
    let link = &home[start..at + "/published-by-the-editor/".len()];
    let target = &link[link.rfind("/20").expect("the year is in the address")..];
    let target = target.to_owned();
    let response = guest.same_form(&target, "commentform", |form| {
        form.set("comment", "A comment <b>of</b> a guest.")
            .set("author", "Guest")
            .set("email", "guest@example.org")
            .press("submit")
    });
    let response = response.expect(302);
    assert!(response.header("location").is_some_and(|to| to.contains("moderation-hash")));
    guest.same(&Request::get(&target)).expect(200);
    admin.same(&Request::get("/wp-admin/edit-comments.php")).expect(200).holding("of</b> a guest");
    let approval = r#"{"status":"approved"}"#;
    rest(admin, "POST", "/wp-json/wp/v2/comments/2", approval).expect(200).holding("approved");
    guest.same(&Request::get(&target)).expect(200).holding("of</b> a guest");
    let duplicate = guest.same_form(&target, "commentform", |form| {
        form.set("comment", "").set("author", "Guest").set("email", "guest@example.org")
    });
    duplicate.expect(200);
}

pub(crate) fn a_page_gets_a_place_in_the_menu_of_pages(admin: &mut Visit<'_>) {
    let body = r#"{"title":"A page below","content":"Text","status":"publish","parent":2}"#;
    rest(admin, "POST", "/wp-json/wp/v2/pages", body).expect(201);
    admin.same(&Request::get("/sample-page/a-page-below/")).expect(200).holding("A page below");
    rest(admin, "DELETE", "/wp-json/wp/v2/posts/999", "").expect(404);
}
