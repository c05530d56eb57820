//! Users and groups of the machine, from `/etc/passwd` and `/etc/group`.
//!
//! Called by the gateway when it drops privileges or starts PHP as another user. A user of a remote
//! directory (LDAP) is not in these files and needs an entry.

use rustix::process::{Gid, Uid};

/// The identity of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its number.
    pub uid: Uid,
    /// Its primary group.
    pub gid: Gid,
    /// Supplementary groups.
    pub groups: Vec<Gid>,
}

/// The user of this name, with its own primary group or a given one.
///
/// # Errors
/// There is no such user or group.
pub fn user(name: &str, group: Option<&str>) -> Result<User, String> {
    let line = find("/etc/passwd", name)
        .ok_or_else(|| format!("there is no user {name} on this machine"))?;
    let (Some(uid), Some(own_gid)) = (number(&line, 2), number(&line, 3)) else {
        return Err(format!("the entry of user {name} cannot be read"));
    };
    let gid = group.map_or(Ok(Gid::from_raw(own_gid)), group_id)?;
    Ok(User { uid: Uid::from_raw(uid), gid, groups: groups_of(name, gid) })
}

/// The number of a group.
///
/// # Errors
/// There is no such group.
pub fn group_id(name: &str) -> Result<Gid, String> {
    find("/etc/group", name)
        .and_then(|line| number(&line, 2))
        .map(Gid::from_raw)
        .ok_or_else(|| format!("there is no group {name} on this machine"))
}

/// As initgroups(3): the primary group, and those that list the user as a member.
fn groups_of(user: &str, gid: Gid) -> Vec<Gid> {
    let is_member = |line: &Vec<String>| {
        line.get(3).is_some_and(|members| members.split(',').any(|member| member == user))
    };
    let lines = lines("/etc/group").into_iter().filter(is_member);
    let mut groups: Vec<Gid> =
        lines.filter_map(|line| number(&line, 2)).map(Gid::from_raw).collect();
    groups.push(gid);
    groups
}

fn number(line: &[String], index: usize) -> Option<u32> {
    line.get(index)?.parse().ok()
}

/// The fields of the line of `name`.
fn find(path: &str, name: &str) -> Option<Vec<String>> {
    lines(path).into_iter().find(|fields| fields.first().is_some_and(|first| first == name))
}

fn lines(path: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| line.split(':').map(str::to_owned).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_user_0_of_group_0() {
        let root = user("root", None).unwrap();
        assert_eq!((root.uid, root.gid), (Uid::ROOT, Gid::ROOT));
        assert_eq!(group_id("root"), Ok(Gid::ROOT));
        assert!(root.groups.contains(&Gid::ROOT));
    }

    #[test]
    fn a_group_of_the_configuration_replaces_the_own_one() {
        let daemon = group_id("daemon").unwrap();
        let root = user("root", Some("daemon")).unwrap();
        assert_eq!((root.uid, root.gid), (Uid::ROOT, daemon));
        assert!(root.groups.contains(&daemon));
        assert!(!root.groups.contains(&Gid::ROOT), "its primary group is another one");
    }

    #[test]
    fn a_name_is_compared_as_a_whole() {
        for name in ["", "roo", "root ", "ROOT", "root:x", "root:x:0:0", "0", "root\n"] {
            let expected = format!("there is no user {name} on this machine");
            assert_eq!(user(name, None), Err(expected));
            assert_eq!(group_id(name), Err(format!("there is no group {name} on this machine")));
        }
        let error = user("root", Some("no-such-group")).unwrap_err();
        assert_eq!(error, "there is no group no-such-group on this machine");
    }

    #[test]
    fn a_damaged_line_is_not_a_number() {
        let path = std::env::temp_dir().join(format!("outboard-users-{}", std::process::id()));
        let lines = "\n:x:1:1\nshort\nweb:x:33:34:\nweb:x:1:1\nbig:x:4294967296:-1\n";
        std::fs::write(&path, lines).unwrap();
        let found = |name| {
            find(path.to_str().unwrap(), name).map(|line| (number(&line, 2), number(&line, 3)))
        };
        assert_eq!(found("web"), Some((Some(33), Some(34))), "the first one counts");
        assert_eq!(found("short"), Some((None, None)));
        assert_eq!(found("big"), Some((None, None)));
        assert_eq!(found("none"), None);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found("web"), None, "without the file there is no user");
    }
}
