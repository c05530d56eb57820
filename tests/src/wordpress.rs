//! Debian's WordPress, unmodified but for its configuration, with a database of its own.

use crate::{App, Docroot, MariaDb, Scrub};
use std::path::Path;

/// One installation; the web installer has not run yet.
#[derive(Debug)]
pub struct WordPress {
    docroot: Docroot,
}

impl WordPress {
    /// Who may log in once the installer has run as the tests run it.
    pub const ADMIN: &str = "admin";
    /// And the password for it.
    pub const PASSWORD: &str = "e2e pass phrase";

    /// Lays out the files and makes the database.
    pub fn prepare(database: &MariaDb, name: &str) -> WordPress {
        WordPress::prepare_with(database, name, "")
    }

    /// The same with these lines in its configuration.
    pub fn prepare_with(database: &MariaDb, name: &str, lines: &str) -> WordPress {
        let docroot = Docroot::package(Path::new("/usr/share/wordpress"));
        database.create(name);
        docroot.put("wp-config.php", configuration(database, name, lines));
        docroot.put("wp-content/mu-plugins/e2e.php", include_str!("../fixtures/wordpress/e2e.php"));
        docroot.writable("wp-content/uploads");
        WordPress { docroot }
    }

    /// Its files.
    pub fn docroot(&self) -> &Docroot {
        &self.docroot
    }

    /// What to serve.
    pub fn app(&self) -> App {
        self.docroot.app().workers(3).ini("sendmail_path", "/bin/true")
    }

    /// What may differ between two installations.
    pub fn scrub() -> Scrub {
        Scrub::new()
            // Nonces (wp_create_nonce in pluggable.php) are ten hexadecimal digits; one in a thousand
            // looks like a Unix time, which therefore comes second.
            .replace(r"\b[0-9a-f]{10}\b", "NONCE")
            .times()
            // The customizer's drafts; words that the page on writing suggests as secrets.
            .replace(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID")
            .replace(r"<kbd>[0-9A-Za-z]{8}</kbd>", "<kbd>WORD</kbd>")
            // Times in lists of posts and comments, and in the fields of the editor.
            .replace(r"\b1?\d:\d\d(?::\d\d)? ?[ap]m\b", "TIME")
            .replace(r"\b\d+ (?:second|min|minute)s?\b", "SPAN")
            // What was uploaded in this very second has a date in place of a span.
            .replace(r#"(data-colname="Date">)\d{4}/\d\d/\d\d<"#, "${1}SPAN ago<")
            .replace(
                r#"(name="(?:hidden_|cur_)?(?:aa|mm|jj|hh|mn|ss)"[^>]*value=")\d+"#,
                "${1}TIME",
            )
            .replace(
                r#"<div class="(jj|mm|aa|hh|mn|ss)">\d+</div>"#,
                "<div class=\"$1\">TIME</div>",
            )
            // Session tokens and the passwords that the installer and the profile suggest.
            .replace(r"(wordpress_[a-z_]*(?:[0-9a-f]{32}|e2e))=[^;]*", "$1=TOKEN")
            .replace(r#"data-(pw|reveal)="[^"]*""#, "data-$1=WORD")
            // The hash of the second in which a comment came (wp_handle_comment_submission's redirect).
            .replace(r"moderation-hash=[0-9a-f]{32}", "moderation-hash=HASH")
            // Embedded posts prove themselves to their frame by ten letters (get_post_embed_html).
            .replace(r#"secret=(\\?"|&quot;)?[0-9A-Za-z]{10}\b"#, "secret=SECRET")
            // One of three servers is chosen by chance for the picture of nobody.
            .replace(r"[012]\.gravatar\.com", "N.gravatar.com")
            // antispambot() writes each letter of an address in one of three ways, by chance.
            .replace(r#"href=(["'])mailto:[^"']*["']>[^<]*"#, "href=MAIL>")
            // The two databases have two names.
            .replace(r"wp_(reference|subject)\b", "DATABASE")
    }
}

fn configuration(database: &MariaDb, name: &str, lines: &str) -> String {
    let mut text = format!(
        "<?php\n\
         define('DB_NAME', '{name}');\n\
         define('DB_USER', '{user}');\n\
         define('DB_PASSWORD', '{password}');\n\
         define('DB_HOST', 'localhost:{socket}');\n\
         define('DB_CHARSET', 'utf8mb4');\n\
         define('DB_COLLATE', '');\n\
         define('COOKIEHASH', 'e2e');\n\
         define('FS_METHOD', 'direct');\n\
         define('AUTOMATIC_UPDATER_DISABLED', true);\n\
         define('WP_HTTP_BLOCK_EXTERNAL', true);\n\
         $table_prefix = 'wp_';\n{lines}\n",
        user = MariaDb::USER,
        password = MariaDb::PASSWORD,
        socket = database.socket().display(),
    );
    let keys = ["AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE"];
    for (key, kind) in keys.iter().flat_map(|key| [(key, "KEY"), (key, "SALT")]) {
        text.push_str(&format!("define('{key}_{kind}', 'a phrase for {key} {kind}');\n"));
    }
    text.push_str(
        "if (!defined('ABSPATH')) { define('ABSPATH', __DIR__ . '/'); }\n\
         require_once ABSPATH . 'wp-settings.php';\n",
    );
    text
}
