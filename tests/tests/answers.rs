//! The answers in `docs/guide/answers` are true: each is typed as its page has it.
//!
//! An answer is a section of a page. A block with the name of a file above it is that file, and there from the
//! beginning. The others are followed from top to bottom: `toml` without a name is `outboard.toml`, and starts
//! the server. In `console` a line behind `$ ` is typed, and the lines below it are what it prints; `…` stands
//! for what is left out. What all answers have in common (a script, a configuration for those without one) is
//! in the page `README.md` there.
//!
//! Names and ports are those of the page: curl connects to an address of this process instead
//! (`connect-to` of `.curlrc`), where the same configuration listens.

#![forbid(unsafe_code)]

use outboard_e2e::page::{Block, blocks, pages, repository};
use outboard_e2e::{Child, Launch, Scratch, Server, eventually_within};
use regex::{Captures, Regex};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::Duration;

const FOLDER: &str = "docs/guide/answers";
/// A log is written, and a process is started, after the response: what is printed may be right a moment later.
const PATIENCE: Duration = Duration::from_secs(20);

fn index() -> PathBuf {
    Path::new(FOLDER).join("README.md")
}

fn text(page: &Path) -> String {
    fs::read_to_string(repository().join(page)).expect("a page of the repository")
}

/// The sections of the pages, without those of the index.
fn answers() -> Vec<Vec<Block>> {
    let of_answers = |page: &PathBuf| page.starts_with(FOLDER) && *page != index();
    let all: Vec<Block> =
        pages().iter().filter(|page| of_answers(page)).flat_map(|page| blocks(page)).collect();
    let sections = all.chunk_by(|one, next| one.page == next.page && one.heading == next.heading);
    sections.map(<[Block]>::to_vec).collect()
}

/// Where a page's ports are: at an address that no other test has, outside of what the kernel gives away.
struct Ports {
    address: String,
    first: u16,
    of_page: Vec<u16>,
}

impl Ports {
    fn new(answer: usize) -> Ports {
        let [_, high, middle, low] = process::id().to_be_bytes();
        let address = format!("127.{}.{middle}.{low}", high + 1);
        let first = 10_000 + u16::try_from(answer).expect("few answers") * 100;
        Ports { address, first, of_page: Vec::new() }
    }

    fn own(&mut self, port: u16) -> usize {
        let known = self.of_page.iter().position(|known| *known == port);
        known.unwrap_or_else(|| {
            self.of_page.push(port);
            self.of_page.len() - 1
        })
    }

    /// A text of the page with our address and ports.
    fn moved(&mut self, text: &str) -> String {
        let local = Regex::new(r"\b(?:127\.0\.0\.1|0\.0\.0\.0):(\d+)\b").expect("a pattern");
        let (address, first) = (self.address.clone(), usize::from(self.first));
        let moved = local.replace_all(text, |found: &Captures| {
            let own = self.own(found[1].parse().expect("a port"));
            format!("{address}:{}", first + own)
        });
        moved.into_owned()
    }

    /// What a command has printed, as the reader would see it.
    fn as_on_the_page(&self, printed: &str) -> String {
        let mut text = printed.replace(&self.address, "127.0.0.1");
        for (own, port) in self.of_page.iter().enumerate() {
            let own = format!(":{}", usize::from(self.first) + own);
            let behind_a_host = Regex::new(&format!(r"(\w){own}\b")).expect("a pattern");
            if [80, 443].contains(port) {
                text = behind_a_host.replace_all(&text, "$1").into_owned();
            }
            text = text.replace(&own, &format!(":{port}"));
        }
        text
    }

    fn curlrc(&self) -> String {
        let mut text = String::from("silent\nshow-error\nmax-time = 60\n");
        for (own, port) in self.of_page.iter().enumerate() {
            let (address, own) = (&self.address, usize::from(self.first) + own);
            let _ = writeln!(text, "connect-to = \":{port}:{address}:{own}\"");
        }
        text
    }
}

/// A reader at a terminal, in the directory of a project.
struct Reader {
    project: Scratch,
    ports: Ports,
    server: Option<Child>,
}

impl Reader {
    fn new(answer: usize) -> Reader {
        let project = Scratch::new("answer");
        Reader { project, ports: Ports::new(answer), server: None }
    }

    /// Writes a file of the page, in directories that PHP's user may write to.
    fn write(&mut self, name: &str, text: &str) {
        if let Some(folder) = Path::new(name).parent() {
            let mut path = PathBuf::new();
            for part in folder {
                path.push(part);
                self.project.folder(&path.to_string_lossy());
            }
        }
        let text = self.ports.moved(text);
        self.project.file(name, text);
    }

    fn serve(&mut self, configuration: &str) {
        drop(self.server.take());
        let text = match configuration.contains("listen") {
            true => configuration.to_owned(),
            false => format!("listen = \"127.0.0.1:8080\"\n{configuration}"),
        };
        self.write("outboard.toml", &text);
        let folder = self.project.path();
        let launch = Launch::new(&Server::binary().to_string_lossy());
        let launch = launch.args(["serve", "--config", "outboard.toml", "--admin"]);
        let launch = launch.arg(folder.join("admin.sock")).directory(folder).env("PWD", folder);
        let child = launch.start();
        let ready = |line: &str| line.contains("outboard status --admin").then_some(());
        child.wait_for(ready).unwrap_or_else(|output| panic!("it does not start: {output}"));
        self.server = Some(child);
    }

    /// What a line prints, on either output.
    fn types(&self, line: &str) -> String {
        let project = self.project.path();
        self.project.file(".curlrc", self.ports.curlrc());
        let program = Server::binary();
        let script = format!(
            "exec 2>&1\n\
             outboard() {{ case $1 in \
             check|config|import|--version) command {program:?} \"$@\" ;; \
             serve) command {program:?} \"$@\" --admin {project:?}/other.sock ;; \
             *) command {program:?} \"$@\" --admin {project:?}/admin.sock ;; esac; }}\n{line}"
        );
        let mut command = Command::new("timeout");
        command.args(["120", "bash", "-c", &script]).current_dir(project);
        command.env("HOME", project).env("CURL_HOME", project);
        let output = command.output().expect("bash is there");
        self.ports.as_on_the_page(&String::from_utf8_lossy(&output.stdout))
    }

    /// Types the lines of a block, and compares what they print.
    #[track_caller]
    fn follow(&mut self, block: &Block) {
        for (line, expected) in typed(&block.text) {
            let pattern = pattern(&expected);
            let what = format!("{}: $ {line}", block.place());
            let line = self.ports.moved(&line);
            eventually_within(PATIENCE, &what, || {
                let printed = self.types(&line);
                let lines: Vec<_> =
                    printed.lines().map(|line| line.trim_end().to_owned()).collect();
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                if pattern.is_match(&text) { Ok(()) } else { Err(lines) }
            });
        }
    }
}

/// The commands of a block with what each prints. A backslash at the end continues a command.
fn typed(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), Vec::new())),
            (None, Some((command, lines))) if command.ends_with('\\') && lines.is_empty() => {
                command.push('\n');
                command.push_str(line);
            }
            (None, Some((_, lines))) => lines.push(line.to_owned()),
            (None, None) => panic!("{line}: no command is above it"),
        }
    }
    found
}

/// `…` alone on a line is any lines, within a line any text.
fn pattern(expected: &[String]) -> Regex {
    let mut pattern = String::from("\\A");
    for line in expected {
        match line.as_str() {
            "…" => pattern.push_str("(?:.*\n)*"),
            line => {
                let _ = writeln!(pattern, "{}", regex::escape(line).replace('…', ".*"));
            }
        }
    }
    Regex::new(&(pattern + "\\n*\\z")).expect("a pattern")
}

/// Reads an answer and does what it has.
fn try_answer(number: usize, answer: &[Block], common: &[Block]) {
    let mut reader = Reader::new(number);
    let mut commands = 0;
    for block in common.iter().chain(answer) {
        if let Some(name) = &block.file {
            reader.write(name, &block.text);
        }
    }
    let is_configuration = |block: &&Block| block.file.is_none() && block.language == "toml";
    if !answer.iter().any(|block| is_configuration(&block)) {
        reader.serve(&common.iter().find(is_configuration).expect("the index has one").text);
    }
    for block in answer.iter().filter(|block| block.file.is_none()) {
        match block.language.as_str() {
            "toml" => reader.serve(&block.text),
            "console" => {
                reader.follow(block);
                commands += typed(&block.text).len();
            }
            // A file of another program, which is translated.
            "apache" | "nginx" => {}
            language => panic!("{}: {language} is not tried", block.place()),
        }
    }
    assert!(commands > 0, "{}: {} has no command", answer[0].place(), answer[0].heading);
}

#[test]
fn every_answer_does_what_its_page_shows() {
    let wanted = std::env::var("OUTBOARD_ANSWERS").unwrap_or_default();
    let common = blocks(&index());
    let answers = answers();
    let mut wrong = Vec::new();
    for (number, answer) in answers.iter().enumerate() {
        let place = answer[0].place();
        if !place.contains(&wanted) && !answer[0].heading.contains(&wanted) {
            continue;
        }
        let tried = std::panic::catch_unwind(|| try_answer(number, answer, &common));
        wrong.extend(tried.is_err().then(|| format!("{place} {}", answer[0].heading)));
    }
    assert!(
        wrong.is_empty(),
        "of {} answers these are wrong:\n{}",
        answers.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_index_has_every_question() {
    let index = text(&index());
    let answers = answers();
    assert!(answers.len() >= 50, "{} answers were found", answers.len());
    let headings: usize = answers
        .chunk_by(|one, next| one[0].page == next[0].page)
        .map(|page| text(&page[0][0].page).lines().filter(|line| line.starts_with("## ")).count())
        .sum();
    assert_eq!(answers.len(), headings, "questions with blocks, and all of them");
    let missing: Vec<_> = answers
        .iter()
        .map(|answer| answer[0].heading.as_str())
        .filter(|question| !index.contains(&format!("[{question}](")))
        .collect();
    assert!(missing.is_empty(), "{FOLDER}/README.md does not have {missing:#?}");
}
