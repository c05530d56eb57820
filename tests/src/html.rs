//! What a visitor sees in a page: links and forms. Enough for the pages of real applications,
//! whose markup is regular; it is no parser of arbitrary HTML.

use crate::Request;
use regex::Regex;
use std::sync::OnceLock;

/// A form with the fields a browser would send, ready to be filled in and submitted.
#[derive(Clone, Debug)]
pub struct Form {
    action: String,
    post: bool,
    fields: Vec<(String, String)>,
    buttons: Vec<(String, String)>,
}

impl Form {
    /// Finds the form whose opening tag contains `marker`, in a page that was got from `page_url`.
    #[track_caller]
    pub fn find(html: &str, marker: &str, page_url: &str) -> Form {
        static FORM: OnceLock<Regex> = OnceLock::new();
        let form = FORM.get_or_init(|| pattern(r"(?is)<form\b([^>]*)>(.*?)</form>"));
        let found = form.captures_iter(html).find(|found| found[1].contains(marker));
        let found = found.unwrap_or_else(|| panic!("no form with {marker:?} in:\n{html}"));
        let (tag, inside) = (&found[1], &found[2]);
        let action = attribute(tag, "action").unwrap_or_default();
        let post = attribute(tag, "method").is_some_and(|m| m.eq_ignore_ascii_case("post"));
        let mut form = Form {
            action: resolve(page_url, &action).unwrap_or_else(|| page_url.to_owned()),
            post,
            fields: Vec::new(),
            buttons: Vec::new(),
        };
        form.read(inside);
        form
    }

    /// Sets a field, whether the form has it or not.
    pub fn set(mut self, name: &str, value: &str) -> Form {
        match self.fields.iter_mut().find(|(have, _)| have == name) {
            Some((_, have)) => *have = value.to_owned(),
            None => self.fields.push((name.to_owned(), value.to_owned())),
        }
        self
    }

    /// Sends the button of this name too.
    pub fn press(mut self, name: &str) -> Form {
        let button = self.buttons.iter().find(|(have, _)| have == name).cloned();
        self.fields.extend(button);
        self
    }

    /// The fields in the order of the page.
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// Where it is sent.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// The request that submits it, without files.
    pub fn submit(&self) -> Request {
        let fields: Vec<(&str, &str)> =
            self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let request = Request::form(&self.action, &fields);
        if self.post {
            return request;
        }
        let query = String::from_utf8(request.body).expect("form encoding is ASCII");
        let path = self.action.split('?').next().unwrap_or(&self.action);
        Request::get(&format!("{path}?{query}"))
    }

    fn read(&mut self, inside: &str) {
        static CONTROL: OnceLock<Regex> = OnceLock::new();
        static OPTION: OnceLock<Regex> = OnceLock::new();
        let control = CONTROL.get_or_init(|| {
            pattern(
                r#"(?isx) <input\b(?<input>(?:"[^"]*"|'[^']*'|[^>"'])*)>
                | <button\b(?<button>[^>]*)>
                | <textarea\b(?<area>[^>]*)>(?<text>.*?)</textarea>
                | <select\b(?<select>[^>]*)>(?<options>.*?)</select>"#,
            )
        });
        let option = OPTION.get_or_init(|| pattern(r"(?is)<option\b([^>]*)>([^<]*)"));
        for found in control.captures_iter(inside) {
            if let Some(tag) = found.name("input").or(found.name("button")) {
                self.read_input(tag.as_str(), found.name("button").is_some());
            } else if let (Some(tag), Some(text)) = (found.name("area"), found.name("text")) {
                if let Some(name) = attribute(tag.as_str(), "name") {
                    self.fields.push((name, unescape(text.as_str())));
                }
            } else if let (Some(tag), Some(options)) = (found.name("select"), found.name("options"))
            {
                let Some(name) = attribute(tag.as_str(), "name") else { continue };
                let all: Vec<_> = option.captures_iter(options.as_str()).collect();
                let chosen =
                    all.iter().find(|option| option[1].contains("selected")).or(all.first());
                if let Some(chosen) = chosen {
                    let value = attribute(&chosen[1], "value");
                    let value = value.unwrap_or_else(|| unescape(chosen[2].trim()));
                    self.fields.push((name, value));
                }
            }
        }
    }

    fn read_input(&mut self, tag: &str, is_button: bool) {
        let Some(name) = attribute(tag, "name") else { return };
        let value = attribute(tag, "value");
        let kind = attribute(tag, "type").unwrap_or_default().to_ascii_lowercase();
        match kind.as_str() {
            "submit" | "image" | "button" => self.buttons.push((name, value.unwrap_or_default())),
            _ if is_button => self.buttons.push((name, value.unwrap_or_default())),
            "file" | "reset" => {}
            "checkbox" | "radio" => {
                if tag.contains("checked") {
                    self.fields.push((name, value.unwrap_or_else(|| "on".to_owned())));
                }
            }
            _ => self.fields.push((name, value.unwrap_or_default())),
        }
    }
}

/// The targets of all links of a page on its own site: pages, styles, scripts, images.
pub(crate) fn links(html: &str, page_url: &str) -> Vec<String> {
    static LINK: OnceLock<Regex> = OnceLock::new();
    let link = LINK.get_or_init(|| pattern(r#"(?i)\b(?:href|src)\s*=\s*(?:"([^"]*)"|'([^']*)')"#));
    link.captures_iter(html)
        .filter_map(|found| found.get(1).or(found.get(2)))
        .filter_map(|value| resolve(page_url, &unescape(value.as_str())))
        .collect()
}

/// The path and query that `reference` means in the page `base`, if it stays on the site
/// (RFC 3986, section 5.2). An absolute URL is taken for the site's own only when it is `base`'s.
fn resolve(base: &str, reference: &str) -> Option<String> {
    let reference = reference.trim().split('#').next().unwrap_or_default();
    let (origin, base_target) = split_origin(base);
    if reference.is_empty() {
        return Some(base_target.to_owned());
    }
    let (reference_origin, target) = split_origin(reference);
    if !reference_origin.is_empty() {
        let same =
            reference_origin.trim_start_matches("http:") == origin.trim_start_matches("http:");
        return same.then(|| if target.is_empty() { "/".to_owned() } else { target.to_owned() });
    }
    let scheme = reference.split(['/', '?']).next().unwrap_or_default();
    if scheme.contains(':') {
        return None;
    }
    let base_path = base_target.split('?').next().unwrap_or_default();
    let joined = if reference.starts_with('/') {
        reference.to_owned()
    } else if reference.starts_with('?') {
        format!("{base_path}{reference}")
    } else {
        let folder = base_path.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{reference}")
    };
    // As browsers do; a space would end the target on the wire.
    Some(without_dots(&joined).replace(' ', "%20"))
}

fn split_origin(url: &str) -> (&str, &str) {
    let Some(start) = url.find("//").filter(|&at| at == 0 || url[..at].ends_with(':')) else {
        return ("", url);
    };
    // A double slash in the middle of a query is no origin.
    if start > 6 {
        return ("", url);
    }
    let end = url[start + 2..].find('/').map_or(url.len(), |at| at + start + 2);
    url.split_at(end)
}

fn without_dots(target: &str) -> String {
    let (path, query) = target.split_once('?').map_or((target, None), |(p, q)| (p, Some(q)));
    let mut segments: Vec<&str> = Vec::new();
    let all: Vec<&str> = path.split('/').skip(1).collect();
    for (index, segment) in all.iter().enumerate() {
        let last = index + 1 == all.len();
        match *segment {
            "." | ".." => {
                if *segment == ".." {
                    segments.pop();
                }
                if last {
                    segments.push("");
                }
            }
            other => segments.push(other),
        }
    }
    let path = format!("/{}", segments.join("/"));
    query.map_or(path.clone(), |query| format!("{path}?{query}"))
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let found =
        pattern(&format!(r#"(?is)(?:^|\s){name}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"#));
    let found = found.captures(tag)?;
    found.iter().skip(1).flatten().next().map(|value| unescape(value.as_str()))
}

fn unescape(text: &str) -> String {
    const NAMED: &[(&str, &str)] =
        &[("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&nbsp;", "\u{a0}")];
    static NUMBER: OnceLock<Regex> = OnceLock::new();
    if !text.contains('&') {
        return text.to_owned();
    }
    let number = NUMBER.get_or_init(|| pattern(r"&#(?:x([0-9a-fA-F]+)|(\d+));"));
    let mut plain = number
        .replace_all(text, |found: &regex::Captures| {
            let code = match (found.get(1), found.get(2)) {
                (Some(hexadecimal), _) => u32::from_str_radix(hexadecimal.as_str(), 16).ok(),
                (_, Some(decimal)) => decimal.as_str().parse().ok(),
                _ => None,
            };
            code.and_then(char::from_u32).map_or(found[0].to_owned(), String::from)
        })
        .into_owned();
    for (entity, character) in NAMED {
        plain = plain.replace(entity, character);
    }
    plain.replace("&amp;", "&")
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| panic!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_against_their_page() {
        let html = r##"<a href="b?x=1&amp;y=2#z">1</a><a href='/c'>2</a><a href="../d/">3</a>
            <a href="http://h:1/e">4</a><a href="//other/f">5</a><a href="mailto:a@b">6</a><a href="?q">7</a>"##;
        let found = links(html, "http://h:1/dir/page?old");
        assert_eq!(found, ["/dir/b?x=1&y=2", "/c", "/d/", "/e", "/dir/page?q"]);
    }

    #[test]
    fn a_form_sends_what_a_browser_would_send() {
        let html = r#"<form id="f" method="post" action="/go"><input type=hidden name="h" value="1&amp;2">
            <input type="checkbox" name="off"><input type="checkbox" name="on" checked>
            <select name="s"><option value="a">A<option value="b" selected>B</select>
            <textarea name="t">text</textarea><input type="submit" name="save" value="Save"></form>"#;
        let form = Form::find(html, "id=\"f\"", "http://h/").set("h", "3").press("save");
        let request = form.submit();
        assert_eq!(request.target, "/go");
        assert_eq!(request.body, b"h=3&on=on&s=b&t=text&save=Save");
    }
}
