//! The files of an app's processes: the app's own, PHP's, and the system's.
//!
//! Called after PHP has started. Invariant: a file that programs replace by renaming (`/etc/resolv.conf`, a
//! certificate) is reached through its directory, because a rule of Landlock belongs to one file.

use crate::engine;
use outboard_ring::control::Sandbox;
use outboard_sandbox::Files;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Programs, libraries and their data.
const PROGRAMS: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/snap",
    "/gnu/store",
    "/var/lib/snapd",
];

/// Settings, names and numbers of the system. What is secret there is protected by its mode.
const SYSTEM: [&str; 11] = [
    "/etc",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/var/lib/php",
    "/var/lib/ca-certificates",
    "/var/cache/fontconfig",
];

const DEVICES: [&str; 10] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/fd",
    "/dev/console",
];

/// Directories that every user may write to. Not with `strict`.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Settings of PHP with directories that it writes to.
const WRITTEN: [&str; 5] = [
    "session.save_path",
    "upload_tmp_dir",
    "sys_temp_dir",
    "soap.wsdl_cache_dir",
    "xdebug.output_dir",
];

/// The same with files, which it may create.
const WRITTEN_FILES: [&str; 3] = ["error_log", "mail.log", "xdebug.log"];

/// Settings of PHP with what it only reads.
const READ: [&str; 8] = [
    "include_path",
    "extension_dir",
    "auto_prepend_file",
    "auto_append_file",
    "openssl.capath",
    "openssl.cafile",
    "curl.cainfo",
    "opcache.file_cache",
];

/// Parents of many applications: a link in one of them says nothing about its neighbours.
const SHARED: [&str; 10] =
    ["/", "/home", "/mnt", "/opt", "/root", "/srv", "/tmp", "/usr", "/var", "/var/www"];

/// Names of the part of an application that is served.
const PUBLIC: [&str; 7] = ["public", "web", "webroot", "pub", "htdocs", "httpdocs", "www"];

/// How far above the document root an application's directory is.
const LEVELS_MAX: usize = 3;

/// How many entries of a directory are looked at for links.
const LINKS_MAX: usize = 10_000;

/// What remains permitted to PHP.
pub(super) fn of_php(sandbox: &Sandbox) -> Files {
    let mut files = files(sandbox, setting);
    if sandbox.is_strict {
        // It starts no programs.
        files.read.append(&mut files.programs);
    }
    files
}

/// The same for a program in the place of PHP: the paths of PHP's settings are not known.
pub(super) fn of_program(sandbox: &Sandbox) -> Files {
    files(sandbox, |_| Vec::new())
}

fn files(sandbox: &Sandbox, setting: fn(&str) -> Vec<PathBuf>) -> Files {
    let app = app_directories(&sandbox.app_paths);
    let mut read: BTreeSet<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    read.extend(READ.iter().flat_map(|name| setting(name)));
    read.extend(sandbox.read_paths.iter().cloned());
    read.extend(libraries());
    read.extend(package());
    let programs = PROGRAMS.iter().map(PathBuf::from);
    let mut write: BTreeSet<PathBuf> = WRITTEN.iter().flat_map(|name| setting(name)).collect();
    let logs = WRITTEN_FILES.iter().flat_map(|name| setting(name));
    write.extend(logs.filter_map(|file| Some(file.parent()?.to_owned())));
    write.extend(sandbox.write_paths.iter().cloned());
    let devices = DEVICES.iter().map(PathBuf::from).collect();
    if sandbox.is_strict {
        let connect_ports = sandbox.connect_ports.clone();
        let programs = programs.chain(app).collect();
        let (read, write) = (read.into_iter().collect(), write.into_iter().collect());
        return Files { read, programs, write, devices, connect_ports };
    }
    write.extend(TEMPORARY.iter().map(PathBuf::from));
    write.extend(setting("open_basedir"));
    write.extend(setting("opcache.file_cache"));
    write.extend(app.iter().cloned());
    Files {
        read: Vec::new(),
        programs: programs.chain(read).chain(app).collect(),
        write: write.into_iter().collect(),
        devices,
        connect_ports: sandbox.connect_ports.clone(),
    }
}

/// The absolute paths of a setting, which may be a list. `session.save_path` may have a depth and a mode in
/// front.
fn setting(name: &str) -> Vec<PathBuf> {
    let value = engine::setting(name).unwrap_or_default();
    let paths = value.split([':', ';']).filter(|path| path.starts_with('/'));
    paths.filter(|path| *path != "/").map(PathBuf::from).collect()
}

/// The directories of the files that this process has mapped: PHP, its extensions and their libraries.
fn libraries() -> BTreeSet<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
    let files = files.filter(|file| file.ends_with(".so") || file.contains(".so."));
    files.filter_map(|file| Some(Path::new(file).parent()?.to_owned())).collect()
}

/// Outboard's classes for PHP, beside this program.
fn package() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let around = own.ancestors().skip(1).take(4);
    let mut all = around.flat_map(|above| [above.join("php"), above.join("share/outboard/php")]);
    all.find(|directory| directory.join("autoload.php").is_file())
}

/// The app's paths, and for each the directory of the application that it belongs to: of a project with a
/// `composer.json`, and of its releases if a symbolic link selects one of them.
fn app_directories(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut directories = BTreeSet::new();
    for path in paths {
        directories.insert(path.clone());
        let above = path.ancestors().take(LEVELS_MAX);
        directories.extend(above.clone().find(|above| is_project(above)).map(Path::to_owned));
        directories.extend(above.filter_map(releases));
        directories.extend(private_part(path));
        directories.extend(linked(path));
        directories.extend(packaged(path));
    }
    directories.into_iter().collect()
}

fn is_project(directory: &Path) -> bool {
    !is_shared(directory) && directory.join("composer.json").exists()
}

/// The directory of a link to one of the directories in it, such as `current` beside `releases`.
fn releases(link: &Path) -> Option<PathBuf> {
    let directory = link.parent().filter(|directory| !is_shared(directory))?;
    link.read_link().ok()?;
    let target = link.canonicalize().ok()?;
    target.starts_with(directory.canonicalize().ok()?).then(|| directory.to_owned())
}

/// The directory above a public one, where applications have what is not served. Not a home directory: it has
/// the keys of its user.
fn private_part(root: &Path) -> Option<PathBuf> {
    let name = root.file_name()?.to_str()?;
    let above = root.parent().filter(|above| !is_shared(above))?;
    let is_home = above.parent() == Some(Path::new("/home")) || above.join(".ssh").exists();
    (PUBLIC.contains(&name) && !is_home).then(|| above.to_owned())
}

/// The data of an application that is a package of the system: `/usr/share/wiki` has it in `/var/lib/wiki` and
/// `/var/cache/wiki` (Filesystem Hierarchy Standard 3.0, chapters 4 and 5).
fn packaged(path: &Path) -> Vec<PathBuf> {
    let below = ["/usr/share", "/var/lib"].iter().find_map(|at| path.strip_prefix(at).ok());
    let name = below.and_then(|below| below.iter().next());
    let data =
        name.map(|name| ["/var/lib", "/var/cache", "/var/log"].map(|at| Path::new(at).join(name)));
    data.into_iter().flatten().filter(|directory| directory.is_dir()).collect()
}

/// Where symbolic links in a directory lead, as of packages with their data in `/var/lib`. A link of the user
/// that PHP runs as counts for nothing: the app may have made it.
fn linked(directory: &Path) -> Vec<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().take(LINKS_MAX);
    let links = entries.filter(|entry| {
        let about = entry.metadata();
        about.is_ok_and(|about| about.is_symlink() && about.uid() != own)
    });
    // As the link has it, so that links of the app in its target are noticed.
    let targets = links.filter_map(|link| Some(directory.join(link.path().read_link().ok()?)));
    let is_own = |target: &PathBuf| target.canonicalize().is_ok_and(|real| !is_shared(&real));
    targets.filter(is_own).collect()
}

fn is_shared(directory: &Path) -> bool {
    SHARED.iter().any(|shared| Path::new(shared) == directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn scratch(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("outboard-paths-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_project_belongs_to_the_app_and_its_neighbours_do_not() {
        let folder = scratch("project");
        fs::create_dir_all(folder.join("shop/site")).unwrap();
        let root = folder.join("shop/site");
        assert_eq!(app_directories(std::slice::from_ref(&root)), std::slice::from_ref(&root));
        fs::write(folder.join("shop/composer.json"), "{}").unwrap();
        assert_eq!(app_directories(std::slice::from_ref(&root)), [folder.join("shop"), root]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_link_to_a_release_admits_the_next_release() {
        let folder = scratch("releases");
        fs::create_dir_all(folder.join("releases/1/site")).unwrap();
        fs::create_dir_all(folder.join("elsewhere")).unwrap();
        symlink("releases/1", folder.join("current")).unwrap();
        let root = folder.join("current/site");
        assert_eq!(app_directories(std::slice::from_ref(&root)), [folder.clone(), root]);
        symlink("/usr", folder.join("foreign")).unwrap();
        let root = folder.join("foreign");
        assert_eq!(
            app_directories(std::slice::from_ref(&root)),
            [root.as_path()],
            "the link leads out of the directory"
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_directory_above_a_public_one_is_private_unless_a_home() {
        let above = |root: &str| private_part(Path::new(root));
        assert_eq!(above("/srv/shop/public"), Some(PathBuf::from("/srv/shop")));
        for root in
            ["/srv/www", "/var/www/web", "/home/ann/www", "/srv/shop/site", "/root/web", "/web"]
        {
            assert_eq!(above(root), None, "{root}");
        }
    }

    #[test]
    fn the_data_of_a_package_belongs_to_it() {
        let dpkg = packaged(Path::new("/usr/share/dpkg/tables"));
        assert!(dpkg.contains(&PathBuf::from("/var/lib/dpkg")), "{dpkg:?}");
        for other in ["/usr/share", "/srv/dpkg", "/usr/share/no-such-package"] {
            assert_eq!(packaged(Path::new(other)), [] as [PathBuf; 0]);
        }
    }

    #[test]
    fn links_of_others_lead_to_the_apps_data_and_its_own_do_not() {
        let folder = scratch("links");
        let (root, data) = (folder.join("root"), folder.join("data"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&data).unwrap();
        symlink(&data, root.join("images")).unwrap();
        assert_eq!(linked(&root), [] as [PathBuf; 0]);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(root.join("images"), Some(33), None).unwrap();
            symlink("/srv", root.join("all")).unwrap();
            std::os::unix::fs::lchown(root.join("all"), Some(33), None).unwrap();
            assert_eq!(linked(&root), [data]);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn shared_parents_are_never_an_app() {
        for shared in SHARED {
            assert!(!is_project(Path::new(shared)));
            assert_eq!(releases(&Path::new(shared).join("site")), None);
        }
    }
}
