//! The pages of the documentation do what they say: commands, configurations and PHP are taken
//! from the pages themselves.

#![forbid(unsafe_code)]

use outboard_e2e::page::{Block, blocks, blocks_in, pages, repository, trees};
use outboard_e2e::{Child, Launch, Scratch, Server};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Mistakes that a fragment of a file may have: the rest is on the reader's machine.
const OF_A_FRAGMENT: [&str; 2] = ["missing-key", "path"];

#[test]
fn every_documented_configuration_is_valid() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    let is_configuration = |block: &Block| !block.text.contains("[[scenario]]");
    for block in blocks_in("toml").into_iter().filter(is_configuration) {
        seen += 1;
        let folder = Scratch::new("page");
        folder.folder("public");
        folder.file("public/index.php", "<?php");
        folder.file("outboard.toml", &block.text);
        let mut check = Command::new(Server::binary());
        check.args(["check", "--json", "outboard.toml"]).current_dir(folder.path());
        let output = check.output().expect("the binary is there");
        let said: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{}: {error}: {output:?}", block.place()));
        for mistake in said["diagnostics"].as_array().expect("a list") {
            let kind = mistake["kind"].as_str().expect("a kind");
            if mistake["severity"] == "error" && !OF_A_FRAGMENT.contains(&kind) {
                wrong.push(format!("{}: {mistake:#}", block.place()));
            }
        }
    }
    assert!(seen > 60, "{seen} configurations were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_php_block_on_a_page_is_php() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for block in blocks_in("php") {
        seen += 1;
        // "…" stands for what the reader has.
        let text = block.text.replace("{ … }", "{ }").replace("…;", ";").replace('…', "");
        let opened = if text.starts_with("<?php") { text } else { format!("<?php\n{text}") };
        let folder = Scratch::new("page");
        let file = folder.file("block.php", opened);
        let lint = Command::new("php").arg("-l").arg(&file).output().expect("PHP is there");
        if !lint.status.success() {
            wrong.push(format!("{}: {}", block.place(), String::from_utf8_lossy(&lint.stdout)));
        }
    }
    assert!(seen >= 18, "{seen} blocks of PHP were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_closes_its_fences() {
    let all: usize = pages().iter().map(|page| blocks(page).len()).sum();
    assert!(all > 150, "{all} blocks were found");
}

/// A folder with the examples and the PHP package as in the repository, `outboard` on the path, and
/// another port for the one that pages name.
struct Typist {
    folder: Scratch,
    port: u16,
}

impl Typist {
    fn new() -> Self {
        let folder = Scratch::new("typed");
        let own = trees().into_iter().filter_map(|tree| {
            let name = tree.file_name()?.to_str()?;
            tree.join("examples").is_dir().then(|| format!("{name}/./examples"))
        });
        for name in ["./examples".to_owned(), "./php".to_owned()].into_iter().chain(own) {
            let mut copy = Command::new("cp");
            copy.args(["-r", "--parents", &name]).arg(folder.path()).current_dir(repository());
            assert!(copy.status().expect("cp is there").success());
        }
        // PHP runs as a user of its own when root runs the test.
        let open = Command::new("chmod").args(["-R", "a+rwX"]).arg(folder.path()).status();
        assert!(open.expect("chmod is there").success());
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        Self { folder, port: free.expect("a free port").port() }
    }

    /// As the page has it, but for the port, which the configurations of the examples name too.
    fn elsewhere(&self, text: &str) -> String {
        let own = format!("127.0.0.1:{}", self.port);
        text.replace("127.0.0.1:8080", &own).replace("127.0.0.1:9501", &own)
    }

    /// The command of a line that starts a server, at our port and with an admin socket.
    fn server(&self, line: &str) -> Option<String> {
        let (environment, command) = line.split_once("outboard ")?;
        let (verb, program) = command.split_once(' ')?;
        let listen = match verb {
            "serve" if line.contains("--config") => String::new(),
            "serve" | "run" => format!("--listen 127.0.0.1:{}", self.port),
            _ => return None,
        };
        let admin = self.folder.path().join("admin.sock");
        // What follows a program are its arguments.
        Some(format!("{environment}outboard {verb} {listen} --admin {} {program}", admin.display()))
    }

    fn start(&self, command: &str, name: &str) -> Child {
        let line = format!("cd {} && exec env {command}", self.folder.path().display());
        let child = Launch::new("bash").args(["-c", &line]).env("PATH", search_path()).start();
        let ready = |line: &str| line.contains("outboard status --admin").then_some(());
        child.wait_for(ready).unwrap_or_else(|output| panic!("{name} does not start: {output}"));
        child
    }

    /// Types a line with curl; an error is expected only where the line announces it.
    fn request(&self, line: &str, name: &str, server: &Child) {
        let output = self.script(&format!("{CURL}{line}")).output().expect("bash is there");
        let response = said(&output);
        let context = || format!("{name}: {line}\n{response}\n{}", server.output());
        assert!(output.status.success(), "{}", context());
        let is_expected = ["broken", "Error", "give=up"].iter().any(|word| line.contains(word));
        let is_failure = ["status 000", "status 502", "status 503", "status 504", "status 404"]
            .iter()
            .any(|status| response.contains(status));
        let is_error = response.contains("status 500") && !is_expected;
        assert!(!is_failure && !is_error, "{}", context());
    }

    fn move_configuration(&self, file: &str) {
        let path = self.folder.path().join(file);
        let text = fs::read_to_string(&path).expect("a configuration of an example");
        fs::write(path, self.elsewhere(&text)).expect("a copy of ours");
    }

    fn script(&self, text: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["120", "bash", "-euc", &self.elsewhere(text)]);
        command.current_dir(self.folder.path()).env("PATH", search_path());
        command.env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    /// Types the lines of a block one after the other; each has to succeed.
    #[track_caller]
    fn types(&self, block: &Block, text: &str) -> String {
        let output = self.script(text).output().expect("bash is there");
        assert!(output.status.success(), "{}: {text}\n{}", block.place(), said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}{}", output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn search_path() -> String {
    let binary = Server::binary();
    let folder = binary.parent().unwrap_or(Path::new("/"));
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

/// curl says the status of each answer where the test reads it.
const CURL: &str =
    "curl() { command curl -sS --max-time 60 -w '%{stderr}status %{http_code}\\n' \"$@\"; }\n";

/// Examples with tests of their own: they need a database, several servers or another protocol than HTTP.
const ELSEWHERE: [&str; 3] = ["mysql-without-blocking", "product", "tcp"];

#[test]
fn every_example_works_as_its_readme_says() {
    let typist = Typist::new();
    let mut run = 0;
    let examples = |page: &&Path| {
        page.parent().and_then(Path::parent).is_some_and(|p| p.ends_with("examples"))
    };
    for page in pages().iter().map(PathBuf::as_path).filter(examples) {
        let folder = page.parent().expect("the example");
        let name = folder.file_name().expect("its name").to_string_lossy().into_owned();
        let commands: Vec<Block> =
            blocks(page).into_iter().filter(|block| block.language == "sh").collect();
        if ELSEWHERE.contains(&name.as_str()) || commands.is_empty() {
            continue;
        }
        run += 1;
        let config = format!("{}/outboard.toml", folder.display());
        if typist.folder.path().join(&config).exists() {
            typist.move_configuration(&config);
        }
        let lines: String = commands.iter().map(|block| block.text.as_str()).collect();
        let (mut server, mut requests) = (None, 0);
        for line in lines.lines() {
            if let Some(command) = typist.server(line) {
                drop(server.take());
                server = Some(typist.start(&command, &name));
            }
            if !line.contains("curl ") {
                continue;
            }
            requests += 1;
            let server = server.as_ref();
            let server = server.unwrap_or_else(|| panic!("{} starts it", page.display()));
            typist.request(line, &name, server);
        }
        assert!(server.is_some(), "{} starts the example", page.display());
        assert!(requests > 0 || name == "guestbook", "{} requests nothing", page.display());
    }
    assert!(run >= 11, "{run} examples were run");
}

#[test]
fn named_servers_behave_as_the_guide_shows() {
    let typist = Typist::new();
    let page = Path::new("docs/guide/named-servers.md");
    let first = blocks(page).into_iter().find(|block| block.language == "sh").expect("a block");
    let said = typist.types(&first, &first.text);
    for words in ["outboard.d/shop.toml", "RUNNING", "shop"] {
        assert!(said.contains(words), "{words:?} is not in\n{said}");
    }
}

#[test]
fn the_admin_socket_works_as_the_guide_says() {
    let typist = Typist::new();
    let socket = typist.folder.path().join("outboard.sock");
    let child = Launch::new("bash")
        .args([
            "-c",
            &format!(
                "cd {} && exec outboard serve examples/guestbook --listen 127.0.0.1:0 --admin {}",
                typist.folder.path().display(),
                socket.display()
            ),
        ])
        .env("PATH", search_path())
        .start();
    let ready = |line: &str| line.contains("outboard status --admin").then_some(());
    child.wait_for(ready).unwrap_or_else(|output| panic!("it does not start: {output}"));
    let page = Path::new("docs/guide/operating.md");
    let block = blocks(page).into_iter().find(|block| block.text.contains("--unix-socket"));
    let block = block.expect("the guide asks the socket by curl");
    let text = block.text.replace("/run/outboard.sock", &socket.display().to_string());
    let said = typist.types(&block, &text.replace("curl ", "curl -sS --fail-with-body "));
    assert!(said.contains("outboard_uptime_seconds"), "{said}");
    assert!(said.contains("\"generation\""), "{said}");
}
