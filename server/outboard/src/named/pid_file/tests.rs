//! What holds and what does not, with a holder in a process of its own: a process does not see its
//! own record locks.

use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const PATH: &str = "OUTBOARD_TEST_PID_FILE";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("outboard-pid-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).expect("a fresh name");
        Self(path)
    }

    fn pid_file(&self) -> PathBuf {
        self.0.join("shop.pid")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Not a test of its own: what [`hold`] runs in another process.
#[test]
#[ignore = "the other process of these tests"]
fn holder_process() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let held = PidFile::take(Path::new(&path)).expect("the folder is there");
    println!("\n{}", if held.is_some() { "held" } else { "refused" });
    let _ = io::stdin().read_line(&mut String::new());
}

/// A process that holds the file, or is refused it.
fn hold(path: &Path) -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().expect("we are one"))
        .args(["--ignored", "--exact", "--nocapture", "named::pid_file::tests::holder_process"])
        .env(PATH, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs already");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let said = lines.map_while(Result::ok).find(|line| line == "held" || line == "refused");
    (child, said.expect("it says one of them"))
}

#[test]
fn the_holder_is_found_and_its_end_is_seen() {
    let folder = Folder::new("found");
    let path = folder.pid_file();
    assert!(matches!(look(&path), Ok(Presence::Stopped)));
    let (mut child, said) = hold(&path);
    assert_eq!(said, "held");
    let Ok(Presence::Running(owner)) = look(&path) else { panic!("it holds it") };
    assert_eq!(owner.pid.cast_unsigned(), child.id());
    owner.signal(Signal::KILL).expect("it is ours");
    assert!(owner.has_ended_within(60_000).expect("a pidfd can be polled"));
    child.wait().expect("it is our child");
    assert!(matches!(look(&path), Ok(Presence::Dead)));
    owner.signal(Signal::KILL).expect("one that has ended is passed over");
}

#[test]
fn only_one_process_holds_the_file() {
    let folder = Folder::new("one");
    let (mut first, said) = hold(&folder.pid_file());
    assert_eq!(said, "held");
    let (mut second, said) = hold(&folder.pid_file());
    assert_eq!(said, "refused");
    drop(first.stdin.take());
    first.wait().expect("it is our child");
    drop(second.stdin.take());
    second.wait().expect("it is our child");
    assert!(matches!(look(&folder.pid_file()), Ok(Presence::Stopped)), "it goes with its holder");
}

#[test]
fn a_number_that_was_left_behind_is_not_believed() {
    let folder = Folder::new("stale");
    let path = folder.pid_file();
    std::fs::write(&path, format!("{}\n", std::process::id())).expect("a folder of ours");
    assert!(matches!(look(&path), Ok(Presence::Dead)), "we do not hold it");
    let held = PidFile::take(&path).expect("nobody holds it").expect("nobody holds it");
    drop(held);
    assert!(!path.exists());
}

#[test]
fn a_successor_acquires_the_file_that_its_predecessor_leaves() {
    let folder = Folder::new("upgrade");
    let path = folder.pid_file();
    let old = PidFile::take(&path).unwrap().expect("no process holds it");
    let new = PidFile::of_predecessor(&path).unwrap();
    // One that gives up does not remove what is not its own.
    drop(new);
    assert!(path.exists());
    let mut new = PidFile::of_predecessor(&path).unwrap();
    old.leave();
    new.lock().unwrap();
    let pid = std::process::id().to_string();
    assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), pid);
    drop(new);
    assert!(!path.exists());
}
