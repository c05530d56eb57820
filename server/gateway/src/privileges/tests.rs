//! Users, permissions and grants, without root.

use super::*;

fn user(uid: u32, gid: u32, groups: &[u32]) -> User {
    let groups = groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    User { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid), groups }
}

fn config(text: &str) -> Config {
    let text = format!("{text}\n[app.site]\nroot = \"/tmp\"\n");
    Config::parse(&text, Path::new("/tmp/test.toml")).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn the_owner_the_group_and_others_have_their_own_permissions() {
    let owner = (Uid::from_raw(1), Gid::from_raw(10));
    assert!(has_permissions(&user(1, 0, &[]), owner, 0o700, 0o5));
    assert!(!has_permissions(&user(1, 10, &[]), owner, 0o077, 0o1), "as the owner");
    assert!(has_permissions(&user(2, 10, &[]), owner, 0o050, 0o5));
    assert!(has_permissions(&user(2, 3, &[10]), owner, 0o050, 0o5));
    assert!(!has_permissions(&user(2, 3, &[]), owner, 0o770, 0o1));
    assert!(has_permissions(&user(2, 3, &[]), owner, 0o005, 0o5));
}

#[test]
fn a_directory_is_entered_through_all_above_it() {
    let nobody = user(65_534, 65_534, &[]);
    assert!(files::can_enter(Path::new("/"), &nobody));
    assert!(!files::can_enter(Path::new("/nonexistent/directory"), &nobody));
}

#[test]
fn the_user_of_the_gateway_is_neither_root_nor_of_an_app() {
    let error = own_user(&config("gateway_user = \"root\""), &[]).unwrap_err();
    assert!(error.to_string().contains("needs a user of its own"), "{error}");
    let error = own_user(&config("gateway_user = \"no-such-user\""), &[]).unwrap_err();
    assert!(error.to_string().contains("no-such-user"), "{error}");
}

#[test]
fn the_gateway_has_the_groups_of_the_apps() {
    let apps = [user(1001, 500, &[]), user(1002, 400, &[]), user(1003, 500, &[])];
    let own = own_user(&config(""), &apps).expect("the machine has the user nobody or daemon");
    for gid in [400, 500] {
        assert_eq!(own.groups.iter().filter(|group| group.as_raw() == gid).count(), 1);
    }
}

#[test]
fn an_app_cannot_run_as_an_alias_of_root() {
    let error = users_of_apps(&config("user = \"root\"")).unwrap_err();
    assert!(error.to_string().contains("alias of root"), "{error}");
}

#[test]
fn only_a_requested_admin_socket_is_optional() {
    let address = |path: &str| ListenAddress::Unix { path: path.into(), mode: 0o600 };
    let free = AdminSocket::IfFree("/run/a".into());
    assert!(is_optional(&address("/run/a"), Some(&free)));
    assert!(!is_optional(&address("/run/b"), Some(&free)));
    assert!(!is_optional(&address("/run/a"), Some(&AdminSocket::Always("/run/a".into()))));
    assert!(!is_optional(&address("/run/a"), None));
}

#[test]
fn the_php_user_is_set_for_apps_that_name_none() {
    let mut config = config("");
    let privileges = Privileges { php_user: Some("www-data"), ..Privileges::default() };
    privileges.set_php_user(&mut config);
    assert_eq!(config.apps[0].user.as_deref(), Some("www-data"));
    config.apps[0].user = Some("other".to_owned());
    privileges.set_php_user(&mut config);
    assert_eq!(config.apps[0].user.as_deref(), Some("other"));
}
