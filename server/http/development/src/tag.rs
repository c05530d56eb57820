//! The script tag that live reload appends to pages.
//!
//! Called by everything that responds with a page. Invariant: a page is changed in development
//! only, at its end, and its length is announced accordingly.

use crate::development::Development;
use outboard_http_server::HeaderBlock;
use outboard_static_files::{Part, Plan};
use std::borrow::Cow;

/// Browsers treat what follows `</html>` as part of the body (HTML, 13.2.6.4.22).
const TAG: &[u8] = b"\n<script src=\"/.outboard/live.js\" async></script>\n";

/// The tag for a page with these header lines; empty in production.
#[inline]
pub fn of(development: Option<&Development>, headers: &HeaderBlock) -> &'static [u8] {
    if is_live(development) && is_plain_html(headers.lines()) { TAG } else { b"" }
}

fn is_live(development: Option<&Development>) -> bool {
    development.is_some_and(|development| development.is_live())
}

/// Appends the tag to a page that is a complete file.
pub fn append_to_file(development: Option<&Development>, plan: &mut Plan) {
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
pub fn append<'a>(
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
    use crate::test_project::Project;
    use outboard_config as config;
    use outboard_http_semantics::Conditions;
    use outboard_reactor::testing::in_loop;
    use outboard_static_files::{Lookup, Root, RootOptions};

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

    /// The plan of a file of the project, as it is sent with and without live reload.
    fn plans(name: &str, is_live: bool) -> (Plan, Plan) {
        let project = Project::new();
        project.write(name, "<p>page</p>");
        let root = Root::open(project.directory(), RootOptions::default()).unwrap();
        let path = format!("/{name}");
        let Lookup::File(entry) = root.lookup(path.as_bytes(), 0) else { panic!("a file") };
        let plan = outboard_static_files::plan(&entry, None, &Conditions::default());
        let config = config::Development { live_reload: is_live, ..project.config() };
        let (development, _) = Development::watch(&config, &project.configuration(), None);
        let mut with_tag = plan.clone();
        append_to_file(Some(&development), &mut with_tag);
        (plan, with_tag)
    }

    #[test]
    fn a_page_that_is_a_file_is_longer_by_its_tag() {
        in_loop(async {
            let (plan, with_tag) = plans("a.html", true);
            assert_eq!(with_tag.content_length, plan.content_length + TAG.len() as u64);
            let Some(Part::Bytes(last)) = with_tag.body.last() else { panic!("{with_tag:?}") };
            assert_eq!(last, TAG);
            // As for HEAD, whose length is that of the page.
            let mut head = Plan { body: Default::default(), ..plan.clone() };
            let project = Project::new();
            let (development, _) =
                Development::watch(&project.config(), &project.configuration(), None);
            append_to_file(Some(&development), &mut head);
            assert_eq!((head.content_length, head.body.len()), (with_tag.content_length, 0));
            // A part of a page has no end, and production no tag.
            let mut part = Plan { status: 206, ..plan.clone() };
            append_to_file(Some(&development), &mut part);
            assert_eq!(part.content_length, plan.content_length);
            let mut production = plan.clone();
            append_to_file(None, &mut production);
            assert_eq!(production.content_length, plan.content_length);
        });
    }

    #[test]
    fn other_files_and_servers_without_live_reload_have_no_tag() {
        in_loop(async {
            for (name, is_live) in [("a.txt", true), ("a.html", false)] {
                let (plan, with_tag) = plans(name, is_live);
                assert_eq!(with_tag.content_length, plan.content_length, "{name}");
            }
        });
    }
}
