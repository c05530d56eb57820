//! Floods of who runs the server: reloads of a configuration that is large, and looks at the status
//! while very much is open.

use super::*;
use std::fmt::Write as _;

/// Names, rules and apps by the thousand.
fn large() -> String {
    let mut site = "hosts = [\"site\", \"127.0.0.1\"".to_owned();
    for number in 0..2000 {
        let _ = write!(site, ", \"host-{number}.test\", \"*.sub-{number}.test\"");
    }
    site += "]\n[app.site.pool]\nmin = 1\nmax = 1\n";
    for number in 0..2000 {
        let _ = write!(
            site,
            "[[app.site.rewrite]]\nmatch = \"^/old-{number}/\"\nto = \"/new-{number}\"\nstatus = 301\n\
             [[app.site.headers]]\npath = \"/assets-{number}/\"\nset = {{ X-Number = \"{number}\" }}\n"
        );
    }
    site
}

#[test]
fn reloads_of_a_large_configuration() {
    is_borne("reload, large", serving(&large()), |site| {
        let socket = site.admin_socket();
        Flood::of_clients(1, move || {
            ask_admin(&socket, "POST", "/reload");
            sleep(DEADLINE / 20);
        })
    });
}

#[test]
fn status_and_metrics_while_very_much_is_open() {
    let site = serving("[app.site.pool]\nmin = 16\nmax = 16");
    let open: Vec<TcpStream> = (0..700).filter_map(|_| reach(site.address())).collect();
    is_borne("status, metrics", site, |site| {
        let socket = site.admin_socket();
        Flood::of_clients(2, move || {
            ask_admin(&socket, "GET", "/status");
            ask_admin(&socket, "GET", "/metrics");
        })
    });
    drop(open);
}

/// A thousand apps, whose PHP is a program that starts as fast as any and never reports that it has, so
/// that the reload opens all of them, waits, and ends all of them.
fn a_thousand_apps() -> String {
    let mut site = "[app.site.pool]\nmin = 1\nmax = 1\n".to_owned();
    for number in 0..1000 {
        let _ = write!(
            site,
            "[app.site-{number}]\nroot = \"www\"\nhosts = [\"site-{number}.test\"]\n\
             [app.site-{number}.php]\nhost_binary = \"/bin/cat\"\n\
             [app.site-{number}.pool]\nmin = 1\nmax = 1\nstart_timeout = \"1s\"\n"
        );
    }
    site
}

#[test]
fn reloads_that_start_and_end_a_thousand_apps() {
    is_borne("reload, 1,000 apps", serving("[app.site.pool]\nmin = 1\nmax = 1"), |site| {
        site.rewrite(&text("listen = \"127.0.0.1:0\"\n", &a_thousand_apps()));
        let socket = site.admin_socket();
        Flood::of_clients(1, move || ask_admin(&socket, "POST", "/reload"))
    });
}
