//! Responses for files that are compressed on demand.

use crate::scratch::Scratch;
use crate::{CompressedFiles, Entry, Lookup, Part, Plan, Root, RootOptions, plan};
use outboard_http_semantics::{Coding, Conditions};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// What stands for the compressed body.
const CODED: &[u8] = b"coded";

struct Site {
    scratch: Scratch,
    root: Root,
    files: Arc<CompressedFiles>,
}

impl Site {
    /// A root with `/a.css`, which is long enough.
    fn new() -> Self {
        let scratch = Scratch::new();
        scratch.file("a.css", "body {}".repeat(200));
        let files = Arc::new(CompressedFiles::new(64 << 10));
        let compressed_files = Some(Arc::clone(&files));
        let options = RootOptions { compressed_files, ..RootOptions::default() };
        let root = Root::open(scratch.path(), options).unwrap();
        Self { scratch, root, files }
    }

    fn entry(&self, path: &str) -> Rc<Entry> {
        match self.root.lookup(path.as_bytes(), 0) {
            Lookup::File(entry) => entry,
            other => panic!("{path} is {other:?}"),
        }
    }

    /// The entry, once it is kept in this coding; `None` for one that does not make it smaller.
    fn kept(&self, coding: Coding, coded: Option<&[u8]>) -> Rc<Entry> {
        let started = Instant::now();
        loop {
            self.root.clear_cache();
            let entry = self.entry("/a.css");
            if let Some(file) = entry.compression(coding) {
                file.keep(coded.map(<[u8]>::to_vec));
                return entry;
            }
            assert!(started.elapsed().as_secs() < 10, "never settles");
        }
    }
}

fn header<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
    let value = plan.headers.iter().find(|(theirs, _)| *theirs == name);
    value.map(|(_, value)| std::str::from_utf8(value).unwrap())
}

fn get(entry: &Entry, accept_encoding: &str) -> Plan {
    plan(entry, Some(accept_encoding.as_bytes()), &Conditions::default())
}

fn get_if(entry: &Entry, accept_encoding: &str, conditions: Conditions<'_>) -> Plan {
    plan(entry, Some(accept_encoding.as_bytes()), &conditions)
}

fn is_coded(plan: &Plan) -> bool {
    let is_coded = matches!(&plan.body[..], [Part::Compressed(file)] if file.bytes() == CODED);
    assert_eq!(is_coded, header(plan, "Content-Encoding").is_some());
    is_coded
}

#[test]
fn a_file_is_sent_as_it_is_until_it_is_kept() {
    let site = Site::new();
    let before = get(&site.entry("/a.css"), "gzip");
    assert_eq!((before.status, before.content_length), (200, 1400));
    assert_eq!((before.missing, is_coded(&before)), (Some(Coding::Gzip), false));
    assert_eq!(header(&before, "Vary"), Some("Accept-Encoding"));
    let entry = site.kept(Coding::Gzip, Some(CODED));
    let after = get(&entry, "gzip");
    assert_eq!((after.status, after.content_length, after.missing), (200, 5, None));
    assert!(is_coded(&after));
    assert_eq!(header(&after, "Content-Encoding"), Some("gzip"));
    assert_eq!(header(&after, "Vary"), Some("Accept-Encoding"));
    assert_eq!(header(&after, "Content-Type"), header(&before, "Content-Type"));
    assert_eq!(header(&after, "Last-Modified"), header(&before, "Last-Modified"));
    let tags = (header(&before, "ETag").unwrap(), header(&after, "ETag").unwrap());
    assert_eq!(tags.1, format!("{}-gzip\"", tags.0.trim_end_matches('"')));
    // Another entry for the same file finds it as well.
    site.root.clear_cache();
    assert!(is_coded(&get(&site.entry("/a.css"), "gzip")));
}

#[test]
fn roots_with_the_same_memory_share_what_is_kept() {
    let site = Site::new();
    let entry = site.kept(Coding::Gzip, Some(CODED));
    let compressed_files = Some(Arc::clone(&site.files));
    let options = RootOptions { compressed_files, ..RootOptions::default() };
    let path = site.scratch.path().to_owned();
    let of_another_thread = std::thread::spawn(move || {
        let root = Root::open(&path, options).unwrap();
        let Lookup::File(entry) = root.lookup(b"/a.css", 0) else { panic!("it exists") };
        let plan = get(&entry, "gzip");
        (is_coded(&plan), header(&plan, "ETag").map(str::to_owned))
    });
    let tag = header(&get(&entry, "gzip"), "ETag").map(str::to_owned);
    assert_eq!(of_another_thread.join().unwrap(), (true, tag));
}

#[test]
fn the_weights_of_the_client_decide() {
    let site = Site::new();
    let entry = site.kept(Coding::Gzip, Some(CODED));
    for (accept_encoding, expected, missing) in [
        ("gzip", true, None),
        ("GZIP;q=0.1", true, None),
        ("gzip;q=0", false, None),
        ("gzip;q=0, *", false, Some(Coding::Brotli)),
        ("identity;q=0", false, Some(Coding::Brotli)),
        ("identity;q=0, gzip;q=0.5", true, None),
        ("identity, gzip;q=0.5", false, None),
        ("*", false, Some(Coding::Brotli)),
        ("*;q=0", false, None),
        ("gzip, zstd;q=0.5", true, None),
        ("zstd, gzip;q=0.5", false, Some(Coding::Zstd)),
        ("deflate", false, None),
        ("", false, None),
    ] {
        let plan = get(&entry, accept_encoding);
        assert_eq!((is_coded(&plan), plan.missing), (expected, missing), "{accept_encoding}");
        assert_eq!(header(&plan, "Vary"), Some("Accept-Encoding"));
    }
    let plan = plan(&entry, None, &Conditions::default());
    assert_eq!((is_coded(&plan), plan.missing), (false, None));
}

#[test]
fn head_announces_the_coded_body() {
    let site = Site::new();
    let entry = site.kept(Coding::Gzip, Some(CODED));
    let conditions = || Conditions { is_head: true, ..Conditions::default() };
    let head = get_if(&entry, "gzip", conditions());
    assert_eq!((head.content_length, head.body.len()), (5, 0));
    assert_eq!(header(&head, "Content-Encoding"), Some("gzip"));
    // A range means nothing for HEAD (RFC 9110 14.2).
    let ranged = get_if(&entry, "gzip", Conditions { range: Some(b"bytes=0-1"), ..conditions() });
    assert_eq!((ranged.status, ranged.content_length), (200, 5));
}

#[test]
fn a_coding_that_does_not_make_the_file_smaller_is_not_tried_again() {
    let site = Site::new();
    let entry = site.kept(Coding::Gzip, None);
    let plan = get(&entry, "gzip");
    assert_eq!((is_coded(&plan), plan.missing, plan.content_length), (false, None, 1400));
    assert!(entry.compression(Coding::Gzip).is_none());
    assert_eq!(get(&entry, "br").missing, Some(Coding::Brotli));
}

#[test]
fn each_tag_is_that_of_one_coding() {
    let site = Site::new();
    let entry = site.kept(Coding::Gzip, Some(CODED));
    let plain = entry.etag().to_owned();
    let coded = header(&get(&entry, "gzip"), "ETag").unwrap().to_owned();
    let other =
        header(&get(&site.kept(Coding::Brotli, Some(CODED)), "br"), "ETag").unwrap().to_owned();
    let none_match = |accept_encoding: &str, tag: &str| {
        let if_none_match = Some(tag.as_bytes());
        get_if(&entry, accept_encoding, Conditions { if_none_match, ..Conditions::default() })
    };
    let same = none_match("gzip", &coded);
    assert_eq!((same.status, header(&same, "ETag")), (304, Some(&coded[..])));
    assert_eq!(header(&same, "Vary"), Some("Accept-Encoding"));
    assert!(is_coded(&none_match("gzip", &plain)));
    assert!(is_coded(&none_match("gzip", &other)));
    assert_eq!((none_match("", &coded).status, none_match("", &plain).status), (200, 304));
    assert_eq!(none_match("gzip", &format!("{other}, W/{coded}")).status, 304);
    let if_match = |tag: &str| {
        let if_match = Some(tag.as_bytes());
        get_if(&entry, "gzip", Conditions { if_match, ..Conditions::default() }).status
    };
    assert_eq!((if_match(&coded), if_match(&plain), if_match("*")), (200, 412, 200));
}

#[test]
fn a_client_that_has_the_coded_file_needs_no_other_later() {
    let site = Site::new();
    let coded = format!("{}-gzip\"", site.entry("/a.css").etag().trim_end_matches('"'));
    let entry = site.entry("/a.css");
    let if_none_match = Some(coded.as_bytes());
    let plan = get_if(&entry, "gzip", Conditions { if_none_match, ..Conditions::default() });
    assert_eq!((plan.status, header(&plan, "ETag")), (304, Some(&coded[..])));
    let refused = get_if(&entry, "br", Conditions { if_none_match, ..Conditions::default() });
    assert_eq!((refused.status, refused.missing), (200, Some(Coding::Brotli)));
}

#[test]
fn ranges_are_of_the_file_itself() {
    let site = Site::new();
    let entry = site.kept(Coding::Gzip, Some(CODED));
    let coded = header(&get(&entry, "gzip"), "ETag").unwrap().to_owned();
    let ranged = |if_range: Option<&str>| {
        let if_range = if_range.map(str::as_bytes);
        let conditions =
            Conditions { range: Some(b"bytes=2-4"), if_range, ..Conditions::default() };
        let plan = get_if(&entry, "gzip", conditions);
        assert!(!is_coded(&plan) && header(&plan, "Vary").is_some());
        (plan.status, plan.content_length, plan.missing)
    };
    assert_eq!(ranged(None), (206, 3, None));
    assert_eq!(ranged(Some(entry.etag())), (206, 3, None));
    // What the client has cannot be continued.
    assert_eq!(ranged(Some(&coded)), (200, 1400, None));
}

#[test]
fn a_changed_file_is_compressed_anew() {
    let site = Site::new();
    site.kept(Coding::Gzip, Some(CODED));
    site.scratch.file("a.css", "body {}".repeat(300));
    site.root.clear_cache();
    let plan = get(&site.entry("/a.css"), "gzip");
    assert_eq!((is_coded(&plan), plan.missing), (false, Some(Coding::Gzip)));
    assert!(is_coded(&get(&site.kept(Coding::Gzip, Some(CODED)), "gzip")));
}

#[test]
fn siblings_are_before_what_is_compressed_on_demand() {
    let site = Site::new();
    site.kept(Coding::Brotli, Some(CODED));
    site.scratch.file("a.css.gz", "sibling");
    site.root.clear_cache();
    let entry = site.entry("/a.css");
    let both = get(&entry, "gzip, br");
    assert_eq!((header(&both, "Content-Encoding"), both.content_length), (Some("gzip"), 7));
    assert!(is_coded(&get(&entry, "br")));
    assert_eq!(get(&entry, "zstd").missing, Some(Coding::Zstd));
}

#[test]
fn short_large_and_dense_files_are_sent_as_they_are() {
    let site = Site::new();
    site.scratch.file("short.css", "a");
    site.scratch.file("large.css", "a".repeat(32 << 10));
    site.scratch.file("photo.png", "a".repeat(2048));
    for path in ["/short.css", "/large.css", "/photo.png"] {
        let entry = site.entry(path);
        let plan = get(&entry, "br");
        assert_eq!((plan.missing, header(&plan, "Vary")), (None, None), "{path}");
        assert!(entry.compression(Coding::Brotli).is_none());
    }
}
