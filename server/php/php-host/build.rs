//! Compiles the C shim against the PHP that `php-config` describes, and links its libphp.
//!
//! * `OUTBOARD_PHP_CONFIG`: the php-config to use (default `php-config8.2`, then `php-config`).
//! * `OUTBOARD_PHP_ROOT`: the root directory of another system with this PHP, e.g. by debootstrap;
//!   the paths of php-config are relative to it. The program runs inside it (chroot), with its C
//!   library and other libraries.
//! * `OUTBOARD_PHP_LIB_DIR`: the directory of its libphp, if not one of the usual ones.
//! * `OUTBOARD_SANITIZE`: gcc's `-fsanitize` for the shim, such as `address,undefined`; the process
//!   ends at the first fault (`ci/test-asan`).

#[path = "build/boundary.rs"]
mod boundary;
#[path = "build/parts.rs"]
mod parts;

use parts::Part;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    for name in
        ["OUTBOARD_PHP_CONFIG", "OUTBOARD_PHP_ROOT", "OUTBOARD_PHP_LIB_DIR", "OUTBOARD_SANITIZE"]
    {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=sapi");
    println!("cargo:rerun-if-changed=runtime");
    println!("cargo:rustc-check-cfg=cfg(programs)");
    let parts = parts::find();
    for part in &parts {
        println!("cargo:rerun-if-changed={}", part.directory.display());
        println!("cargo:rustc-cfg=programs");
    }
    embed_runtime(&parts);
    declare_boundary(&parts);
    let php = PhpConfig::find();
    compile(&php, &parts);
    link(&php);
    println!("cargo:rustc-env=OUTBOARD_PHP_INI_HOME={}", php.ini_home());
}

/// The php-config of the PHP to build against.
struct PhpConfig {
    program: String,
    root: PathBuf,
}

impl PhpConfig {
    fn find() -> Self {
        let root = std::env::var("OUTBOARD_PHP_ROOT").unwrap_or_default().into();
        let configured = std::env::var("OUTBOARD_PHP_CONFIG").ok();
        let candidates = match &configured {
            Some(program) => vec![program.as_str()],
            None => vec!["php-config8.2", "php-config"],
        };
        for program in &candidates {
            let found = Command::new(program).arg("--version").output();
            if found.is_ok_and(|output| output.status.success()) {
                return Self { program: (*program).to_owned(), root };
            }
        }
        panic!(
            "no usable {} found: install php8.2-dev and libphp8.2-embed, \
             or set OUTBOARD_PHP_CONFIG",
            candidates.join(" or ")
        );
    }

    fn query(&self, option: &str) -> String {
        let output = Command::new(&self.program).arg(option).output().expect("it ran in find()");
        String::from_utf8(output.stdout).expect("php-config prints text").trim().to_owned()
    }

    /// Whether it belongs to another system.
    fn is_elsewhere(&self) -> bool {
        !self.root.as_os_str().is_empty()
    }

    /// `path` on this machine.
    fn below_root(&self, path: &str) -> PathBuf {
        if !self.is_elsewhere() {
            return path.into();
        }
        self.root.join(path.trim_start_matches('/'))
    }

    /// "8.2" of "8.2.35".
    fn release(&self) -> String {
        self.query("--version").splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
    }

    /// "/etc/php/8.2" of "/etc/php/8.2/cli".
    fn ini_home(&self) -> String {
        let directory = self.query("--ini-path");
        directory.rsplit_once('/').map_or(directory.as_str(), |(home, _)| home).to_owned()
    }

    fn library(&self) -> (PathBuf, String) {
        let names = [format!("php{}", self.release()), "php".to_owned()];
        let directories = match std::env::var("OUTBOARD_PHP_LIB_DIR") {
            Ok(directory) => vec![PathBuf::from(directory)],
            Err(_) => {
                let prefix = self.query("--prefix");
                ["lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64"]
                    .map(|directory| self.below_root(&format!("{prefix}/{directory}")))
                    .to_vec()
            }
        };
        for directory in &directories {
            for name in &names {
                if directory.join(format!("lib{name}.so")).exists() {
                    return (directory.clone(), name.clone());
                }
            }
        }
        panic!("no lib{}.so in {directories:?}: install libphp-embed", names.join(".so or lib"));
    }
}

/// Converts the PHP part of the API into arrays of the shim: all of it, and the parts that classic
/// mode loads.
fn embed_runtime(parts: &[Part]) {
    let all = [
        "functions",
        "Coroutine",
        "Timer",
        "Request",
        "Response",
        "fetch",
        "kv",
        "rate_limit",
        "tasks",
        "Worker",
    ];
    let directory = Path::new("runtime");
    let mut header = [
        array("runtime", directory, &all),
        array("tasks", directory, &["tasks"]),
        array("kv", directory, &["kv"]),
        array("rate_limit", directory, &["rate_limit"]),
    ]
    .concat();
    for part in parts {
        header += &part.runtime(array);
    }
    let directory = std::env::var("OUT_DIR").expect("set by cargo");
    std::fs::write(Path::new(&directory).join("runtime.h"), header).expect("OUT_DIR is writable");
}

/// Concatenates files of a directory, each of which begins with its namespace.
fn array(name: &str, directory: &Path, files: &[&str]) -> String {
    let version = std::env::var("CARGO_PKG_VERSION").expect("set by cargo");
    let mut source = String::new();
    for file in files {
        let path = directory.join(file).with_extension("php");
        let text = std::fs::read_to_string(&path).expect("a file of the runtime");
        source.push_str(text.strip_prefix("<?php").expect("a PHP file begins with its tag"));
    }
    let source = source.replace("%VERSION%", &version);
    let bytes: Vec<String> = source.bytes().map(|byte| byte.to_string()).collect();
    // Zero-terminated: the engine's scanner looks one byte ahead.
    format!(
        "static const unsigned char outboard_{name}_php[] __attribute__((unused)) = {{{},0}};\n\
         static const size_t outboard_{name}_php_len __attribute__((unused)) = \
         sizeof(outboard_{name}_php) - 1;\n",
        bytes.join(",")
    )
}

/// Writes the C declarations of what Rust calls and defines. Only files with a part of them have C compiled anew.
fn declare_boundary(parts: &[Part]) {
    let mut files = vec![PathBuf::from("../ring/src/operation.rs")];
    find_sources(Path::new("src"), "rs", &mut files);
    for part in parts {
        find_sources(&part.directory.join("host"), "rs", &mut files);
    }
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable file of the crate");
        if boundary::concerns(&text) {
            println!("cargo:rerun-if-changed={}", file.display());
            texts.push(text);
        }
    }
    println!("cargo:rerun-if-changed=src/callbacks");
    let directory = std::env::var("OUT_DIR").expect("set by cargo");
    let header = boundary::header(&texts);
    std::fs::write(Path::new(&directory).join("boundary.h"), header).expect("OUT_DIR is writable");
}

fn compile(php: &PhpConfig, parts: &[Part]) {
    let mut sources = Vec::new();
    find_sources(Path::new("sapi"), "c", &mut sources);
    let mut headers = String::new();
    for part in parts {
        find_sources(&part.directory.join("sapi"), "c", &mut sources);
        headers += &part.include();
    }
    let directory = std::env::var("OUT_DIR").expect("set by cargo");
    std::fs::write(Path::new(&directory).join("parts.h"), headers).expect("OUT_DIR is writable");
    sources.sort();
    let version = std::env::var("CARGO_PKG_VERSION").expect("set by cargo");
    let mut build = cc::Build::new();
    build.files(&sources).std("gnu11").warnings(true).extra_warnings(true);
    build.flag("-Werror").define("_GNU_SOURCE", None);
    // PHP's headers violate strict aliasing, e.g. with zval.u1.type_info.
    build.flag("-fno-strict-aliasing");
    // For our headers only: PHP has some of the same names.
    build.flag("-iquote").flag("sapi").flag("-iquote").flag(parts::TREE);
    build.include(&directory);
    build.define("OUTBOARD_VERSION", format!("\"{version}\"").as_str());
    // As system headers, so that their warnings are ignored.
    for include in php.query("--includes").split_whitespace() {
        let path = include.trim_start_matches("-I");
        build.flag("-isystem").flag(php.below_root(path));
    }
    if !parts.is_empty() {
        build.define("OUTBOARD_PROGRAMS", None);
    }
    // What is checked at length (sapi/check.h): "debug" is every profile that inherits from cargo's dev.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        build.define("OUTBOARD_SLOW_ASSERTIONS", None);
    }
    if let Ok(checks) = std::env::var("OUTBOARD_SANITIZE") {
        sanitize(&mut build, &checks);
    }
    // Only for the program: in tests and benches the shim's poll(2) and others must not replace the
    // C library's.
    build.cargo_metadata(false);
    build.compile("outboard_sapi");
    // The whole archive, because no symbol refers to the replacements for the C library.
    println!(
        "cargo:rustc-link-arg-bins=-Wl,--whole-archive,{directory}/liboutboard_sapi.a,--no-whole-archive"
    );
}

fn find_sources(directory: &Path, kind: &str, sources: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a readable directory of the crate") {
        let path = entry.expect("a readable directory").path();
        if path.is_dir() {
            find_sources(&path, kind, sources);
        } else if path.extension().is_some_and(|extension| extension == kind) {
            sources.push(path);
        }
    }
}

/// Adds these checks. rustc links without the compiler's default libraries, so their run-time
/// libraries are named here.
fn sanitize(build: &mut cc::Build, checks: &str) {
    build.flag(format!("-fsanitize={checks}")).flag("-fno-sanitize-recover=all");
    build.flag("-fno-omit-frame-pointer");
    for check in checks.split(',') {
        match check {
            // As a library of the crate, which precedes the C library whose functions it replaces;
            // a link argument would follow it.
            "address" => println!("cargo:rustc-link-lib=dylib=asan"),
            "undefined" => println!("cargo:rustc-link-arg-bins=-lubsan"),
            _ => {}
        }
    }
}

/// The functions of the C library and of libpq that this program replaces for PHP and its libraries (most find
/// the original by `REAL` of `sapi/interpose.h`).
const EXPORTED: &[&str] = &[
    "poll",
    "__poll_chk",
    "select",
    "nanosleep",
    "clock_nanosleep",
    "usleep",
    "sleep",
    "read",
    "__read_chk",
    "write",
    "recv",
    "__recv_chk",
    "recvfrom",
    "send",
    "sendto",
    "connect",
    "close",
    "wait4",
    "waitpid",
    "flock",
    "getaddrinfo",
    "gethostbyname_r",
    "popen",
    "pclose",
    "fgets",
    "fread",
    "ppoll",
    "__ppoll_chk",
    "pselect",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "readv",
    "writev",
    "__recvfrom_chk",
    "recvmsg",
    "sendmsg",
    "recvmmsg",
    "sendmmsg",
    "accept",
    "accept4",
    "__fgets_chk",
    "__fread_chk",
    "wait",
    "wait3",
    "waitid",
    "lockf",
    "lockf64",
    "semtimedop",
    "msgrcv",
    "msgsnd",
    "sigtimedwait",
    "sigwaitinfo",
    "sigwait",
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "getaddrinfo_a",
    "gai_suspend",
    "getnameinfo",
    "gethostbyname2_r",
    "gethostbyaddr_r",
    "gethostbyname",
    "gethostbyname2",
    "gethostbyaddr",
    "res_nsearch",
    "res_nquery",
    "res_nsend",
    "res_search",
    "res_query",
    "dlopen",
    "fcntl",
    "mmap",
    "mmap64",
    "mprotect",
    "mremap",
    "munmap",
    "shmdt",
    "exit",
    "_exit",
    "_Exit",
    "setlocale",
    "iconv_open",
    "socketpair",
    "pipe",
    "pipe2",
    "mkstemp",
    "PQconnectdb",
    "PQfinish",
    "PQbackendPID",
    "PQconsumeInput",
    "PQgetResult",
    "PQexec",
    "PQprepare",
    "PQexecParams",
    "PQexecPrepared",
    "PQsendQuery",
    "PQsendQueryParams",
    "PQsendPrepare",
    "PQsendQueryPrepared",
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "setuid",
    "seteuid",
    "setreuid",
    "setresuid",
    "setgid",
    "setegid",
    "setregid",
    "setresgid",
    "setgroups",
    "initgroups",
    "setfsuid",
    "setfsgid",
    "setsid",
    "setpgid",
    "setpgrp",
    "chroot",
    "unshare",
    "setns",
    "capset",
    "mlock",
    "mlock2",
    "mlockall",
    "sched_setscheduler",
    "sched_setparam",
    "sched_setaffinity",
    "timer_create",
    "personality",
    "prctl",
    "sigaction",
    "signal",
    "setitimer",
    "alarm",
    "ualarm",
    "setrlimit",
    "setrlimit64",
    "prlimit",
    "prlimit64",
    "setpriority",
    "nice",
    "semop",
];

fn link(php: &PhpConfig) {
    for name in EXPORTED {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={name}");
    }
    let (directory, name) = php.library();
    println!("cargo:rustc-link-arg-bins=-L{}", directory.display());
    println!("cargo:rustc-link-arg-bins=-l{name}");
    // Again, behind the shim: glibc has pthread_atfork in an archive, which on ARM nothing before it has taken.
    println!("cargo:rustc-link-arg-bins=-lc");
    let standard = ["/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    if php.is_elsewhere() {
        println!("cargo:rustc-link-arg-bins=-Wl,--allow-shlib-undefined");
    } else if !standard.iter().any(|path| Path::new(path) == directory) {
        println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{}", directory.display());
    }
}
