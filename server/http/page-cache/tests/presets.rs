//! Bypassed requests of common applications without configuration.

use outboard_http1::Method;
use outboard_page_cache::{
    BypassRules, Fields, Policy, Preset, Reason, Request, RequestFacts, Visitor,
};

fn visitor(files: &[&str], path: &str, cookie: &str) -> Result<Visitor, Reason> {
    let guard = BypassRules::of(Preset::recognised(|file| files.contains(&file)));
    let fields = [(&b"Cookie"[..], cookie.as_bytes())];
    let fields = Fields(if cookie.is_empty() { &[] } else { &fields });
    let request = Request { method: Method::Get, path: path.as_bytes(), fields };
    RequestFacts::read(request, &guard, &Policy::STANDARD).map(|facts| facts.visitor)
}

const WORDPRESS: &[&str] = &["wp-includes/version.php"];
const SHOP: &[&str] =
    &["wp-includes/version.php", "wp-content/plugins/woocommerce/woocommerce.php"];
const DRUPAL: &[&str] = &["core/lib/Drupal.php"];
const MEDIAWIKI: &[&str] = &["includes/WebStart.php", "load.php"];
const JOOMLA: &[&str] = &["administrator/index.php", "includes/defines.php"];
const LARAVEL: &[&str] = &["../artisan", "../bootstrap/app.php"];
const SYMFONY: &[&str] = &["../bin/console", "../config/bundles.php"];
const PHPBB: &[&str] = &["viewtopic.php", "phpbb/user.php"];

#[test]
fn visitors_with_a_login_or_a_cart_bypass_the_cache() {
    for (files, cookie) in [
        (WORDPRESS, "wordpress_logged_in_5f=admin%7C1"),
        (WORDPRESS, "comment_author_5f=Ann"),
        (WORDPRESS, "wp-postpass_5f=x"),
        (SHOP, "woocommerce_items_in_cart=1"),
        (SHOP, "wp_woocommerce_session_5f=x"),
        (DRUPAL, "SSESSab12=x"),
        (DRUPAL, "NO_CACHE=Y"),
        (MEDIAWIKI, "wikidbUserID=3"),
        (MEDIAWIKI, "wikidb_session=x"),
        (JOOMLA, "joomla_user_state=logged_in"),
        (LARAVEL, "laravel_session=x"),
        (LARAVEL, "shop_session=x"),
        (SYMFONY, "PHPSESSID=x"),
        (SYMFONY, "REMEMBERME=x"),
        (PHPBB, "phpbb3_ab_sid=x"),
        (&[], "PHPSESSID=x"),
        (&[], "ci_session=x"),
        (&[], "OCSESSID=x"),
        (&[], "MoodleSessionx=1"),
    ] {
        assert_eq!(visitor(files, "/", cookie), Err(Reason::LoginCookie), "{cookie}");
    }
}

#[test]
fn login_pages_bypass_the_cache() {
    for (files, path) in [
        (WORDPRESS, "/wp-admin/"),
        (WORDPRESS, "/wp-login.php"),
        (SHOP, "/checkout/"),
        (DRUPAL, "/user/login"),
        (JOOMLA, "/administrator/"),
        (SYMFONY, "/_profiler/x"),
        (PHPBB, "/ucp.php"),
        (&[], "/admin"),
        (&[], "/login"),
    ] {
        assert_eq!(visitor(files, path, ""), Err(Reason::AdminPath), "{path}");
    }
}

#[test]
fn analytics_cookies_leave_visitors_anonymous() {
    for cookie in ["", "_ga=GA1.1; _fbp=x", "_pk_id.1=x", "wordpress_test_cookie=1"] {
        assert_eq!(visitor(WORDPRESS, "/2026/01/hello/", cookie), Ok(Visitor::Anonymous));
    }
    assert_eq!(visitor(&[], "/", "wordpress_test_cookie=1"), Ok(Visitor::Unknown));
    assert_eq!(visitor(WORDPRESS, "/", "theme=dark"), Ok(Visitor::Unknown));
}

#[test]
fn an_application_needs_all_of_its_markers() {
    let names = |files: &[&str]| -> Vec<&str> {
        Preset::recognised(|file| files.contains(&file)).map(|preset| preset.name).collect()
    };
    assert_eq!(names(&[]), ["generic"]);
    assert_eq!(names(&["viewtopic.php"]), ["generic"]);
    assert_eq!(names(SHOP), ["generic", "wordpress", "woocommerce"]);
    assert_eq!(Preset::named("drupal").unwrap().name, "drupal");
    assert_eq!(Preset::named("typo"), None);
}
