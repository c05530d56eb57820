//! WordPress on Outboard in a real browser: installed, logged in to and written with by hand, as it
//! were. Screenshots are left in the target folder, `tmp/screenshots`.

#![forbid(unsafe_code)]

use outboard_e2e::{Browser, MariaDb, Server, Site, WordPress};
use std::path::Path;

/// A browser on a site, and where its pictures go.
struct Session {
    browser: Browser,
    origin: String,
}

impl Session {
    fn go(&mut self, path: &str) {
        let url = format!("{}{path}", self.origin);
        self.browser.visit(&url);
    }

    fn picture(&mut self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
        self.browser.screenshot(&folder.join(format!("{name}.png")));
    }
}

#[test]
fn wordpress_works_in_a_browser() {
    let database = MariaDb::start();
    let wordpress = WordPress::prepare(&database, "wp_browser");
    // Without this file WordPress leads a browser that looks for one to its installer, which
    // answers 500 while it makes its tables.
    let favicon = wordpress.docroot().path().join("favicon.ico");
    std::fs::write(favicon, include_bytes!("../fixtures/wordpress/photo.png")).unwrap();
    let server = Server::start(&wordpress.app());
    let origin = format!("http://{}", server.address());
    let mut session = Session { browser: Browser::start(), origin };
    the_installer_is_filled_in(&mut session);
    the_administrator_logs_in(&mut session);
    a_post_is_written_in_the_editor(&mut session);
    the_home_page_shows_it(&mut session);
    let complaints = session.browser.complaints(&session.origin);
    assert!(complaints.is_empty(), "{complaints:#?}\n{}", server.log());
}

fn the_installer_is_filled_in(session: &mut Session) {
    session.go("/");
    session.picture("1-installer");
    session.browser.leave_by(&format!(
        "const form = document.querySelector('#setup');
         const set = (name, value) => form.querySelector(`[name=${{name}}]`).value = value;
         set('weblog_title', 'A browser was here');
         set('user_name', '{user}');
         set('admin_password', '{password}');
         const second = form.querySelector('[name=admin_password2]');
         if (second) {{ second.value = '{password}'; }}
         const weak = form.querySelector('[name=pw_weak]');
         if (weak) {{ weak.checked = true; }}
         set('admin_email', 'admin@example.org');
         HTMLFormElement.prototype.submit.call(form);",
        user = WordPress::ADMIN,
        password = WordPress::PASSWORD,
    ));
    let page = session.browser.dom();
    assert!(page.contains("Success!"), "{page}");
}

fn the_administrator_logs_in(session: &mut Session) {
    session.go("/wp-login.php");
    session.picture("2-log-in");
    session.browser.leave_by(&format!(
        "document.querySelector('#user_login').value = '{}';
         document.querySelector('#user_pass').value = '{}';
         document.querySelector('#wp-submit').click();",
        WordPress::ADMIN,
        WordPress::PASSWORD,
    ));
    let page = session.browser.dom();
    assert!(page.contains("Dashboard") && page.contains("wp-admin-bar-my-account"), "{page}");
    session.picture("3-dashboard");
}

/// Through the editor's own store, which is what its buttons do.
fn a_post_is_written_in_the_editor(session: &mut Session) {
    session.go("/wp-admin/post-new.php");
    let saved = session.browser.evaluate(
        "(async () => {
            const { select, dispatch, resolveSelect } = wp.data;
            await resolveSelect('core').getPostType('post');
            const block = wp.blocks.createBlock('core/paragraph', { content: 'Typed, so to speak.' });
            await dispatch('core/block-editor').insertBlocks(block);
            await dispatch('core/editor').editPost({ title: 'Written in a browser', status: 'publish' });
            await dispatch('core/editor').savePost();
            return [select('core/editor').didPostSaveRequestSucceed(), select('core/editor').getPermalink()];
        })()",
    );
    assert_eq!(saved[0], true, "{saved}");
    session.picture("4-editor");
}

fn the_home_page_shows_it(session: &mut Session) {
    session.go("/");
    let page = session.browser.dom();
    assert!(page.contains("Written in a browser"), "{page}");
    let styled = session.browser.evaluate("document.styleSheets.length > 0");
    assert_eq!(styled, true);
    session.picture("5-home");
}
