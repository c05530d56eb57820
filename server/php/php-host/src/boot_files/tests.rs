use super::*;
use outboard_ring::boot_files::decode;
use std::fs;
use std::io::Read;

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("outboard-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn write(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, name).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Path, kind and whether it exists; of the files below a directory.
type Listed = Vec<(String, Kind, bool)>;

fn listed(boot: BootFiles, directory: &Directory) -> Listed {
    let list = boot.into_read().files.expect("a list");
    let mut text = Vec::new();
    fs::File::from(list).read_to_end(&mut text).unwrap();
    let mut rest = &text[..];
    let mut listed = Vec::new();
    while let Some(file) = decode(&mut rest).unwrap() {
        let path = String::from_utf8(file.path.to_vec()).unwrap();
        if let Some(path) = path.strip_prefix(&format!("{}/", directory.0.display())) {
            listed.push((path.to_owned(), file.kind, file.state.is_some()));
        }
    }
    listed.sort();
    listed
}

#[test]
fn files_are_listed_with_the_directories_of_their_paths() {
    let directory = Directory::new("boot-parts");
    let mut boot = BootFiles::new(true);
    boot.record(Use::Reads, &directory.write("src/deep/a.php"));
    boot.record(Use::Includes, &directory.write("b.php"));
    let expected = [
        ("b.php", Kind::Contents, true),
        ("src", Kind::PathPart, true),
        ("src/deep", Kind::PathPart, true),
        ("src/deep/a.php", Kind::Contents, true),
    ];
    let expected = expected.map(|(path, kind, exists)| (path.to_owned(), kind, exists));
    assert_eq!(listed(boot, &directory), expected);
}

#[test]
fn a_missing_file_is_listed_with_its_first_missing_directory() {
    let directory = Directory::new("boot-missing");
    let mut boot = BootFiles::new(true);
    boot.record(Use::Misses, &directory.0.join("config/local/.env"));
    let expected = [
        ("config", Kind::PathPart, false),
        ("config/local", Kind::PathPart, false),
        ("config/local/.env", Kind::Contents, false),
    ];
    let expected = expected.map(|(path, kind, exists)| (path.to_owned(), kind, exists));
    assert_eq!(listed(boot, &directory), expected);
}

#[test]
fn what_a_start_or_an_application_writes_is_not_listed() {
    let directory = Directory::new("boot-written");
    let mut boot = BootFiles::new(true);
    let compiled = directory.write("container.php");
    boot.record(Use::Misses, &compiled);
    boot.record(Use::Writes, &compiled);
    boot.record(Use::Includes, &compiled);
    let state = directory.write("state.json");
    boot.record(Use::Reads, &state);
    boot.record(Use::Writes, &state);
    boot.record(Use::Reads, &directory.write("app.log"));
    boot.record(Use::Reads, Path::new("/proc/self/status"));
    let expected = vec![("container.php".to_owned(), Kind::Contents, true)];
    assert_eq!(listed(boot, &directory), expected);
}

#[test]
fn names_of_one_file_are_one_entry() {
    let directory = Directory::new("boot-names");
    let file = directory.write("a.php");
    fs::create_dir(directory.0.join("public")).unwrap();
    let mut boot = BootFiles::new(true);
    boot.record(Use::Reads, &file);
    boot.record(Use::Reads, &directory.0.join("public/../a.php"));
    boot.record(Use::Reads, &directory.0.join("./a.php"));
    assert_eq!(listed(boot, &directory).len(), 1);
}

#[test]
fn a_directory_whose_names_are_read_is_listed() {
    let directory = Directory::new("boot-listing");
    directory.write("plugins/a.php");
    let mut boot = BootFiles::new(true);
    boot.record(Use::Lists, &directory.0.join("plugins"));
    assert!(listed(boot, &directory).contains(&("plugins".into(), Kind::Listing, true)));
}

#[test]
fn without_a_list_only_keys_are_recorded() {
    let mut boot = BootFiles::new(false);
    boot.record(Use::Reads, Path::new("/etc/passwd"));
    boot.keys.insert("options".to_owned());
    let read = boot.into_read();
    assert_eq!((read.keys, read.files.is_none()), (vec!["options".to_owned()], true));
}
