//! [`read`]: from the text of a file to its rules.

use super::{Effect, Htaccess, Rule, Scope};
use regex::bytes::{Regex, RegexBuilder};

/// The memory of one expression.
const EXPRESSION_MAX_BYTES: usize = 1 << 20;

/// A section of a file.
#[derive(Clone, Debug)]
enum Section {
    /// The same files as around it.
    Same,
    /// Files with such a name; `None`: the expression is not understood.
    Names(Option<Regex>),
    /// Other methods than those that read a file.
    OtherMethods,
    /// Its rules hold for clients without what is in it.
    Inverted,
}

/// Fills `all`.
pub(super) fn read(text: &str, is_in_root: bool, all: &mut Htaccess) {
    let mut reader =
        Reader { all, is_in_root, sections: Vec::new(), is_conditional: false, line: 0, text: "" };
    let joined = text.replace("\\\n", "  ");
    for (number, line) in joined.lines().enumerate() {
        (reader.line, reader.text) = (number + 1, line.trim());
        reader.statement(line.trim());
    }
}

struct Reader<'a> {
    all: &'a mut Htaccess,
    is_in_root: bool,
    sections: Vec<Section>,
    /// Whether a `RewriteCond` about the client precedes the next `RewriteRule`.
    is_conditional: bool,
    line: usize,
    text: &'a str,
}

impl Reader<'_> {
    fn statement(&mut self, line: &str) {
        match line.as_bytes() {
            [] | [b'#', ..] => {}
            [b'<', b'/', ..] => drop(self.sections.pop()),
            [b'<', ..] => {
                let section = section(line);
                self.sections.push(section);
            }
            _ => self.directive(&words(line)),
        }
    }

    fn directive(&mut self, words: &[String]) {
        let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let is_php = |words: &[&str]| words.iter().any(|word| word.contains("php"));
        match lower[..] {
            ["require", "all", "granted"] | ["allow", "from", "all"] => self.grant(),
            // One of several lists; without `Order` and a denial it has no effect.
            ["allow", "from", ..] => {}
            ["deny", "from", "all"] => self.deny(),
            // Blocked clients, where all others are admitted.
            ["require", "not", ..] | ["deny", "from", ..] => self.leave(),
            ["require", ..] => self.deny(),
            ["php_flag" | "php_admin_flag" | "php_value", "engine", "off" | "0"] => {
                self.add(Effect::NoPhp);
            }
            ["removehandler" | "removetype", ref of @ ..] if is_php(of) => self.no_handler(),
            ["sethandler", "none" | "default-handler" | "text/plain"] => self.no_handler(),
            ["addtype" | "addhandler", "text/plain" | "cgi-script", ref of @ ..] if is_php(of) => {
                self.no_handler();
            }
            ["forcetype", "text/plain"] => self.no_handler(),
            ["rewritecond", test, ..] => self.is_conditional |= is_of_client(test),
            ["rewriterule", ..] => self.rewrite(words),
            ["redirectmatch", "403" | "404" | "410" | "gone", _] => {
                self.redirect(words[2].trim_start_matches("^/"));
            }
            ["redirect", "403" | "404" | "410" | "gone", _] => {
                let below = regex::escape(words[2].trim_matches('/'));
                self.redirect(&format!("^{below}(/|$)"));
            }
            _ => {}
        }
    }

    /// `RewriteRule pattern - [F]`.
    fn rewrite(&mut self, words: &[String]) {
        let is_conditional = std::mem::take(&mut self.is_conditional);
        let [_, pattern, _, flags, ..] = words else { return };
        let flags = flags.trim_matches(['[', ']']).to_ascii_lowercase();
        let mut flags = flags.split(',').map(str::trim);
        let is_refusal =
            |flag: &str| matches!(flag, "f" | "forbidden" | "g" | "gone" | "r=403" | "r=404");
        if !flags.any(is_refusal) {
            return;
        }
        match is_conditional {
            true => self.leave(),
            false => self.push(path(pattern), Effect::Deny),
        }
    }

    /// An error status for URLs, which only below the root are the paths that an expression is matched with.
    fn redirect(&mut self, pattern: &str) {
        let scope = if self.is_in_root { path(pattern) } else { Scope::All };
        self.push(scope, Effect::Deny);
    }

    /// PHP's handler is taken away. In the root it is set by the server's configuration or below.
    fn no_handler(&mut self) {
        let has_names = self.sections.iter().any(|section| matches!(section, Section::Names(_)));
        match self.is_in_root && !has_names {
            true => self.leave(),
            false => self.add(Effect::NoPhp),
        }
    }

    fn deny(&mut self) {
        match self.is_inverted() {
            true => self.leave(),
            false => self.add(Effect::Deny),
        }
    }

    fn grant(&mut self) {
        match self.is_inverted() {
            true => self.add(Effect::Deny),
            false => self.add(Effect::Grant),
        }
    }

    fn is_inverted(&self) -> bool {
        self.sections.iter().any(|section| matches!(section, Section::Inverted))
    }

    /// Adds a rule for the files of the sections around it. Access by other methods is the application's.
    fn add(&mut self, effect: Effect) {
        if self.sections.iter().any(|section| matches!(section, Section::OtherMethods)) {
            return self.leave();
        }
        let names = self.sections.iter().rev().find_map(|section| match section {
            Section::Names(regex) => Some(regex.clone()),
            _ => None,
        });
        match names {
            None => self.push(Scope::All, effect),
            Some(Some(regex)) => self.push(Scope::Name(regex), effect),
            Some(None) if effect == Effect::Grant => {}
            Some(None) => self.push(Scope::All, effect),
        }
    }

    fn push(&mut self, scope: Scope, effect: Effect) {
        self.all.rules.push(Rule { scope, effect });
    }

    fn leave(&mut self) {
        self.all.not_applied.push((self.line, self.text.to_owned()));
    }
}

/// Arguments, which may be in quotes.
fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '"' | '\'' => rest[1..].split_once(first).unwrap_or((&rest[1..], "")),
            _ => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        all.push(word.to_owned());
        rest = after.trim_start();
    }
    all
}

fn section(line: &str) -> Section {
    let inner = words(line.trim_start_matches('<').trim_end_matches('>'));
    let kind = inner.first().map(|kind| kind.to_ascii_lowercase()).unwrap_or_default();
    let argument = inner.last().filter(|_| inner.len() > 1).map_or("", String::as_str);
    match kind.as_str() {
        "filesmatch" => Section::Names(wider(argument)),
        "files" if inner.get(1).is_some_and(|word| word == "~") => Section::Names(wider(argument)),
        "files" => Section::Names(wildcards(argument)),
        "limit" if !has_get(&inner[1..]) => Section::OtherMethods,
        "limitexcept" if has_get(&inner[1..]) => Section::OtherMethods,
        "requirenone" => Section::Inverted,
        // Modules and versions are there or not; a condition may hold.
        _ => Section::Same,
    }
}

fn has_get(methods: &[String]) -> bool {
    methods.iter().any(|method| method.eq_ignore_ascii_case("get"))
}

/// Whether a condition is about the client or its request, not about the file.
fn is_of_client(test: &str) -> bool {
    ["%{http", "%{remote", "%{query", "%{the_request", "%{request_method"]
        .iter()
        .any(|one| test.starts_with(one))
}

/// The paths that an expression matches; all, if it is not understood.
fn path(pattern: &str) -> Scope {
    let (is_negated, expression) = match pattern.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    // What a negated expression without look-around matches is wider, and what it leaves narrower.
    let regex = if is_negated { compiled(expression) } else { wider(expression) };
    regex.map_or(Scope::All, |regex| Scope::Path { regex, is_negated })
}

fn compiled(expression: &str) -> Option<Regex> {
    RegexBuilder::new(expression).size_limit(EXPRESSION_MAX_BYTES).build().ok()
}

fn wider(expression: &str) -> Option<Regex> {
    compiled(expression).or_else(|| compiled(&without_look_around(expression)?))
}

/// An expression that matches at least the same: without its look-around, which no expression of ours has.
pub fn without_look_around(expression: &str) -> Option<String> {
    let mut all = expression.to_owned();
    while let Some(start) =
        ["(?!", "(?=", "(?<!", "(?<="].iter().filter_map(|one| all.find(one)).min()
    {
        let (mut depth, mut is_escaped, mut end) = (0usize, false, None);
        for (at, byte) in all.bytes().enumerate().skip(start) {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                end = Some(at);
                break;
            }
        }
        all.replace_range(start..=end?, "");
    }
    Some(all)
}

/// `*.tpl` and `?` of a file's name.
fn wildcards(name: &str) -> Option<Regex> {
    let mut expression = String::from("^");
    for c in name.chars() {
        match c {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' | ']' => expression.push(c),
            _ => expression.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    compiled(&format!("{expression}$"))
}
