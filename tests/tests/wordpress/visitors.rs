//! What plugins and the theme find out before the snapshot, each by a snippet: every visitor gets the page of classic
//! mode on the same files.

use outboard_e2e::{App, Client, Form, MariaDb, Request, Server, Site, WordPress, eventually};

const PLUGIN: &str = include_str!("../../../php/drop-ins/wordpress/outboard-snapshot.php");

/// Where a snippet runs, and its value; then what changes below, and is seen by the next request.
struct Snippet {
    hook: &'static str,
    value: &'static str,
    change: Option<&'static str>,
}

const fn read(hook: &'static str, value: &'static str) -> Snippet {
    Snippet { hook, value, change: None }
}

const fn changed(value: &'static str, change: &'static str) -> Snippet {
    Snippet { hook: "plugins_loaded", value, change: Some(change) }
}

const SNIPPETS: &[Snippet] = &[
    read("after_setup_theme", "current_user_can('manage_options')"),
    read("plugins_loaded", "is_user_logged_in() ? 'in' : 'out'"),
    read("setup_theme", "get_current_user_id()"),
    read("after_setup_theme", "wp_get_current_user()->user_login"),
    read("registered_post_type", "function_exists('is_user_logged_in') && is_user_logged_in()"),
    read("set_current_user", "get_current_user_id()"),
    read(
        "set_current_user",
        "add_filter('e2e', is_user_logged_in() ? '__return_true' : '__return_false', 11)",
    ),
    read("plugins_loaded", "wp_validate_auth_cookie('', 'logged_in')"),
    read(
        "plugins_loaded",
        "wp_verify_nonce(wp_create_nonce('e2e'), 'e2e') . get_current_user_id()",
    ),
    read("after_setup_theme", "wp_is_mobile()"),
    read("after_setup_theme", "$GLOBALS['is_iphone']"),
    read("plugins_loaded", "(function () { global $is_safari; return $is_safari; })()"),
    read("plugins_loaded", "(function () { $name = 'is_' . 'iphone'; return $GLOBALS[$name]; })()"),
    read("plugins_loaded", "array_map('wp_is_mobile', [1])"),
    read("muplugins_loaded", "add_query_arg('a', 1)"),
    read("plugins_loaded", "home_url(add_query_arg(null, null))"),
    read("after_setup_theme", "remove_query_arg('x')"),
    read("after_setup_theme", "wp_get_current_commenter()"),
    read("plugins_loaded", "wp_is_json_request()"),
    read("setup_theme", "call_user_func('wp_is_json_request')"),
    read("plugins_loaded", "wp_get_referer()"),
    read("plugins_loaded", "is_ssl()"),
    read("plugins_loaded", "$_SERVER['HTTP_HOST']"),
    read("plugins_loaded", "$_COOKIE['comment_author_e2e'] ?? 'none'"),
    read("plugins_loaded", "filter_input(INPUT_SERVER, 'HTTP_USER_AGENT')"),
    read("plugins_loaded", "$GLOBALS['pagenow'] . $_SERVER['PHP_SELF']"),
    read("plugins_loaded", "get_option('blogname')"),
    changed("get_option('e2e_quiet', 'none')", "add_option('e2e_quiet', 'A', '', 'no')"),
    changed("get_option('e2e_quiet', 'none')", "update_option('e2e_quiet', 'B')"),
    changed("get_option('e2e_quiet', 'none')", "delete_option('e2e_quiet')"),
    changed("get_transient('e2e')", "set_transient('e2e', 'A', 3600)"),
    changed("get_transient('e2e_lasting')", "set_transient('e2e_lasting', 'A')"),
    changed("get_option('blogdescription')", "update_option('blogdescription', 'Changed')"),
    changed("get_the_title(1)", "wp_update_post(['ID' => 1, 'post_title' => 'Changed'])"),
    changed(
        "$GLOBALS['wpdb']->get_var('SELECT COUNT(*) FROM wp_posts')",
        "wp_insert_post(['post_title' => 'New'])",
    ),
    changed("get_user_meta(1, 'e2e', true)", "update_user_meta(1, 'e2e', 'A')"),
    changed(
        "get_option('e2e_sql', 'none')",
        "$GLOBALS['wpdb']->query(\"INSERT INTO wp_options (option_name, option_value, autoload) VALUES ('e2e_sql', 'A', 'no')\")",
    ),
];

/// What signs visitors in, and changes the site: in requests with a query, which are handled in classic mode.
const HELPER: &str = r#"<?php
add_action('init', function () {
    if (isset($_GET['e2e_login'])) {
        exit(rawurlencode(wp_generate_auth_cookie((int) $_GET['e2e_login'], time() + 3600, 'logged_in')));
    }
    if (isset($_GET['e2e_change'])) {
        eval(wp_unslash($_GET['e2e_change']) . ';');
        exit('changed');
    }
});
"#;

fn plugin(snippet: &Snippet) -> String {
    format!(
        "<?php\nadd_action('{}', function () {{ $GLOBALS['e2e_found'] = ({}); }}, 20);\n\
         add_action('wp_footer', function () {{\n\
         echo '<!-- found ', json_encode([$GLOBALS['e2e_found'] ?? null, apply_filters('e2e', null)]), ' -->'; }});\n",
        snippet.hook, snippet.value
    )
}

/// From the site's own host, which WordPress redirects to.
fn get(target: &str) -> Request {
    Request::get(target).header("Host", "127.0.0.1")
}

fn found(server: &Server, request: &Request) -> String {
    let page = Client::new(server.address()).send(request);
    let text = page.text();
    let found = text.split_once("<!-- found ").and_then(|(_, rest)| rest.split_once(" -->"));
    match found {
        Some((found, _)) => found.to_owned(),
        None => format!("{} without a footer: {text}", page.status),
    }
}

/// The cookie of a user who has signed in.
fn signed_in(server: &Server, user: u32) -> Request {
    let cookie =
        Client::new(server.address()).get(&format!("/?e2e_login={user}")).expect(200).text();
    get("/").header("Cookie", &format!("wordpress_logged_in_e2e={cookie}"))
}

fn visitors(server: &Server) -> Vec<Request> {
    const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 16_0 like Mac OS X) AppleWebKit/605.1 Version/16.0 \
                          Mobile/15E148 Safari/604.1";
    let with = |name: &str, value: &str| get("/").header(name, value);
    vec![
        get("/"),
        signed_in(server, 1),
        signed_in(server, 2),
        with("Cookie", "comment_author_e2e=Bob; comment_author_email_e2e=bob%40example.org"),
        with("User-Agent", IPHONE),
        with("Accept", "application/json"),
        with("X-Forwarded-Proto", "https"),
        get("/?x=1"),
        with("Referer", "http://127.0.0.1/from"),
        get("/some/page/"),
        get("/index.php/other.php"),
        Request::get("/").header("Host", "other.test"),
    ]
}

fn install(site: &App) {
    let server = Server::start(site);
    let mut visitor = Client::new(server.address());
    let html = visitor.get("/wp-admin/install.php").expect(200).text();
    let form = Form::find(&html, "id=\"setup\"", &visitor.url("/wp-admin/install.php"));
    let form = form
        .set("weblog_title", "Visitors")
        .set("user_name", WordPress::ADMIN)
        .set("admin_password", WordPress::PASSWORD)
        .set("admin_password2", WordPress::PASSWORD)
        .set("pw_weak", "on")
        .set("admin_email", "admin@example.org");
    visitor.send(&form.submit()).expect(200).holding("WordPress has been installed");
    change(
        &server,
        "wp_insert_user(['user_login' => 'reader', 'user_pass' => 'x', 'role' => 'subscriber'])",
    );
}

fn change(server: &Server, code: &str) {
    let code: String = code.bytes().map(|byte| format!("%{byte:02X}")).collect();
    Client::new(server.address())
        .get(&format!("/?e2e_change={code}"))
        .expect(200)
        .holding("changed");
}

/// Sends requests until one is handled from a snapshot, or none will be; returns why.
fn await_boot(server: &Server) -> Option<String> {
    eventually("a snapshot, or the reason why there is none", || {
        found(server, &get("/"));
        if server.rewinds() > 0 {
            return Some(None);
        }
        let log = server.log();
        log.lines()
            .find(|line| line.contains("is not booted once"))
            .map(|line| Some(line.to_owned()))
    })
}

#[test]
fn what_snippets_find_before_the_snapshot_is_the_visitors_own() {
    let database = MariaDb::start();
    let lines = "define('WP_HOME', 'http://127.0.0.1');\ndefine('WP_SITEURL', 'http://127.0.0.1');\n\
                 define('DISABLE_WP_CRON', true);\n\
                 if (getenv('E2E_CLASSIC')) { define('OUTBOARD_SNAPSHOT', false); }\n";
    let site = WordPress::prepare_with(&database, "wp_visitors", lines);
    site.docroot().put("wp-content/mu-plugins/helper.php", HELPER);
    install(&site.app());
    site.docroot().put("wp-content/mu-plugins/outboard-snapshot.php", PLUGIN);
    let classic = Server::start(&site.app().env("E2E_CLASSIC", "1"));
    let visitors = visitors(&classic);
    let (mut snapshots, mut wrong) = (0, Vec::new());
    for snippet in SNIPPETS {
        site.docroot().put("wp-content/mu-plugins/snippet.php", plugin(snippet));
        let server = Server::start(&site.app());
        let why = await_boot(&server);
        snapshots += usize::from(why.is_none());
        let mut compare = |moment: &str| {
            for (number, request) in visitors.iter().enumerate() {
                let [expected, found] = [&classic, &server].map(|server| found(server, request));
                if expected != found {
                    let Snippet { hook, value, .. } = snippet;
                    wrong.push(format!(
                        "{hook}: {value}: visitor {number} {moment}: {found}, not {expected}"
                    ));
                }
            }
        };
        compare("");
        if let Some(code) = snippet.change {
            change(&server, code);
            compare("after the change");
        }
        if let Some(why) = why {
            println!("{}: {}: {why}", snippet.hook, snippet.value);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(snapshots > SNIPPETS.len() / 2, "{snapshots} snapshots");
}
