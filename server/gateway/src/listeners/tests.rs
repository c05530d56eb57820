//! Listeners of consecutive configurations.

use super::*;
use crate::testing::{Site, in_loop};

fn configured(site: &Site, text: &str) -> Vec<ConfiguredListener> {
    let text = format!("{text}\n[app.site]\nroot = \"www\"\n");
    let config = Config::parse(&text, &site.directory().join("outboard.toml")).unwrap();
    ConfiguredListener::of(&config, &Opener::default()).unwrap()
}

fn names(gateway: &Gateway) -> Vec<String> {
    gateway.listeners.borrow().iter().map(|bound| bound.name()).collect()
}

#[test]
fn listeners_of_both_configurations_remain_and_others_are_replaced() {
    in_loop(async {
        let site = Site::new(&[], "");
        let gateway = &site.gateway;
        let directory = site.directory().display().to_string();
        let both = format!("unix:{directory}/both.sock");
        let first = format!("listen = [\"{both}\", \"unix:{directory}/old.sock\"]");
        let second = format!("listen = [\"unix:{directory}/new.sock\", \"{both}\"]");
        assert_eq!(
            listen_first(gateway, configured(&site, &first), None).unwrap().is_some(),
            gateway.generation().config.admin.socket.is_some()
        );
        let next = configured(&site, &second);
        let fresh = bind_new(gateway, &next, 16).unwrap();
        assert_eq!(fresh.listeners.len(), 1);
        take_over(gateway, &next, fresh);
        let names = names(gateway);
        assert!(names.iter().any(|name| name.contains("both")), "{names:?}");
        assert!(names.iter().any(|name| name.contains("new")), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("old")), "{names:?}");
        assert!(!site.directory().join("old.sock").exists());
        stop(gateway);
    });
}

#[test]
fn an_address_that_cannot_be_bound_changes_nothing() {
    in_loop(async {
        let site = Site::new(&[], "");
        let gateway = &site.gateway;
        let directory = site.directory().display().to_string();
        let first = format!("listen = [\"unix:{directory}/a.sock\"]");
        listen_first(gateway, configured(&site, &first), None).unwrap();
        let before = names(gateway);
        let second =
            format!("listen = [\"unix:{directory}/b.sock\", \"unix:{directory}/none/c.sock\"]");
        assert!(bind_new(gateway, &configured(&site, &second), 16).is_err());
        assert_eq!(names(gateway), before);
        assert!(!site.directory().join("b.sock").exists());
        stop(gateway);
    });
}

#[test]
fn an_admin_socket_in_use_is_optional_only_if_requested_so() {
    in_loop(async {
        let site = Site::new(&[], "");
        let path = site.directory().join("none/admin.sock");
        let optional = Some(AdminSocket::IfFree(path.clone()));
        assert_eq!(listen_first(&site.gateway, Vec::new(), optional).unwrap(), None);
        let required = Some(AdminSocket::Always(path));
        assert!(listen_first(&site.gateway, Vec::new(), required).is_err());
    });
}
