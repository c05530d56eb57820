use crate::checked::testing::{APP, assert_error, valid};
use crate::*;
use std::path::PathBuf;

#[test]
fn listeners_are_addresses_or_tables() {
    let config = valid(&format!(
        "trusted_proxies = [\"10.0.0.0/8\"]\nforwarded_headers = [\"for\"]\n\
         listen = [\"[::]:80\", {{ address = \"unix:run/a.sock\", mode = \"0600\", \
         trusted_proxies = [\"unix\"], forwarded_headers = [\"proto\", \"host\"], name = \"local\" }}]\n{APP}"
    ));
    let [tcp, unix] = &config.listeners[..] else { panic!("{:?}", config.listeners) };
    assert_eq!((tcp.name.as_str(), unix.name.as_str()), ("[::]:80", "local"));
    assert!(tcp.forwarding.trusts(Some([10, 1, 1, 1].into())) && !tcp.forwarding.trusts(None));
    assert!(tcp.forwarding.client_address && !tcp.forwarding.scheme && !tcp.forwarding.host);
    assert!(unix.forwarding.trusts(None) && !unix.forwarding.trusts(Some([10, 1, 1, 1].into())));
    assert!(!unix.forwarding.client_address && unix.forwarding.scheme && unix.forwarding.host);
    let path = PathBuf::from("/srv/www/run/a.sock");
    assert_eq!(unix.address, ListenAddress::Unix { path, mode: 0o600 });
}

#[test]
fn two_listeners_cannot_share_an_address_or_a_name() {
    let text = format!("listen = [\"127.0.0.1:80\", \"localhost:80\"]\n{APP}");
    assert_error(&text, Kind::Duplicate, 1, "twice");
    let text =
        format!("{APP}[[listen]]\naddress = \"unix:a\"\n[[listen]]\naddress = \"unix:./a\"\n");
    assert_error(&text, Kind::Duplicate, 6, "(line 3)");
    let text = format!(
        "{APP}[[listen]]\naddress = \":1\"\nname = \"x\"\n[[listen]]\naddress = \":2\"\nname = \"x\"\n"
    );
    assert_error(&text, Kind::Duplicate, 8, "named `x`");
    assert_error(&format!("listen = []\n{APP}"), Kind::BadValue, 1, "empty");
    assert_eq!(valid(&format!("listen = [\":0\", \":0\"]\n{APP}")).listeners.len(), 2);
}

#[test]
fn a_socket_path_beyond_the_kernel_limit_is_rejected() {
    let text = format!("listen = \"unix:/{}\"\n{APP}", "x".repeat(107));
    assert_error(&text, Kind::BadValue, 1, "limit is 107");
    let text = format!("admin.socket = \"/{}\"\n{APP}", "x".repeat(107));
    assert_error(&text, Kind::BadValue, 1, "limit is 107");
}
