//! The script tag that live reload appends to pages.
//!
//! Called by everything that responds with a page. Invariant: a page is changed in development
//! only, at its end, and its length is announced accordingly.

use super::Development;
use outboard_http_server::HeaderBlock;
use outboard_static_files::{Part, Plan};
use std::borrow::Cow;

/// Browsers treat what follows `</html>` as part of the body (HTML, 13.2.6.4.22).
const TAG: &[u8] = b"\n<script src=\"/.outboard/live.js\" async></script>\n";

/// The tag for a page with these header lines; empty in production.
pub(crate) fn of(development: Option<&Development>, headers: &HeaderBlock) -> &'static [u8] {
    if is_live(development) && is_plain_html(headers.lines()) { TAG } else { b"" }
}

fn is_live(development: Option<&Development>) -> bool {
    development.is_some_and(|development| development.is_live())
}

/// Appends the tag to a page that is a complete file.
pub(crate) fn append_to_file(development: Option<&Development>, plan: &mut Plan) {
    let lines = plan.headers.iter().map(|(name, value)| (name.as_bytes(), &value[..]));
    if plan.status != 200 || !is_live(development) || !is_plain_html(lines) {
        return;
    }
    plan.content_length += TAG.len() as u64;
    if !plan.body.is_empty() {
        plan.body.push(Part::Bytes(TAG.to_vec()));
    }
}

/// A page with its tag.
pub(crate) fn append<'a>(
    development: Option<&Development>,
    headers: &HeaderBlock,
    body: &'a [u8],
) -> Cow<'a, [u8]> {
    match of(development, headers) {
        b"" => Cow::Borrowed(body),
        tag => Cow::Owned([body, tag].concat()),
    }
}

fn is_plain_html<'a>(lines: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> bool {
    let (mut is_html, mut is_coded) = (false, false);
    for (name, value) in lines {
        is_coded |= name.eq_ignore_ascii_case(b"content-encoding");
        is_html |= name.eq_ignore_ascii_case(b"content-type")
            && value.get(..9).is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/html"));
    }
    is_html && !is_coded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_html_is_a_page() {
        let block = |lines: &[(&str, &str)]| {
            let mut block = HeaderBlock::default();
            lines.iter().for_each(|(name, value)| {
                block.add(name.as_bytes(), value.as_bytes()).unwrap();
            });
            block
        };
        assert!(is_plain_html(block(&[("content-type", "Text/HTML; charset=utf-8")]).lines()));
        assert!(!is_plain_html(block(&[("Content-Type", "application/json")]).lines()));
        assert!(!is_plain_html(block(&[]).lines()));
        let coded = [("Content-Type", "text/html"), ("Content-Encoding", "gzip")];
        assert!(!is_plain_html(block(&coded).lines()));
    }
}
