//! A WordPress behind the page cache, installed and with an administrator logged in.

use outboard_e2e::{Client, Form, MariaDb, Request, Response, Server, Site, WordPress};
use serde_json::Value;
use std::process::Command;

const TABLES: &str = "[app.site.page_cache]\nmode = \"on\"\nlock_timeout = \"60s\"\n";

/// One that runs.
pub(crate) struct Blog {
    pub(crate) server: Server,
    pub(crate) admin: Client,
    _wordpress: WordPress,
    _database: MariaDb,
}

impl Blog {
    /// Debian's WordPress with these must-use plugins, installed by its own installer.
    pub(crate) fn install(plugins: &[(&str, &str)]) -> Blog {
        let database = MariaDb::start();
        let wordpress = WordPress::prepare(&database, "wp_cached");
        for (name, source) in plugins {
            wordpress.docroot().put(&format!("wp-content/mu-plugins/{name}"), source);
        }
        let server = Server::with_configuration(&wordpress.app(), TABLES);
        run_installer(&server);
        let mut admin = Client::new(server.address());
        log_in(&mut admin);
        Blog { server, admin, _wordpress: wordpress, _database: database }
    }

    /// A visitor without cookies.
    pub(crate) fn visitor(&self) -> Client {
        Client::new(self.server.address())
    }

    /// What the administrator's browser sends.
    pub(crate) fn admin_cookies(&self) -> String {
        let cookies = self.admin.cookies().map(|(name, value)| format!("{name}={value}"));
        cookies.collect::<Vec<_>>().join("; ")
    }

    /// What `outboard cache` says.
    pub(crate) fn cache(&self, arguments: &[&str]) -> Value {
        let mut command = Command::new(Server::binary());
        command.arg("cache").args(arguments).arg("--json");
        let output = command.arg("--admin").arg(self.server.admin_socket()).output();
        let output = output.expect("the binary is there");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("it is JSON")
    }

    /// One of the cache's counts.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.cache(&["stats"])["apps"]["site"][name].as_u64().expect("it is a number")
    }

    /// What the editor's scripts prove themselves with.
    pub(crate) fn nonce(&mut self) -> String {
        let page = self.admin.get("/wp-admin/post-new.php").text();
        let (_, rest) = page.split_once("createNonceMiddleware( \"").expect("the editor has one");
        rest.split('"').next().expect("it ends").to_owned()
    }
}

/// A call of the REST interface by the editor.
pub(crate) fn rest(route: &str, nonce: &str, body: &str) -> Request {
    Request::new("POST", &format!("/index.php?rest_route={route}"))
        .header("X-WP-Nonce", nonce)
        .header("Content-Type", "application/json")
        .body(body)
}

/// Fills in a form of a page and sends it.
pub(crate) fn submit(
    client: &mut Client,
    page: &str,
    marker: &str,
    fill: impl FnOnce(Form) -> Form,
) -> Response {
    let html = client.get(page).expect(200).text();
    let form = fill(Form::find(&html, marker, &client.url(page)));
    client.send(&form.submit())
}

fn run_installer(server: &Server) {
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
