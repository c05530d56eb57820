//! Which processes belong to a server: its first gateway, and what that and its successors have started.
//!
//! Called by [`crate::control_group`], to tell the server's processes from those of others in the same control
//! group. Reads what every user may read of `/proc`, since the spawner may not look into other users' processes.

use std::fs;

/// The beginning of the names of the server's own processes (`comm`): gateway, starter, spawner.
const NAME: &str = "outboard";

/// More generations than a server has, so that a chain that changes while it is read ends.
const GENERATIONS: u32 = 64;

/// The oldest ancestor of a process that is a process of the server as well: after an upgrade the gateway that
/// was replaced, while it lives.
pub(crate) fn first(pid: u32) -> u32 {
    let mut first = pid;
    for _ in 0..GENERATIONS {
        match parent(first) {
            Some(parent) if parent > 1 && name(parent).starts_with(NAME) => first = parent,
            // A container has the server as its first process.
            Some(1) if name(1).starts_with(NAME) => return 1,
            _ => break,
        }
    }
    first
}

/// Whether a process is the other one, or descends from it.
pub(crate) fn is_descendant(pid: u32, of: u32) -> bool {
    let mut current = pid;
    for _ in 0..GENERATIONS {
        if current == of {
            return true;
        }
        match parent(current) {
            Some(parent) => current = parent,
            None => return false,
        }
    }
    false
}

fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// proc_pid_stat(5): the name in parentheses may contain anything, the state and the parent follow it.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio, id};

    #[test]
    fn a_child_descends_from_its_parent_and_not_the_reverse() {
        let mut sleep = Command::new("sleep");
        let mut child = sleep.arg("60").stdout(Stdio::null()).spawn().unwrap();
        assert!(is_descendant(child.id(), id()));
        assert!(is_descendant(child.id(), child.id()));
        assert!(!is_descendant(id(), child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_descendant(child.id(), id()), "it has ended");
    }

    #[test]
    fn an_ancestor_of_another_program_is_not_of_the_server() {
        // Of the name of this test program: cargo, or a shell, has started it.
        let first = first(id());
        assert!(is_descendant(id(), first));
        assert!(first == id() || name(first).starts_with(NAME));
    }

    #[test]
    fn the_name_of_a_process_does_not_hide_its_parent() {
        // It looks as if the parent were process 1.
        let program = std::env::temp_dir().join(format!("a) S 1 ({}", id() % 1000));
        let copied = Command::new("cp").arg("/bin/cat").arg(&program).status().unwrap();
        assert!(copied.success());
        let (mut cat, piped) = (Command::new(&program), Stdio::piped);
        let mut child = cat.stdin(piped()).stdout(piped()).spawn().unwrap();
        // It has its name once it runs, a moment after it was started.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert!(name(child.id()).starts_with("a) S 1 ("));
        assert_eq!(parent(child.id()), Some(id()));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(program).unwrap();
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_relatives() {
        for pid in [0, u32::MAX] {
            assert_eq!((parent(pid), name(pid)), (None, String::new()));
            assert_eq!(first(pid), pid);
            assert!(!is_descendant(pid, id()));
        }
        assert!(!is_descendant(1, id()));
    }
}
