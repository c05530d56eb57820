//! The pages of visitors, from a WordPress that boots once by its must-use plugin.

use crate::{
    Sites, crawls, goes_through, permalinks_are_set, the_administrator_logs_in,
    the_installer_installs, writing,
};
use outboard_e2e::{MariaDb, Pair, Request, Server, WordPress};

const PLUGIN: &str = include_str!("../../../php/drop-ins/wordpress/outboard-snapshot.php");
/// The `server_name` of the reference.
const HOST: &str = "127.0.0.1";

/// A fixed name: the boot has no request that would have one.
fn lines(point: &str) -> String {
    format!(
        "define('WP_HOME', 'http://{HOST}');\n\
         define('WP_SITEURL', 'http://{HOST}');\n\
         define('DISABLE_WP_CRON', true);\n\
         define('OUTBOARD_SNAPSHOT', '{point}');\n"
    )
}

/// The server in classic mode has the scripts that are not the front controller.
fn proxies(classic: &Pair) -> String {
    let upstream = classic.subject.address();
    let paths = ["/wp-*.php", "/wp-admin/**", "/xmlrpc.php"];
    let proxy = |path: &str| {
        format!("[[app.site.proxy]]\npath = \"{path}\"\nupstream = \"http://{upstream}\"\n")
    };
    paths.into_iter().map(proxy).collect()
}

fn is_the_same_rewound_at(point: &str) {
    let database = MariaDb::start();
    let [reference, subject] = ["wp_reference", "wp_subject"].map(|name| {
        let site = WordPress::prepare_with(&database, name, &lines(point));
        site.docroot().put("wp-content/mu-plugins/outboard-snapshot.php", PLUGIN);
        site
    });
    let mut pair =
        Pair::with(&reference.app(), &subject.app()).scrubbed(WordPress::scrub()).named(HOST);
    let mut admin = pair.visit();
    the_installer_installs(&mut admin);
    the_administrator_logs_in(&mut admin);
    permalinks_are_set(&mut admin);
    drop(admin);
    let front = Server::with_configuration(&subject.app().rewound("index.php"), &proxies(&pair));
    let _classic = pair.replace_subject(front);

    let [mut admin, mut guest] = [pair.visit(), pair.visit()];
    the_administrator_logs_in(&mut admin);
    writing::a_post_is_published_by_the_editor(&mut admin);
    writing::a_picture_is_uploaded_and_resized(&mut admin, [&reference, &subject]);
    writing::a_guest_comments_and_the_comment_is_approved(&mut guest, &mut admin);
    writing::a_page_gets_a_place_in_the_menu_of_pages(&mut admin);
    let public = crawls::the_public_site_is_the_same(&mut guest);
    for agent in ["Mozilla/5.0 (X11) Gecko/20100101 Firefox/120.0", "Lynx/2.9", ""] {
        let request = Request::get("/").header("User-Agent", agent);
        guest.same(&request).expect(200);
        admin.same(&request).expect(200);
    }
    public.again(&mut [guest, admin, pair.visit()], 400);
}

/// As the plugin is meant to be used: all scripts in classic mode, of which `index.php` takes a snapshot.
#[test]
fn wordpress_with_the_plugin_is_the_same_in_classic_mode() {
    let database = MariaDb::start();
    let [reference, subject] = ["wp_reference", "wp_subject"].map(|name| {
        let site = WordPress::prepare(&database, name);
        site.docroot().put("wp-content/mu-plugins/outboard-snapshot.php", PLUGIN);
        site
    });
    let pair = Pair::with(&reference.app(), &subject.app().verified()).scrubbed(WordPress::scrub());
    let sites = Sites { pair, reference, subject, _database: database };
    let mut public = goes_through(&sites);
    // Requests with a query are handled as without the plugin.
    public.pages.retain(|page| !page.contains('?') && !page.contains("/wp-"));
    sites.pair.await_snapshot("/");
    let [guest, mut admin] = [sites.pair.visit(), sites.pair.visit()];
    the_administrator_logs_in(&mut admin);
    public.again(&mut [guest, admin], 400);
}

/// All requests for pages, with queries and bodies, from the snapshot; the other scripts from a server in classic
/// mode.
#[test]
fn wordpress_rewound_before_init_of_plugins_is_the_same() {
    is_the_same_rewound_at("init");
}

#[test]
fn wordpress_rewound_after_it_is_loaded_is_the_same() {
    is_the_same_rewound_at("wp_loaded");
}
