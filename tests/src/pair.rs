//! A reference and a subject with the same application, and what may differ between their answers.

use crate::{App, Client, Form, FpmStack, Request, Response, Scrub, Server, Site, eventually};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Two servers that should be indistinguishable.
pub struct Pair {
    /// nginx + php-fpm.
    pub reference: Box<dyn Site>,
    /// Outboard, or whatever `OUTBOARD_E2E_SUBJECT` names.
    pub subject: Box<dyn Site>,
    scrub: Scrub,
    roots: [PathBuf; 2],
    host: Option<&'static str>,
}

/// Header fields that are left out of the comparison, and why.
const UNCOMPARED: &[(&str, &str)] = &[
    ("server", "each names itself"),
    ("date", "the clock"),
    ("connection", "nginx says keep-alive, which HTTP/1.1 means anyway (RFC 9112, section 9.3)"),
    ("keep-alive", "likewise"),
    ("transfer-encoding", "how a body ends is each server's choice (RFC 9112, section 6)"),
    ("content-length", "likewise; its truth is checked while the body is read"),
    ("etag", "nginx makes it of time and size; an application's own is compared as text in bodies"),
    ("via", "of scripts that another server of Outboard runs"),
    ("accept-ranges", "said of static files alone, in either's own way"),
];

impl Pair {
    /// Starts both servers with one application.
    pub fn start(app: &App) -> Pair {
        Pair::with(app, app)
    }

    /// Starts both servers, each with its own copy of an application.
    pub fn with(reference: &App, subject: &App) -> Pair {
        let roots = [reference.root.clone(), subject.root.clone()];
        let subject: Box<dyn Site> = match Pair::is_self_comparison() {
            true => Box::new(FpmStack::start(subject)),
            false => Box::new(Server::start(subject)),
        };
        Pair {
            reference: Box::new(FpmStack::start(reference)),
            subject,
            scrub: Scrub::new(),
            roots,
            host: None,
        }
    }

    /// Has visitors request the application under this name from both, instead of by their addresses.
    pub fn named(mut self, host: &'static str) -> Pair {
        self.host = Some(host);
        self
    }

    /// Another server of the same files in the subject's place; returns the one before.
    pub fn replace_subject(&mut self, subject: impl Site + 'static) -> Box<dyn Site> {
        std::mem::replace(&mut self.subject, Box::new(subject))
    }

    /// Whether a second reference stands in Outboard's place.
    pub fn is_self_comparison() -> bool {
        match std::env::var("OUTBOARD_E2E_SUBJECT").as_deref() {
            Ok("php-fpm") => true,
            Ok("outboard") | Err(_) => false,
            Ok(other) => panic!("OUTBOARD_E2E_SUBJECT is outboard or php-fpm, not {other:?}"),
        }
    }

    /// Sets what is taken out of headers and bodies before they are compared.
    pub fn scrubbed(mut self, scrub: Scrub) -> Pair {
        self.scrub = scrub;
        self
    }

    /// Sends one request to both, without cookies; see [`Visit::same`].
    #[track_caller]
    pub fn same(&self, request: &Request) -> Response {
        self.visit().same(request)
    }

    /// A visitor of both.
    pub fn visit(&self) -> Visit<'_> {
        let client = |site: &dyn Site| {
            let client = Client::new(site.address());
            match self.host {
                Some(host) => client.named(host),
                None => client,
            }
        };
        Visit { pair: self, reference: client(&*self.reference), subject: client(&*self.subject) }
    }

    /// Requests this until the response comes from a snapshot, for which the application boots meanwhile.
    #[track_caller]
    pub fn await_snapshot(&self, target: &str) {
        let mut visit = self.visit();
        eventually("pages come from the snapshot", || {
            visit.same(&Request::get(target));
            self.subject.rewinds() > 0
        });
    }

    /// What differs between two answers, or nothing.
    pub fn difference(&self, reference: &Response, subject: &Response) -> Option<String> {
        let mut found = Vec::new();
        if reference.status != subject.status {
            found.push(format!("status {} became {}", reference.status, subject.status));
        }
        if is_nginx_own_page(reference) {
            return (!found.is_empty()).then(|| found.join("\n  "));
        }
        let headers =
            |response: &Response, site: &dyn Site, root: &Path| -> BTreeMap<String, Vec<String>> {
                let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for (name, value) in &response.headers {
                    let name = name.to_ascii_lowercase();
                    if UNCOMPARED.iter().all(|(uncompared, _)| *uncompared != name) {
                        let value = if name == "content-type" && is_file(response) {
                            media_type(value)
                        } else {
                            value.clone()
                        };
                        let value = self.scrub.apply(&value, site, root);
                        headers.entry(name).or_default().push(value);
                    }
                }
                headers
            };
        let expected = headers(reference, &*self.reference, &self.roots[0]);
        let actual = headers(subject, &*self.subject, &self.roots[1]);
        for name in
            expected.keys().chain(actual.keys().filter(|name| !expected.contains_key(*name)))
        {
            if expected.get(name) != actual.get(name) {
                let (from, to) = (expected.get(name), actual.get(name));
                found.push(format!("{name}: {from:?} became {to:?}"));
            }
        }
        if reference.body != subject.body {
            let (expected, actual) = self.scrubbed_where_different(reference, subject);
            found.extend(lines_that_differ(&expected, &actual));
        }
        (!found.is_empty()).then(|| found.join("\n  "))
    }

    /// Both bodies; lines that are equal as they came are not looked at (most are, and pages are
    /// long).
    fn scrubbed_where_different(
        &self,
        reference: &Response,
        subject: &Response,
    ) -> (String, String) {
        let texts = [reference.text(), subject.text()];
        let [expected, actual] = texts.each_ref().map(|text| text.split('\n').collect::<Vec<_>>());
        let aligned = expected.len() == actual.len();
        let scrub = |lines: &[&str], others: &[&str], site: &dyn Site, root: &Path| -> String {
            let scrubbed = lines.iter().enumerate().map(|(index, line)| {
                match aligned && others[index] == *line {
                    true => (*line).to_owned(),
                    false => self.scrub.apply(line, site, root),
                }
            });
            scrubbed.collect::<Vec<_>>().join("\n")
        };
        (
            scrub(&expected, &actual, &*self.reference, &self.roots[0]),
            scrub(&actual, &expected, &*self.subject, &self.roots[1]),
        )
    }
}

/// One visitor, seen by both servers: each has its own cookies of it.
pub struct Visit<'a> {
    pair: &'a Pair,
    /// The visitor as the reference knows it.
    pub reference: Client,
    /// The visitor as the subject knows it.
    pub subject: Client,
}

impl Visit<'_> {
    /// Sends one request to both, panics with the differences between their answers, and returns
    /// the reference's, so that the test can say what it ought to be.
    #[track_caller]
    pub fn same(&mut self, request: &Request) -> Response {
        self.same_each(request, request)
    }

    /// Sends each its own request; for forms, whose hidden fields differ.
    #[track_caller]
    pub fn same_each(&mut self, reference: &Request, subject: &Request) -> Response {
        let (response, difference) = self.compare(reference, subject);
        if let Some(difference) = difference {
            let log = self.subject_log();
            panic!(
                "{} {} differs from {}:\n  {difference}\n--- log of {}:\n{}",
                reference.method,
                reference.target,
                self.pair.reference.name(),
                self.pair.subject.name(),
                log,
            );
        }
        response
    }

    /// How often the subject's workers were rewound.
    pub(crate) fn rewinds(&self) -> u64 {
        self.pair.subject.rewinds()
    }

    /// The last lines of the subject's log.
    pub(crate) fn subject_log(&self) -> String {
        let log = self.pair.subject.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Gets a page from both, fills in the form whose tag contains `marker` in each, and submits it;
    /// see [`Visit::same`]. The form's hidden fields are each page's own.
    #[track_caller]
    pub fn same_form(
        &mut self,
        target: &str,
        marker: &str,
        fill: impl Fn(Form) -> Form,
    ) -> Response {
        let [reference, subject] = self.forms(target, marker);
        self.same_each(&fill(reference).submit(), &fill(subject).submit())
    }

    /// Gets a page from both, which must be the same, and finds a form in each.
    #[track_caller]
    pub fn forms(&mut self, target: &str, marker: &str) -> [Form; 2] {
        let request = Request::get(target);
        let expected = self.reference.send(&request);
        let actual = self.subject.send(&request);
        if let Some(difference) = self.pair.difference(&expected, &actual) {
            panic!("GET {target} differs:\n  {difference}");
        }
        [(&self.reference, expected), (&self.subject, actual)]
            .map(|(client, page)| Form::find(&page.text(), marker, &client.url(target)))
    }

    /// A target of the reference as it is on the subject: parameters may name the site's address.
    pub(crate) fn translated(&self, target: &str) -> String {
        let [from, to] = [&self.pair.reference, &self.pair.subject].map(|site| site.address());
        let escaped = |address: std::net::SocketAddr| address.to_string().replace(':', "%3A");
        target.replace(&from.to_string(), &to.to_string()).replace(&escaped(from), &escaped(to))
    }

    /// Sends each its own request; returns the reference's answer and what differs.
    #[track_caller]
    pub fn compare(
        &mut self,
        reference: &Request,
        subject: &Request,
    ) -> (Response, Option<String>) {
        let expected = self.reference.send(reference);
        let actual = self.subject.send(subject);
        let difference = self.pair.difference(&expected, &actual);
        (expected, difference)
    }
}

/// Pages of errors and redirects that the server answers by itself are each server's own.
fn is_nginx_own_page(response: &Response) -> bool {
    response.status >= 300 && response.text().contains("<hr><center>nginx/")
}

/// Whether a server took an answer from a file: both say then that ranges of it can be had.
fn is_file(response: &Response) -> bool {
    response.header("accept-ranges").is_some() && response.header("x-powered-by").is_none()
}

/// The type of a file without what the two tables of types say in different words: Outboard names
/// the character set, and JavaScript and XML as RFC 9239 and RFC 7303 want them named.
fn media_type(value: &str) -> String {
    let plain = value.split(';').next().unwrap_or(value);
    match plain {
        "application/javascript" => "text/javascript".to_owned(),
        "text/xml" => "application/xml".to_owned(),
        other => other.to_owned(),
    }
}

/// Lines that one text has and the other has not, a few of each.
fn lines_that_differ(expected: &str, actual: &str) -> Vec<String> {
    const SHOWN: usize = 6;
    if expected == actual {
        return Vec::new();
    }
    let mut balance: BTreeMap<&str, i64> = BTreeMap::new();
    expected.lines().for_each(|line| *balance.entry(line).or_default() += 1);
    actual.lines().for_each(|line| *balance.entry(line).or_default() -= 1);
    let missing: Vec<&str> = expected.lines().filter(|line| balance[line] > 0).collect();
    let surplus: Vec<&str> = actual.lines().filter(|line| balance[line] < 0).collect();
    let mut shown =
        vec![format!("body of {} bytes became {} bytes:", expected.len(), actual.len())];
    for index in 0..missing.len().max(surplus.len()).min(SHOWN) {
        let (from, to) = (missing.get(index), surplus.get(index));
        let start = from.zip(to).map_or(0, |(from, to)| common_prefix(from, to));
        shown.extend(from.map(|line| format!("- {}", around(line, start))));
        shown.extend(to.map(|line| format!("+ {}", around(line, start))));
    }
    if shown.len() == 1 {
        shown.push("the same lines in another order or with other line ends".to_owned());
    }
    shown
}

/// How many characters two lines begin with in common.
fn common_prefix(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

/// The part of a line that a message can bear, from a little before `start`.
fn around(line: &str, start: usize) -> String {
    let skipped = start.saturating_sub(80);
    let mark = if skipped > 0 { "\u{2026}" } else { "" };
    mark.chars().chain(line.chars().skip(skipped).take(400)).collect()
}
