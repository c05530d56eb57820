//! `docs/reference/php.md`: the functions and classes of `php/stubs/outboard.stub.php`.

use crate::{assert_generated, cell, read, renewed};
use outboard_e2e::page::repository;
use outboard_e2e::{Configured, Docroot, Request};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

/// A function, a class or a member of a class.
#[derive(Default)]
struct Declared {
    /// With its namespace; members without.
    name: String,
    /// As it is declared, on one line, without modifiers that a caller does not need.
    signature: String,
    text: String,
    members: Vec<Declared>,
    is_class: bool,
}

/// Reads the stubs, which are formatted as those of php-src: a namespace per block, a comment before
/// each declaration.
#[derive(Default)]
struct Stubs {
    namespace: String,
    declared: Vec<Declared>,
    in_class: bool,
    comment: String,
    open: String,
}

impl Stubs {
    fn read() -> Vec<Declared> {
        let path = repository().join("php/stubs/outboard.stub.php");
        let mut stubs = Stubs::default();
        let mut is_comment = false;
        for line in fs::read_to_string(path).expect("the stubs").lines().map(str::trim) {
            is_comment |= line.starts_with("/**");
            if is_comment {
                let text = line.trim_start_matches("/**").trim_end_matches("*/");
                let text = text.trim().trim_start_matches('*').trim();
                stubs.comment.push_str(text);
                stubs.comment.push('\n');
                is_comment = !line.ends_with("*/");
            } else {
                stubs.line(line);
            }
        }
        stubs.declared
    }

    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("namespace ") {
            self.namespace = rest.trim_end_matches('{').trim().to_owned();
            self.comment.clear();
        } else if line == "}" && self.open.is_empty() {
            self.in_class = false;
        } else if line.starts_with("<?php") {
        } else if !line.is_empty() && line != "{" {
            self.open.push_str(line);
            self.open.push(' ');
            let is_class = ["class ", "final class ", "interface "];
            if is_class.iter().any(|word| self.open.starts_with(word)) {
                self.class();
            } else if line.ends_with("{}") || line.ends_with(';') {
                self.member();
            }
        }
    }

    fn class(&mut self) {
        let line = std::mem::take(&mut self.open);
        self.in_class = !line.trim_end().ends_with('}');
        let mut words = line.split_whitespace().skip_while(|word| *word == "final").skip(1);
        let name = words.next().expect("a name");
        let rest: Vec<_> = words.filter(|word| !word.starts_with('{')).collect();
        let signature = rest.join(" ");
        let name = format!("{}\\{name}", self.namespace);
        let text = described(&std::mem::take(&mut self.comment));
        self.declared.push(Declared {
            name,
            signature,
            text,
            is_class: true,
            ..Declared::default()
        });
    }

    fn member(&mut self) {
        let open = std::mem::take(&mut self.open);
        let comment = std::mem::take(&mut self.comment);
        if open.starts_with("private ") || comment.contains("@internal") || open.contains("const ")
        {
            return;
        }
        let line = open.trim().trim_end_matches(['{', '}', ';']).trim();
        let is_static = line.contains(" static ");
        let plain = line.replace("public ", "").replace("static ", "").replace("readonly ", "");
        let plain = plain.replace("function ", "").replace("( ", "(").replace(", )", ")");
        let text = described(&comment);
        let name = plain.split(['(', '=', ':']).next().expect("a name").trim();
        let name = name.split_whitespace().next_back().expect("a name").to_owned();
        let signature = if is_static { format!("static {plain}") } else { plain.clone() };
        let member = Declared { name, signature, text, ..Declared::default() };
        match self.declared.last_mut().filter(|_| self.in_class) {
            Some(class) => class.members.push(member),
            None => {
                let namespace = match self.namespace.as_str() {
                    "" => String::new(),
                    name => format!("{name}\\"),
                };
                let name = format!("{namespace}{}", member.name);
                self.declared.push(Declared { name, ..member });
            }
        }
    }
}

/// The comment as text: paragraphs, then what its tags describe.
fn described(comment: &str) -> String {
    let mut text = String::new();
    let mut tags: Vec<String> = Vec::new();
    for line in comment.lines().map(str::trim) {
        match (line.starts_with('@'), tags.last_mut()) {
            (true, _) => tags.push(line.to_owned()),
            (false, Some(tag)) if !line.is_empty() => *tag = format!("{tag} {line}"),
            (false, Some(_)) => {}
            (false, None) if line.is_empty() => text.push_str("\n\n"),
            (false, None) => text = format!("{text}{line} "),
        }
    }
    for tag in tags {
        text = format!("{} {}", text.trim_end(), of_tag(&tag));
    }
    text.split("\n\n").map(str::trim).filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn of_tag(tag: &str) -> String {
    let (name, rest) = tag.split_once(' ').unwrap_or((tag, ""));
    let sentence = |text: &str| match text.ends_with('.') || text.is_empty() {
        true => text.to_owned(),
        false => format!("{text}."),
    };
    match name {
        "@alias" => format!("The same as `{rest}()`."),
        "@throws" => {
            let (class, when) = rest.split_once(' ').unwrap_or((rest, ""));
            sentence(format!("Throws `{class}` {when}").trim())
        }
        "@param" => {
            let Some((kind, rest)) = rest.split_once(" $").or_else(|| rest.split_once(" ...$"))
            else {
                return String::new();
            };
            let (parameter, text) = rest.split_once(' ').unwrap_or((rest, ""));
            match text {
                "" => format!("`${parameter}` is `{kind}`."),
                text => sentence(&format!("`${parameter}`: {text}")),
            }
        }
        "@return" if rest.starts_with('(') => String::new(),
        "@return" => returned(rest, &sentence),
        "@var" => format!("`{rest}`."),
        _ => String::new(),
    }
}

/// A type may have spaces inside of brackets: `array<string, mixed>`.
fn returned(rest: &str, sentence: &dyn Fn(&str) -> String) -> String {
    let mut depth = 0_i32;
    let end = rest.find(|one| {
        depth += i32::from("<({".contains(one)) - i32::from(">)}".contains(one));
        one == ' ' && depth == 0
    });
    let (kind, text) = rest.split_at(end.unwrap_or(rest.len()));
    match text.trim() {
        "" => format!("Returns `{kind}`."),
        text => sentence(&format!("Returns `{kind}`: {text}")),
    }
}

/// The names that exist in a script of classic mode, and in one of worker mode.
fn available(stubs: &[Declared]) -> [BTreeSet<String>; 2] {
    let names: Vec<_> = stubs.iter().map(|one| one.name.as_str()).collect();
    let names = format!("'{}'", names.join("', '"));
    let found = format!(
        "$found = array_filter([{names}], fn ($name) =>
            function_exists($name) || class_exists($name) || interface_exists($name));"
    );
    let docroot = Docroot::of("routing");
    docroot.put("names.php", format!("<?php {found} echo implode(' ', $found);"));
    let worker =
        format!("<?php Outboard\\serve(function () {{ {found} return implode(' ', $found); }});");
    docroot.put("worker.php", worker);
    let text = "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n\
                [app.classic]\nroot = \"www\"\nhosts = [\"classic.test\"]\n\
                [app.worker]\nroot = \"www\"\nhosts = [\"worker.test\"]\nmode = \"worker\"\n\
                worker = { script = \"www/worker.php\" }\n";
    let site = Configured::start(docroot, text);
    [("classic.test", "/names.php"), ("worker.test", "/")].map(|(host, path)| {
        let request = Request::get(path).header("Host", host);
        let names = site.client().send(&request).expect(200).text();
        names.split_whitespace().map(str::to_owned).collect()
    })
}

fn section(page: &mut String, one: &Declared, is_in_classic: bool) {
    let parentheses = if one.is_class { "" } else { "()" };
    let _ = writeln!(page, "\n### {}{parentheses}\n", one.name);
    if !one.signature.is_empty() {
        let _ = writeln!(page, "`{}`\n", one.signature);
    }
    let where_it_is = if is_in_classic { "" } else { " In worker mode only." };
    let _ = writeln!(page, "{}{where_it_is}", one.text);
    if one.members.is_empty() {
        return;
    }
    let _ = writeln!(page, "\n| | |\n|---|---|");
    for member in &one.members {
        let text = member.text.replace('\n', " ");
        let _ = writeln!(page, "| `{}` | {} |", cell(&member.signature), cell(&text));
    }
}

#[test]
fn the_reference_of_php_is_up_to_date() {
    let stubs = Stubs::read();
    let [classic, worker] = available(&stubs);
    let missing: Vec<_> = stubs.iter().filter(|one| !worker.contains(&one.name)).collect();
    let missing: Vec<_> = missing.iter().map(|one| &one.name).collect();
    assert!(missing.is_empty(), "the stubs declare what does not exist: {missing:?}");
    let mut shown = BTreeSet::new();
    let page = renewed(&read("php.md"), "php", |names| {
        let mut part = String::new();
        for name in names.split_whitespace() {
            let one = stubs.iter().find(|one| one.name == name);
            let one = one.unwrap_or_else(|| panic!("the stubs have no {name}"));
            assert!(shown.insert(name.to_owned()), "{name} is on the page twice");
            section(&mut part, one, classic.contains(name));
        }
        format!("{part}\n")
    });
    let all: BTreeSet<_> = stubs.iter().map(|one| one.name.clone()).collect();
    assert_eq!(shown, all, "on the page, and in the stubs");
    assert_generated("php.md", &page);
}

#[test]
fn every_declaration_of_the_stubs_is_described() {
    let stubs = Stubs::read();
    let members = stubs.iter().flat_map(|one| one.members.iter().map(move |it| (one, it)));
    let members = members.filter(|(_, member)| member.text.is_empty());
    let mut bare: Vec<_> = members.map(|(one, it)| format!("{}::{}", one.name, it.name)).collect();
    bare.extend(stubs.iter().filter(|one| one.text.is_empty()).map(|one| one.name.clone()));
    assert!(stubs.len() > 45, "{} declarations were found", stubs.len());
    assert!(bare.is_empty(), "without a comment: {bare:#?}");
}
