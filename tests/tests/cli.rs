//! The command line: an error gets one clear sentence and an exit code, at once.

#![forbid(unsafe_code)]

use outboard_e2e::{Docroot, Process, Scratch, Server};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs a command that must not serve: one that still runs after this time is a failure.
const AT_ONCE: Duration = Duration::from_secs(2);

#[track_caller]
fn outboard(folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = Command::new(Server::binary());
    command.args(arguments).current_dir(folder).env_remove("XDG_RUNTIME_DIR");
    ended(command)
}

#[track_caller]
fn ended(mut command: Command) -> Ended {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary is there");
    let has_ended = Process::of(child.id()).is_gone_within(AT_ONCE);
    if !has_ended {
        child.kill().expect("it is our child");
    }
    let status = child.wait().expect("it is our child");
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().expect("it is a pipe").read_to_string(&mut stdout).expect("text");
    child.stderr.take().expect("it is a pipe").read_to_string(&mut stderr).expect("text");
    assert!(has_ended, "{command:?} goes on:\n{stdout}{stderr}");
    Ended { code: status.code(), stdout, stderr }
}

impl Ended {
    /// It ended with this code, and its error output holds these words and no trace of a panic.
    #[track_caller]
    fn complains(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in:\n{}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }

    /// The same, and it is one line: `error: …`.
    #[track_caller]
    fn says_in_one_sentence(&self, code: i32, words: &[&str]) {
        self.complains(code, words);
        let lines: Vec<&str> =
            self.stderr.lines().filter(|line| line.starts_with("error")).collect();
        assert_eq!(lines.len(), 1, "{}", self.stderr);
    }
}

/// `outboard check` of this text.
#[track_caller]
fn check(text: &str) -> Ended {
    let folder = Scratch::new("check");
    folder.folder("www");
    folder.file("outboard.toml", text);
    let by_name = outboard(folder.path(), &["check", "outboard.toml"]);
    let by_option = outboard(folder.path(), &["check", "--config", "outboard.toml"]);
    assert_eq!((by_option.code, &by_option.stderr), (by_name.code, &by_name.stderr));
    by_name
}

#[test]
fn a_right_file_is_said_to_be_fine() {
    let ended = check("[app.site]\nroot = \"www\"\n");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.contains("outboard.toml is valid"), "{ended:?}");
}

#[test]
fn an_unknown_key_is_shown_in_place_with_its_neighbour() {
    let ended = check("[app.site]\nroot = \"www\"\n  indx = [\"a.php\"]\n");
    let expected = "outboard.toml:3:3: unknown key `indx` in [app.site]\n\
                    \x20 3 |   indx = [\"a.php\"]\n\
                    \x20   |   ^^^^\n";
    ended.complains(2, &[expected, "hint: ", "`index`"]);
}

#[test]
fn a_directive_of_another_server_is_translated() {
    check("[app.site]\nroot = \"www\"\nserver_name = \"a\"\n").complains(
        2,
        &["outboard.toml:3:1: unknown key `server_name`", "^^^^^^^^^^^", "hint: write `hosts`"],
    );
}

#[test]
fn a_wrong_value_is_shown_in_place() {
    for (line, words) in [
        ("listen = \"nowhere:99999\"", ["outboard.toml:1:10:", "nowhere:99999"]),
        ("listen = 80", ["outboard.toml:1:10:", "^^"]),
        ("drain_timeout = \"soon\"", ["outboard.toml:1:17:", "soon"]),
        ("limits = { body = \"much\" }", ["outboard.toml:1:19:", "much"]),
        ("limits = { header_timeout = \"1ms\" }", ["outboard.toml:1:29:", "100ms"]),
        ("pool = { min = 5, max = 2 }", ["outboard.toml:1:", "max"]),
    ] {
        check(&format!("{line}\n[app.site]\nroot = \"www\"\n")).complains(2, &words);
    }
}

#[test]
fn invalid_toml_is_shown_in_place() {
    check("[app.site\nroot = \"www\"\n").complains(2, &["outboard.toml:1:10:", "^"]);
    check("[app.site]\nroot = \"www\nindex = 1\n").complains(2, &["outboard.toml:2:"]);
    check("[app.site]\nroot = \"www\"\nroot = \"www\"\n").complains(2, &["outboard.toml:3:1:"]);
    check("\u{0}\u{1}\n").complains(2, &["outboard.toml:1:1:"]);
}

#[test]
fn all_errors_are_reported_at_once() {
    let ended = check("lisen = 1\n[app.site]\nrot = \"www\"\nindex = 5\n");
    ended.complains(2, &["outboard.toml:1:1:", "outboard.toml:3:1:", "outboard.toml:4:9:"]);
}

#[test]
fn errors_are_available_as_json() {
    let folder = Scratch::new("check");
    folder.file("outboard.toml", "lisen = 1\n");
    let ended = outboard(folder.path(), &["check", "--json"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stdout.contains("\"line\": 1"), "{ended:?}");
    assert!(ended.stdout.contains("lisen"), "{ended:?}");
}

#[test]
fn a_file_without_an_app_is_reported() {
    check("").complains(2, &["outboard.toml", "app"]);
    check("listen = \"127.0.0.1:0\"\n").complains(2, &["outboard.toml", "app"]);
    check("[app.site]\n").complains(2, &["outboard.toml:1:", "root"]);
}

#[test]
fn a_missing_or_binary_file_is_reported() {
    let folder = Scratch::new("check");
    outboard(folder.path(), &["check", "no-such.toml"]).complains(2, &["no-such.toml"]);
    folder.file("binary.toml", [0xff, 0xfe, 0x00]);
    outboard(folder.path(), &["check", "binary.toml"]).complains(2, &["binary.toml"]);
    outboard(folder.path(), &["check", "."]).complains(2, &["."]);
}

#[test]
fn a_missing_root_is_shown_in_place() {
    let ended = check("[app.site]\nroot = \"no-such-folder\"\n");
    ended.complains(2, &["outboard.toml:2:8:", "no-such-folder"]);
}

/// `outboard serve` of a site on any port, with further arguments.
#[track_caller]
fn serve(arguments: &[&str]) -> Ended {
    let docroot = Docroot::of("supervision");
    let admin = docroot.beside().path().join("admin.sock");
    let mut all = vec!["serve", "--admin", admin.to_str().expect("it is text")];
    all.extend(arguments);
    outboard(docroot.path(), &all)
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = ["cannot listen on", address.as_str(), "another server listens there"];
    serve(&[".", "--listen", &address]).says_in_one_sentence(2, &words);
}

#[test]
fn a_foreign_address_is_reported() {
    let words = ["cannot listen on 192.0.2.1:80", "no interface has this address"];
    serve(&[".", "--listen", "192.0.2.1:80"]).says_in_one_sentence(2, &words);
}

#[test]
fn a_missing_directory_is_reported() {
    serve(&["no-such-folder", "--listen", "127.0.0.1:0"]).complains(2, &["no-such-folder"]);
    serve(&["hello.php", "--listen", "127.0.0.1:0"]).complains(2, &["hello.php"]);
}

#[test]
fn a_bad_configuration_is_reported_before_start() {
    let folder = Scratch::new("serve");
    folder.file("outboard.toml", "[app.site]\nroot = 5\n");
    let by_name = outboard(folder.path(), &["serve", "--config", "outboard.toml"]);
    by_name.complains(2, &["outboard.toml:2:8:"]);
    assert_eq!(by_name.stdout, "");
    let found = outboard(folder.path(), &["serve"]);
    found.complains(2, &["outboard.toml:2:8:"]);
    outboard(folder.path(), &["serve", "--config", "no-such.toml"]).complains(2, &["no-such.toml"]);
}

#[test]
fn a_missing_php_host_is_reported() {
    let host = "/nonexistent/outboard-php";
    let ended = serve(&[".", "--listen", "127.0.0.1:0", "--php-host", host]);
    ended.says_in_one_sentence(1, &[host]);
}

#[test]
fn an_invalid_php_host_is_reported() {
    let ended = serve(&[".", "--listen", "127.0.0.1:0", "--php-host", "/bin/true"]);
    ended.says_in_one_sentence(1, &["/bin/true"]);
}

/// Root may read everything, so the command runs as another user when the tests are root's.
#[test]
fn an_unreadable_root_is_reported() {
    let scratch = Scratch::new("unreadable");
    let root = scratch.folder("www");
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"]);
        command.arg(Server::binary());
        command
    } else {
        Command::new(Server::binary())
    };
    command.arg("serve").arg(&root).args(["--listen", "127.0.0.1:0", "--admin"]);
    command.arg(scratch.path().join("admin.sock"));
    ended(command).complains(2, &["www", "ermission denied"]);
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn wrong_arguments_are_reported() {
    for arguments in [
        vec!["serf"],
        vec!["serve", "--port", "80"],
        vec!["serve", ".", "--config", "a.toml"],
        vec![],
    ] {
        let ended = outboard(Path::new("/"), &arguments);
        ended.complains(2, &["Usage: outboard"]);
    }
}

#[test]
fn help_names_the_commands() {
    let ended = outboard(Path::new("/"), &["--help"]);
    assert_eq!(ended.code, Some(0));
    for word in ["serve", "check", "status", "reload", "stop", "outboard serve ./my-site"] {
        assert!(ended.stdout.contains(word), "{word:?} is not in:\n{}", ended.stdout);
    }
    let version = outboard(Path::new("/"), &["--version"]);
    assert!(version.stdout.starts_with("outboard "), "{version:?}");
}

#[test]
fn commands_to_a_server_that_is_not_there_say_where_they_looked() {
    let folder = Scratch::new("nobody");
    let socket = folder.path().join("admin.sock");
    let socket = socket.to_str().expect("it is text");
    for name in ["status", "reload", "stop"] {
        let ended = outboard(folder.path(), &[name, "--admin", socket]);
        ended.says_in_one_sentence(
            1,
            &["no server responds at", socket, "check that it is running"],
        );
    }
    // A socket that nobody listens at any more.
    drop(std::os::unix::net::UnixListener::bind(socket).unwrap());
    let ended = outboard(folder.path(), &["status", "--admin", socket]);
    ended.says_in_one_sentence(1, &["no server responds at", socket]);
}

/// A self-signed certificate and its key, in PEM.
#[track_caller]
fn certify(folder: &Scratch, name: &str) {
    let status = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=a.test",
        ])
        .arg("-keyout")
        .arg(folder.path().join(format!("{name}.key")))
        .arg("-out")
        .arg(folder.path().join(format!("{name}.pem")))
        .stderr(std::process::Stdio::null())
        .status();
    assert!(status.expect("openssl is there").success());
}

#[test]
fn check_reads_certificates_and_their_keys() {
    let folder = Scratch::new("check");
    folder.folder("www");
    certify(&folder, "ours");
    certify(&folder, "other");
    let with = |certificate: &str, key: &str| {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen.tls]]\ncertificate = \"{certificate}\"\n\
             key = \"{key}\"\n[app.site]\nroot = \"www\"\n"
        );
        folder.file("outboard.toml", text);
        outboard(folder.path(), &["check"])
    };
    assert_eq!(with("ours.pem", "ours.key").code, Some(0));
    let mismatched = with("ours.pem", "other.key");
    mismatched
        .complains(2, &["other.key", "this is not the key of the certificate in", "ours.pem"]);
    folder.file("garbage.pem", "certainly");
    with("garbage.pem", "ours.key").complains(2, &["garbage.pem"]);
}

#[test]
fn an_option_that_the_file_answers_is_refused() {
    let folder = Scratch::new("listen");
    folder.folder("www");
    folder.file("outboard.toml", "listen = \"127.0.0.1:0\"\n[app.site]\nroot = \"www\"\n");
    for serve in
        [&["serve", "--config", "outboard.toml"][..], &["serve", "outboard.toml"], &["serve"]]
    {
        let with_listen = [serve, &["--listen", "127.0.0.1:1"]].concat();
        let words = ["--listen 127.0.0.1:1 is for a directory", "outboard.toml"];
        outboard(folder.path(), &with_listen).says_in_one_sentence(2, &words);
        let for_development = [serve, &["--dev"]].concat();
        let words = ["--dev is for a directory", "environment = \"development\"", "outboard.toml"];
        outboard(folder.path(), &for_development).says_in_one_sentence(2, &words);
    }
}

#[test]
fn a_closed_output_pipe_does_not_panic() {
    let binary = Server::binary().display().to_string();
    for command in ["schema", "completions bash", "--help", "check --json no.toml"] {
        let line = format!("set -o pipefail; {binary} {command} | head -c 1 >/dev/null; true");
        let output = Command::new("bash").args(["-c", &line]).output().expect("bash is there");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{command}: {said}");
    }
}

#[test]
fn a_misspelt_directive_of_another_server_is_translated() {
    check("[app.site]\nroot = \"www\"\nserver_nme = \"a\"\n")
        .complains(2, &["unknown key `server_nme`", "`server_name` is `hosts` in Outboard"]);
}

#[test]
fn names_and_a_socket_at_once_are_refused() {
    let folder = Scratch::new("both");
    for order in ["status", "reload", "stop"] {
        let ended = outboard(folder.path(), &[order, "shop", "--admin", "a.sock"]);
        ended.says_in_one_sentence(2, &["--admin selects one server and shop another"]);
    }
}

#[test]
fn what_is_installed_is_a_whole_server() {
    let prefix = Scratch::new("install");
    let binary = Server::binary();
    let built = binary.parent().expect("a folder");
    let script = outboard_e2e::page::repository().join("dist/install");
    let installed =
        Command::new(script).arg("--from").arg(built).arg("--prefix").arg(prefix.path()).output();
    let installed = installed.expect("the script is there");
    assert!(installed.status.success(), "{installed:?}");
    for file in [
        "bin/outboard-php",
        "share/man/man1/outboard.1",
        "share/man/man1/outboard-serve.1",
        "share/bash-completion/completions/outboard",
        "share/outboard/php/src/Mvc/Application.php",
        "lib/systemd/system/outboard@.service",
    ] {
        assert!(prefix.path().join(file).is_file(), "{file} is not installed");
    }
    let outboard = prefix.path().join("bin/outboard");
    let init = Command::new(outboard)
        .args(["init", "shop", "--template", "mvc"])
        .current_dir(prefix.path())
        .output()
        .expect("it is there");
    assert!(init.status.success(), "{init:?}");
    let said = String::from_utf8_lossy(&init.stdout);
    assert!(!said.contains("composer require"), "the package was not found: {said}");
}

#[test]
fn the_effective_configuration_has_origins_and_no_secrets() {
    let folder = Scratch::new("config-show");
    folder.file("www/index.php", "<?php");
    folder.file("secret", "hunter2\n");
    folder.file("conf.d/site.toml", "[app.site]\nroot = \"www\"\nuser = \"${file:secret}\"\n");
    folder.file("outboard.toml", "include = \"conf.d/*.toml\"\n[limits]\nbody = 1000\n");
    let ended = outboard(folder.path(), &["config", "show", "--origin"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for words in [
        "app.site.user = \"[redacted]\"  # secret file",
        "conf.d/site.toml:2",
        "outboard.toml:3",
        "threads = \"auto\"  # default",
    ] {
        assert!(ended.stdout.contains(words), "{words} is not in {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("hunter2"), "{ended:?}");
    let json = outboard(folder.path(), &["config", "show", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["settings"].as_array().is_some_and(|all| all.len() > 50), "{json}");
}

#[test]
fn an_imported_configuration_is_written_and_checked() {
    let folder = Scratch::new("import");
    folder.file("www/index.php", "<?php");
    folder.file(
        "site.conf",
        format!(
            "server {{\n  listen 127.0.0.1:8080;\n  root {}/www;\n  auth_basic x;\n\
             location / {{ try_files $uri /index.php; }}\n}}\n",
            folder.path().display()
        ),
    );
    let ended = outboard(folder.path(), &["import", "site.conf", "--out", "outboard.toml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("site.conf:4: auth_basic x: "), "{ended:?}");
    assert_eq!(outboard(folder.path(), &["check"]).code, Some(0));
    outboard(folder.path(), &["import", "site.conf", "--out", "outboard.toml"])
        .complains(2, &["outboard.toml cannot be written"]);
    let json = outboard(folder.path(), &["import", "nginx", "site.conf", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["omitted"][0]["line"], 4, "{json}");
}
