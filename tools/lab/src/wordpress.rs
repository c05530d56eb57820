//! A WordPress as packaged by Debian, copied to the scratch directory and installed by its own
//! installer over HTTP.
//!
//! Invariant: all stacks serve the same files and the same database; the site's address comes
//! from the request's Host, which the lab always sets to [`HOST`], so the bytes are the same on
//! every port.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::error::{Error, Result, ResultExt};
use crate::http;
use crate::lab::Lab;
use crate::mariadb::MariaDb;
use crate::nginx;
use crate::request_spec::HOST;
use crate::system::{program, write};

/// The home page.
pub const HOME: &str = "/";

/// The theme of the site: the default of the WordPress in Debian 12.
const THEME: &str = "twentytwentythree";

/// The home page has twenty posts: the installer's, and nineteen like it.
const MORE_POSTS: &str = "USE wordpress; \
    INSERT INTO wp_posts (post_author, post_date, post_date_gmt, post_content, post_title, post_excerpt, \
        post_status, post_name, to_ping, pinged, post_modified, post_modified_gmt, \
        post_content_filtered, post_type) \
    SELECT post_author, post_date - INTERVAL seq HOUR, post_date_gmt - INTERVAL seq HOUR, post_content, \
        CONCAT(post_title, ' ', seq), '', 'publish', CONCAT(post_name, '-', seq), '', '', \
        post_modified, post_modified_gmt, '', 'post' \
    FROM wp_posts JOIN seq_1_to_19 WHERE ID = 1; \
    UPDATE wp_options SET option_value = '20' WHERE option_name = 'posts_per_page'";

/// The must-use plugin that comes with the PHP package. It does nothing under php-fpm.
const PLUGIN: &str = include_str!("../../../php/drop-ins/wordpress/outboard-snapshot.php");

/// The environment variable with the point of the snapshot.
pub const POINT: &str = "OUTBOARD_SNAPSHOT_POINT";

/// Files and database of one site.
pub struct WordPress {
    /// The document root.
    pub root: PathBuf,
}

impl WordPress {
    /// The site of this run, installed on first use.
    pub fn of_run(lab: &mut Lab, database: &MariaDb) -> Result<Arc<Self>> {
        lab.shared(|lab| {
            lab.progress("installing WordPress");
            let site = Self::prepare(lab, database)?;
            site.install(nginx::with_fpm(lab, &site.root)?.address)?;
            database.execute(MORE_POSTS)?;
            Ok(site)
        })
    }

    /// Copies the files, creates the database and writes the configuration.
    fn prepare(lab: &Lab, database: &MariaDb) -> Result<Self> {
        program(&["/usr/share/wordpress/wp-load.php"], "wordpress")?;
        let theme = format!("/usr/share/wordpress/wp-content/themes/{THEME}/style.css");
        program(&[&theme], "wordpress-theme-twentytwentythree")?;
        let root = lab.scratch.join("wordpress");
        copy(Path::new("/usr/share/wordpress"), &root)?;
        database.execute(
            "CREATE DATABASE wordpress; \
             CREATE USER wordpress@localhost IDENTIFIED BY 'wordpress'; \
             GRANT ALL ON wordpress.* TO wordpress@localhost",
        )?;
        write(&root.join("wp-config.php"), configuration(&database.socket))?;
        let plugins = root.join("wp-content/mu-plugins");
        std::fs::create_dir_all(&plugins).context(|| format!("create {}", plugins.display()))?;
        write(&plugins.join("outboard-snapshot.php"), PLUGIN)?;
        Ok(Self { root })
    }

    /// Runs the installer through a stack that serves the site.
    fn install(&self, address: SocketAddr) -> Result<()> {
        let fields = [
            ("weblog_title", "Bench"),
            ("user_name", "admin"),
            ("admin_password", "correct horse battery staple"),
            ("admin_password2", "correct horse battery staple"),
            ("admin_email", "admin@bench.test"),
            ("blog_public", "0"),
            ("language", ""),
        ];
        let response = http::post(address, "/wp-admin/install.php?step=2", &fields)?;
        let home = http::get(address, HOME)?;
        if home.status == 200 && home.body.windows(11).any(|part| part == b"Hello world") {
            return Ok(());
        }
        let what = format!("installer: {}; home page: {}", response.summary(), home.summary());
        Err(Error::Unexpected { who: "WordPress".into(), what })
    }
}

/// Copies a tree and follows links, since Debian keeps themes and languages elsewhere.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let output = Command::new("cp").arg("-aL").arg(from).arg(to).output();
    let output = output.context(|| "run cp".into())?;
    if to.join("index.php").exists() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Program { program: "cp".into(), output })
}

/// No cron and no update checks, which would run in some slices and not in others.
fn configuration(socket: &Path) -> String {
    let constants = [
        ("DB_NAME", "'wordpress'".to_owned()),
        ("DB_USER", "'wordpress'".into()),
        ("DB_PASSWORD", "'wordpress'".into()),
        ("DB_HOST", format!("'localhost:{}'", socket.display())),
        ("DB_CHARSET", "'utf8mb4'".into()),
        ("WP_HOME", format!("'http://{HOST}'")),
        ("WP_SITEURL", format!("'http://{HOST}'")),
        ("WP_DEFAULT_THEME", format!("'{THEME}'")),
        ("WP_HTTP_BLOCK_EXTERNAL", "true".into()),
        ("AUTOMATIC_UPDATER_DISABLED", "true".into()),
        ("DISABLE_WP_CRON", "true".into()),
        ("WP_DEBUG", "false".into()),
    ];
    let keys = [
        "AUTH_KEY",
        "SECURE_AUTH_KEY",
        "LOGGED_IN_KEY",
        "NONCE_KEY",
        "AUTH_SALT",
        "SECURE_AUTH_SALT",
        "LOGGED_IN_SALT",
        "NONCE_SALT",
    ];
    let keys = keys.iter().map(|&key| (key, format!("'the same on every run: {key}'")));
    let define = |(name, value)| format!("define('{name}', {value});\n");
    let constants: String = constants.into_iter().chain(keys).map(define).collect();
    format!(
        "<?php\n{constants}if (getenv('{POINT}')) {{ define('OUTBOARD_SNAPSHOT', getenv('{POINT}')); }}\n\
         $table_prefix = 'wp_';\n\
         defined('ABSPATH') || define('ABSPATH', __DIR__ . '/');\n\
         require_once ABSPATH . 'wp-settings.php';\n"
    )
}
