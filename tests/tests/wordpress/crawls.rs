//! Every page that links lead to.

use outboard_e2e::{Crawl, Visit, Visited};

pub(crate) fn the_public_site_is_the_same(guest: &mut Visit<'_>) -> Visited {
    let starts = [
        "/",
        "/?s=editor",
        "/?p=1",
        "/?page_id=2",
        "/feed/",
        "/comments/feed/",
        "/feed/atom/",
        "/category/uncategorized/",
        "/author/admin/",
        "/wp-sitemap.xml",
        "/wp-sitemap-posts-post-1.xml",
        "/wp-json/",
        "/wp-json/wp/v2/types",
        "/robots.txt",
        "/no-such-page/",
        "/no-such.php",
        "/xmlrpc.php",
        "/wp-links-opml.php",
        "/wp-cron.php",
        "/readme.html",
        "/wp-login.php?action=lostpassword",
        "/wp-includes/js/jquery/jquery.min.js",
        "/wp-admin/css/install.css",
        "/favicon.ico",
        "/index.php/",
        "/wp-trackback.php",
        "/?feed=rss2&p=1",
    ];
    let visited = Crawl::from(starts).at_most(150).walk(guest).expect_same(60);
    assert!(visited.statuses[&200] > 40, "{:?}", visited.statuses);
    visited
}

/// Links that change something, lead out, or show how the server is built are not followed.
pub(crate) fn the_administration_is_the_same(admin: &mut Visit<'_>) {
    const LEFT_OUT: &[&str] = &[
        "nonce",
        "action=",
        "logout",
        "update-core",
        "plugin-install",
        "theme-install",
        "e2e_schedule",
        "site-health",
        "customize.php",
        "load-styles",
        "load-scripts",
        "export.php?",
        "wp-cron",
    ];
    let follow = |link: &str| {
        (link.starts_with("/wp-admin/") || link.starts_with("/wp-json/"))
            && LEFT_OUT.iter().all(|part| !link.contains(part))
    };
    let starts = [
        "/wp-admin/",
        "/wp-admin/post.php?post=1&action=edit",
        "/wp-admin/customize.php",
        "/wp-admin/site-editor.php",
        "/wp-admin/load-styles.php?c=1&dir=ltr&load%5Bchunk_0%5D=dashicons,admin-bar",
        "/wp-admin/load-scripts.php?c=1&load%5Bchunk_0%5D=jquery-core,jquery-migrate",
        "/wp-admin/admin-ajax.php",
        "/wp-admin/export.php?download=true&content=all",
        "/wp-admin/nothing-here.php",
    ];
    let visited = Crawl::from(starts).follow(follow).at_most(150).walk(admin).expect_same(50);
    assert!(visited.statuses[&200] > 40, "{:?}", visited.statuses);
}
